"""LdSM in slow, obvious Python: the twin that the compiled core must equal, decision for decision.

It follows the paper's Algorithms 1 to 5 (Majzoubi and Choromanska, AISTATS 2020) in double
precision, with these choices where the paper leaves one:

- a row's set of directions minimises C * J, in which the counts cancel; exact equals are drawn from
  at random, "all directions" never wins a tie;
- regressors start at zero, have a bias, and are trained on the logistic loss of the raw margin;
- a split with an empty child, or a child that has all the rows, is tried again with half of
  lambda 1, `relaxations` times, then given up; where some direction gets next to nothing of the
  rows, that is noticed at the end of an epoch;
- weights that can add little to a margin are dropped, and the others rounded if wanted, before the
  rows are routed.
"""

import heapq
import itertools
import math

import numpy as np

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
ONE_SIDED = 0.05


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def tree_key(seed, tree):
    return mix((mix((seed + GOLDEN) & MASK) + (tree + 1) * GOLDEN) & MASK)


def child_key(key, child):
    return mix((key + (child + 1) * GOLDEN) & MASK)


class Stream:
    def __init__(self, key):
        self.key, self.counter = key, 0

    def below(self, n):
        self.counter += 1
        return (mix((self.key + self.counter * GOLDEN) & MASK) * n) >> 64


def shuffle(items, stream):
    for i in range(len(items) - 1, 0, -1):
        j = stream.below(i + 1)
        items[i], items[j] = items[j], items[i]


def bag(seed, tree, n_rows, subsample):
    """The rows of one tree: selection sampling, exactly round(subsample * n_rows) of them."""
    if subsample >= 1:
        return list(range(n_rows))
    missing = max(1, math.floor(subsample * n_rows + 0.5))
    stream = Stream(mix(tree_key(seed, tree) ^ 0x73616D706C))
    rows = []
    for row in range(n_rows):
        if stream.below(n_rows - row) < missing:
            rows.append(row)
            missing -= 1
    return rows


def row_order(seed, tree, n_rows, subsample):
    """Blocks of 4,096 rows are permuted, then the rows within each window of 64 blocks."""
    kept = set(bag(seed, tree, n_rows, subsample))
    stream = Stream(mix(tree_key(seed, tree) ^ 0x6F72646572))
    blocks = list(range((n_rows + 4095) // 4096))
    shuffle(blocks, stream)
    order = []
    for start in range(0, len(blocks), 64):
        window = [
            row
            for block in blocks[start : start + 64]
            for row in range(block * 4096, min(n_rows, (block + 1) * 4096))
            if row in kept
        ]
        shuffle(window, stream)
        order += window
    return order


def plain_sum(values):
    """A sum from left to right; from Python 3.12 on, `sum` corrects what rounding loses."""
    result = 0.0
    for value in values:
        result += value
    return result


def clamp(margin):
    """Clamped to [0, 1], as a float32: sums of such numbers are exact in double precision, so that
    candidates which are equal in algebra are equal in the machine, here and in the core."""
    return float(np.float32(min(max(margin, 0.0), 1.0)))


def sigmoid(margin):
    return 1 / (1 + math.exp(-min(max(margin, -60.0), 60.0)))


class Node:
    def __init__(self, path, key, rows):
        self.path, self.key, self.rows = path, key, rows
        self.children = []
        self.weights = None  # per direction: {feature: weight}; the bias is feature D
        self.means, self.scales = {}, {}
        self.histogram = {}
        self.integrity_weight = None
        self.epoch_objective = []


class NaiveTree:
    """`X`: rows as {feature: value}. `Y`: rows as sorted lists of labels."""

    def __init__(
        self,
        X,
        Y,
        n_features,
        *,
        seed,
        tree,
        arity,
        max_nodes,
        n_epochs,
        learning_rate,
        integrity_weight,
        multiway_penalty,
        relaxations,
        optimizer,
        standardize,
        subsample,
        min_split_labels,
        prune_share,
        compress,
    ):
        self.X, self.Y, self.D, self.M = X, Y, n_features, arity
        self.n_epochs, self.eta = n_epochs, learning_rate
        self.lambda1, self.lambda2 = integrity_weight, multiway_penalty
        self.relaxations, self.optimizer, self.standardize = relaxations, optimizer, standardize
        self.min_split_labels, self.prune_share = min_split_labels, prune_share
        self.compress = compress
        self.build(row_order(seed, tree, len(X), subsample), tree_key(seed, tree), max_nodes)

    # -- Algorithm 1: BuildTree ---------------------------------------------------------------

    def build(self, rows, key, max_nodes):
        root = Node((), key, rows)
        self.count_labels(root)
        self.nodes = [root]
        queue = []
        self.push(queue, root)
        while queue and len(self.nodes) + self.M <= max_nodes:
            _, _, node = heapq.heappop(queue)
            if self.split(node):
                self.nodes += node.children
                for child in node.children:
                    self.push(queue, child)

    def push(self, queue, node):
        counts = node.histogram.values()
        priority = sum(counts) - max(counts) if counts else 0
        if priority > 0 and len(node.rows) > 1 and sum(counts) >= self.min_split_labels:
            heapq.heappush(queue, (-priority, node.path, node))  # equal: the smaller path first

    def count_labels(self, node):
        for row in node.rows:
            for label in self.Y[row]:
                node.histogram[label] = node.histogram.get(label, 0) + 1

    # -- a node -------------------------------------------------------------------------------

    def split(self, node):
        self.measure_features(node)
        stream = Stream(node.key)
        integrity_weight = self.lambda1
        for attempt in range(1 + self.relaxations):
            last = attempt == self.relaxations
            promising = self.train_regressors(node, integrity_weight, stream, last=last)
            if promising and self.create_children(node):
                node.integrity_weight = integrity_weight
                return True
            integrity_weight /= 2
        node.weights = None
        return False

    def measure_features(self, node):
        if not self.standardize:
            return
        n = len(node.rows)
        for f in range(self.D):
            column = [self.X[row].get(f, 0.0) for row in node.rows]
            mean = plain_sum(column) / n
            variance = plain_sum((v - mean) ** 2 for v in column) / n
            node.means[f] = mean
            node.scales[f] = 1 / math.sqrt(variance) if variance > 1e-12 * mean * mean else 0.0

    def features(self, node, row):
        """What the regressors see of a row: its features and the bias."""
        if self.standardize:
            x = {
                f: (self.X[row].get(f, 0.0) - node.means[f]) * node.scales[f] for f in range(self.D)
            }
        else:
            x = dict(self.X[row])
        x[self.D] = 1.0
        return x

    # -- Algorithm 4: TrainRegressors ---------------------------------------------------------

    def train_regressors(self, node, integrity_weight, stream, *, last):
        """False: given up, unless it is the `last` attempt, as some direction gets nothing."""
        M = self.M
        w = [{} for _ in range(M)]
        total = [
            {} for _ in range(M)
        ]  # NAG: sums of squared gradients. Averaged SGD: sums of weights
        largest = {}  # NAG: largest |x| of each feature
        averaged = 0
        N = t = C = 0
        A = {}
        B = [0.0] * M
        node.epoch_objective = []
        for epoch in range(self.n_epochs):
            for row in node.rows:
                y = self.Y[row]
                if not y:
                    continue
                x = self.features(node, row)
                n = len(y)
                C += n
                target = self.optimize_objective(A, B, C, y, integrity_weight, stream)
                t += 1
                if self.optimizer == "nag":
                    for f, v in x.items():
                        if abs(v) > largest.get(f, 0.0):
                            for m in range(M):
                                w[m][f] = w[m].get(f, 0.0) * largest.get(f, 0.0) / abs(v)
                            largest[f] = abs(v)
                    N += plain_sum((v / largest[f]) ** 2 for f, v in x.items() if v != 0)
                for m in range(M):
                    margin = plain_sum(w[m].get(f, 0.0) * v for f, v in x.items())
                    slope = sigmoid(margin) - target[m]
                    for f, v in x.items():
                        g = slope * v
                        if self.optimizer == "nag":
                            total[m][f] = total[m].get(f, 0.0) + g * g
                            if total[m][f] > 0:
                                step = math.sqrt(t / N) * g / (largest[f] * math.sqrt(total[m][f]))
                                w[m][f] = w[m].get(f, 0.0) - self.eta * step
                        else:
                            w[m][f] = w[m].get(f, 0.0) - self.eta * g
                    pred = clamp(plain_sum(w[m].get(f, 0.0) * v for f, v in x.items()))
                    B[m] += n * pred
                    for label in y:
                        A.setdefault(label, [0.0] * M)[m] += pred
                if self.optimizer == "asgd" and epoch == self.n_epochs - 1:
                    averaged += 1
                    for m in range(M):
                        for f, v in w[m].items():
                            total[m][f] = total[m].get(f, 0.0) + v
            node.epoch_objective.append(self.objective(A, B, C, integrity_weight))
            if not last and min(B) < ONE_SIDED * max(B):
                return False
        if averaged:
            w = [{f: v / averaged for f, v in total[m].items()} for m in range(M)]
        node.weights = self.pruned(w, self.largest_values(node))
        if self.compress:
            node.weights = self.rounded(node.weights)
        return True

    def largest_values(self, node):
        if self.standardize:
            return dict.fromkeys(range(self.D), 1.0)
        largest = {}
        for row in node.rows:
            for f, v in self.X[row].items():
                largest[f] = max(largest.get(f, 0.0), abs(v))
        return largest

    def pruned(self, w, largest):
        """Without weights that are tiny, or add hardly anything beside the strongest feature."""
        most = max((abs(v) * largest[f] for d in w for f, v in d.items() if f != self.D), default=0)
        least = min(1e-3, 1 / max(1, self.D))
        return [
            {
                f: v
                for f, v in direction.items()
                if abs(v) >= least
                and (f == self.D or abs(v) * largest[f] >= self.prune_share * most)
            }
            for direction in w
        ]

    def rounded(self, w):
        """Multiples of a unit, -127 to 127, without those that come to nothing."""
        unit = max((abs(v) for d in w for v in d.values()), default=0) / 127
        rounded = [{f: unit * round(v / unit) for f, v in direction.items()} for direction in w]
        return [{f: v for f, v in direction.items() if v} for direction in rounded]

    def objective(self, A, B, C, integrity_weight):
        pairs = list(itertools.combinations(range(self.M), 2))
        if C == 0:
            return 0.0
        balance = plain_sum(abs(B[j] - B[k]) for j, k in pairs)
        integrity = plain_sum(abs(a[j] - a[k]) for a in A.values() for j, k in pairs)
        return (balance - integrity_weight * integrity + self.lambda2 * abs(plain_sum(B) - C)) / C

    # -- Algorithm 3: OptimizeObjective, in C * J ---------------------------------------------

    def optimize_objective(self, A, B, C, y, integrity_weight, stream):
        n = len(y)
        costs = {}
        for mask in range(1, 2**self.M):
            s = [(mask >> m) & 1 for m in range(self.M)]
            cost = 0.0
            for j, k in itertools.combinations(range(self.M), 2):
                apart = s[j] - s[k]
                integrity = 0.0
                for label in y:
                    a = A.get(label, [0.0] * self.M)
                    integrity += abs(a[j] - a[k] + apart)
                cost += abs(B[j] - B[k] + n * apart) - integrity_weight * integrity
            costs[mask] = cost + self.lambda2 * abs(plain_sum(B) + n * sum(s) - C)
        everywhere = 2**self.M - 1
        least = min(cost for mask, cost in costs.items() if mask != everywhere)
        if costs[everywhere] < least:
            mask = everywhere
        else:
            equal = [m for m, cost in costs.items() if cost == least and m != everywhere]
            mask = equal[stream.below(len(equal))] if len(equal) > 1 else equal[0]
        return [(mask >> m) & 1 for m in range(self.M)]

    # -- Algorithm 5: CreateChildren ----------------------------------------------------------

    def directions(self, node, row):
        x = self.features(node, row)
        margins = [plain_sum(w.get(f, 0.0) * v for f, v in x.items()) for w in node.weights]
        chosen = [m for m in range(self.M) if margins[m] > 0.5]
        return chosen or [margins.index(max(margins))]

    def create_children(self, node):
        rows = [[] for _ in range(self.M)]
        for row in node.rows:
            for m in self.directions(node, row):
                rows[m].append(row)
        if any(len(part) in (0, len(node.rows)) for part in rows):
            return False
        node.children = [
            Node((*node.path, m), child_key(node.key, m), part) for m, part in enumerate(rows)
        ]
        for child in node.children:
            self.count_labels(child)
        return True

    # -- Algorithm 2: Predict -----------------------------------------------------------------

    def leaves(self, row, node=None, parent=None):
        node = node or self.nodes[0]
        if not node.children:
            return [node if node.histogram else parent or node]
        return [
            leaf
            for m in self.directions(node, row)
            for leaf in self.leaves(row, node.children[m], node)
        ]

    def scores(self, row, leaf_scores):
        """The mean over the leaves of count / rows, or for "histogram" of count / all counts."""
        leaves = self.leaves(row)
        out = {}
        for leaf in leaves:
            whole = len(leaf.rows) if leaf_scores == "probability" else sum(leaf.histogram.values())
            for label, count in leaf.histogram.items():
                out[label] = out.get(label, 0.0) + count / whole / len(leaves)
        return out


# -- label vectors from dense rows ---------------------------------------------------------------


def dense_row(values):
    """A row of length 2**14 in whole numbers."""
    largest = max(abs(v) for v in values)
    if largest == 0:
        return [0] * len(values)
    fine = [round(v / largest * 2**20) for v in values]
    scale = 2**14 / sum(v * v for v in fine) ** 0.5
    return [round(v * scale) for v in fine]


class NaiveMeaning:
    """The vectors of labels: rows and names are `dense_row`s, `names` is by label."""

    STEP, RIDGE, NAME_ROWS = 2.0**-19, 0.03, 3

    def __init__(self, rows, labels, n_labels, names=None):
        used = [i for i, row in enumerate(rows) if any(row)]
        n, d = len(used), len(rows[0])
        total = [sum(rows[i][a] for i in used) for a in range(d)]
        self.mean = [self.step(t / (n * 2**14)) for t in total]
        share = [t / n for t in total]
        spread = [
            [sum(rows[i][a] * rows[i][b] for i in used) / n - share[a] * share[b] for b in range(d)]
            for a in range(d)
        ]
        variance = plain_sum(spread[a][a] for a in range(d)) / d
        for a in range(d):
            spread[a][a] += max(variance, 1.0) * (self.RIDGE + d / n)
        self.precision = self.in_bits(self.inverse(spread))
        self.vectors = []
        for label in range(n_labels):
            own = [rows[i] for i in used if label in labels[i]]
            name = (names or {}).get(label)
            self.vectors.append(self.vector(own, name) if own or name else ([0] * d, 0.0, 0.0))

    def step(self, value):
        return round(value / self.STEP) * self.STEP

    def inverse(self, a):
        """By sweeping one pivot after the other."""
        a, d = [row[:] for row in a], len(a)
        for k in range(d):
            pivot, column = 1 / a[k][k], [row[k] for row in a]
            swept = [c * pivot for c in column]
            for i, j in itertools.product(range(d), repeat=2):
                if k not in (i, j):
                    a[i][j] -= column[i] * swept[j]
            for i in range(d):
                a[i][k] = a[k][i] = swept[i]
            a[k][k] = -pivot
        return [[-a[i][j] * 2.0**28 for j in range(d)] for i in range(d)]

    def in_bits(self, a):
        """Of 20 bits, and symmetric."""
        step = 2.0 ** (math.frexp(max(abs(v) for row in a for v in row))[1] - 20)
        return [
            [round(a[max(i, j)][min(i, j)] / step) * step for j in range(len(a))]
            for i in range(len(a))
        ]

    def vector(self, own, name):
        """Codes, unit and bias."""
        d, n = len(self.mean), len(own)
        mean = [0.0] * d
        for a in range(d):
            if own:
                sums = sum(row[a] for row in own) / (2**14 * n)
                mean[a] = self.step(sums - self.mean[a]) * n
            if name:
                mean[a] += self.NAME_ROWS * (name[a] / 2**14 - self.mean[a])
            mean[a] = self.step(mean[a] / (n + self.NAME_ROWS))
        vector = [
            math.fsum(m * p for m, p in zip(mean, row, strict=True)) for row in self.precision
        ]
        unit = float(np.float32(max(abs(v) for v in vector) / (127 * 2**14)))
        if unit == 0:
            return [0] * d, 0.0, 0.0
        codes = [max(-127, min(127, round(v / (unit * 2**14)))) for v in vector]
        middle = [(m + c / 2) for m, c in zip(self.mean, mean, strict=True)]
        bias = math.fsum(c * m for c, m in zip(codes, middle, strict=True)) * (unit * 2**14)
        return codes, unit, float(np.float32(bias))

    def score(self, row, label):
        codes, unit, bias = self.vectors[label]
        if unit == 0 or not any(row):
            return np.float32(0)
        product = sum(c * v for c, v in zip(codes, row, strict=True))
        return np.float32(unit) * np.float32(product) - np.float32(bias)

    def ranked(self, row, length, allowed=None):
        """The best labels, lower ones first among equals."""
        if not any(row):
            return []
        able = [
            k
            for k in range(len(self.vectors))
            if self.vectors[k][1] > 0 and (allowed is None or allowed[k])
        ]
        return sorted(able, key=lambda k: (-self.score(row, k), k))[:length]
