// Phrases: label names, as consecutive words of a text. Words are the same if they begin alike,
// which most of their forms do.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/monitor.hpp"
#include "common/utf8.hpp"
#include "text/bigrams.hpp"
#include "text/names.hpp"
#include "text/string_hash.hpp"
#include "text/words.hpp"

namespace ldsm {

constexpr char kPhrase = '=';           // what a phrase begins with among sub-words
constexpr int kStemCharacters = 6;      // of a word
constexpr size_t kMostPhraseWords = 8;  // longer phrases are never found

inline std::string_view stem_of(std::string_view word) {
    size_t at = 0;
    for (int n = 0; n < kStemCharacters && at < word.size(); ++n) next_character(word, at);
    return word.substr(0, at);
}

// Finds phrases; written as "=stem stem". What the view shows must stay where it is.
class Phrases {
  public:
    explicit Phrases(const NamesView& sub_words) {
        for (int64_t column = 0; column < sub_words.n; ++column)
            if (const std::string_view own = sub_words[column]; !own.empty() && own[0] == kPhrase)
                add(own.substr(1), static_cast<int32_t>(column));
    }
    bool empty() const { return stems_.empty(); }
    // The number of a word's stem; -1 if no phrase has it.
    int32_t stem(std::string_view word) const {
        const auto found = stems_.find(stem_of(word));
        return found == stems_.end() ? -1 : found->second;
    }

    // Reads a text, stem by stem.
    class Reader {
      public:
        explicit Reader(const Phrases& phrases) : phrases_(phrases) {}
        void start() { open_.clear(); }
        // Calls visit(column) for each phrase that ends with this word.
        template <typename Visit>
        void read(int32_t stem, Visit&& visit) {
            next_.clear();
            if (stem >= 0) {
                open_.push_back(kRoot);
                for (const int32_t node : open_) {
                    const auto found = phrases_.nodes_.find(bigram_of(node, stem));
                    if (found == phrases_.nodes_.end()) continue;
                    next_.push_back(found->second);
                    const int32_t column = phrases_.columns_[static_cast<size_t>(found->second)];
                    if (column >= 0) visit(column);
                }
            }
            open_.swap(next_);
        }

      private:
        const Phrases& phrases_;
        std::vector<int32_t> open_, next_;  // beginnings of phrases, up to the last word
    };

  private:
    static constexpr int32_t kRoot = INT32_MAX;

    void add(std::string_view phrase, int32_t column) {
        parts_.clear();
        for (size_t begin = 0; begin <= phrase.size();) {
            const size_t end = std::min(phrase.find(' ', begin), phrase.size());
            parts_.push_back(phrase.substr(begin, end - begin));
            begin = end + 1;
        }
        if (parts_.size() > kMostPhraseWords) return;
        int32_t node = kRoot;
        for (const std::string_view part : parts_) {
            const auto stem = stems_.emplace(part, static_cast<int32_t>(stems_.size())).first;
            const auto next = static_cast<int32_t>(columns_.size());
            const auto [found, is_new] = nodes_.emplace(bigram_of(node, stem->second), next);
            if (is_new) columns_.push_back(-1);
            node = found->second;
        }
        columns_[static_cast<size_t>(node)] = column;
    }

    struct Spread {
        size_t operator()(uint64_t bigram) const { return static_cast<size_t>(spread(bigram)); }
    };
    std::unordered_map<std::string_view, int32_t, StringHash> stems_;
    std::unordered_map<uint64_t, int32_t, Spread> nodes_;  // by the node before and a stem
    std::vector<int32_t> columns_;                         // of the phrases; -1: only beginnings
    std::vector<std::string_view> parts_;
};

// How often the texts, sequences of the given words, have each phrase.
WordCounts count_phrases(const int64_t* indptr, const int32_t* sequence, int64_t n_texts,
                         const NamesView& words, const NamesView& sub_words, Monitor& monitor);

}  // namespace ldsm
