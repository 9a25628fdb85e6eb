// The questions to a forest: the best labels, all scores and the visited nodes of rows.
#pragma once

#include <cstdint>
#include <vector>

#include "common/csr.hpp"
#include "common/monitor.hpp"
#include "routing/forest_view.hpp"
#include "routing/ranked.hpp"

namespace ldsm {

struct SparseScores {
    std::vector<int64_t> indptr{0};
    std::vector<int32_t> indices;
    std::vector<float> values;
};

// `skip`: as in `Descent`.
void route_topk(const ForestView& forest, const FeatureRows& x, const uint8_t* skip,
                const TopK& out, const Kernels& kernels, Monitor& monitor);
SparseScores route_scores(const ForestView& forest, const FeatureRows& x, const Kernels& kernels,
                          Monitor& monitor);
// The nodes each row visits, numbered over the whole forest, ascending within a row.
SparseScores route_nodes(const ForestView& forest, const FeatureRows& x, const Kernels& kernels,
                         Monitor& monitor);

}  // namespace ldsm
