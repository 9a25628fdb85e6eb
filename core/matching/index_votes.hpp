// The labels that go with the features of a row, by an index from features to labels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "common/unit_rows.hpp"
#include "matching/feature_index.hpp"

namespace ldsm {

// The evidence of a row's features: that of a feature is its largest weight.
struct Evidence {
    double most = 0;   // of the best feature
    double total = 0;  // of all together
    void add(double weight) {
        most = std::max(most, weight);
        total += weight;
    }
};

// One row at a time.
class IndexVotes {
  public:
    IndexVotes(const FeatureRows& x, int32_t n_labels)
        : rows_(x), score_(static_cast<size_t>(n_labels), 0.0f) {}

    // `counted`: 1 for each feature that counts as evidence; null: all do.
    void ask(const FeatureIndexView& index, int64_t row, const uint8_t* counted = nullptr) {
        for (const int32_t label : touched_) score_[label] = 0;
        touched_.clear();
        int64_t entries = 0;
        evidence_ = {};
        rows_.each(row, [&](int32_t feature, float) {
            const Range its = index.entries_of(feature);
            entries += its.end - its.begin;
            if (counted == nullptr || counted[feature])
                evidence_.add(kLargestCode * static_cast<double>(index.units[feature]));
        });
        // As for leaves: many entries are cheaper to add up without tracking their labels.
        const bool all = entries >= static_cast<int64_t>(score_.size());
        index.labels.with([&](const auto* labels) {
            rows_.each(row, [&](int32_t feature, float value) {
                all ? add<false>(index, feature, std::fabs(value), labels)
                    : add<true>(index, feature, std::fabs(value), labels);
            });
        });
        if (all)
            for (size_t label = 0; label < score_.size(); ++label)
                if (score_[label] != 0) touched_.push_back(static_cast<int32_t>(label));
        // Nothing negative is added: a sum that left the range stays outside.
        for (const int32_t label : touched_)
            if (!std::isfinite(score_[label])) damaged_index("weights too large to add up");
    }
    // Calls visit(label, score) for each label with a score.
    template <typename Visit>
    void each(Visit&& visit) const {
        for (const int32_t label : touched_) visit(label, score_[label]);
    }
    float score(int32_t label) const { return score_[label]; }
    const Evidence& evidence() const { return evidence_; }

  private:
    static constexpr double kLargestCode = 255;

    template <bool TRACK, typename Label>
    void add(const FeatureIndexView& index, int32_t feature, float value, const Label* labels) {
        const Range entries = index.entries_of(feature);
        const float unit = value * index.units[feature];
        if (!std::isfinite(unit) || unit < 0) damaged_index("a unit that is not a positive number");
        if (unit == 0) return;
        for (int64_t e = entries.begin; e < entries.end; ++e) {
            const auto label = static_cast<uint32_t>(labels[e]);
            if (label >= score_.size()) damaged_index("a label out of range");
            if (TRACK && score_[label] == 0) touched_.push_back(static_cast<int32_t>(label));
            score_[label] += unit * static_cast<float>(index.codes[e]);
        }
    }
    UnitRows rows_;
    std::vector<float> score_;
    std::vector<int32_t> touched_;
    Evidence evidence_;
};

}  // namespace ldsm
