"""The finished trees: named flat arrays, their statistics, and prediction.

A forest is only data. ``ldsm._trees.growing`` makes it; the compiled router reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._arrays.features import FeatureArrays
from .._execution.memory import concatenated
from .._execution.threads import CancelFlag, state_of
from .._storage.fields import Array, Table, fingerprint

MOST_COUNTED = 1 << 62  # rows or pairs in a node: a forged count that grows must not overflow
# Offsets are int64, because they may exceed 2**31. Narrower types belong to compressed forests.
_LONG, _NUMBERS, _FLOATS = (np.int64,), (np.int32, np.uint16, np.uint8), (np.float64, np.float32)
_NO_FLOATS = np.zeros(0, np.float32)
FOREST = Table(
    "forest",
    Array("tree_offsets", _LONG, ("trees+1",)),
    Array("first_child", (np.int32,), ("nodes",)),
    Array("weight_offsets", _LONG, ("nodes+1",)),
    Array("weight_features", _NUMBERS, ("entries",)),
    Array("weights", (np.float32, np.int8), ("entries", "arity"), halves=True),
    Array("weight_units", (np.float32,), ("units",), default=_NO_FLOATS, since=2),
    Array("weight_means", (np.float32,), ("means",)),
    Array("weight_scales", (np.float32,), ("means",)),
    Array("histogram_offsets", _LONG, ("nodes+1",)),
    Array("histogram_labels", _NUMBERS, ("counts",)),
    Array("histogram_counts", _NUMBERS, ("counts",)),
    Array("node_rows", _LONG, ("nodes",)),
    # For statistics and figures.
    Array("node_labels", _LONG, ("nodes",), hashed=False),
    Array("node_entropy", _FLOATS, ("nodes",), hashed=False),
    Array("objective", _FLOATS, ("nodes",), hashed=False),
    Array("balancedness", _FLOATS, ("nodes",), hashed=False),
    Array("purity", _FLOATS, ("nodes",), hashed=False),
    Array("integrity_weight", (np.float32,), ("nodes",), hashed=False),
    Array("epoch_objective", (np.float32,), ("splits", "epochs"), hashed=False),
)
ARRAYS = {field.name: field for field in FOREST.arrays}
TREE_ARRAYS = [name for name in ARRAYS if name != "tree_offsets"]


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees as concatenated arrays; nodes are numbered over the whole forest.

    Attributes
    ----------
    arity, n_features, n_labels : int
        M, D and K of the paper.
    tree_offsets : int64 (n_trees + 1,)
        Where each tree's nodes begin.
    first_child : int32 (n_nodes,)
        Number, within the tree, of the first of `arity` consecutive children; 0 in a leaf.
    weight_offsets, weight_features, weights : int64 (n_nodes + 1,), int32 (n,), float32 (n, arity)
        Sparse regressors by node; feature number D is the bias. In a compressed forest
        `weight_features` are the gaps between a node's features, starting from 0, as uint8 or
        uint16, and `weights` are int8, multiples of the node's unit. `node_weights` reads both.
    weight_units : float32 (n_nodes,), or empty unless the forest is compressed
        What the weights of a node are multiples of.
    weight_means, weight_scales : float32 (n,) or empty
        What a standardised node subtracts from a feature and then multiplies it by.
    histogram_offsets, histogram_labels, histogram_counts : int64, int32, int32
        Label counts by leaf (and by the parent of a leaf that no label reached). Compressed: in the
        narrowest type of uint8, uint16 and int32.
    node_rows : int64 (n_nodes,)
        Training rows that reached the node.
    node_labels, node_entropy : int64, float64 (n_nodes,)
        (row, label) pairs that reached the node; entropy of their histogram, in nats.
    objective, balancedness, purity : float64 (n_nodes,)
        J, beta and alpha of each split, from the rows it routed; NaN in leaves. J always uses the
        forest's lambda 1, even if the split was made with less, so that nodes can be compared.
    integrity_weight : float32 (n_nodes,)
        The lambda 1 with which the split was made; NaN in leaves.
    epoch_objective : float32 (n_internal, n_epochs)
        J of the training accumulators after each epoch, with the lambda 1 of the split; internal
        nodes in order.
    places : int32 (n_labels + n_dropped,), or empty
        By label, its place in the order that the labels had at first, by which equal scores are
        ranked on shortlists. The last are those of dropped labels, which histograms may still
        count, because the scores of others depend on it. Empty: the order has not changed, and no
        data of dropped labels are left.
    leaf_scores : {"probability", "histogram"}
        How leaves score labels, as in `LdSMClassifier`.
    """

    arity: int
    n_features: int
    n_labels: int
    tree_offsets: NDArray[np.int64]
    first_child: NDArray[np.int32]
    weight_offsets: NDArray[np.int64]
    weight_features: NDArray[Any]
    weights: NDArray[Any]
    weight_units: NDArray[np.float32]
    weight_means: NDArray[np.float32]
    weight_scales: NDArray[np.float32]
    histogram_offsets: NDArray[np.int64]
    histogram_labels: NDArray[Any]
    histogram_counts: NDArray[Any]
    node_rows: NDArray[np.int64]
    node_labels: NDArray[np.int64]
    node_entropy: NDArray[np.float64]
    objective: NDArray[np.float64]
    balancedness: NDArray[np.float64]
    purity: NDArray[np.float64]
    integrity_weight: NDArray[np.float32]
    epoch_objective: NDArray[np.float32]
    places: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    leaf_scores: str = "probability"

    # -- making -------------------------------------------------------------------------------

    @classmethod
    def from_trees(
        cls,
        trees: Sequence[dict[str, NDArray[Any]]],
        *,
        arity: int,
        n_features: int,
        n_labels: int,
        leaf_scores: str = "probability",
        folder: str | None = None,
    ) -> Forest:
        """Concatenate grown trees, as `_core.grow_tree` returns them.

        The trees are emptied in the process, so that a large forest is not held twice. With a
        `folder`, the forest is put into unnamed, memory-mapped files there.

        Parameters
        ----------
        trees : list of dict of str to ndarray
            The arrays of each tree; emptied.
        arity, n_features, n_labels : int
            M, D and K of the paper.
        leaf_scores : {"probability", "histogram"}, default="probability"
            How leaves score labels.
        folder : str, optional
            Where the files are to be.
        """
        sizes = [len(tree["first_child"]) for tree in trees]
        arrays: dict[str, NDArray[Any]] = {
            "tree_offsets": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        }
        for name in TREE_ARRAYS:
            arrays[name] = _join(name, [tree.pop(name) for tree in trees], folder)
            assert arrays[name].dtype in ARRAYS[name].types, name
        if len(arrays["weight_units"]):
            _compress_statistics(arrays, n_labels)
        return cls(arity, n_features, n_labels, **_frozen(arrays), leaf_scores=leaf_scores)

    @property
    def by_rows(self) -> bool:
        """Whether a leaf's score is count / rows, or the paper's count / sum of the counts."""
        return self.leaf_scores == "probability"

    @property
    def n_dropped(self) -> int:
        """Number of dropped labels that have left data."""
        return max(0, len(self.places) - self.n_labels)

    @property
    def n_known(self) -> int:
        """Number of labels, those that were dropped included."""
        return self.n_labels + self.n_dropped

    @property
    def is_compressed(self) -> bool:
        """Whether weights are a byte each, multiples of a unit."""
        return len(self.weight_units) > 0

    def extended(self, more: Forest, folder: str | None = None) -> Forest:
        """This forest followed by the trees of `more`.

        Parameters
        ----------
        more : Forest
            Of the same arity, features and labels.
        folder : str, optional
            As in `from_trees`.
        """
        arrays = {
            name: _join(name, [getattr(self, name), getattr(more, name)], folder) for name in ARRAYS
        }
        return replace(self, **_frozen(arrays), places=np.zeros(0, np.int32))

    def trees(self, start: int, stop: int) -> Forest:
        """The trees from `start` to `stop - 1`, as views of this forest's arrays.

        Parameters
        ----------
        start, stop : int
            Numbers of trees, with 0 <= start < stop <= `n_trees`.
        """
        if not 0 <= start < stop <= self.n_trees:
            raise ValueError(
                f"'start' and 'stop' must be ints with 0 <= start < stop <= {self.n_trees}. "
                f"Got {start!r} and {stop!r}."
            )
        nodes = slice(*self.tree_offsets[[start, stop]].tolist())
        ends = [nodes.start, nodes.stop]
        inner = slice(*(int(np.count_nonzero(self.first_child[:end])) for end in ends))
        entries = slice(*self.weight_offsets[ends].tolist())
        bins = slice(*self.histogram_offsets[ends].tolist())
        parts = {
            "tree_offsets": slice(start, stop + 1),
            "weight_offsets": slice(nodes.start, nodes.stop + 1),
            "histogram_offsets": slice(nodes.start, nodes.stop + 1),
            "weight_features": entries,
            "weights": entries,
            "weight_units": nodes if self.is_compressed else slice(0),
            "weight_means": entries,  # empty unless nodes are standardised
            "weight_scales": entries,
            "histogram_labels": bins,
            "histogram_counts": bins,
            "epoch_objective": inner,
        }
        arrays: dict[str, NDArray[Any]] = {}
        for name in ARRAYS:
            array = getattr(self, name)[parts.get(name, nodes)]
            arrays[name] = array - array[0] if name.endswith("_offsets") else array
        return replace(self, **_frozen(arrays))

    # -- reading ------------------------------------------------------------------------------

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.tree_offsets) - 1

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves included, of all trees."""
        return len(self.first_child)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(getattr(self, name).nbytes for name in ARRAYS)

    @cached_property
    def feature_maps(self) -> NDArray[np.uint64] | None:
        """Where each node stores each feature; computed, never saved.

        The maps make prediction of single rows fast; only nodes that store many of the features
        have one. An array in a file is not read for them.
        """
        in_file = isinstance(self.weight_features, np.memmap)
        if in_file or len(self.weight_means):
            return None
        return _core.feature_maps(self)

    def __getstate__(self) -> dict[str, Any]:
        return state_of(self, "feature_maps")

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        for name in (*ARRAYS, "places"):
            getattr(self, name).flags.writeable = False

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Whether each node is a leaf."""
        return np.asarray(self.first_child == 0)

    def fingerprint(self) -> str:
        """Hash of everything that prediction reads."""
        sizes = repr((self.arity, self.n_features, self.n_labels))
        return fingerprint(sizes, *FOREST.hashed(vars(self)), self.places)

    def node_depth(self) -> NDArray[np.int32]:
        """Depth of every node; roots have 0."""
        depth = np.zeros(self.n_nodes, dtype=np.int32)
        for tree in range(self.n_trees):
            start, stop = self.tree_offsets[tree : tree + 2]
            local = depth[start:stop]
            # A child comes after its parent, so one pass in node order is enough.
            for node in np.flatnonzero(self.first_child[start:stop]):
                child = self.first_child[start + node]
                local[child : child + self.arity] = local[node] + 1
        return depth

    def tree_statistics(self) -> dict[str, NDArray[Any]]:
        """One number per tree and name, ready for ``pandas.DataFrame(...)``.

        `leaves_per_row` is the mean number of leaves that a training row reaches, `objective`,
        `balancedness` and `purity` are means over the splits, weighted by their rows.
        """
        with np.errstate(all="ignore"):  # the statistics of a file may be anything
            return self._tree_statistics()

    def _tree_statistics(self) -> dict[str, NDArray[Any]]:
        depth, leaf = self.node_depth(), self.is_leaf
        out: dict[str, list[float]] = {}
        for tree in range(self.n_trees):
            part = slice(*self.tree_offsets[tree : tree + 2])
            leaves, rows = leaf[part], self.node_rows[part]
            split_rows = np.where(leaves, 0, rows)
            leaf_rows = np.where(leaves, rows, 0)
            edges = self.weight_offsets[[part.start, part.stop]]
            values = {
                "nodes": len(rows),
                "leaves": leaves.sum(),
                "depth": depth[part].max(),
                "mean_leaf_depth": _weighted(depth[part], leaf_rows),
                "rows": rows[0],
                "leaves_per_row": leaf_rows.sum() / rows[0],
                "weights": (edges[1] - edges[0]) * self.arity,
                "objective": _weighted(self.objective[part], split_rows),
                "balancedness": _weighted(self.balancedness[part], split_rows),
                "purity": _weighted(self.purity[part], split_rows),
                "leaf_entropy": _weighted(self.node_entropy[part], leaf_rows),
            }
            for name, value in values.items():
                out.setdefault(name, []).append(value)
        return {name: np.asarray(values) for name, values in out.items()}

    def node_weights(self, node: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The features that a node stores, and the weights of each, one per direction.

        Parameters
        ----------
        node : int
            Number of the node in the whole forest.

        Returns
        -------
        features : int64 ndarray of shape (n,)
            Feature number `n_features` is the bias.
        weights : float32 ndarray of shape (n, arity)
            What each feature is multiplied by.
        """
        part = slice(*self.weight_offsets[node : node + 2].tolist())
        features = self.weight_features[part].astype(np.int64)
        weights = self.weights[part].astype(np.float32)
        if not self.is_compressed:
            return features, weights
        return np.cumsum(features), weights * self.weight_units[node]

    # -- predicting ---------------------------------------------------------------------------

    def top_labels(
        self,
        x: FeatureArrays,
        k: int,
        fill_order: NDArray[np.int32],
        *,
        allowed: NDArray[np.uint8] | None = None,
        skip: NDArray[np.uint8] | None = None,
        cancel: CancelFlag | None = None,
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The k best labels of each row and their scores.

        Parameters
        ----------
        x : FeatureArrays
            The rows.
        k : int
            Labels per row.
        fill_order : int32 ndarray of shape (n_labels,)
            Labels that fill up rows with fewer scored ones, at score 0.
        allowed : uint8 ndarray of shape (n_labels,), optional
            1 for each label that may be predicted.
        skip : uint8 ndarray of shape (n_rows, n_trees), optional
            1 for each tree that does not vote on a row.
        cancel : CancelFlag, optional
            Set by another thread to stop.
        """
        own = x.leading(self.n_features).checked
        return _core.route_topk(self, own, k, fill_order, allowed, skip, cancel)

    def scores(
        self, x: FeatureArrays, *, cancel: CancelFlag | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
        """All positive scores of each row as the arrays of a CSR matrix.

        Parameters
        ----------
        x : FeatureArrays
            The rows.
        cancel : CancelFlag, optional
            Set by another thread to stop.
        """
        own = x.leading(self.n_features).checked
        return _core.route_scores(self, own, cancel=cancel)

    def visited_nodes(self, x: FeatureArrays) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The nodes that each row passes, numbered over the forest, as (offsets, nodes).

        Parameters
        ----------
        x : FeatureArrays
            The rows.
        """
        return _core.route_nodes(self, x.leading(self.n_features).checked)


def _frozen(arrays: dict[str, Any]) -> dict[str, Any]:
    for array in arrays.values():
        array.flags.writeable = False
    return arrays


def narrowed(numbers: NDArray[np.int32], largest: int) -> NDArray[Any]:
    """The same numbers in the narrowest type that holds 0 to `largest`."""
    narrowest = next(t for t in reversed(_NUMBERS) if largest <= np.iinfo(t).max)
    return numbers.astype(narrowest)


def _compress_statistics(arrays: dict[str, NDArray[Any]], n_labels: int) -> None:
    """Give the counts of a compressed forest the narrowest type, its statistics half the width."""
    counts = arrays["histogram_counts"]
    arrays["histogram_counts"] = narrowed(counts, int(counts.max(initial=0)))
    arrays["histogram_labels"] = narrowed(arrays["histogram_labels"], n_labels - 1)
    for name, described in ARRAYS.items():
        if described.types is _FLOATS:
            arrays[name] = arrays[name].astype(np.float32)


def _join(name: str, parts: Sequence[NDArray[Any]], folder: str | None = None) -> NDArray[Any]:
    """Concatenate arrays; offsets are shifted by the ends of the parts before them."""
    if not name.endswith("_offsets"):
        return concatenated(parts, folder)
    ends = np.cumsum([0] + [part[-1] for part in parts[:-1]])
    shifted = [part[1:] + end for part, end in zip(parts, ends, strict=True)]
    return np.concatenate([parts[0][:1], *shifted]).astype(np.int64)


def _weighted(values: NDArray[Any], weights: NDArray[Any]) -> float:
    """Weighted mean; NaN if all weights are 0. Values with weight 0 may be NaN."""
    total = weights.sum()
    return float(np.sum(np.where(weights > 0, values, 0) * weights) / total) if total else np.nan
