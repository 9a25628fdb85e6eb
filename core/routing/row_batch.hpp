// Some consecutive rows in the form in which nodes take them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "routing/forest_view.hpp"

namespace ldsm {

// A standardised forest spreads the rows of a batch over all features, which must stay small, too.
inline int64_t rows_per_batch(const ForestView& forest) {
    constexpr int64_t kRows = 4096, kSpreadValues = int64_t{8} << 20;
    if (!forest.standardized) return kRows;
    return std::clamp<int64_t>(kSpreadValues / (forest.n_features + 1), 1, kRows);
}

// Rows are numbered within the batch. Each begins with the bias, feature D of value 1, and is
// padded to a multiple of kLanes. For a standardised forest, rows are dense instead.
class RowBatch {
  public:
    RowBatch(const ForestView& forest, const FeatureRows& x) : forest_(forest), x_(x) {}

    void fill(int64_t from, int64_t to) {
        from_ = from;
        n_ = to - from;
        start_.assign(1, 0);
        if (forest_.standardized) {
            dense_.assign(static_cast<size_t>(n_) * forest_.n_features, 0.0f);
            for (int64_t r = 0; r < n_; ++r)
                for (int64_t i = x_.indptr[from + r]; i < x_.indptr[from + r + 1]; ++i)
                    dense_[r * forest_.n_features + x_.indices[i]] = x_.values[i];
            return;
        }
        const auto bias = static_cast<uint32_t>(forest_.n_features), padding = bias + 1;
        feature_.clear();
        value_.clear();
        for (int64_t r = 0; r < n_; ++r) {
            const int64_t first = x_.indptr[from + r], last = x_.indptr[from + r + 1];
            feature_.push_back(bias);
            value_.push_back(1.0f);
            feature_.insert(feature_.end(), x_.indices + first, x_.indices + last);
            value_.insert(value_.end(), x_.values + first, x_.values + last);
            while (feature_.size() % kLanes != 0) {
                feature_.push_back(padding);
                value_.push_back(0.0f);
            }
            start_.push_back(static_cast<int64_t>(feature_.size()));
        }
    }

    int64_t size() const { return n_; }
    int64_t first() const { return from_; }  // of the batch, among all rows
    int64_t length(int64_t row) const { return start_[row + 1] - start_[row]; }
    const uint32_t* features(int64_t row) const { return feature_.data() + start_[row]; }
    const float* values(int64_t row) const { return value_.data() + start_[row]; }
    const float* dense(int64_t row) const {
        return dense_.data() + static_cast<size_t>(row) * forest_.n_features;
    }

  private:
    const ForestView& forest_;
    const FeatureRows& x_;
    int64_t from_ = 0, n_ = 0;
    std::vector<int64_t> start_;
    std::vector<uint32_t> feature_;
    std::vector<float> value_, dense_;
};

}  // namespace ldsm
