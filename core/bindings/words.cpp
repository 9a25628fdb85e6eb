// Bindings for counting words.
#include <tuple>
#include <utility>

#include "bindings/shared.hpp"
#include "text/bigrams.hpp"
#include "text/sub_words.hpp"
#include "text/word_finder.hpp"

namespace ldsm::bindings {

namespace {

NamesView strings(const In<uint8_t>& text, const In<int64_t>& offsets, const char* what) {
    check_offsets(offsets, text.size(), std::string("The offsets of the ") + what);
    const auto n = static_cast<int64_t>(offsets.size()) - 1;
    if (n >= INT32_MAX) refuse("There must be fewer than 2^31 ", what, ". Got ", n, ".");
    return {text.data(), offsets.data(), n, nullptr};
}

WordCharacters word_characters(const In<uint8_t>& table) {
    if (table.size() > 0x110000) refuse("There are no more than 0x110000 characters.");
    return {table.data(), static_cast<uint32_t>(table.size())};
}

BigramsView bigrams_view(const In<uint64_t>& bigrams) {
    check_aligned(bigrams, "The bigrams");
    for (size_t i = 1; i < bigrams.size(); ++i)
        if (bigrams.data()[i] <= bigrams.data()[i - 1]) refuse("The bigrams must ascend.");
    if (bigrams.size() >= INT32_MAX) refuse("There must be fewer than 2^31 bigrams.");
    return {bigrams.data(), static_cast<int64_t>(bigrams.size())};
}

int64_t check_sequences(const In<int64_t>& indptr, const In<int32_t>& words) {
    check_offsets(indptr, words.size(), "The offsets of the texts");
    check_aligned(words, "The words");
    if (indptr.size() > INT32_MAX) refuse("There must be fewer than 2^31 texts.");
    return static_cast<int64_t>(indptr.size()) - 1;
}

nb::tuple count(In<uint8_t> text, In<int64_t> offsets, In<uint8_t> characters,
                const Cancel& cancel) {
    const NamesView texts = strings(text, offsets, "texts");
    const WordCharacters table = word_characters(characters);
    Monitor monitor = make_monitor(cancel);
    Vocabulary words;
    WordSequences sequences;
    WordCounts counts =
        without_gil([&] { return count_words(texts, table, words, sequences, monitor); });
    return hand_over_all(counts.indptr, counts.words, counts.counts, words.text, words.offsets,
                         sequences.indptr, sequences.words);
}

// Finds words in texts; holds what it was given.
class Finder {
  public:
    Finder(In<uint8_t> words, In<int64_t> word_offsets, In<uint64_t> bigrams, In<uint8_t> sub_words,
           In<int64_t> sub_word_offsets)
        : kept_{words, word_offsets, bigrams, sub_words, sub_word_offsets},
          finder_(strings(words, word_offsets, "words"), bigrams_view(bigrams),
                  strings(sub_words, sub_word_offsets, "sub-words")) {
        if (word_offsets.size() + bigrams.size() + sub_word_offsets.size() >= INT32_MAX)
            refuse("There must be fewer words, bigrams and sub-words.");
    }
    nb::tuple count(In<uint8_t> text, In<int64_t> offsets, In<uint8_t> characters,
                    int64_t head_words, int more_times, const Cancel& cancel) const {
        const NamesView texts = strings(text, offsets, "texts");
        const WordCharacters table = word_characters(characters);
        Monitor monitor = make_monitor(cancel);
        if (head_words < 0 || more_times < 0 || more_times > 100)
            refuse("The beginning of a text must have 0 words or more, and count 0 to 100 times.");
        const Head head{head_words, more_times};
        FoundWords found = without_gil([&] { return finder_.count(texts, table, head, monitor); });
        const auto arrays = [](WordCounts& its) {
            return hand_over_all(its.indptr, its.words, its.counts);
        };
        return nb::make_tuple(arrays(found.words), arrays(found.bigrams), arrays(found.sub_words));
    }

  private:
    std::tuple<In<uint8_t>, In<int64_t>, In<uint64_t>, In<uint8_t>, In<int64_t>> kept_;
    WordFinder finder_;
};

nb::tuple spell(In<uint8_t> text, In<int64_t> offsets, const Cancel& cancel) {
    const NamesView words = strings(text, offsets, "words");
    Monitor monitor = make_monitor(cancel);
    Vocabulary found;
    WordCounts counts = without_gil([&] { return spell_words(words, found, monitor); });
    return hand_over_all(counts.indptr, counts.words, counts.counts, found.text, found.offsets);
}

nb::tuple find(In<int64_t> indptr, In<int32_t> words, In<int32_t> column, int32_t least,
               int32_t first, int32_t last, const Cancel& cancel) {
    const int64_t n = check_sequences(indptr, words);
    check_aligned(column, "The columns");
    if (first < 0) refuse("The first column must be 0 or more. Got ", first, ".");
    Monitor monitor = make_monitor(cancel);
    BigramTexts found = without_gil([&] {
        for (size_t i = 0; i < words.size(); ++i)
            if (words.data()[i] < 0 || static_cast<size_t>(words.data()[i]) >= column.size())
                refuse("There is no column of word ", words.data()[i], ".");
        return find_bigrams(indptr.data(), words.data(), n, column.data(), least, first, last,
                            monitor);
    });
    return hand_over_all(found.bigrams, found.texts);
}

nb::tuple count_given_bigrams(In<int64_t> indptr, In<int32_t> words, In<uint64_t> bigrams,
                              const Cancel& cancel) {
    const int64_t n = check_sequences(indptr, words);
    const BigramsView known = bigrams_view(bigrams);
    Monitor monitor = make_monitor(cancel);
    WordCounts counts =
        without_gil([&] { return count_bigrams(indptr.data(), words.data(), n, known, monitor); });
    return hand_over_all(counts.indptr, counts.words, counts.counts);
}

nb::tuple count_given_phrases(In<int64_t> indptr, In<int32_t> sequence, In<uint8_t> word_text,
                              In<int64_t> word_offsets, In<uint8_t> sub_words,
                              In<int64_t> sub_word_offsets, const Cancel& cancel) {
    const int64_t n = check_sequences(indptr, sequence);
    const NamesView words = strings(word_text, word_offsets, "words");
    const NamesView known = strings(sub_words, sub_word_offsets, "sub-words");
    if (known.n >= INT32_MAX) refuse("There must be fewer than 2^31 sub-words.");
    Monitor monitor = make_monitor(cancel);
    WordCounts counts = without_gil([&] {
        for (size_t i = 0; i < sequence.size(); ++i)
            if (sequence.data()[i] < 0 || sequence.data()[i] >= words.n)
                refuse("There is no word ", sequence.data()[i], ".");
        return count_phrases(indptr.data(), sequence.data(), n, words, known, monitor);
    });
    return hand_over_all(counts.indptr, counts.words, counts.counts);
}

}  // namespace

void bind_words(nb::module_& m) {
    m.def("count_words", &count, as_is("text"), as_is("offsets"), as_is("characters"),
          nb::kw_only(), as_is("cancel") = nb::none(),
          "The words of texts as (indptr, words, counts), all words as bytes and offsets, and the "
          "texts as (indptr, words).");
    nb::class_<Finder>(m, "WordFinder", "Finds words, bigrams (two adjacent words) and sub-words.")
        .def(nb::init<In<uint8_t>, In<int64_t>, In<uint64_t>, In<uint8_t>, In<int64_t>>(),
             as_is("words"), as_is("word_offsets"), as_is("bigrams"), as_is("sub_words"),
             as_is("sub_word_offsets"))
        .def("count", &Finder::count, as_is("text"), as_is("offsets"), as_is("characters"),
             nb::kw_only(), "head_words"_a = 0, "more_times"_a = 0, as_is("cancel") = nb::none(),
             "What texts have of each kind as (indptr, numbers, counts). The first words of longer "
             "texts count more times.");
    m.def("spell_words", &spell, as_is("text"), as_is("offsets"), nb::kw_only(),
          as_is("cancel") = nb::none(),
          "The sub-words of words as (indptr, numbers, counts), all of them as bytes and offsets.");
    m.def("find_bigrams", &find, as_is("indptr"), as_is("words"), as_is("column"), "least"_a,
          "first"_a, "last"_a, nb::kw_only(), as_is("cancel") = nb::none(),
          "The bigrams of at least `least` texts, and the number of texts with each, if the column "
          "of their first word is in a range.");
    m.def("count_bigrams", &count_given_bigrams, as_is("indptr"), as_is("words"), as_is("bigrams"),
          nb::kw_only(), as_is("cancel") = nb::none(),
          "The given bigrams in texts as (indptr, bigrams, counts).");
    m.def("count_phrases", &count_given_phrases, as_is("indptr"), as_is("sequence"), as_is("words"),
          as_is("word_offsets"), as_is("sub_words"), as_is("sub_word_offsets"), nb::kw_only(),
          as_is("cancel") = nb::none(),
          "The phrases among sub-words, in texts, as (indptr, sub-words, counts).");
}

}  // namespace ldsm::bindings
