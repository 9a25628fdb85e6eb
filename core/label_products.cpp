#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "partial_sums.hpp"
#include "second_stage.hpp"
#include "unit_rows.hpp"

namespace ldsm {

namespace {

[[noreturn]] void damaged(int64_t label, const char* what) {
    throw BrokenModel("The second stage is damaged at label " + std::to_string(label) + ": " +
                      what + ".");
}

// The pairs of rows and labels, sorted by label: a label's weights are spread once for all its
// rows.
struct ByLabel {
    explicit ByLabel(const LabelRows& lists, int64_t n_pairs)
        : start(static_cast<size_t>(lists.n_labels) + 1, 0),
          row(static_cast<size_t>(n_pairs)),
          place(static_cast<size_t>(n_pairs)) {
        for (int64_t p = 0; p < n_pairs; ++p) ++start[lists.indices[p] + 1];
        std::partial_sum(start.begin(), start.end(), start.begin());
        std::vector<int64_t> next(start.begin(), start.end() - 1);
        for (int64_t r = 0; r < lists.n_rows; ++r)
            for (int64_t p = lists.indptr[r]; p < lists.indptr[r + 1]; ++p) {
                const int64_t at = next[lists.indices[p]]++;
                row[at] = static_cast<int32_t>(r);
                place[at] = p;
            }
    }
    std::vector<int64_t> start;
    std::vector<int32_t> row;
    std::vector<int64_t> place;
};

// The products of one row with all labels at once, in the order of `UnitRows::product`.
class RowProducts {
  public:
    RowProducts(const ByFeature& weights, const UnitRows& rows, int32_t n_labels)
        : weights_(weights), rows_(rows), sums_(static_cast<size_t>(n_labels) * 4, 0.0f) {}

    void add_up(int64_t row) {
        const int64_t length = rows_.length(row);
        for (int64_t i = 0; i < length; ++i) {
            // What is left over behind the last four goes to the first sum.
            const int64_t lane = i < length / 4 * 4 ? i % 4 : 0;
            const float x = rows_.value(row, i);
            each(rows_.feature(row, i),
                 [&](int32_t label, float weight) { sums_[label * 4 + lane] += x * weight; });
        }
        scale_ = rows_.scale(row);
    }
    float product(int32_t label) const {
        const float* s = sums_.data() + static_cast<size_t>(label) * 4;
        return scale_ * join_sums(s[0], s[1], s[2], s[3]);
    }
    void clear(int64_t row) {
        for (int64_t i = 0; i < rows_.length(row); ++i)
            each(rows_.feature(row, i), [&](int32_t label, float) {
                std::fill_n(sums_.data() + static_cast<size_t>(label) * 4, 4, 0.0f);
            });
    }
    // Calls visit(label, weight) for the vectors that have the feature.
    template <typename Visit>
    void each(int32_t feature, Visit&& visit) const {
        const int64_t end = weights_.offsets[feature + 1];
        for (int64_t e = weights_.offsets[feature]; e < end; ++e)
            visit(weights_.labels[e], weights_.weights[e]);
    }

  private:
    const ByFeature& weights_;
    const UnitRows& rows_;
    float scale_ = 0;
    std::vector<float> sums_;  // four partial sums per label, all zero between rows
};

}  // namespace

ByFeature by_feature(const StoredWeights& vectors) {
    ByFeature out;
    out.offsets.assign(static_cast<size_t>(vectors.last_feature) + 2, 0);
    const auto each_entry = [&](auto&& visit) {
        for (int64_t label = 0; label < vectors.n_vectors; ++label) {
            Range entries;
            if (!vectors.entries_of(label, entries)) damaged(label, "offsets out of range");
            const VectorWeights weights(vectors, label);
            if (!vectors.each_feature(entries, [&](int64_t e, uint32_t f) {
                    const float weight = weights.at(e);
                    if (!std::isfinite(weight)) damaged(label, "a weight that is not finite");
                    if (weight != 0) visit(label, f, weight);
                }))
                damaged(label, "a feature out of range");
        }
    };
    each_entry([&](int64_t, uint32_t f, float) { ++out.offsets[f + 1]; });
    std::partial_sum(out.offsets.begin(), out.offsets.end(), out.offsets.begin());
    out.labels.resize(static_cast<size_t>(out.offsets.back()));
    out.weights.resize(out.labels.size());
    std::vector<int64_t> next(out.offsets.begin(), out.offsets.end() - 1);
    each_entry([&](int64_t label, uint32_t f, float weight) {
        out.labels[next[f]] = static_cast<int32_t>(label);
        out.weights[next[f]++] = weight;
    });
    return out;
}

void label_products(const StoredWeights& vectors, const FeatureRows& x, const LabelRows& lists,
                    float* products, Monitor& monitor, const ByFeature* transposed) {
    constexpr int64_t kRowsToSpread = 4;
    const UnitRows rows(x);
    // Rows of extreme values are added up in another way.
    bool ordinary = transposed != nullptr;
    for (int64_t row = 0; row < x.n_rows && ordinary; ++row) ordinary = rows.ordinary(row);
    if (ordinary) {
        RowProducts all(*transposed, rows, lists.n_labels);
        std::vector<float> constants(static_cast<size_t>(lists.n_labels), 0.0f);
        all.each(x.n_features, [&](int32_t label, float weight) { constants[label] = weight; });
        for (int64_t row = 0; row < x.n_rows; ++row) {
            monitor.check();
            all.add_up(row);
            for (int64_t p = lists.indptr[row]; p < lists.indptr[row + 1]; ++p) {
                const int32_t label = lists.indices[p];
                products[p] = all.product(label) + constants[label];
                if (!std::isfinite(products[p])) damaged(label, "weights too large to add up");
            }
            all.clear(row);
        }
        return;
    }
    const ByLabel pairs(lists, lists.indptr[lists.n_rows]);
    std::vector<float> spread(static_cast<size_t>(x.n_features) + 1, 0.0f), found;
    LaidOutRow laid_out(int64_t{x.n_features} + 1);
    for (int32_t label = 0; label < lists.n_labels; ++label) {
        const int64_t first = pairs.start[label], last = pairs.start[label + 1];
        if (first == last) continue;
        monitor.check();
        Range entries;
        if (!vectors.entries_of(label, entries)) damaged(label, "offsets out of range");
        const VectorWeights weights(vectors, label);
        const auto finite = [&](float number, const char* what) {
            if (!std::isfinite(number)) damaged(label, what);
            return number;
        };
        const auto weight_at = [&](int64_t e) {
            return finite(weights.at(e), "a weight that is not finite");
        };
        if (last - first < kRowsToSpread) {
            for (int64_t at = first; at < last; ++at) {
                const int64_t row = pairs.row[at];
                const int64_t length = rows.length(row);
                if (!laid_out.holds(row))
                    laid_out.lay_out(row, length + 1, [&](int64_t i) {
                        return i < length ? rows.feature(row, i) : x.n_features;
                    });
                found.assign(static_cast<size_t>(length) + 1, 0.0f);
                if (!laid_out.find(vectors, entries, [&](int32_t position, int64_t e) {
                        found[position] = weight_at(e);
                    }))
                    damaged(label, "a feature out of range");
                products[pairs.place[at]] =
                    finite(rows.product_in_place(row, found.data()) + found[length],
                           "weights too large to add up");
            }
            continue;
        }
        if (!vectors.each_feature(entries,
                                  [&](int64_t e, uint32_t f) { spread[f] = weight_at(e); }))
            damaged(label, "a feature out of range");
        for (int64_t at = first; at < last; ++at)
            products[pairs.place[at]] =
                finite(rows.product(pairs.row[at], spread.data()) + spread[x.n_features],
                       "weights too large to add up");
        vectors.each_feature(entries, [&](int64_t, uint32_t f) { spread[f] = 0; });
    }
}

}  // namespace ldsm
