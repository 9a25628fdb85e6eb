// Sparse rows scaled to unit length, and their product with dense weights.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "common/csr.hpp"
#include "common/partial_sums.hpp"

namespace ldsm {

class UnitRows {
  public:
    explicit UnitRows(const FeatureRows& x) : x_(x), scale_(static_cast<size_t>(x.n_rows)) {
        for (int64_t row = 0; row < x.n_rows; ++row) {
            double sum = 0;
            for (int64_t i = x.indptr[row]; i < x.indptr[row + 1]; ++i)
                sum += static_cast<double>(x.values[i]) * x.values[i];
            // An empty row stays empty.
            scale_[row] = sum > 0 ? 1 / std::sqrt(sum) : 0;
        }
    }

    int32_t n_features() const { return x_.n_features; }

    int64_t length(int64_t row) const { return x_.indptr[row + 1] - x_.indptr[row]; }
    int32_t feature(int64_t row, int64_t i) const { return x_.indices[x_.indptr[row] + i]; }
    float value(int64_t row, int64_t i) const { return x_.values[x_.indptr[row] + i]; }
    // Neither the values nor the scale of such a row can leave float32's range.
    bool ordinary(int64_t row) const { return scale_[row] > 1e-15 && scale_[row] < 1e15; }
    float scale(int64_t row) const { return static_cast<float>(scale_[row]); }

    // With weights by feature.
    float product(int64_t row, const float* weights) const {
        const int32_t* features = x_.indices + x_.indptr[row];
        return product_of(row, [=](int64_t i) { return weights[features[i]]; });
    }
    // With weights in the order of the row's features.
    float product_in_place(int64_t row, const float* weights) const {
        return product_of(row, [=](int64_t i) { return weights[i]; });
    }

    // Calls `take(feature, value)` for each entry of the scaled row.
    template <typename Take>
    void each(int64_t row, Take&& take) const {
        for (int64_t e = x_.indptr[row]; e < x_.indptr[row + 1]; ++e)
            take(x_.indices[e], static_cast<float>(scale_[row] * x_.values[e]));
    }

  private:
    template <typename Weight>
    float product_of(int64_t row, Weight&& weight) const {
        const float* values = x_.values + x_.indptr[row];
        if (ordinary(row))
            return scale(row) *
                   sum_of(length(row), [=](int64_t i) { return values[i] * weight(i); });
        double sum = 0;
        for (int64_t i = 0; i < length(row); ++i) sum += scale_[row] * values[i] * weight(i);
        return static_cast<float>(sum);
    }

    const FeatureRows& x_;
    std::vector<double> scale_;
};

}  // namespace ldsm
