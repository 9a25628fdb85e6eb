// The labels that go with the features of a row, by an index from features to labels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "common/label_sums.hpp"
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
        : rows_(x), n_labels_(static_cast<uint32_t>(n_labels)), sums_(n_labels) {}

    // `counted`: 1 for each feature that counts as evidence; null: all do.
    void ask(const FeatureIndexView& index, int64_t row, const uint8_t* counted = nullptr) {
        int64_t entries = 0;
        evidence_ = {};
        rows_.each(row, [&](int32_t feature, float) {
            const Range its = index.entries_of(feature);
            entries += its.end - its.begin;
            if (counted == nullptr || counted[feature])
                evidence_.add(kLargestCode * static_cast<double>(index.units[feature]));
        });
        sums_.begin(entries);
        index.labels.with([&](const auto* labels) {
            sums_.fill([&](auto&& add) {
                rows_.each(row, [&](int32_t feature, float value) {
                    add_feature(index, feature, std::fabs(value), labels, add);
                });
            });
        });
        sums_.end();
        // Nothing negative is added: a sum that left the range stays outside.
        sums_.each([](int32_t, float sum) {
            if (!std::isfinite(sum)) damaged_index("weights too large to add up");
        });
    }
    // Calls visit(label, score) for each label with a score.
    template <typename Visit>
    void each(Visit&& visit) const {
        sums_.each(visit);
    }
    float score(int32_t label) const { return sums_.of(label); }
    const Evidence& evidence() const { return evidence_; }

  private:
    static constexpr double kLargestCode = 255;

    template <typename Label, typename Add>
    void add_feature(const FeatureIndexView& index, int32_t feature, float value,
                     const Label* labels, Add& add) {
        const Range entries = index.entries_of(feature);
        const float unit = value * index.units[feature];
        if (!std::isfinite(unit) || unit < 0) damaged_index("a unit that is not a positive number");
        if (unit == 0) return;
        for (int64_t e = entries.begin; e < entries.end; ++e) {
            const auto label = static_cast<uint32_t>(labels[e]);
            if (label >= n_labels_) damaged_index("a label out of range");
            add(label, unit * static_cast<float>(index.codes[e]));
        }
    }

    UnitRows rows_;
    uint32_t n_labels_;
    LabelSums<float> sums_;
    Evidence evidence_;
};

}  // namespace ldsm
