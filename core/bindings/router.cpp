// Bindings for asking forests.
#include "routing/router.hpp"
#include "bindings/forest.hpp"
#include "routing/feature_maps.hpp"

namespace ldsm::bindings {

namespace {

nb::tuple topk(nb::handle forest, const CheckedFeatures& rows, int64_t k, In<int32_t> fill_order,
               std::optional<In<uint8_t>> allowed, std::optional<In2<uint8_t>> skip, Cancel cancel,
               const std::string& simd) {
    const ForestArrays arrays(forest);
    const FeatureRows& x = rows_for(arrays.view, rows);
    const auto n_labels = static_cast<size_t>(arrays.view.n_labels);
    if (fill_order.size() != n_labels) refuse("fill_order must have one entry per label.");
    check_aligned(fill_order, "fill_order");
    const uint8_t* may = checked_allowed(allowed, arrays.view.n_labels);
    int64_t choices = arrays.view.n_labels;
    if (may != nullptr) choices = std::count_if(may, may + n_labels, [](uint8_t a) { return a; });
    if (k < 1 || k > choices) refuse("k must lie in [1, ", choices, "]. Got ", k, ".");
    const uint8_t* skipped = checked_skip(skip, arrays.view, x);
    Monitor monitor = make_monitor(cancel);
    std::vector<int32_t> labels(static_cast<size_t>(x.n_rows * k));
    std::vector<float> scores(static_cast<size_t>(x.n_rows * k));
    const TopK out{k, fill_order.data(), may, labels.data(), scores.data()};
    const Kernels& kernels = select_kernels(simd);
    without_gil([&] { route_topk(arrays.view, x, skipped, out, kernels, monitor); });
    return nb::make_tuple(hand_over(std::move(labels), static_cast<size_t>(k)),
                          hand_over(std::move(scores), static_cast<size_t>(k)));
}

nb::tuple scores(nb::handle forest, const CheckedFeatures& rows, Cancel cancel,
                 const std::string& simd) {
    const ForestArrays arrays(forest);
    const FeatureRows& x = rows_for(arrays.view, rows);
    Monitor monitor = make_monitor(cancel);
    const Kernels& kernels = select_kernels(simd);
    SparseScores s = without_gil([&] { return route_scores(arrays.view, x, kernels, monitor); });
    return hand_over_all(s.indptr, s.indices, s.values);
}

nb::tuple nodes(nb::handle forest, const CheckedFeatures& rows, const std::string& simd) {
    const ForestArrays arrays(forest);
    const FeatureRows& x = rows_for(arrays.view, rows);
    if (arrays.view.n_nodes > INT32_MAX)
        refuse("The nodes of a forest with 2^31 nodes or more cannot be numbered.");
    Monitor monitor = make_monitor({});
    const Kernels& kernels = select_kernels(simd);
    SparseScores s = without_gil([&] { return route_nodes(arrays.view, x, kernels, monitor); });
    return hand_over_all(s.indptr, s.indices);
}

nb::object maps(nb::handle forest) {
    const ForestArrays arrays(forest, /*with_maps=*/false);
    return hand_over(without_gil([&] { return feature_maps(arrays.view); }));
}

}  // namespace

void bind_router(nb::module_& m) {
    m.def("route_topk", &topk, "forest"_a, "x"_a, "k"_a, as_is("fill_order"),
          as_is("allowed") = nb::none(), as_is("skip") = nb::none(), as_is("cancel") = nb::none(),
          "simd"_a = "auto", "The k best labels of each row and their scores.");
    m.def("route_scores", &scores, "forest"_a, "x"_a, as_is("cancel") = nb::none(),
          "simd"_a = "auto", "All positive scores of each row: (indptr, labels, scores).");
    m.def("route_nodes", &nodes, "forest"_a, "x"_a, "simd"_a = "auto",
          "The nodes each row visits: (indptr, node numbers).");
    m.def("feature_maps", &maps, "forest"_a,
          "Where each node stores each feature: makes single rows fast where there are few "
          "features.");
}

}  // namespace ldsm::bindings
