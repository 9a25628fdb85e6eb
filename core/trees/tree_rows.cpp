#include "trees/tree_rows.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/random.hpp"
#include "trees/place_order.hpp"

namespace ldsm {

std::vector<uint8_t> bag_mask(uint64_t seed, uint64_t tree, int64_t n_rows, double subsample) {
    std::vector<uint8_t> mask(static_cast<size_t>(n_rows), 1);
    if (subsample >= 1.0) return mask;
    // Selection sampling: one pass, exactly `wanted` rows, each subset equally likely.
    const auto wanted = std::max<int64_t>(1, std::llround(subsample * static_cast<double>(n_rows)));
    Stream stream{subsample_key(tree_key(seed, tree))};
    int64_t missing = wanted;
    for (int64_t row = 0; row < n_rows; ++row) {
        const bool take =
            static_cast<int64_t>(stream.below(static_cast<uint64_t>(n_rows - row))) < missing;
        mask[row] = take;
        missing -= take;
    }
    return mask;
}

std::vector<int32_t> tree_rows(uint64_t seed, uint64_t tree, int64_t n_rows, double subsample) {
    const std::vector<uint8_t> mask = bag_mask(seed, tree, n_rows, subsample);
    Stream stream{order_key(tree_key(seed, tree))};
    constexpr int64_t kWindowBlocks = 64;
    const int64_t n_blocks = (n_rows + kBlockRows - 1) / kBlockRows;
    std::vector<int32_t> blocks(static_cast<size_t>(n_blocks));
    std::iota(blocks.begin(), blocks.end(), 0);
    shuffle(blocks.data(), n_blocks, stream);
    std::vector<int32_t> order;
    order.reserve(static_cast<size_t>(n_rows));
    for (int64_t window = 0; window < n_blocks; window += kWindowBlocks) {
        const size_t begin = order.size();
        for (int64_t b = window; b < std::min(n_blocks, window + kWindowBlocks); ++b) {
            const int64_t end = std::min(n_rows, (int64_t{blocks[b]} + 1) * kBlockRows);
            for (int64_t row = int64_t{blocks[b]} * kBlockRows; row < end; ++row)
                if (mask[row]) order.push_back(static_cast<int32_t>(row));
        }
        shuffle(order.data() + begin, static_cast<int64_t>(order.size() - begin), stream);
    }
    return order;
}

}  // namespace ldsm
