// Algorithm 2 of the paper, Predict, for many rows at once:
//
//   1. A row starts at the root of each tree.
//   2. It goes from a node to every child whose regressor gives a margin above 1/2, or, if there is
//      none, to the child of the largest margin, until it is in leaves only (Descent; the margins
//      are NodeRouter's).
//   3. A leaf scores each label by its share of the leaf's histogram. Scores are averaged over the
//      row's leaves in a tree, then over the trees (LeafVotes).
//   4. The caller takes the best labels (`rank` in ranked.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/label_sums.hpp"
#include "common/monitor.hpp"
#include "routing/node_router.hpp"

namespace ldsm {

// Steps 1 and 2. `skip`: per row and tree (row-major), 1 where a tree must not answer for a row;
// null for none.
class Descent {
  public:
    Descent(const ForestView& forest, const FeatureRows& x, const uint8_t* skip,
            const Kernels& kernels, Monitor& monitor)
        : forest_(forest),
          skip_(skip),
          monitor_(monitor),
          batch_(forest, x),
          router_(forest, batch_, kernels) {}

    // Sends the rows from `from` to `to` through all trees. Calls visit(row, node, parent, is_leaf)
    // for every node that a row reaches; rows are numbered from 0, nodes over the whole forest, and
    // the parent of a root is -1.
    template <typename Visit>
    void run(int64_t from, int64_t to, Visit&& visit) {
        constexpr int64_t kFewRows = 8;
        batch_.fill(from, to);
        router_.begin();
        if (!forest_.standardized && batch_.size() <= kFewRows) {
            through_all_trees(visit);
            return;
        }
        for (int64_t tree = 0; tree < forest_.n_trees; ++tree) through_tree(tree, visit);
    }

  private:
    struct Task {
        int32_t node, parent;
        size_t begin, end;  // of the rows, in the arena
    };
    struct Step {
        int64_t root, tree_end;
        int32_t node, parent, row;  // of nodes, their numbers within the tree
    };

    bool starts(int64_t row, int64_t tree) const {
        return skip_ == nullptr || skip_[(batch_.first() + row) * forest_.n_trees + tree] == 0;
    }

    // All rows through one tree, node by node: a node's weights are fetched once for all the rows
    // that reach it.
    template <typename Visit>
    void through_tree(int64_t tree, Visit&& visit) {
        const Range nodes = forest_.nodes_of(tree);
        const int64_t root = nodes.begin, n_nodes = nodes.end - nodes.begin;
        arena_.clear();
        for (int64_t r = 0; r < batch_.size(); ++r)
            if (starts(r, tree)) arena_.push_back(static_cast<int32_t>(r));
        stack_.assign(1, {0, -1, 0, arena_.size()});
        int64_t visited = 0;  // each node of a tree is reached once; more would be no tree
        while (!stack_.empty()) {
            const Task task = stack_.back();
            stack_.pop_back();
            arena_.resize(task.end);  // the rest belongs to nodes that are done
            if (task.begin == task.end) continue;
            if (++visited > n_nodes) broken(root, "some node has two parents");
            const int64_t node = root + task.node;
            const int32_t child = forest_.first_child[node];
            const int64_t parent = task.parent < 0 ? -1 : root + task.parent;
            for (size_t i = task.begin; i < task.end; ++i)
                visit(arena_[i], node, parent, child == 0);
            if (child == 0) continue;
            if (child <= task.node || child > n_nodes - forest_.arity)
                broken(node, "a child lies outside the tree or before its parent");
            const size_t n = task.end - task.begin;
            const uint8_t* directions = router_.directions(node, arena_.data() + task.begin, n);
            size_t at = task.end;
            for (int m = 0; m < forest_.arity; ++m) {
                for (size_t i = 0; i < n; ++i)
                    if ((directions[i] >> m) & 1) arena_.push_back(arena_[task.begin + i]);
                stack_.push_back({child + m, task.node, at, arena_.size()});
                at = arena_.size();
            }
        }
        monitor_.check();
    }

    // A few rows through all trees together, level by level. For one row the way down is a chain of
    // trips to memory: while the weights of one node are on their way, the others' are requested.
    template <typename Visit>
    void through_all_trees(Visit&& visit) {
        level_.clear();
        for (int32_t row = 0; row < batch_.size(); ++row)
            for (int64_t tree = 0; tree < forest_.n_trees; ++tree) {
                const Range nodes = forest_.nodes_of(tree);
                if (starts(row, tree)) level_.push_back({nodes.begin, nodes.end, 0, -1, row});
            }
        int64_t visited = 0;
        while (!level_.empty()) {
            visited += static_cast<int64_t>(level_.size());
            if (visited > forest_.n_nodes * batch_.size()) broken(0, "some node has two parents");
            router_.forget_found();
            found_ends_.assign(1, 0);
            for (const Step& step : level_) {
                const int64_t node = step.root + step.node;
                const int64_t parent = step.parent < 0 ? -1 : step.root + step.parent;
                const bool leaf = forest_.first_child[node] == 0;
                visit(step.row, node, parent, leaf);
                if (!leaf) found_ends_.push_back(router_.find(node, step.row));
            }
            next_level_.clear();
            const size_t* found = found_ends_.data();
            for (const Step& step : level_) {
                const int64_t node = step.root + step.node;
                const int32_t child = forest_.first_child[node];
                if (child == 0) continue;
                if (child <= step.node || step.root + child + forest_.arity > step.tree_end)
                    broken(node, "a child lies outside the tree or before its parent");
                const uint8_t directions =
                    router_.found_directions(node, step.row, found[0], found[1]);
                ++found;
                for (int m = 0; m < forest_.arity; ++m) {
                    if (((directions >> m) & 1) == 0) continue;
                    next_level_.push_back(
                        {step.root, step.tree_end, child + m, step.node, step.row});
                    __builtin_prefetch(forest_.first_child + step.root + child + m);
                    router_.prefetch(step.root + child + m);
                }
            }
            level_.swap(next_level_);
        }
        monitor_.check();
    }

    const ForestView& forest_;
    const uint8_t* skip_;
    Monitor& monitor_;
    RowBatch batch_;
    NodeRouter router_;
    std::vector<int32_t> arena_;
    std::vector<Task> stack_;
    std::vector<Step> level_, next_level_;
    std::vector<size_t> found_ends_;
};

// Visited nodes by row, ascending within a row: the order of sums must not depend on the descent.
class NodesByRow {
  public:
    void begin(int64_t n_rows) {
        visits_.clear();
        ends_.assign(static_cast<size_t>(n_rows) + 1, 0);
    }
    void add(int32_t row, int64_t node) {
        visits_.push_back({row, node});
        ++ends_[row + 1];
    }
    void sort() {
        for (size_t r = 1; r < ends_.size(); ++r) ends_[r] += ends_[r - 1];
        nodes_.resize(visits_.size());
        std::vector<int64_t> at(ends_.begin(), ends_.end() - 1);
        for (const Visit& v : visits_) nodes_[at[v.row]++] = v.node;
        for (size_t r = 0; r + 1 < ends_.size(); ++r)
            std::sort(nodes_.begin() + ends_[r], nodes_.begin() + ends_[r + 1]);
    }
    const int64_t* begin_of(int64_t row) const { return nodes_.data() + ends_[row]; }
    const int64_t* end_of(int64_t row) const { return nodes_.data() + ends_[row + 1]; }

  private:
    struct Visit {
        int32_t row;
        int64_t node;
    };
    std::vector<Visit> visits_;
    std::vector<int64_t> ends_, nodes_;
};

// Step 3, for one row at a time.
class LeafVotes {
  public:
    explicit LeafVotes(const ForestView& forest) : forest_(forest), sums_(forest.n_known()) {}

    // The row's leaves, ascending.
    void average(const int64_t* begin, const int64_t* end) {
        int64_t trees = 0, bins = 0;
        for (const int64_t* at = begin; at < end;) {
            const int64_t* stop = end_of_tree(at, end);
            ++trees;
            for (; at < stop; ++at) {
                const Range its = forest_.bins_of(*at);
                bins += its.end - its.begin;
            }
        }
        sums_.begin(bins);
        sums_.fill([&](auto&& add) {
            for (const int64_t* at = begin; at < end;) {
                const int64_t* stop = end_of_tree(at, end);
                const double share =
                    1.0 / (static_cast<double>(trees) * static_cast<double>(stop - at));
                for (; at < stop; ++at) add_leaf(*at, share, add);
            }
        });
        sums_.end();
    }
    float score(int32_t label) const { return static_cast<float>(sums_.of(label)); }
    // Calls visit(label, score) for each label with a score, dropped ones included, in no
    // particular order.
    template <typename Visit>
    void each(Visit&& visit) const {
        sums_.each([&](int32_t label, double sum) { visit(label, static_cast<float>(sum)); });
    }

  private:
    const int64_t* end_of_tree(const int64_t* at, const int64_t* end) const {
        const int64_t* offsets = forest_.tree_offsets;
        const int64_t next = *std::upper_bound(offsets, offsets + forest_.n_trees, *at);
        while (at < end && *at < next) ++at;
        return at;
    }

    template <typename Add>
    void add_leaf(int64_t node, double share, Add& add) {
        forest_.histogram_labels.with([&](const auto* labels) {
            forest_.histogram_counts.with(
                [&](const auto* counts) { add_bins(node, share, labels, counts, add); });
        });
    }

    template <typename Label, typename Count, typename Add>
    void add_bins(int64_t node, double share, const Label* labels, const Count* counts, Add& add) {
        const Range bins = forest_.bins_of(node);
        double whole = static_cast<double>(forest_.node_rows[node]);
        if (!forest_.by_rows) {
            whole = 0;
            for (int64_t i = bins.begin; i < bins.end; ++i) whole += counts[i];
        }
        const double factor = whole > 0 ? share / whole : 0;
        const auto n_labels = static_cast<uint32_t>(forest_.n_known());
        for (int64_t i = bins.begin; i < bins.end; ++i) {
            const auto label = static_cast<uint32_t>(labels[i]);
            if (label >= n_labels) broken(node, "a label number is out of range");
            add(label, counts[i] * factor);
        }
    }

    const ForestView& forest_;
    LabelSums<double> sums_;
};

// Calls per_row(row, votes) for each row, in order.
template <typename PerRow>
void predict(const ForestView& forest, const FeatureRows& x, const uint8_t* skip,
             const Kernels& kernels, Monitor& monitor, PerRow&& per_row) {
    Descent descent(forest, x, skip, kernels, monitor);
    LeafVotes votes(forest);
    NodesByRow leaves;
    const int64_t batch_rows = rows_per_batch(forest);
    for (int64_t from = 0; from < x.n_rows; from += batch_rows) {
        const int64_t to = std::min(x.n_rows, from + batch_rows);
        leaves.begin(to - from);
        descent.run(from, to, [&](int32_t row, int64_t node, int64_t parent, bool leaf) {
            if (!leaf) return;
            // A leaf that no labelled row reached answers with its parent's histogram.
            const bool empty = forest.histogram_offsets[node] == forest.histogram_offsets[node + 1];
            leaves.add(row, empty && parent >= 0 ? parent : node);
        });
        leaves.sort();
        for (int64_t row = from; row < to; ++row) {
            votes.average(leaves.begin_of(row - from), leaves.end_of(row - from));
            per_row(row, votes);
        }
    }
}

}  // namespace ldsm
