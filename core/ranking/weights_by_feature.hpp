// The weights of all labels by feature, derived from the vectors for single rows: these then read
// only the weights of their own features instead of whole vectors.
#pragma once

#include <cstdint>
#include <vector>

#include "common/unit_rows.hpp"
#include "common/weight_codec.hpp"
#include "simd/kernels.hpp"

namespace ldsm {

struct WeightsByFeature {
    std::vector<int64_t> offsets;  // one feature more than X has: the constant
    std::vector<int32_t> labels;   // ascending within a feature
    std::vector<float> weights;    // empty when compressed
    std::vector<int8_t> codes;
    std::vector<float> units;  // one per label
    // A feature with a weight for many labels has a map of them, counted from 1; 0 for none.
    std::vector<int32_t> map_numbers;
    std::vector<FeatureMap> maps;  // `map_words` each
    int64_t map_words;

    // The number of steps that a feature of a row takes, given the length of the row's list.
    int64_t cost_of(int32_t feature, int64_t listed) const {
        return map_numbers[feature] != 0 ? listed : offsets[feature + 1] - offsets[feature];
    }
};

// Nothing in the vectors is trusted.
WeightsByFeature weights_by_feature(const StoredWeights& vectors);

[[noreturn]] void damaged_vector(int64_t label, const char* what);

// The products of one row with the labels on its list, in the order of `UnitRows::product`.
class RowProducts {
  public:
    RowProducts(const WeightsByFeature& weights, const UnitRows& rows, int32_t n_labels,
                FindPlaces find_places)
        : weights_(weights),
          rows_(rows),
          find_places_(find_places),
          n_labels_(static_cast<size_t>(n_labels)) {}

    // What the first row costs beyond the others, in steps as those of `cost_of`.
    int64_t cost_of_start() const {
        return slot_.empty() ? static_cast<int64_t>(n_labels_ / 16) : 0;
    }
    void products(int64_t row, const int32_t* labels, int64_t n, float* out);

  private:
    template <typename Weight>
    void add_up(int64_t row, const Weight* weights, int64_t n, const int32_t* labels, float* out);
    template <typename Weight>
    void add(int32_t feature, float x, int64_t lane, const Weight* weights);

    const WeightsByFeature& weights_;
    const UnitRows& rows_;
    FindPlaces find_places_;
    size_t n_labels_;
    std::vector<int32_t>
        slot_;  // where the sums of a label on the list are; 0: not on it; none yet if empty
    std::vector<uint32_t> listed_;  // the labels on the list
    std::vector<float> units_;      // by slot; 1 unless compressed
    std::vector<int32_t> places_;   // of their weights, within a feature that has a map
    std::vector<float> sums_;       // four for each label; those of slot 0 are never read
};

}  // namespace ldsm
