// The way of a batch of rows through the trees of a forest.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "common/partial_sums.hpp"
#include "routing/router.hpp"

namespace ldsm {

[[noreturn]] inline void broken(int64_t node, const char* what) {
    throw BrokenModel("The forest is damaged at node " + std::to_string(node) + ": " + what + ".");
}
[[noreturn]] inline void refuse_feature(int64_t node) {
    broken(node, "a feature number is out of range");
}

inline Range entries_of(const ForestView& forest, int64_t node) {
    Range entries;
    if (!forest.weights.entries_of(node, entries))
        broken(node, "its weights lie outside the stored ones");
    return entries;
}

constexpr int64_t kFewRows = 8;  // up to this many are walked through all trees together

// Routes a batch of rows tree by tree and node by node, so that a node's weights are fetched once
// for all the rows that pass it.
class Walker {
  public:
    Walker(const ForestView& forest, const FeatureRows& x, const Kernels& kernels, Monitor& monitor)
        : forest_(forest),
          x_(x),
          margins_(kernels.margins[forest.arity]),
          find_places_(kernels.find_places),
          monitor_(monitor),
          width_(padded_width(forest.arity)),
          pad_(static_cast<uint32_t>(forest.n_features) + 1),
          map_words_(map_words(forest)),
          laid_out_(int64_t{forest.n_features} + 2) {}

    // A visit: row `row` of the batch at node `node` (numbered over the forest).
    struct Visit {
        int32_t row;
        int64_t node;
    };

    void begin(int64_t from, int64_t to) {
        laid_out_.clear();
        from_ = from;
        n_ = to - from;
        start_.assign(1, 0);
        if (forest_.standardized) {
            dense_.assign(static_cast<size_t>(n_) * forest_.n_features, 0.0f);
            for (int64_t r = 0; r < n_; ++r)
                for (int64_t i = x_.indptr[from + r]; i < x_.indptr[from + r + 1]; ++i)
                    dense_[r * forest_.n_features + x_.indices[i]] = x_.values[i];
            return;
        }
        feature_.clear();
        value_.clear();
        for (int64_t r = 0; r < n_; ++r) {
            const int64_t first = x_.indptr[from + r], last = x_.indptr[from + r + 1];
            feature_.push_back(static_cast<uint32_t>(forest_.n_features));  // the bias
            value_.push_back(1.0f);
            feature_.insert(feature_.end(), x_.indices + first, x_.indices + last);
            value_.insert(value_.end(), x_.values + first, x_.values + last);
            while (feature_.size() % kLanes != 0) {
                feature_.push_back(pad_);
                value_.push_back(0.0f);
            }
            start_.push_back(static_cast<int64_t>(feature_.size()));
        }
    }

    // Calls visit(row, node, parent, is_leaf) for everything the rows pass in all trees.
    template <typename OnVisit>
    void walk_all(const uint8_t* skip, OnVisit&& visit) {
        if (!forest_.standardized && n_ <= kFewRows) {
            walk_together(skip, visit);
            return;
        }
        for (int64_t tree = 0; tree < forest_.n_trees; ++tree) walk(tree, skip, visit);
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

    Range nodes_of(int64_t tree) const {
        const Range nodes{forest_.tree_offsets[tree], forest_.tree_offsets[tree + 1]};
        if (nodes.begin < 0 || nodes.end <= nodes.begin || nodes.end > forest_.n_nodes)
            broken(nodes.begin, "the tree's nodes lie outside the forest");
        if (nodes.end - nodes.begin > INT32_MAX - kMaxArity)
            broken(nodes.begin, "the tree has more nodes than can be numbered");
        return nodes;
    }

    // For a few rows the way down is a chain of trips to memory. All trees are walked together,
    // level by level: while the weights of one node are on their way, the others' are being asked
    // for.
    template <typename OnVisit>
    void walk_together(const uint8_t* skip, OnVisit&& visit) {
        std::vector<Step> level, next;
        for (int32_t row = 0; row < n_; ++row)
            for (int64_t tree = 0; tree < forest_.n_trees; ++tree) {
                const Range nodes = nodes_of(tree);
                if (skip == nullptr || skip[(from_ + row) * forest_.n_trees + tree] == 0)
                    level.push_back({nodes.begin, nodes.end, 0, -1, row});
            }
        int64_t visited = 0;
        while (!level.empty()) {
            visited += static_cast<int64_t>(level.size());
            if (visited > forest_.n_nodes * n_) broken(0, "some node has two parents");
            n_met_ = 0;
            met_ends_.clear();
            for (const Step& step : level) {
                const int64_t node = step.root + step.node;
                const int64_t parent = step.parent < 0 ? -1 : step.root + step.parent;
                const bool leaf = forest_.first_child[node] == 0;
                visit(step.row, node, parent, leaf);
                if (leaf) continue;
                find_entries(node, step.row);
                met_ends_.push_back(n_met_);
            }
            next.clear();
            size_t at = 0;
            for (const Step& step : level) {
                const int64_t node = step.root + step.node;
                const int32_t child = forest_.first_child[node];
                if (child == 0) continue;
                if (child <= step.node || step.root + child + forest_.arity > step.tree_end)
                    broken(node, "a child lies outside the tree or before its parent");
                const size_t first = at == 0 ? 0 : met_ends_[at - 1];
                const uint8_t directions = summed_directions(node, step.row, first, met_ends_[at]);
                ++at;
                for (int m = 0; m < forest_.arity; ++m) {
                    if (((directions >> m) & 1) == 0) continue;
                    next.push_back({step.root, step.tree_end, child + m, step.node, step.row});
                    const int64_t ahead = step.root + child + m;
                    __builtin_prefetch(forest_.first_child + ahead);
                    __builtin_prefetch(forest_.weights.offsets + ahead);
                    const FeatureMap* map = map_of(ahead);
                    for (int64_t w = 0; map != nullptr && w < std::min<int64_t>(map_words_, 32);
                         w += 4)
                        __builtin_prefetch(map + w);
                }
            }
            level.swap(next);
        }
        monitor_.check();
    }

    // Null if the node has none.
    const FeatureMap* map_of(int64_t node) const {
        const uint64_t number = forest_.map_numbers == nullptr ? 0 : forest_.map_numbers[node];
        if (number == 0) return nullptr;
        if (number > static_cast<uint64_t>(forest_.n_maps)) broken(node, "it has no feature map");
        return forest_.maps + static_cast<int64_t>(number - 1) * map_words_;
    }

    // What a row and a node have in common: a position in the row and an entry of the node.
    struct Met {
        int64_t position, entry;
    };

    // Appends what the row and the node have in common, in the order of the row. The weights are
    // asked for, not yet read.
    void find_entries(int64_t node, int32_t row) {
        const Range entries = entries_of(forest_, node);
        const int64_t start = start_[row];
        const int64_t length = start_[row + 1] - start;
        const uint32_t* const features = feature_.data() + start;
        const size_t most = n_met_ + static_cast<size_t>(length) + 1;
        if (met_.size() < most) met_.resize(2 * most);
        Met* const first = met_.data() + n_met_;
        Met* met = first;
        if (const FeatureMap* map = map_of(node); map != nullptr) {
            places_.resize(static_cast<size_t>(length));
            find_places_(map, features, length, entries.end - entries.begin, places_.data());
            for (int64_t i = 0; i < length; ++i) {
                *met = {i, entries.begin + places_[i]};
                met += places_[i] >= 0;
            }
        } else {
            if (!laid_out_.holds(row))
                laid_out_.lay_out(row, length, [=](int64_t i) { return features[i]; });
            const auto keep = [&](int32_t position, int64_t e) {
                if (met < first + length) *met++ = {position, e};
            };
            if (!laid_out_.find(forest_.weights, entries, keep)) refuse_feature(node);
            // The bias is the first of a row and the last of a node.
            if (met > first && met[-1].position == 0) std::rotate(first, met - 1, met);
        }
        n_met_ += static_cast<size_t>(met - first);
        const VectorWeights weights(forest_.weights, node);
        for (const Met* m = first; m < met; ++m) weights.prefetch(m->entry);
    }

    // The same sums as the kernel's, in the same order: four partial sums by position. A feature
    // that is not stored has weight 0 and adds nothing.
    uint8_t summed_directions(int64_t node, int32_t row, size_t begin, size_t end) const {
        Sums sums;
        const VectorWeights weights(forest_.weights, node);
        const float* const x = value_.data() + start_[row];
        for (size_t i = begin; i < end; ++i)
            sums.add(met_[i].position, weights, met_[i].entry, x[met_[i].position], forest_.arity);
        return sums.directions(forest_.arity);
    }

    // Calls visit(row, node, parent, is_leaf) for everything the rows pass in one tree.
    template <typename OnVisit>
    void walk(int64_t tree, const uint8_t* skip, OnVisit&& visit) {
        const int64_t root = nodes_of(tree).begin;
        const int64_t tree_nodes = nodes_of(tree).end - root;
        arena_.clear();
        for (int64_t r = 0; r < n_; ++r)
            if (skip == nullptr || skip[(from_ + r) * forest_.n_trees + tree] == 0)
                arena_.push_back(static_cast<int32_t>(r));
        stack_.assign(1, {0, -1, 0, arena_.size()});
        int64_t visited = 0;  // a tree's nodes are passed once each; more would be no tree
        while (!stack_.empty()) {
            const Task task = stack_.back();
            stack_.pop_back();
            arena_.resize(task.end);  // what lies behind belongs to nodes that are done
            if (task.begin == task.end) continue;
            if (++visited > tree_nodes) broken(root, "some node has two parents");
            const int64_t node = root + task.node;
            const int32_t child = forest_.first_child[node];
            const int64_t parent = task.parent < 0 ? -1 : root + task.parent;
            for (size_t i = task.begin; i < task.end; ++i)
                visit(arena_[i], node, parent, child == 0);
            if (child == 0) continue;
            if (child <= task.node || child > tree_nodes - forest_.arity)
                broken(node, "a child lies outside the tree or before its parent");
            route(node, task.begin, task.end);
            size_t at = task.end;
            for (int m = 0; m < forest_.arity; ++m) {
                for (size_t i = task.begin; i < task.end; ++i)
                    if ((directions_[i - task.begin] >> m) & 1) arena_.push_back(arena_[i]);
                stack_.push_back({child + m, task.node, at, arena_.size()});
                at = arena_.size();
            }
        }
        monitor_.check();
    }

    void route(int64_t node, size_t begin, size_t end) {
        directions_.resize(end - begin);
        const Range entries = entries_of(forest_, node);
        if (forest_.standardized) {
            for (size_t i = begin; i < end; ++i)
                directions_[i - begin] = standardized_directions(node, entries, arena_[i]);
            return;
        }
        // Spreading the weights costs a write and an erasing write per entry, looking at them for
        // one row alone hardly more than reading them.
        constexpr size_t kRowsToSpread = 4;
        if (end - begin < kRowsToSpread)
            for (size_t i = begin; i < end; ++i) {
                n_met_ = 0;
                find_entries(node, arena_[i]);
                directions_[i - begin] = summed_directions(node, arena_[i], 0, n_met_);
            }
        else if (forest_.arity == 2)
            spread_directions<2>(node, entries, begin, end);
        else
            spread_directions<0>(node, entries, begin, end);
    }

    template <int ARITY>  // 0: known at run time only
    void spread_directions(int64_t node, Range entries, size_t begin, size_t end) {
        const int arity = ARITY ? ARITY : forest_.arity;
        const int width = ARITY ? ARITY : width_;
        spread_.resize((static_cast<size_t>(forest_.n_features) + 2) * width + 8, 0.0f);
        const VectorWeights weights(forest_.weights, node);
        const bool known = forest_.weights.each_feature(entries, [&](int64_t e, uint32_t f) {
            float* to = spread_.data() + static_cast<size_t>(f) * width;
            for (int m = 0; m < arity; ++m) to[m] = weights.at(e, m);
        });
        if (!known) {
            spread_.clear();
            refuse_feature(node);
        }
        for (size_t i = begin; i < end; ++i) {
            float margins[kMaxArity];
            const int64_t start = start_[arena_[i]];
            margins_(spread_.data(), feature_.data() + start, value_.data() + start,
                     start_[arena_[i] + 1] - start, margins);
            directions_[i - begin] = directions_of(margins, arity);
        }
        forest_.weights.each_feature(entries, [&](int64_t, uint32_t f) {
            float* to = spread_.data() + static_cast<size_t>(f) * width;
            for (int m = 0; m < arity; ++m) to[m] = 0;
        });
    }

    struct Sums {
        float lane[kLanes][kMaxArity] = {};
        void add(int64_t position, const VectorWeights& weights, int64_t entry, float x,
                 int arity) {
            float* to = lane[position % kLanes];
            for (int m = 0; m < arity; ++m) to[m] += x * weights.at(entry, m);
        }
        uint8_t directions(int arity) const {
            float margins[kMaxArity];
            for (int m = 0; m < arity; ++m)
                margins[m] = join_sums(lane[0][m], lane[1][m], lane[2][m], lane[3][m]);
            return directions_of(margins, arity);
        }
    };

    uint8_t standardized_directions(int64_t node, Range entries, int32_t row) const {
        Sums sums;
        const float* x = dense_.data() + static_cast<size_t>(row) * forest_.n_features;
        const VectorWeights weights(forest_.weights, node);
        const bool known = forest_.weights.each_feature(entries, [&](int64_t e, uint32_t f) {
            const bool bias = f == static_cast<uint32_t>(forest_.n_features);
            const float value =
                bias ? 1.0f : (x[f] - forest_.weight_means[e]) * forest_.weight_scales[e];
            sums.add(bias ? 0 : int64_t{f} + 1, weights, e, value, forest_.arity);
        });
        if (!known) refuse_feature(node);
        return sums.directions(forest_.arity);
    }

    const ForestView& forest_;
    const FeatureRows& x_;
    RowMargins margins_;
    FindPlaces find_places_;
    Monitor& monitor_;
    int width_;
    uint32_t pad_;
    int64_t map_words_;
    int64_t from_ = 0, n_ = 0;
    std::vector<int64_t> start_;
    std::vector<uint32_t> feature_;
    std::vector<float> value_, dense_, spread_;
    std::vector<int32_t> arena_;
    std::vector<Task> stack_;
    std::vector<uint8_t> directions_;
    std::vector<Met> met_;  // the first `n_met_` count
    size_t n_met_ = 0;
    std::vector<size_t> met_ends_;  // of the nodes of a level
    std::vector<int32_t> places_;   // of a row's features within a node
    LaidOutRow laid_out_;
};

}  // namespace ldsm
