// The weights of one label at a time, over all features; only what was touched is cleared.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "common/stored_weights.hpp"
#include "ranking/second_stage.hpp"

namespace ldsm {

class DenseWeights {
  public:
    explicit DenseWeights(int32_t n_features)
        : n_features_(n_features),
          values_(static_cast<size_t>(n_features) + 1, 0.0f),
          touched_(values_.size() / 64 + 1, 0) {}

    float* data() { return values_.data(); }
    void touch(int32_t feature) { touched_[feature >> 6] |= uint64_t{1} << (feature & 63); }

    // Calls visit(feature, weight) for the touched weights of at least `prune`, features ascending,
    // rounded if `form` says so; the constant is never dropped. Returns the unit of the rounding.
    template <typename Visit>
    float each_kept(const VectorForm& form, Visit&& visit) const {
        const auto kept = [&](int32_t feature) {
            const float size = std::fabs(values_[feature]);
            return size != 0 && (size >= form.prune || feature == n_features_);
        };
        float largest = 0;
        if (form.compress)
            each_touched([&](int32_t f) {
                if (kept(f)) largest = std::max(largest, std::fabs(values_[f]));
            });
        const float unit = byte_unit(largest);
        // Nothing to speak of, and too small to divide by.
        if (form.compress && unit < std::numeric_limits<float>::min()) return 0;
        each_touched([&](int32_t f) {
            if (!kept(f)) return;
            const float weight =
                form.compress ? unit * static_cast<float>(as_code(values_[f], unit)) : values_[f];
            if (weight != 0) visit(f, weight);
        });
        return unit;
    }

    // Appends what `each_kept` visits, and starts again from 0.
    void give(const VectorForm& form, LabelVectors& out) {
        const int32_t step = widest_gap(n_features_);
        std::vector<int32_t>& features = out.features;
        int32_t last = 0;
        const size_t first = out.weights.size();
        const float unit = each_kept(form, [&](int32_t feature, float weight) {
            for (; form.compress && feature - last > step; last += step) {
                features.push_back(last + step);
                out.weights.push_back(0);
            }
            last = feature;
            features.push_back(feature);
            out.weights.push_back(weight);
        });
        if (form.compress) {
            for (size_t i = first; i < out.weights.size(); ++i)
                out.codes.push_back(as_code(out.weights[i], unit));
            out.weights.resize(first);
            out.units.push_back(unit);
        }
        out.offsets.push_back(static_cast<int64_t>(features.size()));
        each_touched([&](int32_t f) { values_[f] = 0; });
        std::fill(touched_.begin(), touched_.end(), 0);
    }

  private:
    template <typename Visit>
    void each_touched(Visit&& visit) const {
        for (size_t word = 0; word < touched_.size(); ++word)
            for (uint64_t bits = touched_[word]; bits != 0; bits &= bits - 1)
                visit(static_cast<int32_t>(64 * word + std::countr_zero(bits)));
    }

    int32_t n_features_;
    std::vector<float> values_;
    std::vector<uint64_t> touched_;  // one bit per feature
};

}  // namespace ldsm
