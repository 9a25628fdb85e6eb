#include "text/phrases.hpp"

#include "text/word_counter.hpp"

namespace ldsm {

WordCounts count_phrases(const int64_t* indptr, const int32_t* sequence, int64_t n_texts,
                         const NamesView& words, const NamesView& sub_words, Monitor& monitor) {
    const Phrases phrases(sub_words);
    constexpr int32_t kUnknown = -2;
    std::vector<int32_t> stems(static_cast<size_t>(words.n), kUnknown);
    Phrases::Reader reader(phrases);
    WordCounter counter;
    for (int64_t text = 0; text < n_texts; ++text) {
        if (text % kTextsBetweenChecks == 0) monitor.check();
        reader.start();
        for (int64_t i = indptr[text]; i < indptr[text + 1]; ++i) {
            int32_t& stem = stems[static_cast<size_t>(sequence[i])];
            if (stem == kUnknown) stem = phrases.stem(words[sequence[i]]);
            reader.read(stem, [&](int32_t column) { counter.count(column); });
        }
        counter.finish_text();
    }
    return counter.take();
}

}  // namespace ldsm
