#include "router.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace ldsm {

namespace {

constexpr int64_t kBatchRows = 4096;

[[noreturn]] void broken(int64_t node, const char* what) {
    throw BrokenForest("The forest is damaged at node " + std::to_string(node) + ": " + what + ".");
}

struct Range {
    int64_t begin, end;
};

// Routes a batch of rows tree by tree and node by node, so that a node's weights are fetched once
// for all the rows that pass it.
class Router {
  public:
    Router(const ForestView& forest, const FeatureRows& x, const Kernels& kernels, Monitor& monitor)
        : forest_(forest),
          x_(x),
          margins_(kernels.margins[forest.arity]),
          monitor_(monitor),
          width_(padded_width(forest.arity)),
          pad_(static_cast<uint32_t>(forest.n_features) + 1) {}

    // A visit: row `row` of the batch at node `node` (numbered over the forest).
    struct Visit {
        int32_t row;
        int64_t node;
    };

    void begin(int64_t from, int64_t to) {
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

    // Calls visit(row, node, parent, is_leaf) for everything the rows pass in one tree.
    template <typename OnVisit>
    void walk(int64_t tree, const uint8_t* skip, OnVisit&& visit) {
        const int64_t root = forest_.tree_offsets[tree];
        const int64_t tree_nodes = forest_.tree_offsets[tree + 1] - root;
        if (root < 0 || tree_nodes < 1 || root + tree_nodes > forest_.n_nodes)
            broken(root, "the tree's nodes lie outside the forest");
        arena_.clear();
        for (int64_t r = 0; r < n_; ++r)
            if (skip == nullptr || skip[(from_ + r) * forest_.n_trees + tree] == 0)
                arena_.push_back(static_cast<int32_t>(r));
        stack_.assign(1, {0, -1, 0, arena_.size()});
        while (!stack_.empty()) {
            const Task task = stack_.back();
            stack_.pop_back();
            arena_.resize(task.end);  // what lies behind belongs to nodes that are done
            if (task.begin == task.end) continue;
            const int64_t node = root + task.node;
            const int32_t child = forest_.first_child[node];
            const int64_t parent = task.parent < 0 ? -1 : root + task.parent;
            for (size_t i = task.begin; i < task.end; ++i)
                visit(arena_[i], node, parent, child == 0);
            if (child == 0) continue;
            if (child <= task.node || child + forest_.arity > tree_nodes)
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

  private:
    struct Task {
        int32_t node, parent;
        size_t begin, end;  // of the rows, in the arena
    };

    Range entries_of(int64_t node) const {
        const Range r{forest_.weight_offsets[node], forest_.weight_offsets[node + 1]};
        if (r.begin < 0 || r.end < r.begin || r.end > forest_.n_entries)
            broken(node, "its weights lie outside the stored ones");
        return r;
    }

    void route(int64_t node, size_t begin, size_t end) {
        directions_.resize(end - begin);
        const Range entries = entries_of(node);
        if (forest_.standardized) {
            for (size_t i = begin; i < end; ++i)
                directions_[i - begin] = standardized_directions(node, entries, arena_[i]);
            return;
        }
        // Spreading the weights costs a write and an erasing write per entry; looking features up
        // one by one costs a binary search each.
        const int64_t n_entries = entries.end - entries.begin;
        int64_t lookups = 0;
        for (size_t i = begin; i < end && lookups < n_entries; ++i)
            lookups += start_[arena_[i] + 1] - start_[arena_[i]];
        if (lookups < n_entries)
            for (size_t i = begin; i < end; ++i)
                directions_[i - begin] = forest_.maps != nullptr
                                             ? mapped_directions(node, entries, arena_[i])
                                             : searched_directions(entries, arena_[i]);
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
        for (int64_t e = entries.begin; e < entries.end; ++e) {
            const int32_t f = forest_.weight_features[e];
            if (f < 0 || f > forest_.n_features) {
                spread_.clear();
                broken(node, "a feature number is out of range");
            }
            float* to = spread_.data() + static_cast<size_t>(f) * width;
            for (int m = 0; m < arity; ++m) to[m] = forest_.weights[e * arity + m];
        }
        for (size_t i = begin; i < end; ++i) {
            float margins[kMaxArity];
            const int64_t start = start_[arena_[i]];
            margins_(spread_.data(), feature_.data() + start, value_.data() + start,
                     start_[arena_[i] + 1] - start, margins);
            directions_[i - begin] = directions_of(margins, arity);
        }
        for (int64_t e = entries.begin; e < entries.end; ++e) {
            float* to = spread_.data() + static_cast<size_t>(forest_.weight_features[e]) * width;
            for (int m = 0; m < arity; ++m) to[m] = 0;
        }
    }

    // The same sums as the kernel's, in the same order: four partial sums by position.
    struct Sums {
        float lane[kLanes][kMaxArity] = {};
        void add(int64_t position, const float* weights, float x, int arity) {
            float* to = lane[position % kLanes];
            for (int m = 0; m < arity; ++m) to[m] += x * weights[m];
        }
        uint8_t directions(int arity) const {
            float margins[kMaxArity];
            for (int m = 0; m < arity; ++m)
                margins[m] = (lane[0][m] + lane[2][m]) + (lane[1][m] + lane[3][m]);
            return directions_of(margins, arity);
        }
    };

    // The weights of a row's features, looked up one by one; all lookups of a group are independent,
    // so that the machine waits for several memory accesses at a time, and nothing is guessed.
    template <typename Place>
    uint8_t looked_up_directions(Range entries, int32_t row, Place&& place) const {
        Sums sums;
        const int64_t start = start_[row];
        const int64_t length = start_[row + 1] - start;
        for (int64_t i = 0; i < length && entries.begin < entries.end; i += kLanes) {
            int64_t at[kLanes];
            bool stored[kLanes];
            place(feature_.data() + start + i, at, stored);
            for (int lane = 0; lane < kLanes; ++lane) {
                // A feature that is not stored has weight 0: 0 times some weight adds nothing.
                const float x = stored[lane] ? value_[start + i + lane] : 0.0f;
                const float* weights = forest_.weights + (entries.begin + at[lane]) * forest_.arity;
                for (int m = 0; m < forest_.arity; ++m) sums.lane[lane][m] += x * weights[m];
            }
        }
        return sums.directions(forest_.arity);
    }

    // By binary search without branches, four features in step.
    uint8_t searched_directions(Range entries, int32_t row) const {
        const int32_t* const features = forest_.weight_features + entries.begin;
        const int64_t n_stored = entries.end - entries.begin;
        return looked_up_directions(entries, row, [=](const uint32_t* wanted, int64_t* at, bool* stored) {
            for (int lane = 0; lane < kLanes; ++lane) at[lane] = 0;
            for (int64_t n = n_stored; n > 1;) {
                const int64_t half = n / 2;
                for (int lane = 0; lane < kLanes; ++lane)
                    at[lane] += half & -static_cast<int64_t>(
                                           features[at[lane] + half - 1] <
                                           static_cast<int32_t>(wanted[lane]));
                n -= half;
            }
            for (int lane = 0; lane < kLanes; ++lane)
                stored[lane] = features[at[lane]] == static_cast<int32_t>(wanted[lane]);
        });
    }

    uint8_t mapped_directions(int64_t node, Range entries, int32_t row) const {
        const FeatureMap* const maps = forest_.maps + node * forest_.map_words;
        const auto last = static_cast<uint64_t>(entries.end - entries.begin - 1);
        return looked_up_directions(entries, row, [=](const uint32_t* wanted, int64_t* at, bool* stored) {
            for (int lane = 0; lane < kLanes; ++lane) {
                const FeatureMap& map = maps[wanted[lane] / 64];
                const uint64_t below = (uint64_t{1} << (wanted[lane] % 64)) - 1;
                stored[lane] = (map.present & (below + 1)) != 0;
                // Clamped: a map is derived data, but nothing here may read outside the weights.
                at[lane] = static_cast<int64_t>(
                    std::min(last, map.before + count_bits(map.present & below)));
            }
        });
    }

    // Portable: the instruction is not in the x86-64 baseline.
    static uint64_t count_bits(uint64_t x) {
        x -= (x >> 1) & 0x5555555555555555ULL;
        x = (x & 0x3333333333333333ULL) + ((x >> 2) & 0x3333333333333333ULL);
        return (((x + (x >> 4)) & 0x0F0F0F0F0F0F0F0FULL) * 0x0101010101010101ULL) >> 56;
    }

    uint8_t standardized_directions(int64_t node, Range entries, int32_t row) const {
        Sums sums;
        const float* x = dense_.data() + static_cast<size_t>(row) * forest_.n_features;
        for (int64_t e = entries.begin; e < entries.end; ++e) {
            const int32_t f = forest_.weight_features[e];
            if (f < 0 || f > forest_.n_features) broken(node, "a feature number is out of range");
            const bool bias = f == forest_.n_features;
            const float value =
                bias ? 1.0f : (x[f] - forest_.weight_means[e]) * forest_.weight_scales[e];
            sums.add(bias ? 0 : f + 1, forest_.weights + e * forest_.arity, value, forest_.arity);
        }
        return sums.directions(forest_.arity);
    }

    const ForestView& forest_;
    const FeatureRows& x_;
    RowMargins margins_;
    Monitor& monitor_;
    int width_;
    uint32_t pad_;
    int64_t from_ = 0, n_ = 0;
    std::vector<int64_t> start_;
    std::vector<uint32_t> feature_;
    std::vector<float> value_, dense_, spread_;
    std::vector<int32_t> arena_;
    std::vector<Task> stack_;
    std::vector<uint8_t> directions_;
};

// Visits in row order: counting sort, stable, so a row's trees stay in order.
class ByRow {
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
        for (const auto& v : visits_) nodes_[at[v.row]++] = v.node;
    }
    const int64_t* begin_of(int64_t row) const { return nodes_.data() + ends_[row]; }
    const int64_t* end_of(int64_t row) const { return nodes_.data() + ends_[row + 1]; }

  private:
    std::vector<Router::Visit> visits_;
    std::vector<int64_t> ends_, nodes_;
};

// The average over trees of the average over a tree's leaves, for one row at a time.
class LeafVotes {
  public:
    explicit LeafVotes(const ForestView& forest)
        : forest_(forest), score_(static_cast<size_t>(forest.n_labels), 0.0) {}

    void merge(const int64_t* begin, const int64_t* end) {
        for (const int32_t label : touched_) score_[label] = 0;
        touched_.clear();
        int64_t trees = 0, bins = 0;
        for (const int64_t* at = begin; at < end;) {
            const int64_t* stop = end_of_tree(at, end);
            ++trees;
            for (; at < stop; ++at) bins += bins_of(*at).end - bins_of(*at).begin;
        }
        // Where the leaves hold more bins than there are labels, looking at every label once is
        // cheaper than keeping account of which ones were met.
        const bool all = bins >= forest_.n_labels;
        for (const int64_t* at = begin; at < end;) {
            const int64_t* stop = end_of_tree(at, end);
            const double share = 1.0 / (static_cast<double>(trees) * static_cast<double>(stop - at));
            for (; at < stop; ++at) all ? add<false>(*at, share) : add<true>(*at, share);
        }
        if (!all) return;
        for (int32_t label = 0; label < forest_.n_labels; ++label)
            if (score_[label] != 0) touched_.push_back(label);
    }
    // Labels with a score, in no particular order.
    const std::vector<int32_t>& labels() const { return touched_; }
    float score(int32_t label) const { return static_cast<float>(score_[label]); }

  private:
    const int64_t* end_of_tree(const int64_t* at, const int64_t* end) const {
        const int64_t* offsets = forest_.tree_offsets;
        const int64_t next = *std::upper_bound(offsets, offsets + forest_.n_trees, *at);
        while (at < end && *at < next) ++at;
        return at;
    }

    Range bins_of(int64_t node) const {
        const Range bins{forest_.histogram_offsets[node], forest_.histogram_offsets[node + 1]};
        if (bins.begin < 0 || bins.end < bins.begin || bins.end > forest_.n_bins)
            broken(node, "its histogram lies outside the stored ones");
        return bins;
    }

    template <bool TRACK>
    void add(int64_t node, double share) {
        const Range bins = bins_of(node);
        double whole = static_cast<double>(forest_.node_rows[node]);
        if (!forest_.by_rows) {
            whole = 0;
            for (int64_t i = bins.begin; i < bins.end; ++i) whole += forest_.histogram_counts[i];
        }
        const double factor = whole > 0 ? share / whole : 0;
        const auto n_labels = static_cast<uint32_t>(forest_.n_labels);
        for (int64_t i = bins.begin; i < bins.end; ++i) {
            const int32_t label = forest_.histogram_labels[i];
            if (static_cast<uint32_t>(label) >= n_labels)
                broken(node, "a label number is out of range");
            if (TRACK && score_[label] == 0) touched_.push_back(label);
            score_[label] += forest_.histogram_counts[i] * factor;
        }
    }

    const ForestView& forest_;
    std::vector<double> score_;
    std::vector<int32_t> touched_;
};

template <typename PerRow>
void score_rows(const ForestView& forest, const FeatureRows& x, const uint8_t* skip,
                const Kernels& kernels, Monitor& monitor, PerRow&& per_row) {
    Router router(forest, x, kernels, monitor);
    LeafVotes votes(forest);
    ByRow leaves;
    for (int64_t from = 0; from < x.n_rows; from += kBatchRows) {
        const int64_t to = std::min(x.n_rows, from + kBatchRows);
        router.begin(from, to);
        leaves.begin(to - from);
        for (int64_t tree = 0; tree < forest.n_trees; ++tree)
            router.walk(tree, skip, [&](int32_t row, int64_t node, int64_t parent, bool leaf) {
                if (!leaf) return;
                // A leaf that no labelled row reached answers with its parent's histogram.
                const bool empty =
                    forest.histogram_offsets[node] == forest.histogram_offsets[node + 1];
                leaves.add(row, empty && parent >= 0 ? parent : node);
            });
        leaves.sort();
        for (int64_t row = from; row < to; ++row) {
            votes.merge(leaves.begin_of(row - from), leaves.end_of(row - from));
            per_row(row, votes);
        }
    }
}

}  // namespace

FeatureMapArrays feature_maps(const ForestView& forest) {
    const int64_t words = (int64_t{forest.n_features} + 2 + 63) / 64;  // the bias and the padding
    FeatureMapArrays maps(static_cast<size_t>(forest.n_nodes * words * 2), 0);
    for (int64_t node = 0; node < forest.n_nodes; ++node) {
        const int64_t begin = forest.weight_offsets[node], end = forest.weight_offsets[node + 1];
        if (begin < 0 || end < begin || end > forest.n_entries)
            broken(node, "its weights lie outside the stored ones");
        uint64_t* map = maps.data() + node * words * 2;
        for (int64_t e = begin; e < end; ++e) {
            const int32_t f = forest.weight_features[e];
            if (f < 0 || f > forest.n_features) broken(node, "a feature number is out of range");
            map[f / 64 * 2] |= uint64_t{1} << (f % 64);
            if (f / 64 + 1 < words) ++map[(f / 64 + 1) * 2 + 1];
        }
        for (int64_t w = 1; w < words; ++w) map[w * 2 + 1] += map[(w - 1) * 2 + 1];
    }
    return maps;
}

void route_topk(const ForestView& forest, const FeatureRows& x, const uint8_t* skip,
                const TopK& out, const Kernels& kernels, Monitor& monitor) {
    struct Scored {
        float score;
        int32_t label;
        bool operator<(const Scored& other) const {  // best first; equal scores: lower label
            return score != other.score ? score > other.score : label < other.label;
        }
    };
    std::vector<Scored> scored;
    std::vector<uint8_t> taken(static_cast<size_t>(forest.n_labels), 0);
    score_rows(forest, x, skip, kernels, monitor, [&](int64_t row, const LeafVotes& votes) {
        scored.clear();
        for (const int32_t label : votes.labels()) {
            const float score = votes.score(label);
            if (score > 0 && (out.allowed == nullptr || out.allowed[label]))
                scored.push_back({score, label});
        }
        const auto found = std::min<int64_t>(out.k, static_cast<int64_t>(scored.size()));
        std::partial_sort(scored.begin(), scored.begin() + found, scored.end());
        int32_t* labels = out.labels + row * out.k;
        float* scores = out.scores + row * out.k;
        for (int64_t i = 0; i < found; ++i) {
            labels[i] = scored[i].label;
            scores[i] = scored[i].score;
        }
        if (found == out.k) return;
        for (int64_t i = 0; i < found; ++i) taken[labels[i]] = 1;
        int64_t at = found;
        for (int32_t i = 0; i < forest.n_labels && at < out.k; ++i) {
            const int32_t label = out.fill_order[i];
            if (taken[label] || (out.allowed != nullptr && !out.allowed[label])) continue;
            labels[at] = label;
            scores[at++] = 0;
        }
        for (int64_t i = 0; i < found; ++i) taken[labels[i]] = 0;
    });
}

SparseScores route_scores(const ForestView& forest, const FeatureRows& x, const uint8_t* skip,
                          const Kernels& kernels, Monitor& monitor) {
    SparseScores out;
    std::vector<int32_t> sorted;
    score_rows(forest, x, skip, kernels, monitor, [&](int64_t, const LeafVotes& votes) {
        sorted = votes.labels();
        std::sort(sorted.begin(), sorted.end());
        for (const int32_t label : sorted) {
            const float score = votes.score(label);
            if (score <= 0) continue;
            out.indices.push_back(label);
            out.values.push_back(score);
        }
        out.indptr.push_back(static_cast<int64_t>(out.indices.size()));
    });
    return out;
}

SparseScores route_nodes(const ForestView& forest, const FeatureRows& x, const Kernels& kernels,
                         Monitor& monitor) {
    SparseScores out;
    Router router(forest, x, kernels, monitor);
    ByRow visits;
    std::vector<int64_t> sorted;
    for (int64_t from = 0; from < x.n_rows; from += kBatchRows) {
        const int64_t to = std::min(x.n_rows, from + kBatchRows);
        router.begin(from, to);
        visits.begin(to - from);
        for (int64_t tree = 0; tree < forest.n_trees; ++tree)
            router.walk(tree, nullptr,
                        [&](int32_t row, int64_t node, int64_t, bool) { visits.add(row, node); });
        visits.sort();
        for (int64_t row = 0; row < to - from; ++row) {
            sorted.assign(visits.begin_of(row), visits.end_of(row));
            std::sort(sorted.begin(), sorted.end());
            for (const int64_t node : sorted) out.indices.push_back(static_cast<int32_t>(node));
            out.indptr.push_back(static_cast<int64_t>(out.indices.size()));
        }
    }
    return out;
}

}  // namespace ldsm
