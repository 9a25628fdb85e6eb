// The ranker: a linear classifier per label, trained on the rows that the matchers find hard to
// tell apart.
#pragma once

#include <cstdint>
#include <vector>

#include "common/csr.hpp"
#include "common/monitor.hpp"
#include "common/weight_codec.hpp"
#include "ranking/dense_weights.hpp"
#include "ranking/label_pairs.hpp"
#include "simd/kernels.hpp"

namespace ldsm {

struct RankerParams {
    double cost;       // C of the squared hinge loss
    double tolerance;  // a pass with projected gradients this close together is the last
    int max_epochs;
    VectorForm form;
};

// The weights that training starts from, each label with a cost of its own: the weights stay as
// close to these as the cost allows.
struct RankerStart {
    StoredWeights vectors;   // of all labels
    const float* squares;    // by feature: sums over the rows so far
    const double* firmness;  // by label: how much of these sums counts
    const double* rows;      // by label: the number of rows it was trained on, as far as it counts
};

struct Ranker {
    EncodedWeights vectors;
    // For each pair whose row is held out, in order: the margin by a classifier that has seen none
    // of the held-out rows, with its weights as they would be stored.
    std::vector<float> held_out_margins;
};

// Squared hinge loss by dual coordinate descent (Hsieh et al., ICML 2008), on rows scaled to unit
// length. A label's weights depend on its own pairs, the seed and its number alone: any division of
// the labels into calls gives the same bits. `held_out`: per row, or null. All rows count in the
// end, held out or not. `start`: or null.
Ranker train_ranker(const FeatureRows& x, const PairsView& pairs, const uint8_t* held_out,
                    const RankerParams& params, const RankerStart* start, uint64_t seed,
                    const Kernels& kernels, Monitor& monitor);

}  // namespace ldsm
