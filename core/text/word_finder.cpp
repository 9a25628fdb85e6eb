#include "text/word_finder.hpp"

#include "text/each_word.hpp"
#include "text/sub_words.hpp"
#include "text/word_counter.hpp"

namespace ldsm {

StringNumbers::StringNumbers(const NamesView& strings) : strings_(strings) {
    uint64_t size = 16;
    while (size < 2 * static_cast<uint64_t>(strings.n)) size *= 2;
    slots_.assign(size, -1);
    for (int64_t number = 0; number < strings.n; ++number) {
        uint64_t slot = hash_(strings[number]) & (size - 1);
        while (slots_[slot] >= 0) slot = (slot + 1) & (size - 1);
        slots_[slot] = static_cast<int32_t>(number);
    }
}

WordFinder::WordFinder(const NamesView& words, const BigramsView& bigrams,
                       const NamesView& sub_words)
    : words_(words), bigrams_(bigrams), sub_words_(sub_words), phrases_(sub_words) {
    if (sub_words.n == 0) return;
    SubWords spelled;
    for (int64_t word = 0; word < words.n; ++word) {
        stems_.push_back(phrases_.stem(words[word]));
        spelled.each(words[word], [&](std::string_view part) {
            const int32_t sub_word = sub_words_(part);
            if (sub_word >= 0) parts_.push_back(sub_word);
        });
        part_offsets_.push_back(static_cast<int64_t>(parts_.size()));
    }
}

FoundWords WordFinder::count(const NamesView& texts, const WordCharacters& characters,
                             const Head& head, Monitor& monitor) const {
    WordCounter words, bigrams, sub_words;
    SubWords parts;
    Phrases::Reader phrases(phrases_);
    const auto count = [&](std::string_view text, auto&& visit) {
        int32_t before = -1;
        phrases.start();
        each_word(text, characters, [&](std::string_view word) {
            visit(word);
            const int32_t found = words_(word), bigram = bigrams_(before, found);
            if (found >= 0) words.count(found);
            if (bigram >= 0) bigrams.count(bigram);
            before = found;
            if (sub_words_.size() == 0) return;
            if (!phrases_.empty())
                phrases.read(found >= 0 ? stems_[static_cast<size_t>(found)] : phrases_.stem(word),
                             [&](int32_t phrase) { sub_words.count(phrase); });
            if (found >= 0) {
                for (int64_t p = part_offsets_[found]; p < part_offsets_[found + 1]; ++p)
                    sub_words.count(parts_[p]);
                return;
            }
            parts.each(word, [&](std::string_view part) {
                const int32_t sub_word = sub_words_(part);
                if (sub_word >= 0) sub_words.count(sub_word);
            });
        });
    };
    for (int64_t i = 0; i < texts.n; ++i) {
        if (i % kTextsBetweenChecks == 0) monitor.check();
        const std::string_view text = texts[i];
        int64_t n_words = 0;
        size_t end_of_head = 0;
        count(text, [&](std::string_view word) {
            if (n_words++ < head.words)
                end_of_head = static_cast<size_t>(word.data() - text.data()) + word.size();
        });
        if (n_words > head.words)
            for (int again = 0; again < head.more_times; ++again)
                count(text.substr(0, end_of_head), [](std::string_view) {});
        for (WordCounter* counter : {&words, &bigrams, &sub_words}) counter->finish_sorted_text();
    }
    return {words.take(), bigrams.take(), sub_words.take()};
}

}  // namespace ldsm
