// A grown tree as the flat arrays that a model is made of.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "common/scratch.hpp"
#include "trees/finished_weights.hpp"
#include "trees/node.hpp"

namespace ldsm {

// Nodes are numbered by creation; the children of a node are consecutive and come after it.
struct Tree {
    std::vector<int32_t> first_child;  // 0: a leaf
    EncodedWeights weights;            // leaves have no entries
    FlatArray<float> weight_means;     // per entry, when standardised, else empty
    FlatArray<float> weight_scales;
    std::vector<int64_t> histogram_offsets;  // leaves, and parents that answer for an empty leaf
    std::vector<int32_t> histogram_labels;   // ascending within a node
    std::vector<int32_t> histogram_counts;
    std::vector<int64_t> node_rows;  // training rows that reached the node

    // Statistics for people and figures; prediction does not need them.
    std::vector<int64_t> node_labels;     // (row, label) pairs that reached the node
    std::vector<double> node_entropy;     // of the label histogram, in nats
    std::vector<double> objective;        // J of the routed rows; NaN in leaves
    std::vector<double> balancedness;     // beta
    std::vector<double> purity;           // alpha
    std::vector<float> integrity_weight;  // the lambda 1 that the split was made with
    std::vector<float> epoch_objective;   // n_epochs numbers per internal node, in node order
};

// Empties the nodes on the way.
Tree flatten(std::deque<Node>& nodes, const FinishedWeights& weights, const TreeParams& params,
             int32_t n_features, const std::string& scratch_folder);

}  // namespace ldsm
