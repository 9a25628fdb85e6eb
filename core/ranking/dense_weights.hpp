// The weights of one label at a time, over all features; only what was touched is cleared.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "common/weight_codec.hpp"

namespace ldsm {

// How the vectors of labels are stored.
struct VectorForm {
    float prune;    // smaller weights are dropped
    bool compress;  // the others are rounded to a byte
};

class DenseWeights {
  public:
    DenseWeights(int32_t n_features, const VectorForm& form)
        : form_{n_features, form.compress},
          prune_(form.prune),
          values_(static_cast<size_t>(n_features) + 1 + kSpare, 0.0f),
          touched_(values_.size() / 64 + 1, 0) {}

    static constexpr int64_t kSpare = 16;  // zeros behind the weights

    float* data() { return values_.data(); }
    void touch(int32_t feature) { touched_[feature >> 6] |= uint64_t{1} << (feature & 63); }

    // Calls visit(feature, weight, unit) for the touched weights as they are stored, features
    // ascending. The constant is never pruned.
    template <typename Visit>
    void each_stored(Visit&& visit) const {
        const auto each_kept = [&](auto&& take) {
            each_touched([&](int32_t f) {
                const float size = std::fabs(values_[f]);
                if (size != 0 && (size >= prune_ || f == form_.n_features)) take(f, values_[f]);
            });
        };
        ldsm::each_stored(form_.compress, each_kept, visit);
    }

    // Appends the vector, and starts again from 0.
    void give(EncodedWeights& out) {
        vector_.clear();
        each_stored([&](int32_t feature, float weight, float unit) {
            vector_.unit = unit;
            vector_.add(form_, feature, &weight);
        });
        out.append(form_, vector_);
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

    WeightForm form_;
    float prune_;
    std::vector<float> values_;
    std::vector<uint64_t> touched_;  // one bit per feature
    SparseVector vector_;
};

}  // namespace ldsm
