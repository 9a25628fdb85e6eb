// Bigrams: two adjacent words, each bigram as (first << 32 | second).
#pragma once

#include <cstdint>
#include <vector>

#include "text/words.hpp"

namespace ldsm {

// In ascending order.
struct BigramsView {
    const uint64_t* bigrams;
    int64_t n;
};

struct BigramTexts {
    std::vector<uint64_t> bigrams;
    std::vector<int32_t> texts;  // that have the bigram
};

// The bigrams that occur in at least `least` texts, ascending, if the column of their first word is
// from `first` to before `last`. Words without a column, -1, are none.
BigramTexts find_bigrams(const int64_t* indptr, const int32_t* words, int64_t n_texts,
                         const int32_t* column, int32_t least, int32_t first, int32_t last,
                         Monitor& monitor);

// How often the texts have the given bigrams, which are numbered from 0.
WordCounts count_bigrams(const int64_t* indptr, const int32_t* words, int64_t n_texts,
                         const BigramsView& bigrams, Monitor& monitor);

inline uint64_t bigram_of(int32_t first, int32_t second) {
    return static_cast<uint64_t>(static_cast<uint32_t>(first)) << 32 |
           static_cast<uint32_t>(second);
}

// Spreads the bits of a bigram.
inline uint64_t spread(uint64_t bigram) {
    bigram = (bigram ^ (bigram >> 31)) * 0x9E3779B97F4A7C15;
    return bigram ^ (bigram >> 29);
}

// The number of a bigram among given ones.
class BigramNumbers {
  public:
    explicit BigramNumbers(const BigramsView& bigrams) : bigrams_(bigrams) {
        if (bigrams.n == 0) return;
        uint64_t size = 16;
        while (size < 2 * static_cast<uint64_t>(bigrams.n)) size *= 2;
        slots_.assign(size, -1);
        for (int64_t i = 0; i < bigrams.n; ++i) {
            uint64_t slot = spread(bigrams.bigrams[i]) & (size - 1);
            while (slots_[slot] >= 0) slot = (slot + 1) & (size - 1);
            slots_[slot] = static_cast<int32_t>(i);
        }
    }
    int32_t operator()(int32_t first, int32_t second) const {
        if (slots_.empty() || first < 0 || second < 0) return -1;
        const uint64_t bigram = bigram_of(first, second);
        uint64_t slot = spread(bigram) & (slots_.size() - 1);
        for (; slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1))
            if (bigrams_.bigrams[slots_[slot]] == bigram) return slots_[slot];
        return -1;
    }

    int32_t size() const { return static_cast<int32_t>(bigrams_.n); }

  private:
    BigramsView bigrams_;
    std::vector<int32_t> slots_;
};

}  // namespace ldsm
