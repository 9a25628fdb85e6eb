#include "text/sub_words.hpp"

#include "text/growing_vocabulary.hpp"
#include "text/word_counter.hpp"

namespace ldsm {

namespace {

constexpr int64_t kWordsBetweenChecks = 1024;

}  // namespace

WordCounts spell_words(const NamesView& words, Vocabulary& found, Monitor& monitor) {
    GrowingVocabulary vocabulary(found);
    WordCounter counter;
    SubWords sub_words;
    for (int64_t i = 0; i < words.n; ++i) {
        if (i % kWordsBetweenChecks == 0) monitor.check();
        sub_words.each(words[i],
                       [&](std::string_view part) { counter.count(vocabulary.number(part)); });
        counter.finish_text();
    }
    return counter.take();
}

}  // namespace ldsm
