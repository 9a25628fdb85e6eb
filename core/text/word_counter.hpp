// Counts the words, or sub-words, of one text after the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "text/words.hpp"

namespace ldsm {

constexpr int64_t kTextsBetweenChecks = 64;  // whether to continue

// A text has few of all words: where they were counted is found by hashing, in a table that fits
// into the cache, and a single text does not pay for all words.
class WordCounter {
  public:
    void count(int32_t word) {
        size_t slot = slot_of(word);
        for (; slots_[slot].word >= 0; slot = (slot + 1) & (slots_.size() - 1))
            if (slots_[slot].word == word) {
                ++out_.counts[slots_[slot].place];
                return;
            }
        slots_[slot] = {word, out_.words.size()};
        used_.push_back(slot);
        out_.words.push_back(word);
        out_.counts.push_back(1);
        if (2 * used_.size() >= slots_.size()) grow();
    }
    void finish_text() {
        out_.indptr.push_back(static_cast<int64_t>(out_.words.size()));
        for (const size_t slot : used_) slots_[slot].word = -1;
        used_.clear();
    }
    // With the words of the text in ascending order.
    void finish_sorted_text() {
        const auto begin = static_cast<size_t>(out_.indptr.back());
        sorted_.clear();
        for (size_t i = begin; i < out_.words.size(); ++i)
            sorted_.emplace_back(out_.words[i], out_.counts[i]);
        std::sort(sorted_.begin(), sorted_.end());
        for (size_t i = 0; i < sorted_.size(); ++i)
            std::tie(out_.words[begin + i], out_.counts[begin + i]) = sorted_[i];
        finish_text();
    }
    WordCounts take() { return std::move(out_); }

  private:
    struct Slot {
        int32_t word = -1;  // free
        size_t place = 0;   // among the words of all texts
    };

    size_t slot_of(int32_t word) const {
        return (static_cast<uint64_t>(word) * 0x9E3779B97F4A7C15) >> shift_;
    }
    void grow() {
        const std::vector<Slot> before =
            std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
        --shift_;
        for (size_t& used : used_) {
            size_t slot = slot_of(before[used].word);
            while (slots_[slot].word >= 0) slot = (slot + 1) & (slots_.size() - 1);
            slots_[slot] = before[used];
            used = slot;
        }
    }

    WordCounts out_;
    int shift_ = 56;  // 64 less the bits of a slot's number
    std::vector<Slot> slots_ = std::vector<Slot>(256);
    std::vector<size_t> used_;
    std::vector<std::pair<int32_t, int32_t>> sorted_;
};

}  // namespace ldsm
