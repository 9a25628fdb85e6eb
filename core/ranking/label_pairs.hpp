// The (row, label) pairs that labels are trained on: rows that have the label, rows that have it on
// their shortlist, and a few others.
#pragma once

#include <cstdint>
#include <vector>

#include "common/csr.hpp"
#include "common/monitor.hpp"

namespace ldsm {

struct LabelPairs {
    std::vector<int64_t> offsets;
    std::vector<int32_t> rows;      // ascending within a label
    std::vector<uint8_t> positive;  // 1 where the row has the label
};

// The pairs of labels `first_label`, `first_label + 1`, ... The offsets need not start at 0.
struct PairsView {
    const int64_t* offsets;
    const int32_t* rows;
    const uint8_t* positive;
    int64_t n_labels;
    int64_t first_label;
};

// The pairs of the labels from `first` up to, but not including, `last`. `lists`: the shortlists of
// the rows, in chunks of consecutive ones. A row with fewer than `fill_to` labels in all gets
// random ones on top: a label must also have seen rows that are nowhere near it.
LabelPairs label_pairs(const std::vector<LabelRows>& lists, const LabelRows& y, int32_t first,
                       int32_t last, int64_t fill_to, uint64_t seed, Monitor& monitor);

}  // namespace ldsm
