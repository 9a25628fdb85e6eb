// The second stage: a linear classifier and a centroid per label, trained on the rows that the
// first stage finds hard to tell apart, and their products with new rows.
#pragma once

#include <cstdint>
#include <vector>

#include "common/csr.hpp"
#include "common/monitor.hpp"
#include "common/stored_weights.hpp"

namespace ldsm {

struct Kernels;
struct WeightsByFeature;

// Which rows the vector of each label is trained on: those that have it, those that have it on
// their shortlist, and a few others.
struct LabelPairs {
    std::vector<int64_t> offsets;
    std::vector<int32_t> rows;      // ascending within a label
    std::vector<uint8_t> positive;  // 1 where the row has the label
};

// The pairs of labels `first_label`, `first_label + 1`, ..., or of those that `numbers` names.
struct PairsView {
    const int64_t* offsets;
    const int32_t* rows;
    const uint8_t* positive;
    int64_t n_labels;
    uint64_t first_label;
    const int32_t* numbers = nullptr;

    // Decides the random stream of a label, whatever other labels are trained with it.
    uint64_t number(int64_t label) const {
        return numbers != nullptr ? static_cast<uint64_t>(numbers[label])
                                  : first_label + static_cast<uint64_t>(label);
    }
};

// One sparse vector per label, in one of the two forms of `StoredWeights`, but with features as
// numbers. Feature number D is a constant 1 that rows do not store.
struct LabelVectors {
    std::vector<int64_t> offsets{0};
    std::vector<int32_t> features;
    std::vector<float> weights;  // empty when compressed
    std::vector<int8_t> codes;
    std::vector<float> units;
};

// How vectors are stored.
struct VectorForm {
    float prune;    // smaller weights are dropped
    bool compress;  // the others are rounded to a byte
};

struct RankerParams {
    double cost;       // C of the squared hinge loss
    double tolerance;  // a pass with projected gradients this close together is the last
    int max_epochs;
    VectorForm form;
};

// What training goes on from: the weights of each label so far, and its own cost. The weights stay
// as close to them as the cost allows.
struct RankerStart {
    const StoredWeights* vectors;  // of all labels
    const float* squares;          // sums over the rows so far, by feature
    const double* rows;            // of the labels of the pairs: learned from before
    const double* firmness;        // of the labels of the pairs: how much of these rows counts
};

struct Ranker {
    LabelVectors vectors;
    // For each pair whose row is held out, in order: the margin by a classifier that has seen none
    // of the held-out rows, with its weights as they would be stored.
    std::vector<float> held_out_margins;
};

// `lists`: the shortlist of each row. A row with fewer than `fill_to` labels in all gets random
// ones on top: a label must also have seen rows that are nowhere near it.
LabelPairs label_pairs(const LabelRows& lists, const LabelRows& y, int64_t fill_to, uint64_t seed,
                       Monitor& monitor);

// One linear classifier per label: squared hinge loss by dual coordinate descent (Hsieh et al.,
// ICML 2008), on rows scaled to unit length. A label's weights depend on its own pairs, the seed
// and its number alone: any division of the labels into calls gives the same bits. `held_out`: per
// row, or null. All rows count in the end, held out or not. `start`: or null.
Ranker train_ranker(const FeatureRows& x, const PairsView& pairs, const uint8_t* held_out,
                    const RankerParams& params, const RankerStart* start, uint64_t seed,
                    Monitor& monitor);

// The mean of each label's rows, scaled to unit length; nothing for labels of fewer than `min_rows`
// rows. `left_out`: per row, or null.
LabelVectors train_centroids(const FeatureRows& x, const PairsView& pairs, const uint8_t* left_out,
                             int64_t min_rows, const VectorForm& form, Monitor& monitor);

// Product of each row, scaled to unit length, with the vectors of the labels on its list. The same
// bits whichever rows are asked for together. Nothing in the vectors is trusted.
void label_products(const StoredWeights& vectors, const FeatureRows& x, const LabelRows& lists,
                    float* products, Monitor& monitor);
// The same for a few rows, with the same bits. False: rows of extreme values are added up in
// another way, and are for `label_products`.
bool few_label_products(const WeightsByFeature& weights, const FeatureRows& x,
                        const LabelRows& lists, float* products, const Kernels& kernels,
                        Monitor& monitor);

}  // namespace ldsm
