// Sparse rows scaled to unit length, and their product with dense weights.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "csr.hpp"
#include "partial_sums.hpp"

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

    float product(int64_t row, const float* weights) const {
        if (!ordinary(row)) return careful_product(row, weights);
        const int32_t* features = x_.indices + x_.indptr[row];
        const float* values = x_.values + x_.indptr[row];
        const int64_t length = x_.indptr[row + 1] - x_.indptr[row];
        return static_cast<float>(scale_[row]) *
               sum_of(length, [=](int64_t i) { return values[i] * weights[features[i]]; });
    }

    // Calls `take(feature, value)` for each entry of the scaled row.
    template <typename Take>
    void each(int64_t row, Take&& take) const {
        for (int64_t e = x_.indptr[row]; e < x_.indptr[row + 1]; ++e)
            take(x_.indices[e], static_cast<float>(scale_[row] * x_.values[e]));
    }

  private:
    // Neither the values nor the scale of such a row can leave float32's range on the way.
    bool ordinary(int64_t row) const { return scale_[row] > 1e-15 && scale_[row] < 1e15; }

    float careful_product(int64_t row, const float* weights) const {
        double sum = 0;
        for (int64_t e = x_.indptr[row]; e < x_.indptr[row + 1]; ++e)
            sum += scale_[row] * x_.values[e] * weights[x_.indices[e]];
        return static_cast<float>(sum);
    }

    const FeatureRows& x_;
    std::vector<double> scale_;
};

}  // namespace ldsm
