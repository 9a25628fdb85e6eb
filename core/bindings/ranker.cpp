// Bindings for the second stage.
#include "bindings/object_arrays.hpp"
#include "bindings/rows.hpp"
#include "ranking/second_stage.hpp"
#include "ranking/weights_by_feature.hpp"

namespace ldsm::bindings {

namespace {

using Mask = std::optional<In<uint8_t>>;

const uint8_t* checked_mask(const Mask& mask, const FeatureRows& x, const char* name) {
    if (!mask) return nullptr;
    if (static_cast<int64_t>(mask->size()) != x.n_rows)
        refuse(name, " must have one entry per row of X, ", x.n_rows, ". Got ", mask->size(), ".");
    return mask->data();
}

PairsView checked_pairs(const In<int64_t>& offsets, const In<int32_t>& rows,
                        const In<uint8_t>& positive, int64_t n_rows, uint64_t first_label) {
    check_offsets(offsets, rows.size(), "The offsets of the pairs");
    check_range(rows, n_rows, "The row numbers of the pairs");
    check_equal(positive.size(), rows.size(), "The pairs must have as many marks as rows");
    return {offsets.data(), rows.data(), positive.data(), static_cast<int64_t>(offsets.size()) - 1,
            first_label};
}

void check_prune(float prune) {
    if (!(prune >= 0) || !std::isfinite(prune))
        refuse("prune must be finite and at least 0. Got ", prune, ".");
}

nb::object gaps_out(const std::vector<int32_t>& features, const std::vector<int64_t>& offsets,
                    auto gaps) {
    gaps.reserve(features.size());
    for (size_t v = 0; v + 1 < offsets.size(); ++v)
        append_gaps(features, offsets[v], offsets[v + 1], gaps);
    return hand_over(std::move(gaps));
}

nb::tuple vectors_out(LabelVectors&& v, int32_t n_features, const VectorForm& form) {
    if (!form.compress) return hand_over_all(v.offsets, v.features, v.weights, v.units);
    nb::object features = widest_gap(n_features) <= 255
                              ? gaps_out(v.features, v.offsets, std::vector<uint8_t>())
                              : gaps_out(v.features, v.offsets, std::vector<uint16_t>());
    return nb::make_tuple(hand_over(std::move(v.offsets)), features, hand_over(std::move(v.codes)),
                          hand_over(std::move(v.units)));
}

nb::tuple pairs(const CheckedLabels& lists_of, const CheckedLabels& y_of, int64_t fill_to,
                uint64_t seed) {
    const LabelRows& lists = lists_of.view();
    const LabelRows& y = y_of.view();
    check_equal(lists.n_labels, y.n_labels,
                "The shortlists and Y must have the same number of labels");
    check_equal(lists.n_rows, y.n_rows, "The shortlists and Y must have the same number of rows");
    if (fill_to < 0) refuse("fill_to must be at least 0. Got ", fill_to, ".");
    Monitor monitor = make_monitor({});
    // No more than all labels can be meant, and twice as many must still be a number.
    const int64_t fill = std::min<int64_t>(fill_to, y.n_labels);
    LabelPairs out = without_gil([&] { return label_pairs(lists, y, fill, seed, monitor); });
    return hand_over_all(out.offsets, out.rows, out.positive);
}

// Vectors are any Python object with these attributes, as forests are.
StoredWeights stored_vectors(const ArraysOf& vectors, int32_t n_features) {
    StoredWeights v{};
    const size_t offsets = vectors.array("offsets", v.offsets);
    const size_t entries = vectors.array("features", v.narrow_gaps, v.wide_gaps, v.features);
    const size_t weights = vectors.array("weights", v.codes, v.weights);
    const size_t units = vectors.array("units", v.units);
    if (offsets < 1 || offsets - 1 > INT32_MAX || entries != weights ||
        units != (v.codes != nullptr ? offsets - 1 : 0))
        refuse("The arrays of the vectors do not fit each other in size.");
    v.arity = 1;
    v.last_feature = n_features;
    v.n_vectors = static_cast<int64_t>(offsets) - 1;
    v.n_entries = static_cast<int64_t>(entries);
    return v;
}

nb::tuple ranker(const CheckedFeatures& features, In<int64_t> offsets, In<int32_t> rows,
                 In<uint8_t> positive, uint64_t first_label, Mask held_out, double cost,
                 double tolerance, int max_epochs, float prune, bool compress, uint64_t seed,
                 nb::handle start, std::optional<In<float>> squares,
                 std::optional<In<double>> firmness, std::optional<In<double>> rows_before,
                 const std::optional<In<int32_t>>& numbers, Cancel cancel) {
    const FeatureRows& x = features.view();
    PairsView view = checked_pairs(offsets, rows, positive, x.n_rows, first_label);
    if (numbers) {
        check_equal(static_cast<int64_t>(numbers->size()), view.n_labels,
                    "numbers must be per label");
        check_range(*numbers, std::numeric_limits<int32_t>::max(), "The numbers of the labels");
        view.numbers = numbers->data();
    }
    const uint8_t* held = checked_mask(held_out, x, "held_out");
    if (!(cost > 0) || !std::isfinite(cost) || !(tolerance > 0) || max_epochs < 1)
        refuse("cost and tolerance must be above 0 and finite, max_epochs at least 1.");
    check_prune(prune);
    Monitor monitor = make_monitor(cancel);
    const RankerParams params{cost, tolerance, max_epochs, {prune, compress}};
    for (const bool given : {squares.has_value(), firmness.has_value(), rows_before.has_value()})
        if (given == start.is_none())
            refuse("start, squares, firmness and rows_before belong together.");
    std::optional<ArraysOf> kept;
    StoredWeights vectors{};
    RankerStart from{&vectors, nullptr, nullptr, nullptr};
    if (firmness) {
        check_aligned(*squares, "squares");
        check_aligned(*firmness, "firmness");
        check_equal(static_cast<int64_t>(squares->size()), int64_t{x.n_features},
                    "squares must be per feature");
        check_aligned(*rows_before, "rows_before");
        check_equal(static_cast<int64_t>(firmness->size()), view.n_labels,
                    "firmness must be per label");
        check_equal(static_cast<int64_t>(rows_before->size()), view.n_labels,
                    "rows_before must be per label");
        const auto refuse_if_negative = [](auto values, const char* name) {
            for (size_t i = 0; i < values.size(); ++i)
                if (!(values.data()[i] >= 0) || !std::isfinite(values.data()[i]))
                    refuse(name, " must be at least 0 and finite.");
        };
        refuse_if_negative(*squares, "squares");
        refuse_if_negative(*firmness, "firmness");
        refuse_if_negative(*rows_before, "rows_before");
        kept.emplace(start, "ranker");
        vectors = stored_vectors(*kept, x.n_features);
        for (int64_t label = 0; label < view.n_labels; ++label)
            if (view.number(label) >= static_cast<uint64_t>(vectors.n_vectors))
                refuse("The weights to go on from must be of all labels.");
        from.squares = squares->data();
        from.firmness = firmness->data();
        from.rows = rows_before->data();
    }
    Ranker out = without_gil([&] {
        return train_ranker(x, view, held, params, firmness ? &from : nullptr, seed, monitor);
    });
    return nb::make_tuple(vectors_out(std::move(out.vectors), x.n_features, params.form),
                          hand_over(std::move(out.held_out_margins)));
}

nb::object centroids(const CheckedFeatures& features, In<int64_t> offsets, In<int32_t> rows,
                     In<uint8_t> positive, Mask left_out, int64_t min_rows, float prune,
                     bool compress) {
    const FeatureRows& x = features.view();
    const PairsView view = checked_pairs(offsets, rows, positive, x.n_rows, 0);
    const uint8_t* left = checked_mask(left_out, x, "left_out");
    check_prune(prune);
    Monitor monitor = make_monitor({});
    const VectorForm form{prune, compress};
    return vectors_out(
        without_gil([&] { return train_centroids(x, view, left, min_rows, form, monitor); }),
        x.n_features, form);
}

// Made from checked vectors, and out of reach from then on: nothing in it needs to be looked at.
struct VectorsByFeature {
    VectorsByFeature(nb::handle vectors, int64_t n_features) {
        if (n_features < 0 || n_features > kMostFeatures) refuse("n_features is out of range.");
        const ArraysOf arrays(vectors, "vectors");
        const StoredWeights view = stored_vectors(arrays, static_cast<int32_t>(n_features));
        n_labels = view.n_vectors;
        weights = without_gil([&] { return weights_by_feature(view); });
    }
    int64_t n_labels;
    WeightsByFeature weights;
};

nb::object products(nb::handle vectors, const CheckedFeatures& rows, In<int64_t> list_indptr,
                    In<int32_t> list_labels, Cancel cancel, const VectorsByFeature* by_feature) {
    const FeatureRows& x = rows.view();
    const ArraysOf arrays(vectors, "vectors");
    const StoredWeights view = stored_vectors(arrays, x.n_features);
    const int64_t n_labels = view.n_vectors;
    // A list is in order of merit, not of labels: only its range matters here.
    check_offsets(list_indptr, list_labels.size(), "The row offsets of the lists");
    check_range(list_labels, n_labels, "The label numbers of the lists");
    const LabelRows lists{list_indptr.data(), list_labels.data(),
                          static_cast<int64_t>(list_indptr.size()) - 1,
                          static_cast<int32_t>(n_labels)};
    check_equal(x.n_rows, lists.n_rows, "X and the lists must have the same number of rows");
    Monitor monitor = make_monitor(cancel);
    std::vector<float> out(list_labels.size());
    if (by_feature != nullptr &&
        (by_feature->n_labels != n_labels ||
         by_feature->weights.offsets.size() != static_cast<size_t>(x.n_features) + 2))
        refuse("by_feature must be made from the same vectors.");
    const Kernels& kernels = select_kernels("auto");
    without_gil([&] {
        if (by_feature == nullptr ||
            !few_label_products(by_feature->weights, x, lists, out.data(), kernels, monitor))
            label_products(view, x, lists, out.data(), monitor);
    });
    return hand_over(std::move(out));
}

}  // namespace

void bind_ranker(nb::module_& m) {
    m.def("label_pairs", &pairs, "lists"_a, "y"_a, nb::kw_only(), "fill_to"_a, "seed"_a,
          "Rows to train each label on: (offsets, rows, marks of the rows that have the label).");
    m.def("train_ranker", &ranker, "x"_a, as_is("offsets"), as_is("rows"), as_is("positive"),
          nb::kw_only(), "first_label"_a, as_is("held_out") = nb::none(), "cost"_a, "tolerance"_a,
          "max_epochs"_a, "prune"_a, "compress"_a, "seed"_a, "start"_a.none() = nb::none(),
          as_is("squares") = nb::none(), as_is("firmness") = nb::none(),
          as_is("rows_before") = nb::none(), as_is("numbers") = nb::none(),
          as_is("cancel") = nb::none(),
          "One linear classifier per label: ((offsets, features, weights, units), held-out "
          "margins).");
    m.def("train_centroids", &centroids, "x"_a, as_is("offsets"), as_is("rows"), as_is("positive"),
          nb::kw_only(), as_is("left_out") = nb::none(), "min_rows"_a, "prune"_a, "compress"_a,
          "The mean row of each label: (offsets, features, weights, units).");
    nb::class_<VectorsByFeature>(m, "VectorsByFeature",
                                 "The weights of vectors by feature: makes single rows fast.")
        .def(nb::init<nb::handle, int64_t>(), "vectors"_a, "n_features"_a);
    m.def("label_products", &products, "vectors"_a, "x"_a, as_is("list_indptr"),
          as_is("list_labels"), as_is("cancel") = nb::none(), "by_feature"_a.none() = nb::none(),
          "Products of unit rows with the vectors of the labels on their lists.");
}

}  // namespace ldsm::bindings
