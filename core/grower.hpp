// Grows one tree (Algorithm 1 of the paper).
#pragma once

#include <cstdint>

#include "kernels.hpp"
#include "monitor.hpp"
#include "trainer.hpp"
#include "tree.hpp"

namespace ldsm {

<<<<<<< HEAD
// One grown tree as flat arrays. Nodes are numbered by creation; the children of a node are
// consecutive and come after it.
struct Tree {
    std::vector<int32_t> first_child;       // 0: a leaf
    std::vector<int64_t> weight_offsets;    // into weight_features; leaves have no entries
    FlatArray<int32_t> weight_features;   // ascending within a node; D is the bias
    FlatArray<float> weights;             // arity numbers per entry
    FlatArray<float> weight_means;        // per entry, when standardised, else empty
    FlatArray<float> weight_scales;
    std::vector<int64_t> histogram_offsets; // leaves, and parents that answer for an empty leaf
    std::vector<int32_t> histogram_labels;  // ascending within a node
    std::vector<int32_t> histogram_counts;
    std::vector<int64_t> node_rows;         // training rows that reached the node

    // Statistics for people and figures; prediction does not need them.
    std::vector<int64_t> node_labels;       // (row, label) pairs that reached the node
    std::vector<double> node_entropy;       // of the label histogram, in nats
    std::vector<double> objective;          // J of the routed rows; NaN in leaves
    std::vector<double> balancedness;       // beta
    std::vector<double> purity;             // alpha
    std::vector<float> integrity_weight;    // the lambda 1 that the split was made with
    std::vector<float> epoch_objective;     // n_epochs numbers per internal node, in node order
};

// Rows of a tree in its own order: blocks of 4,096 rows are permuted, then the rows within each
// window of 64 blocks. Constants, never memory, decide, so that streaming sees the same order.
std::vector<int32_t> tree_rows(uint64_t seed, uint64_t tree, int64_t n_rows, double subsample);

// 1 for each row that tree was grown on.
std::vector<uint8_t> bag_mask(uint64_t seed, uint64_t tree, int64_t n_rows, double subsample);

=======
// The same bits for the same rows, parameters, seed and tree number, whatever the memory, the
// kernels and what else runs.
>>>>>>> refs/heads/core
Tree grow_tree(const FeatureRows& x, const LabelRows& y, const TreeParams& params,
               const Memory& memory, uint64_t seed, uint64_t tree, const Kernels& kernels,
               Monitor& monitor);

}  // namespace ldsm
