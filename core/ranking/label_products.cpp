#include "ranking/label_products.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "common/laid_out_row.hpp"
#include "common/unit_rows.hpp"
#include "ranking/weights_by_feature.hpp"

namespace ldsm {

namespace {

Range entries_of(const StoredWeights& vectors, int32_t label) {
    Range entries;
    if (!vectors.entries_of(label, entries)) damaged_vector(label, "offsets out of range");
    return entries;
}

float finite(float number, int32_t label, const char* what) {
    if (!std::isfinite(number)) damaged_vector(label, what);
    return number;
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

// Products of rows with the vectors of labels, one pair at a time; the rows of consecutive pairs
// should be equal or the labels' vectors short.
class PairProducts {
  public:
    PairProducts(const StoredWeights& vectors, const UnitRows& rows)
        : vectors_(vectors), rows_(rows), laid_out_(int64_t{rows.n_features()} + 1) {}

    // Of a row with the labels on its list. Their vectors lie anywhere in memory: while some are
    // read, others are on their way.
    void of_row(int64_t row, const int32_t* labels, int64_t n, float* out) {
        constexpr int64_t kAhead = 8;
        for (int64_t i = 0; i < n; ++i) {
            if (i + 2 * kAhead < n) __builtin_prefetch(vectors_.offsets + labels[i + 2 * kAhead]);
            if (i + kAhead < n) vectors_.prefetch(labels[i + kAhead]);
            out[i] = (*this)(row, labels[i]);
        }
    }
    float operator()(int64_t row, int32_t label) {
        const Range entries = entries_of(vectors_, label);
        const VectorWeights weights(vectors_, label);
        const int64_t length = rows_.length(row);
        if (!laid_out_.holds(row))
            laid_out_.lay_out(row, length + 1, [&](int64_t i) {
                return i < length ? rows_.feature(row, i) : rows_.n_features();
            });
        found_.assign(static_cast<size_t>(length) + 1, 0.0f);
        if (!laid_out_.find(vectors_, entries, [&](int32_t position, int64_t e) {
                found_[position] = finite(weights.at(e), label, "a weight that is not finite");
            }))
            damaged_vector(label, "a feature out of range");
        return finite(rows_.product_in_place(row, found_.data()) + found_[length], label,
                      "weights too large to add up");
    }

  private:
    const StoredWeights& vectors_;
    const UnitRows& rows_;
    LaidOutRow laid_out_;
    std::vector<float> found_;
};

// Whether fewer weights are read by the vectors of the labels on a row's list than by the features
// of the row.
bool shorter_by_label(const StoredWeights& vectors, const WeightsByFeature& by_feature,
                      const UnitRows& rows, int64_t row, const int32_t* labels, int64_t n,
                      int64_t cost_of_start) {
    int64_t by_labels = 0, by_features = cost_of_start;
    for (int64_t i = 0; i < n; ++i) {
        const Range entries = entries_of(vectors, labels[i]);
        by_labels += entries.end - entries.begin;
    }
    for (int64_t i = 0; i < rows.length(row); ++i)
        by_features += by_feature.cost_of(rows.feature(row, i), n);
    return by_labels < by_features;
}

}  // namespace

void label_products(const StoredWeights& vectors, const FeatureRows& x, const LabelRows& lists,
                    float* products, Monitor& monitor) {
    constexpr int64_t kRowsToSpread = 4;
    // Beyond this, going through all labels would take longer than what their order saves.
    constexpr int64_t kLabelsPerPair = 64;
    const UnitRows rows(x);
    PairProducts product(vectors, rows);
    const int64_t n_pairs = lists.indptr[lists.n_rows];
    if (n_pairs < lists.n_labels / kLabelsPerPair) {
        for (int64_t row = 0; row < x.n_rows; ++row) {
            monitor.check();
            const int64_t first = lists.indptr[row];
            product.of_row(row, lists.indices + first, lists.indptr[row + 1] - first,
                           products + first);
        }
        return;
    }
    const ByLabel pairs(lists, n_pairs);
    std::vector<float> spread(static_cast<size_t>(x.n_features) + 1, 0.0f);
    for (int32_t label = 0; label < lists.n_labels; ++label) {
        const int64_t first = pairs.start[label], last = pairs.start[label + 1];
        if (first == last) continue;
        monitor.check();
        if (last - first < kRowsToSpread) {
            for (int64_t at = first; at < last; ++at)
                products[pairs.place[at]] = product(pairs.row[at], label);
            continue;
        }
        const Range entries = entries_of(vectors, label);
        const VectorWeights weights(vectors, label);
        if (!vectors.each_feature(entries, [&](int64_t e, uint32_t f) {
                spread[f] = finite(weights.at(e), label, "a weight that is not finite");
            }))
            damaged_vector(label, "a feature out of range");
        for (int64_t at = first; at < last; ++at)
            products[pairs.place[at]] =
                finite(rows.product(pairs.row[at], spread.data()) + spread[x.n_features], label,
                       "weights too large to add up");
        vectors.each_feature(entries, [&](int64_t, uint32_t f) { spread[f] = 0; });
    }
}

bool few_label_products(const StoredWeights& vectors, const WeightsByFeature& by_feature,
                        const FeatureRows& x, const LabelRows& lists, float* products,
                        const Kernels& kernels, Monitor& monitor) {
    const UnitRows rows(x);
    for (int64_t row = 0; row < x.n_rows; ++row)
        if (rows.length(row) > 0 && !rows.ordinary(row)) return false;
    RowProducts of_row(by_feature, rows, lists.n_labels, kernels.find_places);
    PairProducts of_pair(vectors, rows);
    for (int64_t row = 0; row < x.n_rows; ++row) {
        monitor.check();
        const int64_t first = lists.indptr[row], n = lists.indptr[row + 1] - first;
        const int32_t* const labels = lists.indices + first;
        if (shorter_by_label(vectors, by_feature, rows, row, labels, n, of_row.cost_of_start()))
            of_pair.of_row(row, labels, n, products + first);
        else
            of_row.products(row, labels, n, products + first);
    }
    return true;
}

void squared_norms(const StoredWeights& vectors, const int32_t* labels, std::vector<double>& out) {
    for (size_t i = 0; i < out.size(); ++i) {
        const Range entries = entries_of(vectors, labels[i]);
        const double unit = vectors.codes == nullptr ? 1 : double{vectors.units[labels[i]]};
        for (int64_t e = entries.begin; e < entries.end; ++e) {
            const double weight = vectors.codes == nullptr
                                      ? double{vectors.weights[e]}
                                      : unit * static_cast<double>(vectors.codes[e]);
            out[i] += weight * weight;
        }
    }
}

}  // namespace ldsm
