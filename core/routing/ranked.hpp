// The best of the scored labels, and the labels that fill up a row with too few.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "common/csr.hpp"

namespace ldsm {

// The k best labels of each row: what is asked for, and where it goes.
struct TopK {
    int64_t k;
    const int32_t* fill_order;  // all labels, most frequent first: fills a row that has too few
    const uint8_t* allowed;     // per label, or null: every label competes
    int32_t* labels;            // n_rows x k
    float* scores;
};

// A label and its positive score. One number, so that sorting compares one: the bits of positive
// floats are in the order of their values.
class Scored {
  public:
    Scored(float score, int32_t label)
        : key_(uint64_t{~std::bit_cast<uint32_t>(score)} << 32 | static_cast<uint32_t>(label)) {}
    float score() const { return std::bit_cast<float>(~static_cast<uint32_t>(key_ >> 32)); }
    int32_t label() const { return static_cast<int32_t>(static_cast<uint32_t>(key_)); }
    // Best first; equal scores: lower label.
    bool operator<(const Scored& other) const { return key_ < other.key_; }

  private:
    uint64_t key_;
};

// The best `length` of the labels below `n_labels` that have a score, best first. `may`: whether a
// label may be among them. `places`: what stands for each label in the result; null: its number.
template <typename Votes, typename May>
void rank(const Votes& votes, int32_t n_labels, May&& may, const int32_t* places, int64_t length,
          std::vector<Scored>& out) {
    out.clear();
    votes.each([&](int32_t label, float score) {
        if (score > 0 && label < n_labels && may(label))
            out.emplace_back(score, places == nullptr ? label : places[label]);
    });
    if (static_cast<int64_t>(out.size()) > length) {
        std::nth_element(out.begin(), out.begin() + length, out.end());
        out.erase(out.begin() + length, out.end());
    }
    std::sort(out.begin(), out.end());
}

// A set of numbers below `limit` that gives them back in their order, without sorting.
class NumberSet {
  public:
    explicit NumberSet(int64_t limit)
        : words_(static_cast<size_t>(limit) / 64 + 1, 0), marks_(words_.size() / 64 + 1, 0) {}

    // False: it is there already.
    bool insert(uint32_t number) {
        const bool there = (words_[number / 64] >> (number % 64) & 1) != 0;
        if (!there) add(number);
        return !there;
    }
    // Without a branch, for many numbers.
    void add(uint32_t number) {
        words_[number / 64] |= uint64_t{1} << (number % 64);
        marks_[number / 4096] |= uint64_t{1} << (number / 64 % 64);
    }
    // Takes all of them out: calls visit(number), ascending.
    template <typename Visit>
    void drain(Visit&& visit) {
        for (size_t m = 0; m < marks_.size(); ++m)
            each_bit(marks_[m], [&](int w) {
                const size_t word = m * 64 + static_cast<size_t>(w);
                each_bit(words_[word],
                         [&](int bit) { visit(static_cast<int32_t>(word * 64) + bit); });
            });
    }

  private:
    template <typename Visit>
    static void each_bit(uint64_t& bits, Visit&& visit) {
        for (; bits != 0; bits &= bits - 1) visit(std::countr_zero(bits));
    }

    std::vector<uint64_t> words_;
    std::vector<uint64_t> marks_;  // one bit for each word that is not 0
};

// Fills rows that have fewer than k labels with the most frequent others, score 0.
class TopFiller {
  public:
    TopFiller(const TopK& out, int32_t n_labels) : out_(out), n_labels_(n_labels) {}

    // The row has its first `n`.
    void fill(int64_t row, int64_t n) {
        if (n == out_.k) return;
        taken_.resize(static_cast<size_t>(n_labels_), 0);
        int32_t* labels = out_.labels + row * out_.k;
        float* scores = out_.scores + row * out_.k;
        for (int64_t i = 0; i < n; ++i) taken_[labels[i]] = 1;
        int64_t at = n;
        for (int32_t i = 0; i < n_labels_ && at < out_.k; ++i) {
            const int32_t label = out_.fill_order[i];
            if (label < 0 || label >= n_labels_)
                throw BrokenModel("fill_order must lie in [0, " + std::to_string(n_labels_) + ").");
            if (taken_[label] || (out_.allowed != nullptr && !out_.allowed[label])) continue;
            labels[at] = label;
            scores[at++] = 0;
            taken_[label] = 1;
        }
        for (int64_t i = 0; i < at; ++i) taken_[labels[i]] = 0;
        if (at < out_.k) throw BrokenModel("fill_order must name every label once.");
    }

  private:
    const TopK& out_;
    int32_t n_labels_;
    std::vector<uint8_t> taken_;  // all 0 between uses; none until a row needs it
};

}  // namespace ldsm
