#include <cmath>
#include <numeric>
#include <string>

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

}  // namespace

void label_products(const LabelVectorsView& vectors, const FeatureRows& x, const LabelRows& lists,
                    float* products, Monitor& monitor) {
    const UnitRows rows(x);
    const ByLabel pairs(lists, lists.indptr[lists.n_rows]);
    std::vector<float> spread(static_cast<size_t>(x.n_features) + 1, 0.0f);
    for (int32_t label = 0; label < lists.n_labels; ++label) {
        if (pairs.start[label] == pairs.start[label + 1]) continue;
        monitor.check();
        const int64_t begin = vectors.offsets[label], end = vectors.offsets[label + 1];
        if (begin < 0 || end < begin || end > vectors.n_entries)
            damaged(label, "offsets out of range");
        for (int64_t e = begin; e < end; ++e) {
            const int32_t feature = vectors.features[e];
            if (feature < 0 || feature > x.n_features) damaged(label, "a feature out of range");
            if (!std::isfinite(vectors.weights[e])) damaged(label, "a weight that is not finite");
            spread[feature] = vectors.weights[e];
        }
        const float constant = spread[x.n_features];
        for (int64_t at = pairs.start[label]; at < pairs.start[label + 1]; ++at) {
            const float product = rows.product(pairs.row[at], spread.data()) + constant;
            if (!std::isfinite(product)) damaged(label, "weights too large to add up");
            products[pairs.place[at]] = product;
        }
        for (int64_t e = begin; e < end; ++e) spread[vectors.features[e]] = 0;
    }
}

}  // namespace ldsm
