#include "text/words.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "text/each_word.hpp"
#include "text/growing_vocabulary.hpp"
#include "text/pair_numbers.hpp"
#include "text/word_counter.hpp"

namespace ldsm {

WordCounts count_words(const NamesView& texts, const WordCharacters& characters, Vocabulary& found,
                       WordSequences& sequences, Monitor& monitor) {
    GrowingVocabulary vocabulary(found);
    WordCounter counter;
    for (int64_t i = 0; i < texts.n; ++i) {
        if (i % kTextsBetweenChecks == 0) monitor.check();
        each_word(texts[i], characters, [&](std::string_view word) {
            const int32_t number = vocabulary.number(word);
            counter.count(number);
            sequences.words.push_back(number);
        });
        counter.finish_text();
        sequences.indptr.push_back(static_cast<int64_t>(sequences.words.size()));
    }
    return counter.take();
}

PairTexts find_pairs(const int64_t* indptr, const int32_t* words, int64_t n_texts, int32_t least,
                     Monitor& monitor) {
    struct Slot {
        uint64_t pair;
        int32_t texts;  // 0: free
        int32_t last;   // the text that counted last
    };
    std::vector<Slot> slots(1 << 16, Slot{0, 0, -1});
    uint64_t used = 0;
    const auto find = [](std::vector<Slot>& in, uint64_t pair) -> Slot& {
        uint64_t slot = spread(pair) & (in.size() - 1);
        while (in[slot].texts > 0 && in[slot].pair != pair) slot = (slot + 1) & (in.size() - 1);
        return in[slot];
    };
    for (int64_t text = 0; text < n_texts; ++text) {
        if (text % kTextsBetweenChecks == 0) monitor.check();
        for (int64_t i = indptr[text] + 1; i < indptr[text + 1]; ++i) {
            if (words[i - 1] < 0 || words[i] < 0) continue;
            const uint64_t pair = pair_of(words[i - 1], words[i]);
            Slot& slot = find(slots, pair);
            if (slot.texts > 0 && slot.last == text) continue;
            used += slot.texts == 0;
            slot = {pair, slot.texts + 1, static_cast<int32_t>(text)};
            if (2 * used <= slots.size()) continue;
            std::vector<Slot> larger(2 * slots.size(), Slot{0, 0, -1});
            for (const Slot& old : slots)
                if (old.texts > 0) find(larger, old.pair) = old;
            slots.swap(larger);
        }
    }
    std::vector<std::pair<uint64_t, int32_t>> found;
    for (const Slot& slot : slots)
        if (slot.texts >= least) found.emplace_back(slot.pair, slot.texts);
    std::sort(found.begin(), found.end());
    PairTexts out;
    for (const auto& [pair, texts] : found) {
        out.pairs.push_back(pair);
        out.texts.push_back(texts);
    }
    return out;
}

WordCounts count_pairs(const int64_t* indptr, const int32_t* words, int64_t n_texts,
                       const WordPairsView& pairs, Monitor& monitor) {
    const PairNumbers number(pairs);
    WordCounter counter;
    for (int64_t text = 0; text < n_texts; ++text) {
        if (text % kTextsBetweenChecks == 0) monitor.check();
        for (int64_t i = indptr[text] + 1; i < indptr[text + 1]; ++i) {
            const int32_t pair = number(words[i - 1], words[i]);
            if (pair >= 0) counter.count(pair);
        }
        counter.finish_text();
    }
    return counter.take();
}

}  // namespace ldsm
