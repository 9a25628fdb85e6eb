// Labels whose vectors go with the dense vector of a row.
#pragma once

#include <cstdint>
#include <vector>

#include "common/csr.hpp"
#include "common/monitor.hpp"
#include "simd/kernels.hpp"

namespace ldsm {

// Products of codes and rows fit int32, whatever a file holds: a row is at most 2^14 long, and a
// vector of `kWidest` codes at most 2^13.
constexpr int64_t kWidest = 4096;

// The vectors of labels in 8 bits each. A label's score for a row is unit * product - bias. A unit
// of 0 means that nothing is known of the label.
struct MeaningView {
    const int8_t* codes;  // n_labels x width
    const float* units;
    const float* biases;
    int64_t n_labels;
    int64_t width;
};

// Rows of the same width, at most 2^14 long each. A row of zeros tells nothing.
struct DenseRows {
    const int16_t* values;
    int64_t n_rows;
};

struct LabelLists {
    std::vector<int64_t> offsets{0};
    std::vector<int32_t> labels;
};

// The labels with the highest scores of each row, at most `length`, best first; of equal ones, that
// of the lower place. None for a row of zeros. `allowed`: 1 for each label that may be listed; or
// null. `places`: of the labels, each once; null: their numbers.
LabelLists rank_by_meaning(const MeaningView& vectors, const DenseRows& rows, int64_t length,
                           const uint8_t* allowed, const int32_t* places, const Kernels& kernels,
                           Monitor& monitor);

// The scores of the labels on the rows' lists; 0 for a row of zeros, and for a label of which
// nothing is known.
void meaning_scores(const MeaningView& vectors, const DenseRows& rows, const LabelRows& lists,
                    float* scores, const Kernels& kernels, Monitor& monitor);

// For each wanted label the sum of its rows, and how many of them are not rows of zeros. `slot`: by
// label, its place among the wanted ones, -1 for others. The rows are read once, in their order.
// A `Sum` of 32 bits holds fewer than 2^16 rows.
template <typename Sum>
void sum_by_label(const DenseRows& rows, int64_t width, const LabelRows& labels,
                  const int32_t* slot, Sum* sums, int64_t* counts, Monitor& monitor);

}  // namespace ldsm
