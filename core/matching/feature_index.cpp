#include "matching/feature_index.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "common/random.hpp"
#include "common/unit_rows.hpp"

namespace ldsm {

namespace {

// A feature seen in few rows proves little: this mass is assumed in rows without the label.
constexpr double kPriorMass = 2;

// The entries of X by feature, for the features from `first` up to, but not including, `last`.
class ByFeature {
  public:
    struct Entry {
        int32_t row;
        float value;  // without its sign: hashed features may have any
    };

    ByFeature(const FeatureRows& x, int32_t first, int32_t last)
        : first_(first), start_(static_cast<size_t>(last - first) + 1, 0) {
        const UnitRows rows(x);
        const auto wanted = [=](int32_t feature) { return feature >= first && feature < last; };
        for (int64_t i = x.indptr[0]; i < x.indptr[x.n_rows]; ++i)
            if (wanted(x.indices[i])) ++start_[x.indices[i] - first + 1];
        std::partial_sum(start_.begin(), start_.end(), start_.begin());
        entries_.resize(static_cast<size_t>(start_.back()));
        std::vector<int64_t> next(start_.begin(), start_.end() - 1);
        for (int64_t row = 0; row < x.n_rows; ++row)
            rows.each(row, [&](int32_t feature, float value) {
                if (wanted(feature))
                    entries_[next[feature - first]++] = {static_cast<int32_t>(row),
                                                         std::fabs(value)};
            });
    }
    const Entry* begin(int32_t feature) const { return entries_.data() + start_[feature - first_]; }
    const Entry* end(int32_t feature) const { return begin(feature + 1); }

  private:
    int32_t first_;
    std::vector<int64_t> start_;
    std::vector<Entry> entries_;
};

struct Weighed {
    float weight;
    int32_t label;
    bool operator<(const Weighed& other) const {  // largest first; equal: lower label
        return weight != other.weight ? weight > other.weight : label < other.label;
    }
};

// `round` turns a multiple of the unit into a code.
template <typename Round>
void append(std::vector<Weighed>& found, int64_t keep, FeatureIndex& out, Round&& round) {
    if (static_cast<int64_t>(found.size()) > keep) {
        std::nth_element(found.begin(), found.begin() + keep, found.end());
        found.resize(static_cast<size_t>(keep));
    }
    float largest = 0;
    for (const Weighed& w : found) largest = std::max(largest, w.weight);
    const float unit = largest / 255;
    if (unit < std::numeric_limits<float>::min()) found.clear();  // too small to store
    std::sort(found.begin(), found.end(),
              [](const Weighed& a, const Weighed& b) { return a.label < b.label; });
    for (const Weighed& w : found) {
        const long code = round(w.weight / unit);
        if (code == 0) continue;
        out.labels.push_back(w.label);
        out.codes.push_back(static_cast<uint8_t>(code));
    }
    out.units.push_back(unit);
    out.offsets.push_back(static_cast<int64_t>(out.labels.size()));
}

}  // namespace

std::vector<FeatureIndex> train_feature_indexes(const FeatureRows& x, const LabelRows& y,
                                                int32_t first, int32_t last, const uint8_t* fold,
                                                int n_folds, int64_t keep, Monitor& monitor) {
    std::vector<double> lift(static_cast<size_t>(y.n_labels), 0.0);
    for (int64_t i = y.indptr[0]; i < y.indptr[y.n_rows]; ++i) ++lift[y.indices[i]];
    for (double& count : lift)
        count = count > 0 ? std::sqrt(std::sqrt(static_cast<double>(x.n_rows) / count)) : 0;
    const ByFeature columns(x, first, last);
    std::vector<FeatureIndex> out(static_cast<size_t>(n_folds) + 1);
    const int width = n_folds + 1;  // the last is the sum over all folds
    std::vector<double> mass(static_cast<size_t>(width)), sums(lift.size() * width, 0.0);
    std::vector<int32_t> touched;
    std::vector<Weighed> found;
    for (int32_t f = first; f < last; ++f) {
        if (f % 256 == 0) monitor.check();
        std::fill(mass.begin(), mass.end(), 0.0);
        for (const auto* entry = columns.begin(f); entry < columns.end(f); ++entry) {
            if (entry->value == 0) continue;  // too small beside the row's other values
            const int in = fold[entry->row];
            mass[in] += entry->value;
            mass[n_folds] += entry->value;
            for (int64_t l = y.indptr[entry->row]; l < y.indptr[entry->row + 1]; ++l) {
                double* sum = sums.data() + static_cast<size_t>(y.indices[l]) * width;
                if (sum[n_folds] == 0) touched.push_back(y.indices[l]);
                sum[in] += entry->value;
                sum[n_folds] += entry->value;
            }
        }
        for (int variant = 0; variant < width; ++variant) {
            const bool all = variant == n_folds;
            const double whole = mass[n_folds] - (all ? 0 : mass[variant]) + kPriorMass;
            found.clear();
            for (const int32_t label : touched) {
                const double* sum = sums.data() + static_cast<size_t>(label) * width;
                const double own = sum[n_folds] - (all ? 0 : sum[variant]);
                const auto weight = static_cast<float>(own / whole * lift[label]);
                // Differences of equal sums may not be quite 0.
                if (own > 1e-9 * sum[n_folds] && weight > 0) found.push_back({weight, label});
            }
            append(found, keep, out[variant], [](float multiple) { return std::lrint(multiple); });
        }
        for (const int32_t label : touched)
            std::fill_n(sums.data() + static_cast<size_t>(label) * width, width, 0.0);
        touched.clear();
    }
    return out;
}

FeatureIndex extend_feature_index(const FeatureIndexView& before, const float* masses,
                                  const FeatureRows& x, const LabelRows& y,
                                  const double* lift_before, const double* lift_after, int64_t keep,
                                  uint64_t seed, Monitor& monitor) {
    const ByFeature columns(x, 0, x.n_features);
    FeatureIndex out;
    out.labels.reserve(static_cast<size_t>(before.n_entries));
    out.codes.reserve(static_cast<size_t>(before.n_entries));
    std::vector<double> sums(static_cast<size_t>(y.n_labels), 0.0);
    std::vector<int32_t> touched;
    std::vector<Weighed> found;
    const auto add = [&](int32_t label, double mass) {
        if (sums[label] == 0) touched.push_back(label);
        sums[label] += mass;
    };
    const uint64_t key = mix(seed ^ 0x696E646578ULL);
    before.labels.with([&](const auto* labels) {
        for (int32_t f = 0; f < x.n_features; ++f) {
            if (f % 256 == 0) monitor.check();
            const Range entries = before.entries_of(f);
            for (int64_t e = entries.begin; e < entries.end; ++e)
                if (static_cast<uint32_t>(labels[e]) >= sums.size())
                    damaged_index("a label out of range");
            if (columns.begin(f) == columns.end(f)) {
                out.labels.insert(out.labels.end(), labels + entries.begin, labels + entries.end);
                out.codes.insert(out.codes.end(), before.codes + entries.begin,
                                 before.codes + entries.end);
                out.units.push_back(before.units[f]);
                out.offsets.push_back(static_cast<int64_t>(out.labels.size()));
                continue;
            }
            double whole = masses[f] + kPriorMass;
            for (int64_t e = entries.begin; e < entries.end; ++e) {
                // The mass of the feature in the rows of the label, as it must have been.
                const double lift = std::max(lift_before[labels[e]], 1e-9);
                add(static_cast<int32_t>(labels[e]),
                    static_cast<double>(before.codes[e]) * before.units[f] * whole / lift);
            }
            for (const auto* entry = columns.begin(f); entry < columns.end(f); ++entry) {
                if (entry->value == 0) continue;
                whole += entry->value;
                for (int64_t l = y.indptr[entry->row]; l < y.indptr[entry->row + 1]; ++l)
                    add(y.indices[l], entry->value);
            }
            found.clear();
            for (const int32_t label : touched) {
                const auto weight = static_cast<float>(sums[label] / whole * lift_after[label]);
                if (std::isfinite(weight) && weight > 0) found.push_back({weight, label});
                sums[label] = 0;
            }
            touched.clear();
            // Rounded up or down at random, so that what a few rows add is not lost every time.
            Stream random{child_key(key, static_cast<uint64_t>(f))};
            append(found, keep, out, [&](float multiple) {
                const float up = static_cast<float>(random.next() >> 40) * 0x1p-24f;
                return std::min(255L, static_cast<long>(multiple + up));
            });
        }
    });
    return out;
}

}  // namespace ldsm
