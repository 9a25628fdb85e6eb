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

}  // namespace ldsm
