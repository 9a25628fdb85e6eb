// An index from features to the labels that go with them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/csr.hpp"
#include "common/monitor.hpp"
#include "common/numbers_view.hpp"
#include "common/weight_codec.hpp"

namespace ldsm {

// For each feature the labels that go with it most, as multiples of the feature's unit.
struct FeatureIndex {
    std::vector<int64_t> offsets{0};
    std::vector<int32_t> labels;  // ascending within a feature
    std::vector<uint8_t> codes;
    std::vector<float> units;
};

[[noreturn]] inline void damaged_index(const char* what) {
    throw BrokenModel(std::string("The feature index is damaged: ") + what + ".");
}

struct FeatureIndexView {
    int64_t n_entries;
    const int64_t* offsets;
    NumbersView labels;
    const uint8_t* codes;
    const float* units;

    Range entries_of(int32_t feature) const {
        const Range entries{offsets[feature], offsets[feature + 1]};
        if (entries.begin < 0 || entries.end < entries.begin || entries.end > n_entries)
            damaged_index("offsets out of range");
        return entries;
    }
};

// For the features from `first` up to, but not including, `last`: one index for each of `n_folds`
// folds, of the rows of the others, and one of all rows. `fold`: per row. A feature keeps its
// `keep` labels of largest weight: the share of the feature's mass that lies in rows with the
// label, divided by the fourth root of the label's frequency. (The share alone prefers frequent
// labels where rows have many features, the share divided by the frequency prefers rare ones where
// they have few.)
std::vector<FeatureIndex> train_feature_indexes(const FeatureRows& x, const LabelRows& y,
                                                int32_t first, int32_t last, const uint8_t* fold,
                                                int n_folds, int64_t keep, Monitor& monitor);

// The index with new rows added. `masses`: of each feature in the rows before. `lift_before`,
// `lift_after`: the inverse fourth root of each label's frequency. What the index dropped or
// rounded off before is lost.
FeatureIndex extend_feature_index(const FeatureIndexView& before, const float* masses,
                                  const FeatureRows& x, const LabelRows& y,
                                  const double* lift_before, const double* lift_after, int64_t keep,
                                  uint64_t seed, Monitor& monitor);

}  // namespace ldsm
