#include "words.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "string_hash.hpp"

namespace ldsm {

namespace {

constexpr int kLeastCharacters = 2;  // of a word
constexpr int64_t kTextsBetweenChecks = 64;

// The code point at `at`, which is moved behind it. Bytes that are not UTF-8 stand for themselves
// as no character of any word.
uint32_t next_character(std::string_view text, size_t& at) {
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
    const uint8_t first = byte(at);
    if (first < 0x80) return ++at, first;
    const size_t length = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (length == 1 || text.size() - at < length) return ++at, UINT32_MAX;
    uint32_t c = first & (0x7F >> length);
    for (size_t i = 1; i < length; ++i) {
        if ((byte(at + i) & 0xC0) != 0x80) return ++at, UINT32_MAX;
        c = c << 6 | (byte(at + i) & 0x3F);
    }
    constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    if (c < kLeast[length]) return ++at, UINT32_MAX;  // written longer than it is
    at += length;
    return c;
}

template <typename Visit>
void each_word(std::string_view text, const WordCharacters& characters, Visit&& visit) {
    size_t at = 0;
    while (at < text.size()) {
        const size_t start = at;
        size_t end = at;
        int n = 0;
        while (at < text.size() && characters.has(next_character(text, at))) {
            end = at;
            ++n;
        }
        if (n >= kLeastCharacters) visit(text.substr(start, end - start));
    }
}

// Counts the words of one text after the other.
class Counter {
  public:
    void count(int32_t word) {
        if (static_cast<size_t>(word) >= place_.size())
            place_.resize(2 * static_cast<size_t>(word) + 64, -1);
        int64_t& place = place_[word];
        if (place >= out_.indptr.back()) {  // of this text
            ++out_.counts[place];
            return;
        }
        place = static_cast<int64_t>(out_.words.size());
        out_.words.push_back(word);
        out_.counts.push_back(1);
    }
    void finish_text() { out_.indptr.push_back(static_cast<int64_t>(out_.words.size())); }
    WordCounts take() { return std::move(out_); }

  private:
    WordCounts out_;
    std::vector<int64_t> place_;  // of each word, where it was counted last
};

// Numbers words as they appear.
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

uint64_t pair_of(int32_t first, int32_t second) {
    return static_cast<uint64_t>(static_cast<uint32_t>(first)) << 32 |
           static_cast<uint32_t>(second);
}

// Spreads the bits of a pair.
uint64_t spread(uint64_t pair) {
    pair = (pair ^ (pair >> 31)) * 0x9E3779B97F4A7C15;
    return pair ^ (pair >> 29);
}

// The number of a pair among ascending ones.
class PairNumbers {
  public:
    explicit PairNumbers(const PairsView& pairs) : pairs_(pairs) {
        if (pairs.n == 0) return;
        uint64_t size = 16;
        while (size < 2 * static_cast<uint64_t>(pairs.n)) size *= 2;
        slots_.assign(size, -1);
        for (int64_t i = 0; i < pairs.n; ++i) {
            uint64_t slot = spread(pairs.pairs[i]) & (size - 1);
            while (slots_[slot] >= 0) slot = (slot + 1) & (size - 1);
            slots_[slot] = static_cast<int32_t>(i);
        }
    }
    int32_t operator()(int32_t first, int32_t second) const {
        if (slots_.empty() || first < 0 || second < 0) return -1;
        const uint64_t pair = pair_of(first, second);
        uint64_t slot = spread(pair) & (slots_.size() - 1);
        for (; slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1))
            if (pairs_.pairs[slots_[slot]] == pair) return slots_[slot];
        return -1;
    }

  private:
    PairsView pairs_;
    std::vector<int32_t> slots_;
};

}  // namespace

WordCounts count_words(const NamesView& texts, const WordCharacters& characters, Vocabulary& found,
                       WordSequences& sequences, Monitor& monitor) {
    GrowingVocabulary vocabulary(found);
    Counter counter;
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

WordCounts count_known_words(const NamesView& texts, const WordCharacters& characters,
                             const NamesView& words, const WordSlots& slots, const PairsView& pairs,
                             Monitor& monitor) {
    const StringHash hash(slots.seed);
    const auto number = [&](std::string_view word) {
        uint64_t slot = hash(word) & (slots.n - 1);
        for (; slots.slots[slot] >= 0; slot = (slot + 1) & (slots.n - 1))
            if (words[slots.slots[slot]] == word) return slots.slots[slot];
        return int32_t{-1};
    };
    const PairNumbers pair_number(pairs);
    const auto n_words = static_cast<int32_t>(words.n);
    Counter counter;
    for (int64_t i = 0; i < texts.n; ++i) {
        if (i % kTextsBetweenChecks == 0) monitor.check();
        int32_t before = -1;
        each_word(texts[i], characters, [&](std::string_view word) {
            const int32_t found = number(word), pair = pair_number(before, found);
            if (found >= 0) counter.count(found);
            if (pair >= 0) counter.count(n_words + pair);
            before = found;
        });
        counter.finish_text();
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
                       const PairsView& pairs, Monitor& monitor) {
    const PairNumbers number(pairs);
    Counter counter;
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

std::vector<int32_t> word_slots(const NamesView& words, uint64_t seed) {
    const StringHash hash(seed);
    uint64_t size = 16;
    while (size < 2 * static_cast<uint64_t>(words.n)) size *= 2;
    std::vector<int32_t> slots(size, -1);
    for (int64_t number = 0; number < words.n; ++number) {
        uint64_t slot = hash(words[number]) & (size - 1);
        while (slots[slot] >= 0) slot = (slot + 1) & (size - 1);
        slots[slot] = static_cast<int32_t>(number);
    }
    return slots;
}

}  // namespace ldsm
