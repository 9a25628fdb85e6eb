#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "label_vectors.hpp"
#include "random.hpp"
#include "unit_rows.hpp"

namespace ldsm {

namespace {

// The classifier that the held-out rows meet need not be as exact as the final one, which goes on
// from it: a rougher one gives nearly the same margins and spares most of a second training.
constexpr double kHeldOutTolerance = 2;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One label at a time in weights over all features; only what was touched is cleared.
class DenseWeights {
  public:
    explicit DenseWeights(int32_t n_features)
        : values_(static_cast<size_t>(n_features) + 1, 0.0f),
          touched_(values_.size() / 64 + 1, 0) {}

    float* data() { return values_.data(); }
    void touch(int32_t feature) { touched_[feature >> 6] |= uint64_t{1} << (feature & 63); }

    // Appends the touched weights of at least `prune`, features ascending, and starts again from 0.
    void give(float prune, LabelVectors& out) {
        for (size_t word = 0; word < touched_.size(); ++word) {
            for (uint64_t bits = touched_[word]; bits != 0; bits &= bits - 1) {
                const auto feature = static_cast<int32_t>(64 * word + std::countr_zero(bits));
                float& weight = values_[feature];
                if (weight != 0 && std::fabs(weight) >= prune) {
                    out.features.push_back(feature);
                    out.weights.push_back(weight);
                }
                weight = 0;
            }
            touched_[word] = 0;
        }
        out.offsets.push_back(static_cast<int64_t>(out.features.size()));
    }

  private:
    std::vector<float> values_;
    std::vector<uint64_t> touched_;  // one bit per feature
};

// The rows of one label, scaled and copied side by side: they are passed many times in random
// order, and where they lie in X each would cost its own way through the page tables.
class GatheredRows {
  public:
    struct Entry {
        int32_t feature;
        float value;
    };

    void gather(const UnitRows& x, const int32_t* rows, int64_t count) {
        offsets_.assign(1, 0);
        entries_.clear();
        for (int64_t i = 0; i < count; ++i) {
            x.each(rows[i],
                   [&](int32_t feature, float value) { entries_.push_back({feature, value}); });
            offsets_.push_back(static_cast<int64_t>(entries_.size()));
        }
    }
    const Entry* begin(int32_t i) const { return entries_.data() + offsets_[i]; }
    const Entry* end(int32_t i) const { return entries_.data() + offsets_[i + 1]; }

    // Four partial sums: independent chains, in one fixed order of additions.
    float product(int32_t i, const float* weights) const {
        const Entry* e = begin(i);
        const Entry* const last = end(i);
        float a = 0, b = 0, c = 0, d = 0;
        for (; e + 4 <= last; e += 4) {
            a += e[0].value * weights[e[0].feature];
            b += e[1].value * weights[e[1].feature];
            c += e[2].value * weights[e[2].feature];
            d += e[3].value * weights[e[3].feature];
        }
        for (; e < last; ++e) a += e->value * weights[e->feature];
        return (a + c) + (b + d);
    }

  private:
    std::vector<Entry> entries_;
    std::vector<int64_t> offsets_;
};

class LabelTrainer {
  public:
    LabelTrainer(const FeatureRows& x, const uint8_t* held_out, const RankerParams& params,
                 Monitor& monitor)
        : x_(x), held_out_(held_out), params_(params), monitor_(monitor), weights_(x.n_features) {}

    void train(const int32_t* rows, const uint8_t* positive, int64_t count, uint64_t key,
               Ranker& out) {
        positive_ = positive;
        alpha_.assign(static_cast<size_t>(count), 0.0f);
        stepped_.assign(static_cast<size_t>(count), 0);
        active_.clear();
        held_.clear();
        for (int64_t i = 0; i < count; ++i)
            (held_out_ && held_out_[rows[i]] ? held_ : active_).push_back(static_cast<int32_t>(i));
        rows_.gather(x_, rows, count);
        Stream random{key};
        descend(random, held_.empty() ? params_.tolerance : kHeldOutTolerance * params_.tolerance);
        if (!held_.empty()) {
            // As `label_products` would say it, so that the blend learns from what it will meet.
            const float constant = weights_.data()[x_.n_features()];
            for (const int32_t i : held_)
                out.held_out_margins.push_back(x_.product(rows[i], weights_.data()) + constant);
            active_.insert(active_.end(), held_.begin(), held_.end());
            descend(random, params_.tolerance);
        }
        for (int32_t i = 0; i < count; ++i)
            if (stepped_[i])
                for (auto e = rows_.begin(i); e < rows_.end(i); ++e) weights_.touch(e->feature);
        weights_.touch(x_.n_features());
        weights_.give(params_.prune, out.vectors);
    }

  private:
    // Passes over the rows of `active_`, going on from the weights as they are. Rows that keep to
    // the right side of their margin are set aside until the others agree (shrinking).
    void descend(Stream& random, double tolerance) {
        const double diagonal = 0.5 / params_.cost;
        const auto all = static_cast<int64_t>(active_.size());
        int64_t n = all;
        double shrink_above = kInfinity;
        for (int epoch = 0; epoch < params_.max_epochs && all > 0; ++epoch) {
            double highest = -kInfinity, lowest = kInfinity;
            for (int64_t i = n - 1; i > 0; --i)
                std::swap(active_[i], active_[random.below(static_cast<uint64_t>(i) + 1)]);
            for (int64_t at = 0; at < n; ++at) {
                const int32_t i = active_[at];
                const float sign = positive_[i] ? 1.0f : -1.0f;
                const float margin =
                    rows_.product(i, weights_.data()) + weights_.data()[x_.n_features()];
                const double slope = static_cast<double>(sign * margin) - 1 + alpha_[i] * diagonal;
                double projected = slope;
                if (alpha_[i] == 0) {
                    if (slope > shrink_above) {
                        std::swap(active_[at--], active_[--n]);
                        continue;
                    }
                    projected = std::min(slope, 0.0);
                }
                highest = std::max(highest, projected);
                lowest = std::min(lowest, projected);
                if (projected != 0) step(i, sign, slope, diagonal);
            }
            monitor_.check();
            if (highest - lowest > tolerance) {
                shrink_above = highest > 0 ? highest : kInfinity;
                continue;
            }
            if (n == all) return;
            n = all;  // what was set aside is looked at once more
            shrink_above = kInfinity;
        }
    }

    void step(int32_t i, float sign, double slope, double diagonal) {
        const bool empty = rows_.begin(i) == rows_.end(i);
        const double curvature = diagonal + (empty ? 1 : 2);  // the constant 1, and the unit row
        const float before = alpha_[i];
        alpha_[i] = static_cast<float>(std::max(before - slope / curvature, 0.0));
        stepped_[i] = 1;
        const float change = (alpha_[i] - before) * sign;
        float* weights = weights_.data();
        for (auto e = rows_.begin(i); e < rows_.end(i); ++e)
            weights[e->feature] += change * e->value;
        weights[x_.n_features()] += change;
    }

    UnitRows x_;
    const uint8_t* held_out_;
    const RankerParams& params_;
    Monitor& monitor_;
    DenseWeights weights_;
    GatheredRows rows_;
    std::vector<int32_t> active_, held_;
    std::vector<float> alpha_;      // the dual variables
    std::vector<uint8_t> stepped_;  // rows that have changed the weights
    const uint8_t* positive_ = nullptr;
};

}  // namespace

Ranker train_ranker(const FeatureRows& x, const PairsView& pairs, const uint8_t* held_out,
                    const RankerParams& params, uint64_t seed, Monitor& monitor) {
    Ranker out;
    LabelTrainer trainer(x, held_out, params, monitor);
    const uint64_t key = mix(seed ^ 0x72616E6B6572ULL);
    for (int64_t label = 0; label < pairs.n_labels; ++label) {
        const int64_t start = pairs.offsets[label];
        trainer.train(pairs.rows + start, pairs.positive + start, pairs.offsets[label + 1] - start,
                      child_key(key, pairs.first_label + static_cast<uint64_t>(label)), out);
        monitor.report(label + 1);
    }
    return out;
}

LabelVectors train_centroids(const FeatureRows& x, const PairsView& pairs, const uint8_t* left_out,
                             int64_t min_rows, float prune, Monitor& monitor) {
    LabelVectors out;
    const UnitRows rows(x);
    DenseWeights sums(x.n_features);
    std::vector<int32_t> members;
    for (int64_t label = 0; label < pairs.n_labels; ++label) {
        monitor.check();
        members.clear();
        for (int64_t p = pairs.offsets[label]; p < pairs.offsets[label + 1]; ++p)
            if (pairs.positive[p] && !(left_out && left_out[pairs.rows[p]]))
                members.push_back(pairs.rows[p]);
        if (static_cast<int64_t>(members.size()) < min_rows) members.clear();
        const auto size = static_cast<float>(members.size());
        for (const int32_t row : members)
            rows.each(row, [&](int32_t feature, float value) {
                sums.data()[feature] += value / size;
                sums.touch(feature);
            });
        sums.give(prune, out);
        monitor.report(label + 1);
    }
    return out;
}

}  // namespace ldsm
