// What the leaves that a row reaches say of the labels.
#pragma once

#include <algorithm>
#include <vector>

#include "routing/walker.hpp"

namespace ldsm {

// A standardised forest spreads the rows of a batch over all features: that must stay small too.
inline int64_t rows_per_batch(const ForestView& forest) {
    constexpr int64_t kRows = 4096, kSpreadValues = int64_t{8} << 20;
    if (!forest.standardized) return kRows;
    return std::clamp<int64_t>(kSpreadValues / (forest.n_features + 1), 1, kRows);
}

// Visits by row, and by node within a row: the order of the sums must not depend on the walk.
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
        for (size_t r = 0; r + 1 < ends_.size(); ++r)
            std::sort(nodes_.begin() + ends_[r], nodes_.begin() + ends_[r + 1]);
    }
    const int64_t* begin_of(int64_t row) const { return nodes_.data() + ends_[row]; }
    const int64_t* end_of(int64_t row) const { return nodes_.data() + ends_[row + 1]; }

  private:
    std::vector<Walker::Visit> visits_;
    std::vector<int64_t> ends_, nodes_;
};

// The average over trees of the average over a tree's leaves, for one row at a time.
class LeafVotes {
  public:
    explicit LeafVotes(const ForestView& forest)
        : forest_(forest), score_(static_cast<size_t>(forest.n_known()), 0.0) {}

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
        const bool all = bins >= forest_.n_known();
        for (const int64_t* at = begin; at < end;) {
            const int64_t* stop = end_of_tree(at, end);
            const double share =
                1.0 / (static_cast<double>(trees) * static_cast<double>(stop - at));
            for (; at < stop; ++at) all ? add<false>(*at, share) : add<true>(*at, share);
        }
        if (!all) return;
        for (int32_t label = 0; label < forest_.n_known(); ++label)
            if (score_[label] != 0) touched_.push_back(label);
    }
    // Labels with a score, dropped ones included, in no particular order.
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
        forest_.histogram_labels.with([&](const auto* labels) {
            forest_.histogram_counts.with(
                [&](const auto* counts) { add_bins<TRACK>(node, share, labels, counts); });
        });
    }

    template <bool TRACK, typename Label, typename Count>
    void add_bins(int64_t node, double share, const Label* labels, const Count* counts) {
        const Range bins = bins_of(node);
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
            if (TRACK && score_[label] == 0) touched_.push_back(static_cast<int32_t>(label));
            score_[label] += counts[i] * factor;
        }
    }

    const ForestView& forest_;
    std::vector<double> score_;
    std::vector<int32_t> touched_;
};

template <typename PerRow>
void score_rows(const ForestView& forest, const FeatureRows& x, const uint8_t* skip,
                const Kernels& kernels, Monitor& monitor, PerRow&& per_row) {
    Walker walker(forest, x, kernels, monitor);
    LeafVotes votes(forest);
    ByRow leaves;
    const int64_t batch_rows = rows_per_batch(forest);
    for (int64_t from = 0; from < x.n_rows; from += batch_rows) {
        const int64_t to = std::min(x.n_rows, from + batch_rows);
        walker.begin(from, to);
        leaves.begin(to - from);
        walker.walk_all(skip, [&](int32_t row, int64_t node, int64_t parent, bool leaf) {
            if (!leaf) return;
            // A leaf that no labelled row reached answers with its parent's histogram.
            const bool empty = forest.histogram_offsets[node] == forest.histogram_offsets[node + 1];
            leaves.add(row, empty && parent >= 0 ? parent : node);
        });
        leaves.sort();
        for (int64_t row = from; row < to; ++row) {
            votes.merge(leaves.begin_of(row - from), leaves.end_of(row - from));
            per_row(row, votes);
        }
    }
}

}  // namespace ldsm
