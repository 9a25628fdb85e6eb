// What the second stage says of new rows: their products with the vectors of labels.
#pragma once

#include "csr.hpp"
#include "label_vectors.hpp"
#include "monitor.hpp"

namespace ldsm {

// Product of each row, scaled to unit length, with the vectors of the labels on its list. The same
// bits whichever rows are asked for together. Nothing in the vectors is trusted.
void label_products(const LabelVectorsView& vectors, const FeatureRows& x, const LabelRows& lists,
                    float* products, Monitor& monitor);

}  // namespace ldsm
