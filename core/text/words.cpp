#include "text/words.hpp"

#include <string_view>

#include "text/each_word.hpp"
#include "text/growing_vocabulary.hpp"
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

}  // namespace ldsm
