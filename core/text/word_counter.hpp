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

class WordCounter {
  public:
    void count(int32_t word) {
        if (static_cast<size_t>(word) >= place_.size())
            place_.resize(2 * static_cast<size_t>(word) + 64, -1);
        int64_t& place = place_[word];
        if (place >= out_.indptr.back()) {  // of this text
            ++out_.counts[place];
            return;
        }
        place = static_cast<int64_t>(out_.words.size());
        out_.words.push_back(word);
        out_.counts.push_back(1);
    }
    void finish_text() { out_.indptr.push_back(static_cast<int64_t>(out_.words.size())); }
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
    WordCounts out_;
    std::vector<int64_t> place_;  // of each word, where it was counted last
    std::vector<std::pair<int32_t, int32_t>> sorted_;
};

}  // namespace ldsm
