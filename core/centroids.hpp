// The centroids of the second stage, one per label.
#pragma once

#include <cstdint>

#include "csr.hpp"
#include "label_pairs.hpp"
#include "label_vectors.hpp"
#include "monitor.hpp"

namespace ldsm {

// The mean of each label's rows, scaled to unit length, without entries below `prune`; nothing for
// labels of fewer than `min_rows` rows. `left_out`: per row, or null.
LabelVectors train_centroids(const FeatureRows& x, const PairsView& pairs, const uint8_t* left_out,
                             int64_t min_rows, float prune, Monitor& monitor);

}  // namespace ldsm
