// The final order of the labels on lists.
#pragma once

#include <cstdint>

#include "routing/ranked.hpp"

namespace ldsm {

// Labels with scores, row by row.
struct ScoredLists {
    const int64_t* indptr;
    const int32_t* labels;
    const float* scores;
    int64_t n_rows;
};

// The best k of each list; a shorter list is filled up as by `route_topk`. `label_weights` change
// the order, not the scores; null for none.
void best_of_lists(const ScoredLists& lists, const double* label_weights, int32_t n_labels,
                   const TopK& out);

}  // namespace ldsm
