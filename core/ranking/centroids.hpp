// The centroid of each label.
#pragma once

#include <cstdint>

#include "common/csr.hpp"
#include "common/monitor.hpp"
#include "ranking/dense_weights.hpp"
#include "ranking/label_pairs.hpp"

namespace ldsm {

// The mean of each label's rows, scaled to unit length; nothing for labels of fewer than `min_rows`
// rows. `left_out`: per row, or null.
EncodedWeights train_centroids(const FeatureRows& x, const PairsView& pairs,
                               const uint8_t* left_out, int64_t min_rows, const VectorForm& form,
                               Monitor& monitor);

}  // namespace ldsm
