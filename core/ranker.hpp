// The linear classifiers of the second stage, one per label.
#pragma once

#include <cstdint>
#include <vector>

#include "csr.hpp"
#include "label_pairs.hpp"
#include "label_vectors.hpp"
#include "monitor.hpp"

namespace ldsm {

struct RankerParams {
    double cost;  // C of the squared hinge loss
    double
        tolerance;  // descent ends when the projected gradients of a pass lie this close together
    int max_epochs;
    float prune;  // smaller weights are dropped
};

struct Ranker {
    LabelVectors vectors;
    // For each pair whose row is held out, in order: the margin by a classifier that has seen none
    // of the held-out rows.
    std::vector<float> held_out_margins;
};

// One linear classifier per label: squared hinge loss by dual coordinate descent (Hsieh et al.,
// ICML 2008), on rows scaled to unit length. A label's weights depend on its own pairs, the seed
// and its number alone: any division of the labels into calls gives the same bits. `held_out`: per
// row, or null. All rows count in the end, held out or not.
Ranker train_ranker(const FeatureRows& x, const PairsView& pairs, const uint8_t* held_out,
                    const RankerParams& params, uint64_t seed, Monitor& monitor);

}  // namespace ldsm
