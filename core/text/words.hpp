// Counts the words of texts, as the regular expression (?u)\b\w\w+\b finds them: runs of two or
// more word characters.
#pragma once

#include <cstdint>
#include <vector>

#include "common/monitor.hpp"
#include "text/names.hpp"

namespace ldsm {

// 1 for each character, by its code point, that is part of words; none is beyond the table.
struct WordCharacters {
    const uint8_t* table;
    uint32_t n;

    bool has(uint32_t c) const { return c < n && table[c] != 0; }
};

// For each text its words, in the order in which they first occur, and how often they do.
struct WordCounts {
    std::vector<int64_t> indptr{0};
    std::vector<int32_t> words;
    std::vector<int32_t> counts;
};

// The words of texts one after the other, as numbers.
struct WordSequences {
    std::vector<int64_t> indptr{0};
    std::vector<int32_t> words;
};

struct Vocabulary {
    std::vector<uint8_t> text;
    std::vector<int64_t> offsets{0};
};

// All words; `found` gets those that occur, numbered as they appear, and `sequences` the texts.
WordCounts count_words(const NamesView& texts, const WordCharacters& characters, Vocabulary& found,
                       WordSequences& sequences, Monitor& monitor);

}  // namespace ldsm
