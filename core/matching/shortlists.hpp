// Shortlists: the candidate labels of a row, by the leaves it reaches, by indexes from features to
// labels, and by the labels' names.
#pragma once

#include <cstdint>
#include <vector>

#include "matching/feature_index.hpp"
#include "matching/name_votes.hpp"
#include "routing/forest_view.hpp"

namespace ldsm {

// The number of labels without a training row that are added beyond the length of a list.
constexpr int64_t kUnseenLabels = 20;

// The shortlists of rows, labels ascending.
struct ShortlistArrays {
    std::vector<int64_t> indptr{0};
    std::vector<int32_t> labels;
    std::vector<float> tree_scores, index_scores, sub_scores;
    std::vector<float> coverages, cosines;  // of the label's name
    // By row: the largest cosine of any label, dropped or not, and how much its features tell.
    std::vector<float> best_cosine, most_telling, evidence;
};

// Labels that a matcher outside the core lists for each row, best first.
struct GivenRanking {
    const int64_t* offsets;  // n_rows + 1
    const int32_t* labels;
};

// The same rows as each matcher reads them, and as matchers outside the core have ranked them.
struct MatchRows {
    const FeatureRows* trees;
    const FeatureRows* indexed;
    const FeatureRows* sub_words;  // by `sub_indexes` and `names`; or null
    const uint8_t* skip;           // as in `Descent`
    const uint8_t* fold;           // per row, the index to ask; null: the first
    std::vector<GivenRanking> given;
    std::vector<GivenRanking> added;  // all of these labels stand on the lists, beyond their length
};

// What finds labels besides the trees.
struct Matchers {
    // One for all rows, or one per fold; none: not used.
    std::vector<FeatureIndexView> indexes, sub_indexes;
    const uint8_t* telling_sub_words;  // 1 for each that counts as evidence; null: all do
    const NameIndexView* names;        // or null
    bool match_names;  // whether names find labels, or only score those that others find
    const uint8_t*
        unseen;  // 1 for each label without a training row, dropped ones included; or null
};

// The best labels of each matcher in turn, at most `length`. A
// dropped label takes its place, which stays empty. Scores of 0 mean that a matcher does not know
// the label. Without an index, each of a row's features counts as evidence of 1. `allowed`: per
// label, dropped ones included, or null.
ShortlistArrays match(const ForestView& forest, const MatchRows& rows, const Matchers& matchers,
                      int64_t length, const uint8_t* allowed, const Kernels& kernels,
                      Monitor& monitor);

}  // namespace ldsm
