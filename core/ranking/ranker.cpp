#include "ranking/ranker.hpp"

#include <algorithm>
#include <limits>

#include "common/partial_sums.hpp"
#include "common/random.hpp"
#include "common/unit_rows.hpp"

namespace ldsm {

namespace {

// The classifier for the held-out rows need not be as exact as the final one, which continues from
// it: a rougher one gives nearly the same margins and saves most of a second training.
constexpr double kHeldOutTolerance = 2;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One in this many of the rows without the label is active from the beginning.
constexpr int64_t kFirstLook = 4;

// Rows scaled and copied side by side: they are read many times in random order, and in X each
// would cost a walk through the page tables.
class GatheredRows {
  public:
    GatheredRows(int32_t, const Kernels&) {}

    void clear() {
        offsets_.assign(1, 0);
        entries_.clear();
    }
    void add(const UnitRows& x, int64_t row) {
        x.each(row, [&](int32_t feature, float value) { entries_.push_back({feature, value}); });
        offsets_.push_back(static_cast<int64_t>(entries_.size()));
    }
    template <typename Take>
    void each(int32_t i, Take&& take) const {
        for (const Entry* e = begin(i); e < end(i); ++e) take(e->feature, e->value);
    }
    float product(int32_t i, const float* weights) const {
        const Entry* e = begin(i);
        return sum_of(end(i) - e, [=](int64_t at) { return e[at].value * weights[e[at].feature]; });
    }
    void add_to(int32_t i, float* weights, float change) const {
        each(i, [=](int32_t feature, float value) { weights[feature] += change * value; });
    }
    void prefetch(int32_t i) const {
        constexpr int64_t kEntriesPerLine = 64 / sizeof(Entry);
        for (const Entry* e = begin(i); e < end(i); e += kEntriesPerLine) __builtin_prefetch(e);
    }

  private:
    struct Entry {
        int32_t feature;
        float value;
    };
    const Entry* begin(int32_t i) const { return entries_.data() + offsets_[i]; }
    const Entry* end(int32_t i) const { return entries_.data() + offsets_[i + 1]; }

    std::vector<Entry> entries_;
    std::vector<int64_t> offsets_;
};

// The same for rows that have most features: a value for each, without numbers of features. Sums
// run in 16 partial sums, because four would be a long chain of additions.
class FullRows {
  public:
    FullRows(int32_t n_features, const Kernels& kernels)
        : width_(n_features),
          stride_((n_features + kLanes - 1) / kLanes * kLanes),
          kernels_(kernels) {}

    void clear() { values_.clear(); }
    void add(const UnitRows& x, int64_t row) {
        const size_t start = values_.size();
        values_.resize(start + static_cast<size_t>(stride_), 0.0f);
        x.each(row, [&](int32_t feature, float value) { values_[start + feature] = value; });
    }
    template <typename Take>
    void each(int32_t i, Take&& take) const {
        const float* values = row(i);
        for (int32_t f = 0; f < width_; ++f)
            if (values[f] != 0) take(f, values[f]);
    }
    // `weights` has a few more numbers than there are features.
    float product(int32_t i, const float* weights) const {
        return kernels_.full_product(row(i), weights, stride_);
    }
    void add_to(int32_t i, float* weights, float change) const {
        kernels_.full_add(weights, row(i), change, stride_);
    }
    void prefetch(int32_t i) const {
        for (int64_t at = 0; at < stride_; at += kLanes) __builtin_prefetch(row(i) + at);
    }

  private:
    static constexpr int64_t kLanes = DenseWeights::kSpare;
    const float* row(int32_t i) const { return values_.data() + i * stride_; }

    int32_t width_;
    int64_t stride_;
    const Kernels& kernels_;
    std::vector<float> values_;
};

// Most rows without a label are classified correctly without being learned from. They stay in X;
// only those that the weights get wrong are copied and join the descent.
template <typename Rows>
class LabelTrainer {
  public:
    LabelTrainer(const FeatureRows& x, const uint8_t* held_out, const RankerParams& params,
                 const Kernels& kernels, Monitor& monitor)
        : x_(x),
          held_out_(held_out),
          params_(params),
          monitor_(monitor),
          weights_(x.n_features, params.form),
          rows_(x.n_features, kernels),
          stored_(static_cast<size_t>(x.n_features) + 1, 0.0f) {}

    // Starts from the weights of a label, which resist more if they come from more rows.
    void start(const RankerStart& from, int64_t label) {
        const StoredWeights& stored = from.vectors;
        Range entries;
        if (label < 0 || label >= stored.n_vectors || !stored.entries_of(label, entries))
            damaged_start();
        squares_ = from.squares;
        firmness_ = static_cast<float>(from.firmness[label]);
        rows_before_ = static_cast<float>(from.rows[label]);
        const VectorWeights weights(stored, label);
        const bool known = stored.each_feature(entries, [&](int64_t e, uint32_t feature) {
            const float weight = weights.at(e);
            if (weight == 0) return;  // bridges a gap
            weights_.data()[feature] = weight;
            weights_.touch(static_cast<int32_t>(feature));
        });
        if (!known) damaged_start();
    }

    void train(const int32_t* rows, const uint8_t* positive, int64_t count, uint64_t key,
               Ranker& out) {
        rows_.clear();
        sign_.clear();
        alpha_.clear();
        stepped_.clear();
        curvature_.clear();
        active_.clear();
        waiting_.clear();
        held_.clear();
        for (int64_t i = 0; i < count; ++i) {
            if (held_out_ && held_out_[rows[i]])
                held_.push_back(i);
            else if (positive[i] || i % kFirstLook == 0)
                join(rows[i], positive[i]);
            else
                waiting_.push_back(rows[i]);
        }
        Stream random{key};
        learn(random, held_.empty() ? params_.tolerance : kHeldOutTolerance * params_.tolerance);
        if (!held_.empty()) {
            measure_held_out(rows, out);
            for (const int64_t i : held_) {
                if (positive[i])
                    join(rows[i], true);
                else
                    waiting_.push_back(rows[i]);
            }
            learn(random, params_.tolerance);
        }
        touch_weights();
        weights_.give(out.vectors);
    }

  private:
    [[noreturn]] static void damaged_start() {
        throw BrokenModel("The weights to start from are damaged.");
    }

    void join(int32_t row, bool positive) {
        active_.push_back(static_cast<int32_t>(sign_.size()));
        rows_.add(x_, row);
        sign_.push_back(positive ? 1.0f : -1.0f);
        alpha_.push_back(0);
        stepped_.push_back(0);
        // The constant 1, and the unit row.
        const auto i = static_cast<int32_t>(curvature_.size());
        if (squares_ == nullptr) {
            curvature_.push_back(x_.length(row) == 0 ? 1 : 2);
            return;
        }
        float sum = ease_of_constant();
        rows_.each(i, [&](int32_t feature, float value) { sum += value * value * ease(feature); });
        curvature_.push_back(sum);
    }

    // How easily a weight is moved.
    float ease(int32_t feature) const { return 1 / (1 + firmness_ * squares_[feature]); }
    float ease_of_constant() const { return 1 / (1 + rows_before_); }

    float constant() { return weights_.data()[x_.n_features()]; }

    void learn(Stream& random, double tolerance) {
        descend(random, tolerance);
        size_t n_waiting = 0;
        const size_t n_before = sign_.size();
        for (const int32_t row : waiting_) {
            if (x_.product(row, weights_.data()) + constant() > -1)
                join(row, false);
            else
                waiting_[n_waiting++] = row;
        }
        waiting_.resize(n_waiting);
        monitor_.check();
        if (sign_.size() > n_before) descend(random, tolerance);
    }

    // Margins as the stored weights will give them, so that the blend learns from what it will see.
    void measure_held_out(const int32_t* rows, Ranker& out) {
        touch_weights();
        weights_.each_stored([&](int32_t f, float weight, float) { stored_[f] = weight; });
        for (const int64_t i : held_)
            out.held_out_margins.push_back(x_.product(rows[i], stored_.data()) +
                                           stored_[x_.n_features()]);
        weights_.each_stored([&](int32_t f, float, float) { stored_[f] = 0; });
    }

    void touch_weights() {
        for (int32_t i = 0; i < static_cast<int32_t>(sign_.size()); ++i)
            if (stepped_[i])
                rows_.each(i, [&](int32_t feature, float) { weights_.touch(feature); });
        weights_.touch(x_.n_features());
    }

    // Passes over the rows of `active_`, starting from the current weights. Rows that stay on the
    // right side of their margin are set aside until the others converge (shrinking).
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
                if (at + 2 < n) rows_.prefetch(active_[at + 2]);
                const float margin = rows_.product(i, weights_.data()) + constant();
                const double slope =
                    static_cast<double>(sign_[i] * margin) - 1 + alpha_[i] * diagonal;
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
                if (projected != 0) step(i, slope, diagonal);
            }
            monitor_.check();
            if (highest - lowest > tolerance) {
                shrink_above = highest > 0 ? highest : kInfinity;
                continue;
            }
            if (n == all) return;
            n = all;  // check once more what was set aside
            shrink_above = kInfinity;
        }
    }

    void step(int32_t i, double slope, double diagonal) {
        const double curvature = diagonal + curvature_[i];
        const float before = alpha_[i];
        alpha_[i] = static_cast<float>(std::max(before - slope / curvature, 0.0));
        stepped_[i] = 1;
        const float change = (alpha_[i] - before) * sign_[i];
        float* weights = weights_.data();
        if (squares_ == nullptr) {
            rows_.add_to(i, weights, change);
            weights[x_.n_features()] += change;
            return;
        }
        rows_.each(i, [&](int32_t feature, float value) {
            weights[feature] += change * value * ease(feature);
        });
        weights[x_.n_features()] += change * ease_of_constant();
    }

    UnitRows x_;
    const uint8_t* held_out_;
    const RankerParams& params_;
    Monitor& monitor_;
    const float* squares_ = nullptr;  // of each feature's values in rows before, or null
    float firmness_ = 0;
    float rows_before_ = 0;
    DenseWeights weights_;
    Rows rows_;
    std::vector<float> stored_;  // the weights as they are stored; all zero between uses
    std::vector<int64_t> held_;  // pairs of rows held out
    std::vector<int32_t> waiting_;
    // Of the gathered rows:
    std::vector<int32_t> active_;
    std::vector<float> sign_;
    std::vector<float> alpha_;  // the dual variables
    std::vector<float> curvature_;
    std::vector<uint8_t> stepped_;  // rows that have changed the weights
};

// Rows with at least this share of the features are laid out in full.
constexpr double kFullShare = 0.5;

template <typename Rows>
Ranker trained(const FeatureRows& x, const PairsView& pairs, const uint8_t* held_out,
               const RankerParams& params, const RankerStart* start, uint64_t seed,
               const Kernels& kernels, Monitor& monitor) {
    Ranker out;
    LabelTrainer<Rows> trainer(x, held_out, params, kernels, monitor);
    const uint64_t key = mix(seed ^ 0x72616E6B6572ULL);
    for (int64_t label = 0; label < pairs.n_labels; ++label) {
        const int64_t first = pairs.offsets[label];
        const int64_t number = pairs.first_label + label;
        if (start != nullptr) trainer.start(*start, number);
        trainer.train(pairs.rows + first, pairs.positive + first, pairs.offsets[label + 1] - first,
                      child_key(key, static_cast<uint64_t>(number)), out);
        monitor.report(label + 1);
    }
    return out;
}

}  // namespace

Ranker train_ranker(const FeatureRows& x, const PairsView& pairs, const uint8_t* held_out,
                    const RankerParams& params, const RankerStart* start, uint64_t seed,
                    const Kernels& kernels, Monitor& monitor) {
    const auto n_values = static_cast<double>(x.indptr[x.n_rows] - x.indptr[0]);
    const double all = static_cast<double>(x.n_rows) * x.n_features;
    const auto train = n_values >= kFullShare * all ? trained<FullRows> : trained<GatheredRows>;
    return train(x, pairs, held_out, params, start, seed, kernels, monitor);
}

}  // namespace ldsm
