// Numbers strings as they appear.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/string_hash.hpp"
#include "text/words.hpp"

namespace ldsm {

class GrowingVocabulary {
  public:
    explicit GrowingVocabulary(Vocabulary& words) : words_(words), slots_(1024, -1) {}

    int32_t number(std::string_view word) {
        const uint64_t h = hash_(word);
        uint64_t slot = h & (slots_.size() - 1);
        for (; slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1))
            if (hashes_[slots_[slot]] == h && at(slots_[slot]) == word) return slots_[slot];
        const auto number = static_cast<int32_t>(hashes_.size());
        slots_[slot] = number;
        hashes_.push_back(h);
        words_.text.insert(words_.text.end(), word.begin(), word.end());
        words_.offsets.push_back(static_cast<int64_t>(words_.text.size()));
        if (2 * hashes_.size() > slots_.size()) grow();
        return number;
    }

  private:
    std::string_view at(int32_t number) const {
        const int64_t start = words_.offsets[number], end = words_.offsets[number + 1];
        return {reinterpret_cast<const char*>(words_.text.data()) + start,
                static_cast<size_t>(end - start)};
    }
    void grow() {
        slots_.assign(2 * slots_.size(), -1);
        for (size_t number = 0; number < hashes_.size(); ++number) {
            uint64_t slot = hashes_[number] & (slots_.size() - 1);
            while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
            slots_[slot] = static_cast<int32_t>(number);
        }
    }

    Vocabulary& words_;
    StringHash hash_;
    std::vector<int32_t> slots_;
    std::vector<uint64_t> hashes_;
};

}  // namespace ldsm
