#include <algorithm>
#include <limits>

#include "dense_weights.hpp"
#include "partial_sums.hpp"
#include "random.hpp"
#include "second_stage.hpp"
#include "unit_rows.hpp"

namespace ldsm {

namespace {

// The classifier that the held-out rows meet need not be as exact as the final one, which goes on
// from it: a rougher one gives nearly the same margins and spares most of a second training.
constexpr double kHeldOutTolerance = 2;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

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

    float product(int32_t i, const float* weights) const {
        const Entry* e = begin(i);
        return sum_of(end(i) - e, [=](int64_t at) { return e[at].value * weights[e[at].feature]; });
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
            shuffle(active_.data(), n, random);
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

}  // namespace ldsm
