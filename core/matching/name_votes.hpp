// How well the names of the labels match a text, by their common sub-words.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "common/numbers_view.hpp"
#include "common/unit_rows.hpp"
#include "common/weight_codec.hpp"

namespace ldsm {

// For each sub-word the names that contain it.
struct NameIndexView {
    int64_t n_entries;
    const int64_t* offsets;  // by sub-word
    NumbersView names;
    const float* idf;  // of the sub-words
    int64_t n_names;
    const float* norms;     // of the names: the root of the sum of their sub-words' squared idf
    const int32_t* owners;  // the labels that they are names of
};

// One row at a time. A label's match is that of its best matching name.
class NameVotes {
    static constexpr float kLeastCoverage = 0.25;

  public:
    NameVotes(const FeatureRows& sub_words, int64_t n_names, int32_t n_labels)
        : rows_(sub_words),
          of_name_(static_cast<size_t>(n_names), Match{}),
          of_label_(static_cast<size_t>(n_labels), Match{}) {}

    void ask(const NameIndexView& index, int64_t row) {
        for (const int32_t label : labels_) of_label_[label] = Match{};
        labels_.clear();
        rows_.each(row, [&](int32_t sub_word, float value) { add(index, sub_word, value); });
        for (const int32_t name : touched_) {
            Match& sums = of_name_[name];
            const float norm = index.norms[name];
            const int32_t label = index.owners[name];
            if (label < 0 || static_cast<size_t>(label) >= of_label_.size())
                damaged("a label out of range");
            if (!(norm > 0)) damaged("a name of no length");
            // Of equal ones the first counts: names are numbered in the order of the labels.
            const Match its{std::min(sums.coverage / (norm * norm), 1.0f), sums.cosine / norm};
            if (!std::isfinite(its.coverage) || !std::isfinite(its.cosine))
                damaged("weights too large to add up");
            Match& best = of_label_[label];
            if (best.coverage == 0) labels_.push_back(label);
            if (best.coverage == 0 || its.merit() > best.merit()) best = its;
            sums = Match{};
        }
        touched_.clear();
    }
    const std::vector<int32_t>& labels() const { return labels_; }
    // What the ranking is by: 0 if the row has too little of the name.
    float score(int32_t label) const {
        const Match& its = of_label_[label];
        return its.coverage < kLeastCoverage ? 0 : its.merit();
    }
    float coverage(int32_t label) const { return of_label_[label].coverage; }
    float cosine(int32_t label) const { return of_label_[label].cosine; }
    // The largest of any label.
    float best_cosine() const {
        float best = 0;
        for (const int32_t label : labels_) best = std::max(best, of_label_[label].cosine);
        return best;
    }

  private:
    struct Match {
        float coverage = 0;  // the share of the name that the text has
        float cosine = 0;
        float merit() const { return coverage * cosine; }
    };

    void add(const NameIndexView& index, int32_t sub_word, float value) {
        const Range entries{index.offsets[sub_word], index.offsets[sub_word + 1]};
        if (entries.begin < 0 || entries.end < entries.begin || entries.end > index.n_entries)
            damaged("offsets out of range");
        const float idf = index.idf[sub_word], square = idf * idf, product = idf * value;
        if (!(square > 0) || !std::isfinite(product)) damaged("an idf that is not positive");
        index.names.with([&](const auto* names) {
            for (int64_t e = entries.begin; e < entries.end; ++e) {
                const auto name = static_cast<uint32_t>(names[e]);
                if (name >= of_name_.size()) damaged("a name out of range");
                Match& sums = of_name_[name];
                if (sums.coverage == 0) touched_.push_back(static_cast<int32_t>(name));
                sums.coverage += square;
                sums.cosine += product;
            }
        });
    }
    [[noreturn]] static void damaged(const char* what) {
        throw BrokenModel(std::string("The index of names is damaged: ") + what + ".");
    }

    UnitRows rows_;
    std::vector<Match> of_name_;  // sums, until the row is done
    std::vector<Match> of_label_;
    std::vector<int32_t> touched_;  // names
    std::vector<int32_t> labels_;
};

}  // namespace ldsm
