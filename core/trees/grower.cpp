#include "trees/grower.hpp"

#include <algorithm>
#include <deque>
#include <set>

#include "common/random.hpp"
#include "trees/pair_trainer.hpp"
#include "trees/split_quality.hpp"
#include "trees/tree_rows.hpp"

namespace ldsm {

namespace {

class Grower {
  public:
    Grower(const FeatureRows& x, const LabelRows& y, const TreeParams& params, const Memory& memory,
           const Kernels& kernels, Monitor& monitor)
        : x_(x),
          y_(y),
          params_(params),
          memory_(memory),
          monitor_(monitor),
          trainer_(x, y, params, memory, kernels, monitor),
          finished_(memory),
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
        return flatten(nodes_, finished_, params_, x_.n_features, memory_.scratch_folder);
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

    // The open leaf of highest priority whose training has not begun, if there will be room for its
    // children, too; else null.
    Node* next_to_train() {
        if (!has_room(2)) return nullptr;
        for (const Entry& entry : queue_)
            if (nodes_[entry.node].progress == Progress::kWaiting) return &nodes_[entry.node];
        return nullptr;
    }

    void push(int32_t node) {
        const int64_t priority = nodes_[node].histogram.priority();
        if (priority > 0 && nodes_[node].n_rows > 1 &&
            nodes_[node].n_labels >= params_.min_split_labels)
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
        constexpr size_t kAhead = 4;  // rows are scattered over Y, so prefetch them
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

    const FeatureRows& x_;
    const LabelRows& y_;
    const TreeParams& params_;
    const Memory& memory_;
    Monitor& monitor_;
    PairTrainer trainer_;
    FinishedWeights finished_;
    std::vector<int32_t> counts_;  // all zero between uses
    std::deque<Node> nodes_;       // a deque: nodes stay where they are while it grows
    std::set<Entry, Before> queue_{Before{this}};  // a set: it is looked into, not only popped
};

}  // namespace

Tree grow_tree(const FeatureRows& x, const LabelRows& y, const TreeParams& params,
               const Memory& memory, uint64_t seed, uint64_t tree, const Kernels& kernels,
               Monitor& monitor) {
    Grower grower(x, y, params, memory, kernels, monitor);
    return grower.grow(tree_rows(seed, tree, x.n_rows, params.subsample), tree_key(seed, tree));
}

}  // namespace ldsm
