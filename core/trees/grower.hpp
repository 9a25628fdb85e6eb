// Grows one tree (Algorithm 1 of the paper), on rows of its own and in an order of its own.
#pragma once

#include <cstdint>

#include "common/monitor.hpp"
#include "simd/kernels.hpp"
#include "trees/trainer.hpp"
#include "trees/tree.hpp"

namespace ldsm {

// The same bits for the same rows, parameters, seed and tree number, whatever the memory, the
// kernels and what else runs.
Tree grow_tree(const FeatureRows& x, const LabelRows& y, const TreeParams& params,
               const Memory& memory, uint64_t seed, uint64_t tree, const Kernels& kernels,
               Monitor& monitor);

// Rows of a tree in its own order: blocks of 4,096 rows are permuted, then the rows within each
// window of 64 blocks. Constants, never memory, decide, so that streaming sees the same order.
std::vector<int32_t> tree_rows(uint64_t seed, uint64_t tree, int64_t n_rows, double subsample);

// 1 for each row that tree was grown on.
std::vector<uint8_t> bag_mask(uint64_t seed, uint64_t tree, int64_t n_rows, double subsample);

}  // namespace ldsm
