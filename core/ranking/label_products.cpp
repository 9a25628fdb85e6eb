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

}  // namespace

void label_products(const StoredWeights& vectors, const FeatureRows& x, const LabelRows& lists,
                    float* products, Monitor& monitor) {
    constexpr int64_t kRowsToSpread = 4;
    const UnitRows rows(x);
    const ByLabel pairs(lists, lists.indptr[lists.n_rows]);
    std::vector<float> spread(static_cast<size_t>(x.n_features) + 1, 0.0f), found;
    LaidOutRow laid_out(int64_t{x.n_features} + 1);
    for (int32_t label = 0; label < lists.n_labels; ++label) {
        const int64_t first = pairs.start[label], last = pairs.start[label + 1];
        if (first == last) continue;
        monitor.check();
        Range entries;
        if (!vectors.entries_of(label, entries)) damaged_vector(label, "offsets out of range");
        const VectorWeights weights(vectors, label);
        const auto finite = [&](float number, const char* what) {
            if (!std::isfinite(number)) damaged_vector(label, what);
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
                    damaged_vector(label, "a feature out of range");
                products[pairs.place[at]] =
                    finite(rows.product_in_place(row, found.data()) + found[length],
                           "weights too large to add up");
            }
            continue;
        }
        if (!vectors.each_feature(entries,
                                  [&](int64_t e, uint32_t f) { spread[f] = weight_at(e); }))
            damaged_vector(label, "a feature out of range");
        for (int64_t at = first; at < last; ++at)
            products[pairs.place[at]] =
                finite(rows.product(pairs.row[at], spread.data()) + spread[x.n_features],
                       "weights too large to add up");
        vectors.each_feature(entries, [&](int64_t, uint32_t f) { spread[f] = 0; });
    }
}

bool few_label_products(const WeightsByFeature& weights, const FeatureRows& x,
                        const LabelRows& lists, float* products, const Kernels& kernels,
                        Monitor& monitor) {
    const UnitRows rows(x);
    for (int64_t row = 0; row < x.n_rows; ++row)
        if (rows.length(row) > 0 && !rows.ordinary(row)) return false;
    RowProducts of_row(weights, rows, lists.n_labels, kernels.find_places);
    for (int64_t row = 0; row < x.n_rows; ++row) {
        monitor.check();
        const int64_t first = lists.indptr[row];
        of_row.products(row, lists.indices + first, lists.indptr[row + 1] - first,
                        products + first);
    }
    return true;
}

}  // namespace ldsm
