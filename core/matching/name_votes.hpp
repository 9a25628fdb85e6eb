// How well the names of the labels match a text, by their common sub-words.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/numbers_view.hpp"
#include "common/unit_rows.hpp"
#include "common/weight_codec.hpp"
#include "routing/ranked.hpp"

namespace ldsm {

// For each sub-word the names that contain it.
struct NameIndexView {
    int64_t n_entries;
    const int64_t* offsets;  // by sub-word
    NumbersView names;
    const float* idf;  // of the sub-words
    int64_t n_names;
    const float* norms;     // of the names: the root of the sum of their sub-words' squared idf
    const int32_t* owners;  // the labels that they are names of, ascending
};

// How well a name matches a row.
struct NameMatch {
    float coverage = 0;  // the share of the name that the row has
    float cosine = 0;
    float merit() const { return coverage * cosine; }
};

// One row at a time. A label's match is that of its best matching name.
//
// A long text has something of a tenth of all names. Their sums are added up in any order, and then
// gone through in the order of the names, which is that of memory.
class NameVotes {
    static constexpr float kLeastCoverage = 0.25;

  public:
    NameVotes(const FeatureRows& sub_words, int64_t n_names, int32_t n_labels)
        : rows_(sub_words),
          sums_(static_cast<size_t>(n_names), NameMatch{}),
          touched_(n_names),
          n_labels_(n_labels) {}

    void ask(const NameIndexView& index, int64_t row) {
        rows_.each(row, [&](int32_t sub_word, float value) { add(index, sub_word, value); });
        labels_.clear();
        matches_.clear();
        touched_.drain([&](uint32_t name) {
            const float norm = index.norms[name];
            const int32_t label = index.owners[name];
            if (label < 0 || label >= n_labels_) damaged("a label out of range");
            if (!(norm > 0)) damaged("a name of no length");
            const NameMatch sums = std::exchange(sums_[name], NameMatch{});
            const NameMatch its{std::min(sums.coverage / (norm * norm), 1.0f), sums.cosine / norm};
            if (!std::isfinite(its.coverage) || !std::isfinite(its.cosine))
                damaged("weights too large to add up");
            if (labels_.empty() || label > labels_.back()) {
                labels_.push_back(label);
                matches_.push_back(its);
            } else if (label < labels_.back()) {
                damaged("labels out of order");
            } else if (its.merit() > matches_.back().merit()) {  // of equal ones the first counts
                matches_.back() = its;
            }
        });
    }
    // Calls visit(label, merit) for each label that the row has enough of.
    template <typename Visit>
    void each(Visit&& visit) const {
        for (size_t i = 0; i < labels_.size(); ++i)
            if (matches_[i].coverage >= kLeastCoverage) visit(labels_[i], matches_[i].merit());
    }
    NameMatch match(int32_t label) const {
        const auto at = std::lower_bound(labels_.begin(), labels_.end(), label);
        if (at == labels_.end() || *at != label) return {};
        return matches_[static_cast<size_t>(at - labels_.begin())];
    }
    // The largest of any label.
    float best_cosine() const {
        float best = 0;
        for (const NameMatch& its : matches_) best = std::max(best, its.cosine);
        return best;
    }

  private:
    void add(const NameIndexView& index, int32_t sub_word, float value) {
        const Range entries{index.offsets[sub_word], index.offsets[sub_word + 1]};
        if (entries.begin < 0 || entries.end < entries.begin || entries.end > index.n_entries)
            damaged("offsets out of range");
        const float idf = index.idf[sub_word], square = idf * idf, product = idf * value;
        if (!(square > 0) || !std::isfinite(product)) damaged("an idf that is not positive");
        index.names.with([&](const auto* names) {
            for (int64_t e = entries.begin; e < entries.end; ++e) {
                const auto name = static_cast<uint32_t>(names[e]);
                if (name >= sums_.size()) damaged("a name out of range");
                touched_.add(name);
                sums_[name].coverage += square;
                sums_[name].cosine += product;
            }
        });
    }
    [[noreturn]] static void damaged(const char* what) {
        throw BrokenModel(std::string("The index of names is damaged: ") + what + ".");
    }

    UnitRows rows_;
    std::vector<NameMatch> sums_;  // by name, until the row is done
    NumberSet touched_;            // names
    int32_t n_labels_;
    std::vector<int32_t> labels_;  // that the row has something of, ascending
    std::vector<NameMatch> matches_;
};

}  // namespace ldsm
