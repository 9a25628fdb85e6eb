#include "bindings/rows.hpp"

#include <algorithm>
#include <cmath>

namespace ldsm::bindings {

namespace {

bool is_unit(float value) { return std::fabs(value) == 1.0f; }

bool fits(int64_t n_features) { return n_features >= 0 && n_features <= kMostFeatures; }

}  // namespace

CheckedFeatures::CheckedFeatures(In<int64_t> indptr, In<int32_t> indices, In<float> values,
                                 int64_t n_features)
    : CheckedFeatures(std::move(indptr), std::move(indices), std::move(values)) {
    if (!fits(n_features)) refuse("n_features must lie in [0, 2^31 - 8). Got ", n_features, ".");
    check_equal(values_.size(), indices_.size(), "X must have as many values as indices");
    check_offsets(indptr_, indices_.size(), "The row offsets of X");
    check_range(indices_, n_features, "The feature numbers of X");
    check_aligned(values_, "The values of X");
    if (indptr_.size() - 1 > INT32_MAX) refuse("X must have fewer than 2^31 rows.");
    const float* v = values_.data();
    const size_t n = values_.size();
    bool finite = true, unit = true, equal = true;
    for (size_t i = 0; i < n; ++i) {
        finite &= std::isfinite(v[i]);
        unit &= is_unit(v[i]);
        equal &= v[i] == v[0];
    }
    if (!finite) {
        const auto at = std::find_if(v, v + n, [](float x) { return !std::isfinite(x); }) - v;
        refuse("X must hold finite float32 values. Got ", v[at], " at position ", at, ".");
    }
    set_view(n_features, unit, equal);
}

void CheckedFeatures::set_view(int64_t n_features, bool all_unit, bool all_equal) {
    const auto n_rows = static_cast<int64_t>(indptr_.size()) - 1;
    view_ = {
        indptr_.data(), indices_.data(), values_.data(), n_rows, static_cast<int32_t>(n_features),
        all_unit};
    all_equal_ = all_equal;
}

std::optional<CheckedFeatures> CheckedFeatures::if_canonical(In<int64_t> indptr,
                                                             In<int32_t> indices, In<float> values,
                                                             int64_t n_features) {
    const int64_t* offsets = indptr.data();
    const int32_t* feature = indices.data();
    const float* v = values.data();
    const auto n = static_cast<int64_t>(indices.size());
    const auto n_rows = static_cast<int64_t>(indptr.size()) - 1;
    if (!fits(n_features) || !aligned(indptr) || !aligned(indices) || !aligned(values) ||
        values.size() != indices.size() || n_rows < 0 || n_rows > INT32_MAX || offsets[0] != 0 ||
        offsets[n_rows] != n)
        return std::nullopt;
    bool unit = true, equal = true;
    for (int64_t row = 0; row < n_rows; ++row) {
        // Checked before the row is read, so that nothing outside the arrays is.
        if (offsets[row + 1] < offsets[row] || offsets[row + 1] > n) return std::nullopt;
        int64_t before = -1;
        bool fine = true;
        for (int64_t i = offsets[row]; i < offsets[row + 1]; ++i) {
            fine &= feature[i] > before && v[i] != 0 && std::isfinite(v[i]);
            before = feature[i];
            unit &= is_unit(v[i]);
            equal &= v[i] == v[0];
        }
        if (!fine || before >= n_features) return std::nullopt;  // the last is the largest
    }
    CheckedFeatures out(std::move(indptr), std::move(indices), std::move(values));
    out.set_view(n_features, unit, equal);
    return out;
}

CheckedFeatures CheckedFeatures::rows(int64_t start, int64_t stop) const {
    if (start < 0 || stop < start || stop > view_.n_rows)
        refuse("start and stop must be ints with 0 <= start <= stop <= ", view_.n_rows, ". Got ",
               start, " and ", stop, ".");
    CheckedFeatures out(*this);
    out.view_.indptr += start;
    out.view_.n_rows = stop - start;
    // What holds for all rows holds for these. Otherwise these are checked, which mostly ends at
    // the first value.
    const float* first = view_.values + view_.indptr[start];
    const float* last = view_.values + view_.indptr[stop];
    out.view_.all_unit = view_.all_unit || std::all_of(first, last, is_unit);
    out.all_equal_ =
        all_equal_ || std::all_of(first, last, [first](float v) { return v == *first; });
    return out;
}

CheckedLabels::CheckedLabels(In<int64_t> indptr, In<int32_t> indices, int64_t n_labels)
    : indptr_(std::move(indptr)), indices_(std::move(indices)) {
    if (n_labels < 0 || n_labels > INT32_MAX)
        refuse("n_labels must lie in [0, 2^31). Got ", n_labels, ".");
    check_offsets(indptr_, indices_.size(), "The row offsets of Y");
    check_range(indices_, n_labels, "The label numbers of Y");
    if (indptr_.size() - 1 > INT32_MAX) refuse("Y must have fewer than 2^31 rows.");
    const int64_t* offsets = indptr_.data();
    const int32_t* label = indices_.data();
    // A label twice in a row would be counted twice, and more labels than there are would not fit
    // the count of a row.
    for (size_t row = 0; row + 1 < indptr_.size(); ++row)
        for (int64_t i = offsets[row] + 1; i < offsets[row + 1]; ++i)
            if (label[i] <= label[i - 1])
                refuse("The label numbers of Y must rise within a row. Got ", label[i - 1],
                       " then ", label[i], " in row ", row, ".");
    view_ = {offsets, label, static_cast<int64_t>(indptr_.size()) - 1,
             static_cast<int32_t>(n_labels)};
}

void bind_rows(nb::module_& m) {
    nb::class_<CheckedFeatures>(
        m, "CheckedFeatures",
        "Rows of X, checked when the object is made. Keeps the arrays, which "
        "must not be changed as long as it is used.")
        .def(nb::init<In<int64_t>, In<int32_t>, In<float>, int64_t>(), as_is("indptr"),
             as_is("indices"), as_is("values"), "n_features"_a)
        .def_static("if_canonical", &CheckedFeatures::if_canonical, as_is("indptr"),
                    as_is("indices"), as_is("values"), "n_features"_a,
                    "None unless rows are well-formed, sorted, without duplicates, and hold finite "
                    "values other than 0.")
        .def("rows", &CheckedFeatures::rows, "start"_a, "stop"_a,
             "Some consecutive rows, in the same arrays.")
        .def_prop_ro("n_rows", [](const CheckedFeatures& x) { return x.view().n_rows; })
        .def_prop_ro("n_features", [](const CheckedFeatures& x) { return x.view().n_features; })
        .def_prop_ro("is_binary", &CheckedFeatures::is_binary,
                     "There are values, and they are all the same: features are there or not.");
    nb::class_<CheckedLabels>(m, "CheckedLabels",
                              "Rows of Y, checked when the object is made. Keeps the arrays, which "
                              "must not be changed as long as it is used.")
        .def(nb::init<In<int64_t>, In<int32_t>, int64_t>(), as_is("indptr"), as_is("indices"),
             "n_labels"_a)
        .def_prop_ro("n_rows", [](const CheckedLabels& y) { return y.view().n_rows; })
        .def_prop_ro("n_labels", [](const CheckedLabels& y) { return y.view().n_labels; });
}

}  // namespace ldsm::bindings
