// Shortlists: the labels that are worth a closer look, by the leaves a row reaches, by indexes from
// features to labels, and by the labels' names.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "routing/router.hpp"

namespace ldsm {

// For each feature the labels that go with it most, as multiples of the feature's unit.
struct FeatureIndex {
    std::vector<int64_t> offsets{0};
    std::vector<int32_t> labels;  // ascending within a feature
    std::vector<uint8_t> codes;
    std::vector<float> units;
};

[[noreturn]] inline void damaged_index(const char* what) {
    throw BrokenModel(std::string("The feature index is damaged: ") + what + ".");
}

struct FeatureIndexView {
    int64_t n_entries;
    const int64_t* offsets;
    NumbersView labels;
    const uint8_t* codes;
    const float* units;

    Range entries_of(int32_t feature) const {
        const Range entries{offsets[feature], offsets[feature + 1]};
        if (entries.begin < 0 || entries.end < entries.begin || entries.end > n_entries)
            damaged_index("offsets out of range");
        return entries;
    }
};

// One index for each of `n_folds` folds, of the rows of the others, and one of all rows. `fold`:
// per row. A feature keeps its `keep` labels of largest weight: the share of the feature's mass
// that lies in rows with the label, divided by the fourth root of the label's frequency. (The share
// alone prefers frequent labels where rows have many features, the share divided by the frequency
// prefers rare ones where they have few.)
std::vector<FeatureIndex> train_feature_indexes(const FeatureRows& x, const LabelRows& y,
                                                const uint8_t* fold, int n_folds, int64_t keep,
                                                Monitor& monitor);

// The index with new rows added, labels in its columns. `masses`: of each feature in the rows
// before. `lift_before`, `lift_after`: the inverse fourth root of each label's frequency. What a
// feature has not kept of the rows before, or has rounded off, is lost.
FeatureIndex extend_feature_index(const FeatureIndexView& before, const float* masses,
                                  const FeatureRows& x, const LabelRows& y,
                                  const double* lift_before, const double* lift_after, int64_t keep,
                                  uint64_t seed, Monitor& monitor);

// For each sub-word the names that have it.
struct NameIndexView {
    int64_t n_entries;
    const int64_t* offsets;  // by sub-word
    NumbersView names;
    const float* idf;  // of the sub-words
    int64_t n_names;
    const float* norms;     // of the names: the root of the sum of their sub-words' squared idf
    const int32_t* owners;  // the labels that they are names of
};

// How much the features of a row tell of labels: a feature tells as much as its largest weight.
struct Evidence {
    double most = 0;   // the most telling feature
    double total = 0;  // all of them
    void add(double weight) {
        most = std::max(most, weight);
        total += weight;
    }
};

// Of labels that no training row has, so many are taken beyond the length of a list.
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

struct MatchParams {
    int64_t length;
    const uint8_t* skip;  // as in `route_topk`
    // Likewise; but this and `unseen` are of dropped labels, too.
    const uint8_t* allowed;
    // Asked for each row: one for all, or one per fold of `fold`; none: the trees match alone.
    std::vector<FeatureIndexView> indexes;
    const FeatureRows* indexed;    // the same rows with the features that these know
    const uint8_t* fold;           // per row, or null
    const FeatureRows* sub_words;  // of the same rows; used by what follows
    std::vector<FeatureIndexView> sub_indexes;
    const uint8_t* telling_sub_words;  // 1 for each that counts as evidence; null: all do
    const NameIndexView* names;        // or null
    bool match_names;       // whether names find labels, or only score those that others find
    const uint8_t* unseen;  // 1 for each label without a training row; or null
};

// The best labels of the trees, of the indexes and of the names in turn, at most `length`. A
// dropped label takes its place, which stays empty. Scores of 0 mean that a matcher does not know
// the label. Without an index, each of a row's features is taken to tell 1.
ShortlistArrays match(const ForestView& forest, const FeatureRows& x, const MatchParams& params,
                      const Kernels& kernels, Monitor& monitor);

// Labels with scores, row by row.
struct ScoredLists {
    const int64_t* indptr;
    const int32_t* labels;
    const float* scores;
    int64_t n_rows;
};

// The best k of each list; a list that has fewer is filled as `route_topk` fills. `label_weights`
// change the order, not the scores; null for none.
void best_of_lists(const ScoredLists& lists, const double* label_weights, int32_t n_labels,
                   const TopK& out);

}  // namespace ldsm
