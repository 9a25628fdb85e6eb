// Sends rows down frozen trees and merges what the leaves say.
#pragma once

#include <cstdint>
#include <vector>

#include "common/csr.hpp"
#include "common/monitor.hpp"
#include "common/stored_weights.hpp"
#include "simd/kernels.hpp"

namespace ldsm {

using FeatureMapArrays = std::vector<uint64_t>;  // pairs (present, before), `map_words` per node

// Whole numbers of one of three widths; one pointer is not null.
struct NumbersView {
    const uint8_t* bytes;
    const uint16_t* shorts;
    const int32_t* ints;

    // Calls work(numbers) with the pointer that is set.
    template <typename Work>
    void with(Work&& work) const {
        bytes != nullptr ? work(bytes) : shorts != nullptr ? work(shorts) : work(ints);
    }
};

// A forest as the arrays of its trees, one after the other. Nothing in it is trusted: whatever is
// followed is checked on the way, so that no file can make the router read outside or loop.
struct ForestView {
    int arity;
    int32_t n_features;
    int32_t n_labels;
    int32_t n_dropped;  // the labels behind these: counted, but never an answer
    int64_t n_trees;
    int64_t n_nodes;
    int64_t n_bins;  // histogram entries of all nodes
    bool standardized;
    bool by_rows;  // scores are count / rows of the leaf; else count / sum of its counts
    const int64_t* tree_offsets;
    const int32_t* first_child;  // numbers within the tree; 0: a leaf
    StoredWeights weights;
    const float* weight_means;
    const float* weight_scales;
    const int64_t* histogram_offsets;
    NumbersView histogram_labels;
    NumbersView histogram_counts;
    const int64_t* node_rows;
    // By label: its place in the order that the labels had at first, by which equal scores are
    // ranked on shortlists; null: their order now.
    const int32_t* places;
    // Which of the `n_maps` maps each node has, counted from 1, 0 for none; null: there are none.
    const uint64_t* map_numbers = nullptr;
    const FeatureMap* maps = nullptr;  // `map_words` each
    int64_t n_maps = 0;

    int32_t n_known() const { return n_labels + n_dropped; }
};

// For each node the number of its map, then the maps: derived from a forest. They serve single
// rows: one row through 50 trees of Delicious (500 features) takes 0.19 ms with maps and 0.48 ms
// with searches. A node has one where that is not larger than the node itself; the others store so
// few features that all of them are passed.
FeatureMapArrays feature_maps(const ForestView& forest);

// Entries of a node's map: one per 64 features, with the bias and the padding.
inline int64_t map_words(const ForestView& forest) {
    return (int64_t{forest.n_features} + 2 + 63) / 64;
}

struct TopK {
    int64_t k;
    const int32_t* fill_order;  // all labels, most frequent first: fills a row that has too few
    const uint8_t* allowed;     // per label, or null: every label competes
    int32_t* labels;            // n_rows x k
    float* scores;
};

struct SparseScores {
    std::vector<int64_t> indptr{0};
    std::vector<int32_t> indices;
    std::vector<float> values;
};

// `skip`: per row and tree (row-major), 1 where a tree must not answer for a row; null for none.
void route_topk(const ForestView& forest, const FeatureRows& x, const uint8_t* skip,
                const TopK& out, const Kernels& kernels, Monitor& monitor);
SparseScores route_scores(const ForestView& forest, const FeatureRows& x, const Kernels& kernels,
                          Monitor& monitor);
// The nodes each row visits, numbered over the whole forest, ascending within a row.
SparseScores route_nodes(const ForestView& forest, const FeatureRows& x, const Kernels& kernels,
                         Monitor& monitor);

}  // namespace ldsm
