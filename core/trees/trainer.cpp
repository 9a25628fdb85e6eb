#include "trees/trainer.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ldsm {

namespace {

// Of what the favoured direction gets: less counts as nothing. Saves up to a third of the training.
constexpr double kOneSided = 0.05;

// Some child empty, or some child with all the rows.
bool degenerate(const std::vector<uint8_t>& directions, int arity) {
    int64_t count[kMaxArity] = {};
    for (const uint8_t d : directions)
        for (int m = 0; m < arity; ++m) count[m] += (d >> m) & 1;
    const auto n = static_cast<int64_t>(directions.size());
    return std::any_of(count, count + arity, [n](int64_t c) { return c == 0 || c == n; });
}

// As `keep ? weight : 0`, which compilers turn into a branch.
float weight_if(bool keep, float weight) {
    uint32_t bits;
    std::memcpy(&bits, &weight, sizeof bits);
    bits &= 0 - static_cast<uint32_t>(keep);
    std::memcpy(&weight, &bits, sizeof bits);
    return weight;
}

// Sorts by the upper halves, digit by digit, in a third of the time of std::sort.
void sort_by_feature(std::vector<uint64_t>& keys) {
    constexpr int kBits = 9;
    constexpr size_t kDigits = size_t{1} << kBits;
    uint64_t any = 0;
    for (const uint64_t key : keys) any |= key;
    std::vector<uint64_t> other(keys.size());
    for (int shift = 32; shift < 64 && (any >> shift) != 0; shift += kBits) {
        size_t at[kDigits + 1] = {};
        for (const uint64_t key : keys) ++at[(key >> shift) % kDigits + 1];
        for (size_t d = 0; d < kDigits; ++d) at[d + 1] += at[d];
        for (const uint64_t key : keys) other[at[(key >> shift) % kDigits]++] = key;
        keys.swap(other);
    }
}

}  // namespace

Trainer::Trainer(const FeatureRows& x, const LabelRows& y, const TreeParams& params,
                 const Memory& memory, const Kernels& kernels, Monitor& monitor)
    : params_(params),
      kernels_(kernels),
      monitor_(monitor),
      form_{x.n_features, params.compress, params.arity},
      width_(padded_width(params.arity)),
      tracks_scales_(params.optimizer == Optimizer::kNag && (params.standardize || !x.all_unit)),
      rows_(x, y, params.standardize, tracks_scales_, memory.limit / 4) {}

// Algorithm 4. What is done with each row is RowTrainer's (simd/row_trainer.hpp): choose directions
// (Algorithm 3), take a step of each regressor, count the clamped margins. What the paper does not
// have are the attempts: a split that leaves a child empty is tried again with half of lambda 1.
Generator<TrainingRun> Trainer::train_regressors(const Rows& rows, uint64_t key, Split& out) {
    const auto n = static_cast<int64_t>(rows.size());
    rows_.begin(rows);
    fits_ = rows_.block_end(rows, 0) == n;
    if (fits_) rows_.fill(rows, 0, n);
    state_.random_counter = 0;  // it continues: a new attempt draws new numbers

    double integrity_weight = params_.integrity_weight;
    for (int attempt = 0; attempt <= params_.relaxations; ++attempt, integrity_weight /= 2) {
        begin_attempt(key);
        out.epoch_objective.clear();
        bool hopeless = false;
        for (int epoch = 0; epoch < params_.n_epochs && !hopeless; ++epoch) {
            const bool averaging =
                params_.optimizer == Optimizer::kAsgd && epoch + 1 == params_.n_epochs;
            const StepParams step{integrity_weight, params_.multiway_penalty, params_.learning_rate,
                                  averaging};
            for (int64_t from = 0, to = 0; from < n; from = to) {
                to = read_block(rows, from);
                extend();
                if (tracks_scales_ && (epoch == 1 || (epoch > 1 && !fits_))) apply_scales();
                TrainingRun run{rows_.view(), 0, to - from, &state_, step};
                if (tracks_scales_ && epoch == 0)
                    train_tracking_scales(run);
                else
                    co_yield run;  // each row of the block passes through RowTrainer
            }
            out.epoch_objective.push_back(static_cast<float>(objective(integrity_weight)));
            hopeless = attempt < params_.relaxations && one_sided();
        }
        if (hopeless || !collect_weights(out)) continue;
        route(rows, out.directions);
        if (degenerate(out.directions, params_.arity)) continue;
        out.integrity_weight = integrity_weight;
        out.found = true;
        co_return;
    }
}

// All sums and weights from 0.
void Trainer::begin_attempt(uint64_t key) {
    const uint64_t drawn = state_.random_counter;
    state_ = {};
    state_.arity = params_.arity;
    state_.random_key = key;
    state_.random_counter = drawn;
    cells_.clear();
    mass_.clear();
    scales_.clear();
}

// Reads the rows from `from` on that fit the memory of one block, and returns where they end. A
// node that fits whole has been read when it was begun.
int64_t Trainer::read_block(const Rows& rows, int64_t from) {
    if (fits_) return static_cast<int64_t>(rows.size());
    const int64_t to = rows_.block_end(rows, from);
    rows_.fill(rows, from, to);
    return to;
}

// Makes room for the features and labels that the current block brought in, all zero.
void Trainer::extend() {
    cells_.resize(static_cast<size_t>(rows_.n_features()) * 2 * width_, 0.0f);
    const int per_label = params_.arity == 2 ? 1 : width_;
    mass_.resize(static_cast<size_t>(rows_.n_labels()) * per_label, 0.0);
    if (tracks_scales_) scales_.resize(rows_.n_features(), 0.0f);
    state_.cells = cells_.data();
    state_.mass = mass_.data();
}

// The first epoch of NAG: each row can change the scales that the next one is divided by, so rows
// pass one by one, and no other node is trained beside.
void Trainer::train_tracking_scales(TrainingRun& run) {
    const auto train_one = kernels_.train(params_.optimizer).one[params_.arity];
    while (run.from < run.to) {
        if (run.from % 256 == 0) monitor_.check();
        if (run.rows.label_count[run.from] != 0) track_scales(run.from);
        train_one(run, 1);
    }
}

// NAG works on x / s, with s the largest |x| of the feature so far, and on weights times s: the
// paper's rescaling of a weight when s grows then leaves this weight as it is, and only the sum of
// squared gradients, kept in units of 1/s^2, changes.
void Trainer::track_scales(int64_t row) {
    const CompactRows view = rows_.view();
    const float* raw = rows_.raw_values().data();
    float* value = rows_.scaled_values().data();
    double square = 0;
    for (int64_t i = view.start[row]; i < view.start[row + 1]; ++i) {
        const uint32_t f = view.feature[i];
        const float size = std::fabs(raw[i]);
        if (size > scales_[f]) {
            const float ratio = scales_[f] / size;
            float* sums = cells_.data() + static_cast<int64_t>(f) * 2 * width_ + width_;
            for (int m = 0; m < width_; ++m) sums[m] *= ratio * ratio;
            scales_[f] = size;
        }
        value[i] = scales_[f] > 0 ? raw[i] / scales_[f] : 0.0f;
        square += static_cast<double>(value[i]) * value[i];
    }
    rows_.squared_norms()[row] = square;
}

// After the first epoch the scales are final, so the division can be done once for all.
void Trainer::apply_scales() {
    const CompactRows view = rows_.view();
    const float* raw = rows_.raw_values().data();
    float* value = rows_.scaled_values().data();
    for (int64_t row = 0; row < view.n_rows; ++row) {
        double square = 0;
        for (int64_t i = view.start[row]; i < view.start[row + 1]; ++i) {
            const float s = scales_[view.feature[i]];
            value[i] = s > 0 ? raw[i] / s : 0.0f;
            square += static_cast<double>(value[i]) * value[i];
        }
        rows_.squared_norms()[row] = square;
    }
}

// Some direction gets next to nothing: the split will leave a child empty, and later epochs are
// wasted.
bool Trainer::one_sided() const {
    const auto [least, most] = std::minmax_element(state_.reached, state_.reached + params_.arity);
    return *least < kOneSided * *most;
}

// J of Eq. 1 with the training accumulators in the place of the probabilities.
double Trainer::objective(double integrity_weight) const {
    const NodeState& state = state_;
    if (state.labels_seen == 0) return 0;
    const int arity = params_.arity;
    double balance = 0, integrity = 0, total = 0;
    for (int j = 0; j < arity; ++j) {
        total += state.reached[j];
        for (int l = j + 1; l < arity; ++l)
            balance += std::fabs(state.reached[j] - state.reached[l]);
    }
    for (uint32_t k = kPadLabel + 1; k < rows_.n_labels(); ++k) {
        if (arity == 2) {
            integrity += std::fabs(mass_[k]);
            continue;
        }
        const double* a = mass_.data() + static_cast<size_t>(k) * width_;
        for (int j = 0; j < arity; ++j)
            for (int l = j + 1; l < arity; ++l) integrity += std::fabs(a[j] - a[l]);
    }
    return (balance - integrity_weight * integrity +
            params_.multiway_penalty * std::fabs(total - state.labels_seen)) /
           state.labels_seen;
}

float Trainer::final_weight(uint32_t feature, int direction) const {
    const float* cell = cells_.data() + static_cast<size_t>(feature) * 2 * width_;
    float weight = cell[direction];
    if (params_.optimizer == Optimizer::kAsgd && state_.averaged_rows > 0)
        weight -= cell[width_ + direction] / static_cast<float>(state_.averaged_rows);
    if (tracks_scales_ && scales_[feature] > 0) weight /= scales_[feature];
    return weight;
}

// The final weights, pruned and sorted by global feature; false if any is not finite.
bool Trainer::collect_weights(Split& out) {
    const int arity = params_.arity;
    const uint32_t n_local = rows_.n_features();
    // One group of zeros for the padding, and slack for kernels that load whole vectors.
    weights_.assign(static_cast<size_t>(n_local) * width_ + 8, 0.0f);
    double most = 0;  // that a feature can add to a margin
    bool finite = true;
    for (uint32_t f = kBiasFeature; f < n_local; ++f) {
        const double largest = f == kBiasFeature ? 0.0 : rows_.largest_value(f);
        for (int m = 0; m < arity; ++m) {
            const float weight = final_weight(f, m);
            finite &= std::isfinite(weight);
            weights_[static_cast<size_t>(f) * width_ + m] = weight;
            most = std::max(most, std::fabs(weight) * largest);
        }
    }
    if (!finite) return false;
    std::vector<uint64_t> kept = prune(most);
    each_weight_array(out, [](auto& numbers) { numbers.clear(); });
    if (params_.compress) out.weights.unit = round_weights(kept);
    sort_by_feature(kept);
    out.weights.features.reserve(kept.size());
    if (!params_.compress) out.weights.weights.reserve(kept.size() * static_cast<size_t>(arity));
    for (const uint64_t key : kept) {
        const auto f = static_cast<uint32_t>(key);
        const auto global = static_cast<int32_t>(key >> 32);
        out.weights.add(form_, global, weights_.data() + static_cast<size_t>(f) * width_);
        if (!params_.standardize) continue;
        const size_t before = out.weights.features.size() - 1;
        out.mean.resize(before, 0.0f);  // of the entries that bridge a gap
        out.scale.resize(before, 0.0f);
        const bool bias = f == kBiasFeature;
        out.mean.push_back(bias ? 0.0f : rows_.standardizer().mean[global]);
        out.scale.push_back(bias ? 1.0f : rows_.standardizer().scale[global]);
    }
    return true;
}

// Sets small weights to 0: those below 0.001 and 1 / D, and those that can add little beside the
// strongest feature, which can add `most`. Returns the features that are left, as global number,
// then local number: they sort by the first.
std::vector<uint64_t> Trainer::prune(double most) {
    const double least = std::min(1e-3, 1.0 / std::max(1, form_.n_features));
    // Which weights are dropped cannot be predicted: without branches.
    const int arity = params_.arity;
    const uint32_t n_local = rows_.n_features();
    std::vector<uint64_t> kept(n_local);
    size_t n_kept = 0;
    for (uint32_t f = kBiasFeature; f < n_local; ++f) {
        const double largest = f == kBiasFeature ? INFINITY : rows_.largest_value(f);
        bool any = false;
        for (int m = 0; m < arity; ++m) {
            float& weight = weights_[static_cast<size_t>(f) * width_ + m];
            const double size = std::fabs(weight);
            const bool keep = (size >= least) & (size * largest >= params_.prune_share * most);
            weight = weight_if(keep, weight);
            any |= keep;
        }
        kept[n_kept] = static_cast<uint64_t>(rows_.global_feature(f)) << 32 | f;
        n_kept += any;
    }
    kept.resize(n_kept);
    return kept;
}

// Rounds the weights and drops the features that become 0. Returns the unit. The rows are routed by
// the rounded weights, so the counts in the leaves are exact.
float Trainer::round_weights(std::vector<uint64_t>& kept) {
    const auto weights_of = [&](uint64_t key) {
        return weights_.data() + static_cast<size_t>(static_cast<uint32_t>(key)) * width_;
    };
    float largest = 0;
    for (const uint64_t key : kept)
        for (int m = 0; m < params_.arity; ++m)
            largest = std::max(largest, std::fabs(weights_of(key)[m]));
    const float unit = byte_unit(largest);
    size_t n_kept = 0;
    for (const uint64_t key : kept) {
        float* weights = weights_of(key);
        bool any = false;
        for (int m = 0; m < params_.arity; ++m) {
            weights[m] = rounded(weights[m], unit);
            any |= weights[m] != 0;
        }
        kept[n_kept] = key;
        n_kept += any;
    }
    kept.resize(n_kept);
    return unit;
}

// The first half of Algorithm 5: which children each row goes to.
void Trainer::route(const Rows& rows, std::vector<uint8_t>& directions) {
    const auto n = static_cast<int64_t>(rows.size());
    const RowMargins kernel = kernels_.margins[params_.arity];
    directions.resize(rows.size());
    for (int64_t from = 0, to = 0; from < n; from = to) {
        to = read_block(rows, from);
        const CompactRows view = rows_.view();
        const float* raw = rows_.raw_values().data();
        for (int64_t row = 0; row < view.n_rows; ++row) {
            float margins[kMaxArity];
            const int64_t start = view.start[row];
            kernel(weights_.data(), view.feature + start, raw + start, view.start[row + 1] - start,
                   margins);
            directions[from + row] = directions_of(margins, params_.arity);
        }
        monitor_.check();
    }
}

}  // namespace ldsm
