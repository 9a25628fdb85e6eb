// The best of what was scored, and what stands in where too little was.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "router.hpp"

namespace ldsm {

struct Scored {
    float score;
    int32_t label;
    bool operator<(const Scored& other) const {  // best first; equal scores: lower label
        return score != other.score ? score > other.score : label < other.label;
    }
};

// The best `length` of the labels that have a score, best first. `allowed`: as in `TopK`.
template <typename Votes>
void rank(const Votes& votes, const uint8_t* allowed, int64_t length, std::vector<Scored>& out) {
    out.clear();
    for (const int32_t label : votes.labels()) {
        const float score = votes.score(label);
        if (score > 0 && (allowed == nullptr || allowed[label])) out.push_back({score, label});
    }
    const auto n = std::min<int64_t>(length, static_cast<int64_t>(out.size()));
    std::partial_sort(out.begin(), out.begin() + n, out.end());
    out.resize(static_cast<size_t>(n));
}

// Fills rows that have fewer than k labels with the most frequent others, score 0.
class TopFiller {
  public:
    TopFiller(const TopK& out, int32_t n_labels)
        : out_(out), n_labels_(n_labels), taken_(static_cast<size_t>(n_labels), 0) {}

    // The row has its first `n`.
    void fill(int64_t row, int64_t n) {
        if (n == out_.k) return;
        int32_t* labels = out_.labels + row * out_.k;
        float* scores = out_.scores + row * out_.k;
        for (int64_t i = 0; i < n; ++i) taken_[labels[i]] = 1;
        int64_t at = n;
        for (int32_t i = 0; i < n_labels_ && at < out_.k; ++i) {
            const int32_t label = out_.fill_order[i];
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
    std::vector<uint8_t> taken_;
};

}  // namespace ldsm
