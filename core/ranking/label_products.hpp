// Products of rows with the vectors of the labels on their lists.
#pragma once

#include <cstdint>
#include <vector>

#include "common/csr.hpp"
#include "common/monitor.hpp"
#include "common/weight_codec.hpp"
#include "simd/kernels.hpp"

namespace ldsm {

struct WeightsByFeature;

// Rows are scaled to unit length. The same bits whichever rows are asked for together. Nothing in
// the vectors is trusted.
void label_products(const StoredWeights& vectors, const FeatureRows& x, const LabelRows& lists,
                    float* products, Monitor& monitor);
// The same for a few rows, with the same bits, by the features of a row or by the labels of its
// list, whichever reads less. False: the sums of some row with extreme values need
// `label_products`.
bool few_label_products(const StoredWeights& vectors, const WeightsByFeature& by_feature,
                        const FeatureRows& x, const LabelRows& lists, float* products,
                        const Kernels& kernels, Monitor& monitor);

// Squared norms of the vectors of some labels.
void squared_norms(const StoredWeights& vectors, const int32_t* labels, std::vector<double>& out);

}  // namespace ldsm
