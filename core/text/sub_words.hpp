// Sub-words: runs of 3 and of 5 characters within a word, of which the blank before it and the one
// behind it are part. They are what the forms of a word, and words made of it, have in common.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/monitor.hpp"
#include "common/utf8.hpp"
#include "text/words.hpp"

namespace ldsm {

class SubWords {
  public:
    // Calls visit(sub-word) for each, from left to right; a word shorter than a run is one itself.
    template <typename Visit>
    void each(std::string_view word, Visit&& visit) {
        padded_.assign(1, ' ').append(word).push_back(' ');
        starts_.clear();
        for (size_t at = 0; at < padded_.size();) {
            starts_.push_back(at);
            next_character(padded_, at);
        }
        const size_t n = starts_.size();
        starts_.push_back(padded_.size());
        for (const size_t length : {size_t{3}, size_t{5}})
            if (n <= length)
                visit(std::string_view(padded_));
            else
                for (size_t i = 0; i + length <= n; ++i)
                    visit(std::string_view(padded_).substr(starts_[i],
                                                           starts_[i + length] - starts_[i]));
    }

  private:
    std::string padded_;
    std::vector<size_t> starts_;  // of the characters
};

// For each word its sub-words, numbered as they appear in `found`, and how often it has them.
WordCounts spell_words(const NamesView& words, Vocabulary& found, Monitor& monitor);

}  // namespace ldsm
