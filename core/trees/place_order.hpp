// The best order to read a node's rows: as they lie in X, as far as that pays.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ldsm {

// Rows that lie together stay together in a tree's order (see tree_rows), so that X can be read
// from disk block by block.
constexpr int64_t kBlockRows = 4096;

class PlaceOrder {
  public:
    struct Block {
        int64_t number;
        int64_t begin, end;  // of its rows, in the order
    };

    explicit PlaceOrder(int64_t n_rows)
        : place_(static_cast<size_t>(n_rows / kBlockRows) + 1, 0), within_(kBlockRows, -1) {}

    // Sorts rows[0, n) by block. False, without an order: they lie too scattered.
    bool sort(const int32_t* rows, int64_t n) {
        blocks_.clear();
        if (n < kMany) return false;
        for (int64_t r = 0; r < n; ++r) {
            int64_t& count = place_[rows[r] / kBlockRows];
            if (count++ == 0) blocks_.push_back({rows[r] / kBlockRows, 0, 0});
        }
        const bool worth_it = n >= kSome * static_cast<int64_t>(blocks_.size());
        if (worth_it) {
            std::sort(blocks_.begin(), blocks_.end(),
                      [](const Block& a, const Block& b) { return a.number < b.number; });
            int64_t begin = 0;
            for (Block& block : blocks_) {
                block.begin = begin;
                begin = block.end = begin + place_[block.number];
                place_[block.number] = block.begin;
            }
            order_.resize(n);
            for (int64_t r = 0; r < n; ++r)
                order_[place_[rows[r] / kBlockRows]++] = static_cast<int32_t>(r);
        }
        for (const Block& block : blocks_) place_[block.number] = 0;
        return worth_it;
    }

    // What was sorted.
    const std::vector<Block>& blocks() const { return blocks_; }
    // Whether a block has enough of the rows to be read whole.
    static bool is_full(const Block& block) { return block.end - block.begin >= kMany; }
    // Calls take(r) for the rows of a block; those of a full one from front to back.
    template <typename Take>
    void each(const Block& block, const int32_t* rows, Take&& take) {
        if (!is_full(block)) {
            for (int64_t i = block.begin; i < block.end; ++i) take(order_[i]);
            return;
        }
        for (int64_t i = block.begin; i < block.end; ++i)
            within_[rows[order_[i]] % kBlockRows] = order_[i];
        for (int32_t& r : within_) {
            if (r < 0) continue;
            take(r);
            r = -1;
        }
    }

  private:
    static constexpr int64_t kMany = kBlockRows / 16;  // of one block: a full one
    static constexpr int64_t kSome = 16;  // of a block on average, for which sorting pays

    std::vector<int64_t> place_;  // of each block of X; all zero between uses
    std::vector<Block> blocks_;
    std::vector<int32_t> order_;
    std::vector<int32_t> within_;  // of each place in a block, the row; all -1 between uses
};

}  // namespace ldsm
