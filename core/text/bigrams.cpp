#include "text/bigrams.hpp"

#include <algorithm>
#include <utility>

#include "text/word_counter.hpp"

namespace ldsm {

BigramTexts find_bigrams(const int64_t* indptr, const int32_t* words, int64_t n_texts,
                         const int32_t* column, int32_t least, int32_t first, int32_t last,
                         Monitor& monitor) {
    struct Slot {
        uint64_t bigram;
        int32_t texts;  // 0: free
        int32_t last;   // the text that counted last
    };
    std::vector<Slot> slots(1 << 16, Slot{0, 0, -1});
    uint64_t used = 0;
    const auto find = [](std::vector<Slot>& in, uint64_t bigram) -> Slot& {
        uint64_t slot = spread(bigram) & (in.size() - 1);
        while (in[slot].texts > 0 && in[slot].bigram != bigram) slot = (slot + 1) & (in.size() - 1);
        return in[slot];
    };
    for (int64_t text = 0; text < n_texts; ++text) {
        if (text % kTextsBetweenChecks == 0) monitor.check();
        for (int64_t i = indptr[text] + 1; i < indptr[text + 1]; ++i) {
            const int32_t one = column[words[i - 1]], other = column[words[i]];
            if (one < first || one >= last || other < 0) continue;
            const uint64_t bigram = bigram_of(one, other);
            Slot& slot = find(slots, bigram);
            if (slot.texts > 0 && slot.last == text) continue;
            used += slot.texts == 0;
            slot = {bigram, slot.texts + 1, static_cast<int32_t>(text)};
            if (2 * used <= slots.size()) continue;
            std::vector<Slot> larger(2 * slots.size(), Slot{0, 0, -1});
            for (const Slot& old : slots)
                if (old.texts > 0) find(larger, old.bigram) = old;
            slots.swap(larger);
        }
    }
    std::vector<std::pair<uint64_t, int32_t>> found;
    for (const Slot& slot : slots)
        if (slot.texts >= least) found.emplace_back(slot.bigram, slot.texts);
    std::sort(found.begin(), found.end());
    BigramTexts out;
    for (const auto& [bigram, texts] : found) {
        out.bigrams.push_back(bigram);
        out.texts.push_back(texts);
    }
    return out;
}

WordCounts count_bigrams(const int64_t* indptr, const int32_t* words, int64_t n_texts,
                         const BigramsView& bigrams, Monitor& monitor) {
    const BigramNumbers number(bigrams);
    WordCounter counter;
    for (int64_t text = 0; text < n_texts; ++text) {
        if (text % kTextsBetweenChecks == 0) monitor.check();
        for (int64_t i = indptr[text] + 1; i < indptr[text + 1]; ++i) {
            const int32_t bigram = number(words[i - 1], words[i]);
            if (bigram >= 0) counter.count(bigram);
        }
        counter.finish_text();
    }
    return counter.take();
}

}  // namespace ldsm
