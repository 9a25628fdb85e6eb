// Which children of a node rows go to: the margins of its regressors, in the cheapest way for the
// number of rows. All ways add the same numbers in the same order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/laid_out_row.hpp"
#include "common/partial_sums.hpp"
#include "routing/row_batch.hpp"

namespace ldsm {

// Directions are bits: bit m is set if the row goes to child m.
class NodeRouter {
  public:
    NodeRouter(const ForestView& forest, const RowBatch& batch, const Kernels& kernels)
        : forest_(forest),
          batch_(batch),
          margins_(kernels.margins[forest.arity]),
          find_places_(kernels.find_places),
          width_(padded_width(forest.arity)),
          laid_out_(int64_t{forest.n_features} + 2) {}

    // The batch has new rows.
    void begin() { laid_out_.clear(); }

    // The directions of some rows at one node.
    const uint8_t* directions(int64_t node, const int32_t* rows, size_t n) {
        directions_.resize(n);
        const Range entries = forest_.entries_of(node);
        if (forest_.standardized) {
            for (size_t i = 0; i < n; ++i)
                directions_[i] = standardized_directions(node, entries, rows[i]);
            return directions_.data();
        }
        // Spreading the weights costs a write and an erasing write per entry. Searching them for
        // one row costs hardly more than reading them.
        constexpr size_t kRowsToSpread = 4;
        if (n < kRowsToSpread)
            for (size_t i = 0; i < n; ++i) {
                forget_found();
                find(node, rows[i]);
                directions_[i] = found_directions(node, rows[i], 0, n_met_);
            }
        else if (forest_.arity == 2)
            spread_directions<2>(node, entries, rows, n);
        else
            spread_directions<0>(node, entries, rows, n);
        return directions_.data();
    }

    // The same in two steps, so that the weights of several nodes can be fetched at the same time:
    // find() appends the weights that a row needs of a node and asks for them, found_directions()
    // adds up those between two results of find().
    void forget_found() { n_met_ = 0; }
    size_t find(int64_t node, int32_t row) {
        const Range entries = forest_.entries_of(node);
        const int64_t length = batch_.length(row);
        const uint32_t* const features = batch_.features(row);
        const size_t most = n_met_ + static_cast<size_t>(length) + 1;
        if (met_.size() < most) met_.resize(2 * most);
        Met* const first = met_.data() + n_met_;
        Met* met = first;
        if (const FeatureMap* map = forest_.map_of(node); map != nullptr) {
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
        return n_met_;
    }
    // The same sums as the kernel's, in the same order: four partial sums by position. A feature
    // that is not stored has weight 0 and adds nothing.
    uint8_t found_directions(int64_t node, int32_t row, size_t begin, size_t end) const {
        Sums sums;
        const VectorWeights weights(forest_.weights, node);
        const float* const x = batch_.values(row);
        for (size_t i = begin; i < end; ++i)
            sums.add(met_[i].position, weights, met_[i].entry, x[met_[i].position], forest_.arity);
        return sums.directions(forest_.arity);
    }
    // Asks for what find() reads of a node first.
    void prefetch(int64_t node) const {
        __builtin_prefetch(forest_.weights.offsets + node);
        const FeatureMap* map = forest_.map_of(node);
        for (int64_t w = 0; map != nullptr && w < std::min<int64_t>(forest_.map_words(), 32);
             w += 4)
            __builtin_prefetch(map + w);
    }

  private:
    // What a row and a node have in common: a position in the row and an entry of the node.
    struct Met {
        int64_t position, entry;
    };

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

    template <int ARITY>  // 0: known at run time only
    void spread_directions(int64_t node, Range entries, const int32_t* rows, size_t n) {
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
        for (size_t i = 0; i < n; ++i) {
            float margins[kMaxArity];
            margins_(spread_.data(), batch_.features(rows[i]), batch_.values(rows[i]),
                     batch_.length(rows[i]), margins);
            directions_[i] = directions_of(margins, arity);
        }
        forest_.weights.each_feature(entries, [&](int64_t, uint32_t f) {
            float* to = spread_.data() + static_cast<size_t>(f) * width;
            for (int m = 0; m < arity; ++m) to[m] = 0;
        });
    }

    uint8_t standardized_directions(int64_t node, Range entries, int32_t row) const {
        Sums sums;
        const float* x = batch_.dense(row);
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
    const RowBatch& batch_;
    RowMargins margins_;
    FindPlaces find_places_;
    int width_;
    std::vector<float> spread_;  // all zero between uses
    std::vector<uint8_t> directions_;
    std::vector<Met> met_;  // the first `n_met_` count
    size_t n_met_ = 0;
    std::vector<int32_t> places_;  // of a row's features within a node
    LaidOutRow laid_out_;
};

}  // namespace ldsm
