// A forest as the arrays of its trees, one after the other.
#pragma once

#include <cstdint>
#include <string>

#include "common/csr.hpp"
#include "common/numbers_view.hpp"
#include "common/weight_codec.hpp"
#include "simd/kernels.hpp"

namespace ldsm {

[[noreturn]] inline void broken(int64_t node, const char* what) {
    throw BrokenModel("The forest is damaged at node " + std::to_string(node) + ": " + what + ".");
}
[[noreturn]] inline void refuse_feature(int64_t node) {
    broken(node, "a feature number is out of range");
}

// Nothing in it is trusted: every number used as a position is checked, so that no file can make
// the router read outside the arrays or loop.
struct ForestView {
    int arity;
    int32_t n_features;
    int32_t n_labels;
    int32_t n_dropped;  // the labels after these: counted, but never an answer
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
    // By label: its place in the original order of the labels, which decides between equal scores
    // on shortlists; null: the present order.
    const int32_t* places;
    // The number of each node's feature map, counted from 1, 0 for none; null: there are no maps.
    const uint64_t* map_numbers = nullptr;
    const FeatureMap* maps = nullptr;  // `map_words` each
    int64_t n_maps = 0;

    int32_t n_known() const { return n_labels + n_dropped; }

    Range nodes_of(int64_t tree) const {
        const Range nodes{tree_offsets[tree], tree_offsets[tree + 1]};
        if (nodes.begin < 0 || nodes.end <= nodes.begin || nodes.end > n_nodes)
            broken(nodes.begin, "the tree's nodes lie outside the forest");
        if (nodes.end - nodes.begin > INT32_MAX - kMaxArity)
            broken(nodes.begin, "the tree has more nodes than can be numbered");
        return nodes;
    }
    Range entries_of(int64_t node) const {
        Range entries;
        if (!weights.entries_of(node, entries))
            broken(node, "its weights lie outside the stored ones");
        return entries;
    }
    Range bins_of(int64_t node) const {
        const Range bins{histogram_offsets[node], histogram_offsets[node + 1]};
        if (bins.begin < 0 || bins.end < bins.begin || bins.end > n_bins)
            broken(node, "its histogram lies outside the stored ones");
        return bins;
    }
    // Entries of a feature map: one per 64 features, with the bias and the padding.
    int64_t map_words() const { return (int64_t{n_features} + 2 + 63) / 64; }
    // Null if the node has none.
    const FeatureMap* map_of(int64_t node) const {
        const uint64_t number = map_numbers == nullptr ? 0 : map_numbers[node];
        if (number == 0) return nullptr;
        if (number > static_cast<uint64_t>(n_maps)) broken(node, "it has no feature map");
        return maps + static_cast<int64_t>(number - 1) * map_words();
    }
};

}  // namespace ldsm
