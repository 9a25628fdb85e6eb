// Numbers pairs of words.
#pragma once

#include <cstdint>
#include <vector>

#include "text/words.hpp"

namespace ldsm {

inline uint64_t pair_of(int32_t first, int32_t second) {
    return static_cast<uint64_t>(static_cast<uint32_t>(first)) << 32 |
           static_cast<uint32_t>(second);
}

// Spreads the bits of a pair.
inline uint64_t spread(uint64_t pair) {
    pair = (pair ^ (pair >> 31)) * 0x9E3779B97F4A7C15;
    return pair ^ (pair >> 29);
}

// The number of a pair among ascending ones.
class PairNumbers {
  public:
    explicit PairNumbers(const WordPairsView& pairs) : pairs_(pairs) {
        if (pairs.n == 0) return;
        uint64_t size = 16;
        while (size < 2 * static_cast<uint64_t>(pairs.n)) size *= 2;
        slots_.assign(size, -1);
        for (int64_t i = 0; i < pairs.n; ++i) {
            uint64_t slot = spread(pairs.pairs[i]) & (size - 1);
            while (slots_[slot] >= 0) slot = (slot + 1) & (size - 1);
            slots_[slot] = static_cast<int32_t>(i);
        }
    }
    int32_t operator()(int32_t first, int32_t second) const {
        if (slots_.empty() || first < 0 || second < 0) return -1;
        const uint64_t pair = pair_of(first, second);
        uint64_t slot = spread(pair) & (slots_.size() - 1);
        for (; slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1))
            if (pairs_.pairs[slots_[slot]] == pair) return slots_[slot];
        return -1;
    }

    int32_t size() const { return static_cast<int32_t>(pairs_.n); }

  private:
    WordPairsView pairs_;
    std::vector<int32_t> slots_;
};

}  // namespace ldsm
