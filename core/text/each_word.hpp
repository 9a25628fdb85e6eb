// The words of a text, one after the other.
#pragma once

#include <string_view>

#include "common/utf8.hpp"
#include "text/words.hpp"

namespace ldsm {

constexpr int kLeastCharacters = 2;  // of a word

template <typename Visit>
void each_word(std::string_view text, const WordCharacters& characters, Visit&& visit) {
    size_t at = 0;
    while (at < text.size()) {
        const size_t start = at;
        size_t end = at;
        int n = 0;
        while (at < text.size() && characters.has(next_character(text, at))) {
            end = at;
            ++n;
        }
        if (n >= kLeastCharacters) visit(text.substr(start, end - start));
    }
}

}  // namespace ldsm
