// A node of a tree that is being grown.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "trees/trainer.hpp"

namespace ldsm {

// Gives the memory back, which `numbers = {}` does not.
template <typename T>
void release(std::vector<T>& numbers) {
    std::vector<T>().swap(numbers);
}

struct Histogram {
    std::vector<int32_t> labels, counts;  // labels ascending

    int64_t sum() const {
        int64_t total = 0;
        for (const int32_t c : counts) total += c;
        return total;
    }
    int64_t priority() const {
        return counts.empty() ? 0 : sum() - *std::max_element(counts.begin(), counts.end());
    }
    double entropy() const {
        const auto total = static_cast<double>(sum());
        double h = 0;
        for (const int32_t c : counts) h -= c / total * std::log(c / total);
        return h;
    }
};

enum class Progress : uint8_t { kWaiting, kTraining, kTrained };

struct Node {
    int32_t parent = -1;
    int32_t child = 0;  // which child of the parent
    int32_t depth = 0;
    int32_t first_child = 0;  // 0: a leaf
    uint64_t key = 0;         // of its random numbers
    uint64_t path = 0;        // the first steps from the root, the first in the highest bits
    int64_t n_rows = 0;
    int64_t n_labels = 0;       // (row, label) pairs
    std::vector<int32_t> rows;  // released when they are not needed any more
    Histogram histogram;
    Progress progress = Progress::kWaiting;
    Split split;
    int64_t scratch_at = -1;  // where the scratch file has the weights; -1: they are in `split`
    double entropy = 0;
    double objective = std::numeric_limits<double>::quiet_NaN();
    double balancedness = objective;
    double purity = objective;
};

}  // namespace ldsm
