// Rows of X and Y as Python holds them between calls: checked once, when the object is made, and
// trusted by every call that gets it.
#pragma once

#include <optional>

#include "bindings/shared.hpp"

namespace ldsm::bindings {

class CheckedFeatures {
  public:
    CheckedFeatures(In<int64_t> indptr, In<int32_t> indices, In<float> values, int64_t n_features);
    // The same, but nothing instead of an error, and only for rows that are sorted, without
    // duplicates and without zeros.
    static std::optional<CheckedFeatures> if_canonical(In<int64_t> indptr, In<int32_t> indices,
                                                       In<float> values, int64_t n_features);
    // Consecutive rows, in the same arrays.
    CheckedFeatures rows(int64_t start, int64_t stop) const;

    const FeatureRows& view() const { return view_; }
    // All values are equal, and there are some.
    bool is_binary() const { return all_equal_ && n_values() > 0; }

  private:
    CheckedFeatures(In<int64_t> indptr, In<int32_t> indices, In<float> values)
        : indptr_(std::move(indptr)), indices_(std::move(indices)), values_(std::move(values)) {}
    void set_view(int64_t n_features, bool all_unit, bool all_equal);
    int64_t n_values() const { return view_.indptr[view_.n_rows] - view_.indptr[0]; }

    In<int64_t> indptr_;  // these three keep the arrays alive
    In<int32_t> indices_;
    In<float> values_;
    FeatureRows view_{};
    bool all_equal_ = false;
};

class CheckedLabels {
  public:
    CheckedLabels(In<int64_t> indptr, In<int32_t> indices, int64_t n_labels);
    const LabelRows& view() const { return view_; }

  private:
    In<int64_t> indptr_;
    In<int32_t> indices_;
    LabelRows view_{};
};

}  // namespace ldsm::bindings
