// Bindings for counting words.
#include <utility>

#include "bindings.hpp"
#include "words.hpp"

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

PairsView pairs_view(const In<uint64_t>& pairs) {
    check_aligned(pairs, "The pairs");
    for (size_t i = 1; i < pairs.size(); ++i)
        if (pairs.data()[i] <= pairs.data()[i - 1]) refuse("The pairs must ascend.");
    if (pairs.size() >= INT32_MAX) refuse("There must be fewer than 2^31 pairs.");
    return {pairs.data(), static_cast<int64_t>(pairs.size())};
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

nb::tuple count_known(In<uint8_t> text, In<int64_t> offsets, In<uint8_t> characters,
                      In<uint8_t> words, In<int64_t> word_offsets, In<int32_t> slots, uint64_t seed,
                      In<uint64_t> pairs, const Cancel& cancel) {
    const NamesView texts = strings(text, offsets, "texts");
    const NamesView known = strings(words, word_offsets, "words");
    const WordCharacters table = word_characters(characters);
    check_aligned(slots, "The slots");
    const uint64_t n = slots.size();
    if (n == 0 || (n & (n - 1)) != 0 || n <= static_cast<uint64_t>(known.n))
        refuse("The number of slots must be a power of two above that of the words. Got ", n, ".");
    int64_t used = 0;
    for (size_t i = 0; i < n; ++i) {
        if (slots.data()[i] >= known.n) refuse("A slot must hold the number of a word, or -1.");
        used += slots.data()[i] >= 0;
    }
    if (used > known.n) refuse("There must be a free slot.");
    const PairsView known_pairs = pairs_view(pairs);
    if (known.n + known_pairs.n >= INT32_MAX) refuse("There must be fewer words and pairs.");
    Monitor monitor = make_monitor(cancel);
    const WordSlots table_of_words{slots.data(), n, seed};
    WordCounts counts = without_gil([&] {
        return count_known_words(texts, table, known, table_of_words, known_pairs, monitor);
    });
    return hand_over_all(counts.indptr, counts.words, counts.counts);
}

nb::object slots_of(In<uint8_t> words, In<int64_t> offsets, uint64_t seed) {
    const NamesView known = strings(words, offsets, "words");
    return hand_over(without_gil([&] { return word_slots(known, seed); }));
}

nb::tuple find(In<int64_t> indptr, In<int32_t> words, int32_t least, const Cancel& cancel) {
    const int64_t n = check_sequences(indptr, words);
    Monitor monitor = make_monitor(cancel);
    PairTexts found =
        without_gil([&] { return find_pairs(indptr.data(), words.data(), n, least, monitor); });
    return hand_over_all(found.pairs, found.texts);
}

nb::tuple count_given_pairs(In<int64_t> indptr, In<int32_t> words, In<uint64_t> pairs,
                            const Cancel& cancel) {
    const int64_t n = check_sequences(indptr, words);
    const PairsView known = pairs_view(pairs);
    Monitor monitor = make_monitor(cancel);
    WordCounts counts =
        without_gil([&] { return count_pairs(indptr.data(), words.data(), n, known, monitor); });
    return hand_over_all(counts.indptr, counts.words, counts.counts);
}

}  // namespace

void bind_words(nb::module_& m) {
    m.def("count_words", &count, as_is("text"), as_is("offsets"), as_is("characters"),
          nb::kw_only(), as_is("cancel") = nb::none(),
          "The words of texts as (indptr, words, counts), all words as bytes and offsets, and the "
          "texts as (indptr, words).");
    m.def("count_known_words", &count_known, as_is("text"), as_is("offsets"), as_is("characters"),
          as_is("words"), as_is("word_offsets"), as_is("slots"), "seed"_a, as_is("pairs"),
          nb::kw_only(), as_is("cancel") = nb::none(),
          "The given words and pairs of texts as (indptr, words, counts); `word_slots` makes the "
          "slots.");
    m.def(
        "find_pairs", &find, as_is("indptr"), as_is("words"), "least"_a, nb::kw_only(),
        as_is("cancel") = nb::none(),
        "Pairs of words that follow each other in `least` texts or more, and how many those are.");
    m.def("count_pairs", &count_given_pairs, as_is("indptr"), as_is("words"), as_is("pairs"),
          nb::kw_only(), as_is("cancel") = nb::none(),
          "The given pairs of texts as (indptr, pairs, counts).");
    m.def("word_slots", &slots_of, as_is("words"), as_is("offsets"), "seed"_a,
          "A table to find words by their hashes.");
}

}  // namespace ldsm::bindings
