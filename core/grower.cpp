#include "grower.hpp"

#include <algorithm>
#include <deque>
#include <set>

#include "pair_trainer.hpp"
#include "random.hpp"
#include "split_quality.hpp"
#include "tree_rows.hpp"

namespace ldsm {

namespace {

class Grower {
  public:
    Grower(const FeatureRows& x, const LabelRows& y, const TreeParams& params, const Memory& memory,
           const Kernels& kernels, Monitor& monitor)
        : y_(y),
          params_(params),
          memory_(memory),
          monitor_(monitor),
<<<<<<< HEAD
          pair_(params.optimizer == Optimizer::kNag ? kernels.nag.two[params.arity]
                                                    : kernels.sgd.two[params.arity]),
          trainers_{Trainer(x, y, params, memory, kernels, monitor),
                    Trainer(x, y, params, memory, kernels, monitor)},
=======
          trainer_(x, y, params, memory, kernels, monitor),
          finished_(memory),
>>>>>>> refs/heads/core
          counts_(static_cast<size_t>(y.n_labels), 0) {}

    // Algorithm 1, BuildTree: always the leaf of highest priority is split, until another split
    // would pass the number of nodes.
    Tree grow(std::vector<int32_t> rows, uint64_t key) {
        nodes_.emplace_back().key = key;
        fill_node(nodes_[0], std::move(rows));
        push(0);
        while (!queue_.empty() && has_room(1)) {
            const int32_t number = queue_.begin()->node;
            queue_.erase(queue_.begin());
            Node& node = nodes_[number];
            trainer_.train(node, [this] { return next_to_train(); });  // Algorithm 4
            if (node.split.found) {
                create_children(number);
                finished_.keep(node);
            }
            release(node.split.directions);
            release(node.rows);  // a node is tried once, whether or not it was split
            monitor_.report(static_cast<int64_t>(nodes_.size()));
        }
        return flatten(nodes_, finished_, params_.arity, memory_.scratch_folder);
    }

  private:
    struct Entry {
        int64_t priority;
        uint64_t path;  // of the node: most ties end here, and not with a walk up the tree
        int32_t node;
    };
    struct Before {
        const Grower* grower;
        bool operator()(const Entry& a, const Entry& b) const {
            if (a.priority != b.priority) return a.priority > b.priority;
            if (a.path != b.path) return a.path < b.path;
            return grower->path_less(a.node, b.node);
        }
    };

    bool has_room(int64_t splits) const {
        return static_cast<int64_t>(nodes_.size()) + splits * params_.arity <= params_.max_nodes;
    }

    // The open leaf of highest priority that nobody has begun to train, if there will be room for
    // its children too; else null.
    Node* next_to_train() {
        if (!has_room(2)) return nullptr;
        for (const Entry& entry : queue_)
            if (nodes_[entry.node].progress == Progress::kWaiting) return &nodes_[entry.node];
        return nullptr;
    }

    void push(int32_t node) {
        const int64_t priority = nodes_[node].histogram.priority();
        if (priority > 0 && nodes_[node].n_rows > 1)
            queue_.insert({priority, nodes_[node].path, node});
        else
            release(nodes_[node].rows);
    }

    // Smaller path first. Open leaves are never each other's ancestors, so lifting the deeper one
    // to the same depth and walking up in step finds the first child number that differs.
    bool path_less(int32_t a, int32_t b) const {
        while (nodes_[a].depth > nodes_[b].depth) a = nodes_[a].parent;
        while (nodes_[b].depth > nodes_[a].depth) b = nodes_[b].parent;
        int32_t left = 0, right = 0;
        while (a != b) {
            left = nodes_[a].child;
            right = nodes_[b].child;
            a = nodes_[a].parent;
            b = nodes_[b].parent;
        }
        return left < right;
    }

    // Gives a node its rows and counts their labels (UpdateHist).
    void fill_node(Node& node, std::vector<int32_t> rows) {
        node.n_rows = static_cast<int64_t>(rows.size());
        Histogram& h = node.histogram;
        constexpr size_t kAhead = 4;  // rows lie scattered over Y: asked for in time
        for (size_t r = 0; r < rows.size(); ++r) {
            if (r + kAhead < rows.size())
                __builtin_prefetch(y_.indices + y_.indptr[rows[r + kAhead]]);
            for (int64_t i = y_.indptr[rows[r]]; i < y_.indptr[rows[r] + 1]; ++i) {
                const int32_t label = y_.indices[i];
                if (counts_[label]++ == 0) h.labels.push_back(label);
            }
        }
        std::sort(h.labels.begin(), h.labels.end());
        h.counts.reserve(h.labels.size());
        for (const int32_t label : h.labels) {
            h.counts.push_back(counts_[label]);
            counts_[label] = 0;
        }
        node.n_labels = h.sum();
        node.entropy = h.entropy();
        node.rows = std::move(rows);
    }

    // Algorithm 5, CreateChildren: each row goes where its margins sent it, maybe to several
    // children.
    void create_children(int32_t parent) {
        const auto first = static_cast<int32_t>(nodes_.size());
        const std::vector<uint8_t>& directions = nodes_[parent].split.directions;
        const std::vector<int32_t>& rows = nodes_[parent].rows;
        std::vector<int32_t> child_rows[kMaxArity];
        for (size_t i = 0; i < rows.size(); ++i)  // children keep the parent's row order
            for (int m = 0; m < params_.arity; ++m)
                if ((directions[i] >> m) & 1) child_rows[m].push_back(rows[i]);
        for (int m = 0; m < params_.arity; ++m) {
            child_rows[m].shrink_to_fit();
            Node& child = nodes_.emplace_back();
            child.parent = parent;
            child.child = m;
            child.depth = nodes_[parent].depth + 1;
            child.path = nodes_[parent].path;
            const int bits = params_.arity <= 2 ? 1 : params_.arity <= 4 ? 2 : 3;
            if (bits * child.depth <= 64)
                child.path |= static_cast<uint64_t>(m) << (64 - bits * child.depth);
            child.key = child_key(nodes_[parent].key, static_cast<uint64_t>(m));
            fill_node(child, std::move(child_rows[m]));
        }
        nodes_[parent].first_child = first;
        measure(nodes_[parent], nodes_, params_);
        bool answers_for_child = false;
        for (int m = 0; m < params_.arity; ++m) {
            answers_for_child |= nodes_[first + m].histogram.labels.empty();
            push(first + m);
        }
        if (!answers_for_child) nodes_[parent].histogram = {};
    }

<<<<<<< HEAD
    // Finished weights that grow too many go to a file, all that are in memory at once.
    void keep_weights(int32_t node) {
        in_memory_.push_back(node);
        bytes_in_memory_ += Weights(nodes_[node].split).bytes();
        if (bytes_in_memory_ <= memory_.limit / 4 || memory_.scratch_folder.empty()) return;
        if (!scratch_) scratch_ = std::make_unique<ScratchFile>(memory_.scratch_folder);
        for (const int32_t i : in_memory_) {
            nodes_[i].scratch_at = scratch_->size();
            Weights(nodes_[i].split).each([&](auto& numbers) {
                const auto n = static_cast<int64_t>(numbers.size());
                scratch_->append(&n, sizeof n);
                scratch_->append(numbers.data(), n * static_cast<int64_t>(sizeof numbers[0]));
                release(numbers);
            });
        }
        in_memory_.clear();
        bytes_in_memory_ = 0;
    }

    void fetch_weights(Node& node) const {
        int64_t at = node.scratch_at;
        if (at < 0) return;
        Weights(node.split).each([&](auto& numbers) {
            int64_t n = 0;
            scratch_->read(at, &n, sizeof n);
            numbers.resize(static_cast<size_t>(n));
            const int64_t n_bytes = n * static_cast<int64_t>(sizeof numbers[0]);
            scratch_->read(at + static_cast<int64_t>(sizeof n), numbers.data(), n_bytes);
            at += static_cast<int64_t>(sizeof n) + n_bytes;
        });
    }

    // J, beta and alpha from routed histograms: P_j^k = child_j[k] / node[k], pi_k = node[k] / sum.
    void measure(Node& node) {
        const int arity = params_.arity;
        const auto total = static_cast<double>(node.n_labels);
        double share[kMaxArity];
        double sum = 0;
        size_t at[kMaxArity] = {};
        for (int m = 0; m < arity; ++m) {
            share[m] = static_cast<double>(nodes_[node.first_child + m].n_labels) / total;
            sum += share[m];
        }
        double integrity = 0, impure = 0;
        for (const int32_t label : node.histogram.labels) {
            double c[kMaxArity];
            double all = 0;
            for (int m = 0; m < arity; ++m) {
                const Histogram& h = nodes_[node.first_child + m].histogram;
                const bool has = at[m] < h.labels.size() && h.labels[at[m]] == label;
                c[m] = has ? h.counts[at[m]++] : 0;
                all += c[m];
            }
            for (int j = 0; j < arity; ++j) {
                impure += std::min(c[j], all - c[j]);
                for (int l = j + 1; l < arity; ++l) integrity += std::fabs(c[j] - c[l]);
            }
        }
        double balance = 0, beta = 0;
        for (int j = 0; j < arity; ++j) {
            beta = std::max(beta, std::fabs(share[j] - sum / arity));
            for (int l = j + 1; l < arity; ++l) balance += std::fabs(share[j] - share[l]);
        }
        node.objective = balance - params_.integrity_weight * integrity / total +
                         params_.multiway_penalty * std::fabs(sum - 1);
        node.balancedness = beta;
        node.purity = impure / total / arity;
    }

    Tree flatten() {
        Tree t;
        t.weight_offsets.push_back(0);
        t.histogram_offsets.push_back(0);
        size_t entries = 0, bins = 0;
        for (const Node& node : nodes_) {
            entries += node.first_child != 0 ? node.split.features.size() : 0;
            bins += node.histogram.labels.size();
        }
        if (scratch_) {
            t.weight_features.use_file(memory_.scratch_folder);
            t.weights.use_file(memory_.scratch_folder);
            t.weight_means.use_file(memory_.scratch_folder);
            t.weight_scales.use_file(memory_.scratch_folder);
        }
        t.weight_features.reserve(entries);
        t.weights.reserve(entries * static_cast<size_t>(params_.arity));
        t.histogram_labels.reserve(bins);
        t.histogram_counts.reserve(bins);
        const auto append = [](auto& to, auto& from) {
            to.insert(to.end(), from.begin(), from.end());
            release(from);
        };
        for (Node& node : nodes_) {
            t.first_child.push_back(node.first_child);
            t.node_rows.push_back(node.n_rows);
            t.node_labels.push_back(node.n_labels);
            t.node_entropy.push_back(node.entropy);
            t.objective.push_back(node.objective);
            t.balancedness.push_back(node.balancedness);
            t.purity.push_back(node.purity);
            if (node.first_child != 0) {
                t.integrity_weight.push_back(static_cast<float>(node.split.integrity_weight));
                fetch_weights(node);
                t.weight_features.append(node.split.features);
                t.weights.append(node.split.weights);
                t.weight_means.append(node.split.mean);
                t.weight_scales.append(node.split.scale);
                Weights(node.split).each([](auto& numbers) { release(numbers); });
                append(t.epoch_objective, node.split.epoch_objective);
            } else {
                t.integrity_weight.push_back(std::numeric_limits<float>::quiet_NaN());
            }
            append(t.histogram_labels, node.histogram.labels);
            append(t.histogram_counts, node.histogram.counts);
            t.weight_offsets.push_back(static_cast<int64_t>(t.weight_features.size()));
            t.histogram_offsets.push_back(static_cast<int64_t>(t.histogram_labels.size()));
        }
        return t;
    }

    LabelRows y_;
    TreeParams params_;
=======
    const LabelRows& y_;
    const TreeParams& params_;
>>>>>>> refs/heads/core
    const Memory& memory_;
    Monitor& monitor_;
    PairTrainer trainer_;
    FinishedWeights finished_;
    std::vector<int32_t> counts_;  // all zero between uses
    std::deque<Node> nodes_;       // a deque: nodes stay where they are while it grows
    std::set<Entry, Before> queue_{Before{this}};  // a set: it is looked into, not only popped
};

}  // namespace

<<<<<<< HEAD
std::vector<uint8_t> bag_mask(uint64_t seed, uint64_t tree, int64_t n_rows, double subsample) {
    std::vector<uint8_t> mask(static_cast<size_t>(n_rows), 1);
    if (subsample >= 1.0) return mask;
    // Selection sampling: one pass, exactly `wanted` rows, each subset equally likely.
    const auto wanted = std::max<int64_t>(1, std::llround(subsample * static_cast<double>(n_rows)));
    Stream stream{subsample_key(tree_key(seed, tree))};
    int64_t missing = wanted;
    for (int64_t row = 0; row < n_rows; ++row) {
        const bool take = static_cast<int64_t>(stream.below(static_cast<uint64_t>(n_rows - row))) < missing;
        mask[row] = take;
        missing -= take;
    }
    return mask;
}

std::vector<int32_t> tree_rows(uint64_t seed, uint64_t tree, int64_t n_rows, double subsample) {
    const std::vector<uint8_t> mask = bag_mask(seed, tree, n_rows, subsample);
    Stream stream{order_key(tree_key(seed, tree))};
    const int64_t n_blocks = (n_rows + kBlockRows - 1) / kBlockRows;
    std::vector<int32_t> blocks(static_cast<size_t>(n_blocks));
    for (int64_t b = 0; b < n_blocks; ++b) blocks[b] = static_cast<int32_t>(b);
    shuffle(blocks.data(), n_blocks, stream);
    std::vector<int32_t> order;
    order.reserve(static_cast<size_t>(n_rows));
    for (int64_t window = 0; window < n_blocks; window += kWindowBlocks) {
        const size_t begin = order.size();
        for (int64_t b = window; b < std::min(n_blocks, window + kWindowBlocks); ++b) {
            const int64_t end = std::min(n_rows, (int64_t{blocks[b]} + 1) * kBlockRows);
            for (int64_t row = int64_t{blocks[b]} * kBlockRows; row < end; ++row)
                if (mask[row]) order.push_back(static_cast<int32_t>(row));
        }
        shuffle(order.data() + begin, static_cast<int64_t>(order.size() - begin), stream);
    }
    return order;
}

=======
>>>>>>> refs/heads/core
Tree grow_tree(const FeatureRows& x, const LabelRows& y, const TreeParams& params,
               const Memory& memory, uint64_t seed, uint64_t tree, const Kernels& kernels,
               Monitor& monitor) {
    Grower grower(x, y, params, memory, kernels, monitor);
    return grower.grow(tree_rows(seed, tree, x.n_rows, params.subsample), tree_key(seed, tree));
}

}  // namespace ldsm
