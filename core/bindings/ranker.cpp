// Bindings for training the ranker and the centroids.
#include <nanobind/stl/vector.h>

#include "bindings/label_vectors.hpp"
#include "bindings/rows.hpp"
#include "ranking/centroids.hpp"
#include "ranking/ranker.hpp"

namespace ldsm::bindings {

namespace {

using Mask = std::optional<In<uint8_t>>;

const uint8_t* checked_mask(const Mask& mask, const FeatureRows& x, const char* name) {
    if (!mask) return nullptr;
    if (static_cast<int64_t>(mask->size()) != x.n_rows)
        refuse(name, " must have one entry per row of X, ", x.n_rows, ". Got ", mask->size(), ".");
    return mask->data();
}

void check_prune(float prune) {
    if (!(prune >= 0) || !std::isfinite(prune))
        refuse("prune must be finite and at least 0. Got ", prune, ".");
}

// The pairs of all labels, or of some consecutive ones, checked when the object is made.
class CheckedPairs {
  public:
    CheckedPairs(In<int64_t> offsets, In<int32_t> rows, In<uint8_t> positive, int64_t n_rows,
                 int64_t first_label)
        : offsets_(std::move(offsets)),
          rows_(std::move(rows)),
          positive_(std::move(positive)),
          n_rows_(n_rows) {
        check_offsets(offsets_, rows_.size(), "The offsets of the pairs");
        check_range(rows_, n_rows, "The row numbers of the pairs");
        check_equal(positive_.size(), rows_.size(), "The pairs must have as many marks as rows");
        if (first_label < 0 || first_label > INT32_MAX)
            refuse("first_label must lie in [0, 2^31). Got ", first_label, ".");
        view_ = {offsets_.data(), rows_.data(), positive_.data(),
                 static_cast<int64_t>(offsets_.size()) - 1, first_label};
    }
    const PairsView& of(const FeatureRows& x) const {
        check_equal(n_rows_, x.n_rows, "The pairs and X must have the same number of rows");
        return view_;
    }

  private:
    In<int64_t> offsets_;  // these three keep the arrays alive
    In<int32_t> rows_;
    In<uint8_t> positive_;
    int64_t n_rows_;
    PairsView view_;
};

struct CheckedRankerParams {
    CheckedRankerParams(double cost, double tolerance, int max_epochs, float prune, bool compress)
        : params{cost, tolerance, max_epochs, {prune, compress}} {
        if (!(cost > 0) || !std::isfinite(cost) || !(tolerance > 0) || max_epochs < 1)
            refuse("cost and tolerance must be above 0 and finite, max_epochs at least 1.");
        check_prune(prune);
    }
    RankerParams params;
};

template <typename Array>
void check_amounts(const Array& amounts, const char* name) {
    check_aligned(amounts, name);
    for (size_t i = 0; i < amounts.size(); ++i)
        if (!(amounts.data()[i] >= 0) || !std::isfinite(amounts.data()[i]))
            refuse(name, " must be at least 0 and finite.");
}

class CheckedRankerStart {
  public:
    CheckedRankerStart(nb::handle vectors, In<float> squares, In<double> firmness, In<double> rows)
        : vectors_(vectors, static_cast<int64_t>(squares.size())),
          squares_(std::move(squares)),
          firmness_(std::move(firmness)),
          rows_(std::move(rows)) {
        check_amounts(squares_, "squares");
        check_amounts(firmness_, "firmness");
        check_amounts(rows_, "rows");
        const int64_t n_labels = vectors_.view.n_vectors;
        check_equal(static_cast<int64_t>(firmness_.size()), n_labels, "firmness must be per label");
        check_equal(static_cast<int64_t>(rows_.size()), n_labels, "rows must be per label");
        view_ = {vectors_.view, squares_.data(), firmness_.data(), rows_.data()};
    }
    const RankerStart* of(const FeatureRows& x, const PairsView& pairs) const {
        check_equal(static_cast<int64_t>(squares_.size()), int64_t{x.n_features},
                    "squares must be per feature");
        if (view_.vectors.n_vectors < pairs.first_label + pairs.n_labels)
            refuse("The weights to start from must be of all labels.");
        return &view_;
    }

  private:
    VectorArrays vectors_;
    In<float> squares_;
    In<double> firmness_, rows_;
    RankerStart view_;
};

nb::tuple pairs(const std::vector<CheckedLabels>& chunks, const CheckedLabels& y_of, int64_t first,
                int64_t last, int64_t fill_to, uint64_t seed, Cancel cancel) {
    const LabelRows& y = y_of.view();
    std::vector<LabelRows> lists;
    int64_t n_rows = 0;
    for (const CheckedLabels& chunk : chunks) {
        lists.push_back(chunk.view());
        n_rows += chunk.view().n_rows;
        check_equal(chunk.view().n_labels, y.n_labels,
                    "The shortlists and Y must have the same number of labels");
    }
    check_equal(n_rows, y.n_rows, "The shortlists and Y must have the same number of rows");
    if (first < 0 || last < first || last > y.n_labels)
        refuse("first and last must be ints with 0 <= first <= last <= ", y.n_labels, ". Got ",
               first, " and ", last, ".");
    if (fill_to < 0) refuse("fill_to must be at least 0. Got ", fill_to, ".");
    Monitor monitor = make_monitor(cancel);
    // At most all labels; twice this number must not overflow.
    const int64_t fill = std::min<int64_t>(fill_to, y.n_labels);
    LabelPairs out = without_gil([&] {
        return label_pairs(lists, y, static_cast<int32_t>(first), static_cast<int32_t>(last), fill,
                           seed, monitor);
    });
    return hand_over_all(out.offsets, out.rows, out.positive);
}

nb::tuple ranker(const CheckedFeatures& features, const CheckedPairs& pairs,
                 const CheckedRankerParams& settings, uint64_t seed, Mask held_out,
                 const CheckedRankerStart* start, Cancel cancel, const std::string& simd) {
    const FeatureRows& x = features.view();
    const PairsView& view = pairs.of(x);
    const RankerParams& params = settings.params;
    const uint8_t* held = checked_mask(held_out, x, "held_out");
    const RankerStart* from = start == nullptr ? nullptr : start->of(x, view);
    Monitor monitor = make_monitor(cancel);
    const Kernels& kernels = select_kernels(simd);
    Ranker out = without_gil(
        [&] { return train_ranker(x, view, held, params, from, seed, kernels, monitor); });
    return nb::make_tuple(vectors_out(std::move(out.vectors), {x.n_features, params.form.compress}),
                          hand_over(std::move(out.held_out_margins)));
}

nb::tuple centroids(const CheckedFeatures& features, const CheckedPairs& pairs, Mask left_out,
                    int64_t min_rows, float prune, bool compress) {
    const FeatureRows& x = features.view();
    const PairsView& view = pairs.of(x);
    const uint8_t* left = checked_mask(left_out, x, "left_out");
    check_prune(prune);
    Monitor monitor = make_monitor({});
    return vectors_out(
        without_gil(
            [&] { return train_centroids(x, view, left, min_rows, {prune, compress}, monitor); }),
        {x.n_features, compress});
}

}  // namespace

void bind_ranker(nb::module_& m) {
    nb::class_<CheckedPairs>(m, "CheckedPairs",
                             "The (row, label) pairs that labels are trained on, checked when the "
                             "object is made. Keeps the arrays, which must not be changed as long "
                             "as it is used.")
        .def(nb::init<In<int64_t>, In<int32_t>, In<uint8_t>, int64_t, int64_t>(), as_is("offsets"),
             as_is("rows"), as_is("positive"), "n_rows"_a, "first_label"_a = 0);
    nb::class_<CheckedRankerParams>(m, "RankerParams", "How a ranker is trained.")
        .def(nb::init<double, double, int, float, bool>(), nb::kw_only(), "cost"_a, "tolerance"_a,
             "max_epochs"_a, "prune"_a, "compress"_a);
    nb::class_<CheckedRankerStart>(m, "RankerStart",
                                   "The weights that training starts from, and by label how firmly "
                                   "they stay.")
        .def(nb::init<nb::handle, In<float>, In<double>, In<double>>(), "vectors"_a,
             as_is("squares"), as_is("firmness"), as_is("rows"));
    m.def(
        "label_pairs", &pairs, "lists"_a, "y"_a, nb::kw_only(), "first"_a, "last"_a, "fill_to"_a,
        "seed"_a, as_is("cancel") = nb::none(),
        "Rows to train each of some consecutive labels on: (offsets, rows, marks of the rows that "
        "have the label). The lists are chunks of consecutive rows.");
    m.def("train_ranker", &ranker, "x"_a, "pairs"_a, "params"_a, nb::kw_only(), "seed"_a,
          as_is("held_out") = nb::none(), "start"_a.none() = nb::none(),
          as_is("cancel") = nb::none(), "simd"_a = "auto",
          "One linear classifier per label: ((offsets, features, weights, units), held-out "
          "margins).");
    m.def("train_centroids", &centroids, "x"_a, "pairs"_a, nb::kw_only(),
          as_is("left_out") = nb::none(), "min_rows"_a, "prune"_a, "compress"_a,
          "The mean row of each label: (offsets, features, weights, units).");
}

}  // namespace ldsm::bindings
