// The rows that a tree is grown on, and their order.
#pragma once

#include <cstdint>
#include <vector>

namespace ldsm {

// Rows of a tree in its own order: blocks of 4,096 rows are permuted, then the rows within each
// window of 64 blocks. Constants, never memory, decide, so that streaming sees the same order.
std::vector<int32_t> tree_rows(uint64_t seed, uint64_t tree, int64_t n_rows, double subsample);

// 1 for each row that the tree is grown on.
std::vector<uint8_t> bag_mask(uint64_t seed, uint64_t tree, int64_t n_rows, double subsample);

}  // namespace ldsm
