// Finds given words, bigrams and sub-words in texts.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/bigrams.hpp"
#include "text/phrases.hpp"
#include "text/string_hash.hpp"
#include "text/words.hpp"

namespace ldsm {

// The number of a string among given ones.
class StringNumbers {
  public:
    // What the view shows must stay where it is.
    explicit StringNumbers(const NamesView& strings);

    // -1 if it is none of them.
    int32_t operator()(std::string_view string) const {
        uint64_t slot = hash_(string) & (slots_.size() - 1);
        for (; slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1))
            if (strings_[slots_[slot]] == string) return slots_[slot];
        return -1;
    }
    int32_t size() const { return static_cast<int32_t>(strings_.n); }

  private:
    NamesView strings_;
    StringHash hash_;  // so texts cannot provoke collisions
    std::vector<int32_t> slots_;
};

// The beginning of a text, which counts again unless it is the whole text.
struct Head {
    int64_t words;
    int more_times;
};

// What texts have of each kind, each numbered from 0.
struct FoundWords {
    WordCounts words, bigrams, sub_words;
};

class WordFinder {
  public:
    WordFinder(const NamesView& words, const BigramsView& bigrams, const NamesView& sub_words);

    FoundWords count(const NamesView& texts, const WordCharacters& characters, const Head& head,
                     Monitor& monitor) const;

  private:
    StringNumbers words_;
    BigramNumbers bigrams_;
    StringNumbers sub_words_;
    Phrases phrases_;  // among the sub-words
    // The sub-words of each word, so that only unknown words are taken apart.
    std::vector<int64_t> part_offsets_{0};
    std::vector<int32_t> parts_;
    std::vector<int32_t> stems_;  // of each word, among those of the phrases
};

}  // namespace ldsm
