// Non-owning views of sparse rows, and the one dtype contract of the core.
//
//   indptr   int64    the number of non-zeros may pass 2^31
//   indices  int32    feature and label numbers; half the memory traffic of int64
//   values   float32  weights and inputs; sums that count things are double
//   rows     int32    row numbers; more than 2^31 rows is refused at the boundary
//
// A view may begin anywhere in its arrays: indptr[0] need not be 0.
#pragma once

#include <cstdint>
#include <stdexcept>

namespace ldsm {

// A model's arrays contradict each other or themselves.
struct BrokenModel : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

// Two numbers behind the last feature are taken, the bias and the padding; some are to spare.
constexpr int64_t kMostFeatures = INT32_MAX - 8;

struct FeatureRows {
    const int64_t* indptr;
    const int32_t* indices;
    const float* values;
    int64_t n_rows;
    int32_t n_features;
    bool all_unit = false;  // every stored value is known to be 1 or -1
};

struct LabelRows {
    const int64_t* indptr;
    const int32_t* indices;
    int64_t n_rows;
    int32_t n_labels;
};

}  // namespace ldsm
