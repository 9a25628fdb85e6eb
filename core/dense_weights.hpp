// The weights of one label at a time, over all features; only what was touched is cleared.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "second_stage.hpp"

namespace ldsm {

class DenseWeights {
  public:
    explicit DenseWeights(int32_t n_features)
        : values_(static_cast<size_t>(n_features) + 1, 0.0f),
          touched_(values_.size() / 64 + 1, 0) {}

    float* data() { return values_.data(); }
    void touch(int32_t feature) { touched_[feature >> 6] |= uint64_t{1} << (feature & 63); }

    // Appends the touched weights of at least `prune`, features ascending, and starts again from 0.
    void give(float prune, LabelVectors& out) {
        for (size_t word = 0; word < touched_.size(); ++word) {
            for (uint64_t bits = touched_[word]; bits != 0; bits &= bits - 1) {
                const auto feature = static_cast<int32_t>(64 * word + std::countr_zero(bits));
                float& weight = values_[feature];
                if (weight != 0 && std::fabs(weight) >= prune) {
                    out.features.push_back(feature);
                    out.weights.push_back(weight);
                }
                weight = 0;
            }
            touched_[word] = 0;
        }
        out.offsets.push_back(static_cast<int64_t>(out.features.size()));
    }

  private:
    std::vector<float> values_;
    std::vector<uint64_t> touched_;  // one bit per feature
};

}  // namespace ldsm
