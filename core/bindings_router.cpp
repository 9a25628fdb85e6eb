// Bindings for asking forests.
#include "bindings_rows.hpp"
#include "router.hpp"

namespace ldsm::bindings {

namespace {

// A forest is any Python object with these attributes; no copy of it is made or kept.
class ForestArrays {
  public:
    ForestArrays(nb::handle forest, bool by_rows, bool with_maps = true) {
        tree_offsets_ = array<In<int64_t>>(forest, "tree_offsets");
        first_child_ = array<In<int32_t>>(forest, "first_child");
        weight_offsets_ = array<In<int64_t>>(forest, "weight_offsets");
        weight_features_ = array<In<int32_t>>(forest, "weight_features");
        weights_ = array<In2<float>>(forest, "weights");
        weight_means_ = array<In<float>>(forest, "weight_means");
        weight_scales_ = array<In<float>>(forest, "weight_scales");
        histogram_offsets_ = array<In<int64_t>>(forest, "histogram_offsets");
        histogram_labels_ = array<In<int32_t>>(forest, "histogram_labels");
        histogram_counts_ = array<In<int32_t>>(forest, "histogram_counts");
        node_rows_ = array<In<int64_t>>(forest, "node_rows");
        const int64_t arity = number(forest, "arity");
        const int64_t n_features = number(forest, "n_features");
        const int64_t n_labels = number(forest, "n_labels");
        const size_t nodes = first_child_.size();
        const size_t entries = weight_features_.size();
        const bool standardized = weight_means_.size() != 0;
        if (arity < 2 || arity > kMaxArity || n_features < 0 || n_features > kMostFeatures ||
            n_labels < 0 || n_labels > INT32_MAX)
            refuse("The forest's arity, n_features or n_labels is out of range.");
        if (tree_offsets_.size() < 1 || weight_offsets_.size() != nodes + 1 ||
            histogram_offsets_.size() != nodes + 1 || node_rows_.size() != nodes ||
            weights_.shape(0) != entries || weights_.shape(1) != static_cast<size_t>(arity) ||
            histogram_counts_.size() != histogram_labels_.size() ||
            (standardized && weight_means_.size() != entries) ||
            weight_scales_.size() != weight_means_.size())
            refuse("The forest's arrays do not fit each other in size.");
        view = {static_cast<int>(arity),
                static_cast<int32_t>(n_features),
                static_cast<int32_t>(n_labels),
                static_cast<int64_t>(tree_offsets_.size()) - 1,
                static_cast<int64_t>(nodes),
                static_cast<int64_t>(entries),
                static_cast<int64_t>(histogram_labels_.size()),
                standardized,
                by_rows,
                tree_offsets_.data(),
                first_child_.data(),
                weight_offsets_.data(),
                weight_features_.data(),
                weights_.data(),
                weight_means_.data(),
                weight_scales_.data(),
                histogram_offsets_.data(),
                histogram_labels_.data(),
                histogram_counts_.data(),
                node_rows_.data()};
        if (!with_maps) return;
        const nb::object maps = forest.attr("feature_maps");
        if (maps.is_none()) return;
        if (standardized || !nb::try_cast(maps, feature_maps_, false) || !aligned(feature_maps_))
            refuse(
                "The forest's feature_maps must be None or what feature_maps() returns, and None "
                "if its features are standardised.");
        check_mappable(view);
        if (feature_maps_.size() != nodes * static_cast<size_t>(map_words(view)) * 2)
            refuse("The forest's feature_maps do not fit its nodes in size.");
        view.maps = reinterpret_cast<const FeatureMap*>(feature_maps_.data());
    }
    ForestView view;

    // The bytes of all maps can be counted.
    static void check_mappable(const ForestView& view) {
        if (view.n_nodes > INT64_MAX / 16 / map_words(view))
            refuse("The forest has too many nodes and features for feature maps.");
    }

  private:
    template <typename Array>
    static Array array(nb::handle forest, const char* name) {
        Array result;
        if (!nb::try_cast(forest.attr(name), result, false) || !aligned(result))
            refuse(std::string("The forest's ") + name +
                   " must be a contiguous, aligned array of the documented type.");
        return result;
    }
    static int64_t number(nb::handle forest, const char* name) {
        int64_t result = 0;
        if (!nb::try_cast(forest.attr(name), result, false))
            refuse(std::string("The forest's ") + name + " must be an int.");
        return result;
    }
    In<int64_t> tree_offsets_, weight_offsets_, histogram_offsets_, node_rows_;
    In<int32_t> first_child_, weight_features_, histogram_labels_, histogram_counts_;
    In2<float> weights_;
    In<float> weight_means_, weight_scales_;
    In<uint64_t> feature_maps_;
};

const uint8_t* checked_skip(const std::optional<In2<uint8_t>>& skip, const ForestView& forest,
                            const FeatureRows& x) {
    if (!skip) return nullptr;
    if (static_cast<int64_t>(skip->shape(0)) != x.n_rows ||
        static_cast<int64_t>(skip->shape(1)) != forest.n_trees)
        refuse("skip must have one row per row of X and one column per tree.");
    return skip->data();
}

const FeatureRows& rows_for(const ForestView& forest, const CheckedFeatures& x) {
    if (x.view().n_features != forest.n_features)
        refuse("X must have the features of the forest, " + std::to_string(forest.n_features) +
               ". Got " + std::to_string(x.view().n_features) + ".");
    return x.view();
}

nb::tuple topk(nb::handle forest, bool by_rows, const CheckedFeatures& rows, int64_t k,
               In<int32_t> fill_order, std::optional<In<uint8_t>> allowed,
               std::optional<In2<uint8_t>> skip, std::optional<Shared<int32_t>> cancel,
               const std::string& simd) {
    const ForestArrays arrays(forest, by_rows);
    const FeatureRows& x = rows_for(arrays.view, rows);
    const auto n_labels = static_cast<size_t>(arrays.view.n_labels);
    if (fill_order.size() != n_labels || (allowed && allowed->size() != n_labels))
        refuse("fill_order and allowed must have one entry per label.");
    check_range(fill_order, arrays.view.n_labels, "fill_order");
    int64_t choices = arrays.view.n_labels;
    if (allowed) {
        choices = 0;
        for (size_t i = 0; i < n_labels; ++i) choices += allowed->data()[i] != 0;
    }
    if (k < 1 || k > choices)
        refuse("k must lie in [1, " + std::to_string(choices) + "]. Got " + std::to_string(k) +
               ".");
    const uint8_t* skipped = checked_skip(skip, arrays.view, x);
    Monitor monitor = make_monitor(cancel, std::nullopt);
    std::vector<int32_t> labels(static_cast<size_t>(x.n_rows * k));
    std::vector<float> scores(static_cast<size_t>(x.n_rows * k));
    const TopK out{k, fill_order.data(), allowed ? allowed->data() : nullptr, labels.data(),
                   scores.data()};
    const Kernels& kernels = select_kernels(simd);
    without_gil([&] { route_topk(arrays.view, x, skipped, out, kernels, monitor); });
    return nb::make_tuple(hand_over(std::move(labels), static_cast<size_t>(k)),
                          hand_over(std::move(scores), static_cast<size_t>(k)));
}

nb::tuple as_csr(SparseScores&& s) {
    return nb::make_tuple(hand_over(std::move(s.indptr)), hand_over(std::move(s.indices)),
                          hand_over(std::move(s.values)));
}

nb::tuple scores(nb::handle forest, bool by_rows, const CheckedFeatures& rows,
                 std::optional<In2<uint8_t>> skip, std::optional<Shared<int32_t>> cancel,
                 const std::string& simd) {
    const ForestArrays arrays(forest, by_rows);
    const FeatureRows& x = rows_for(arrays.view, rows);
    const uint8_t* skipped = checked_skip(skip, arrays.view, x);
    Monitor monitor = make_monitor(cancel, std::nullopt);
    const Kernels& kernels = select_kernels(simd);
    return as_csr(
        without_gil([&] { return route_scores(arrays.view, x, skipped, kernels, monitor); }));
}

nb::tuple nodes(nb::handle forest, const CheckedFeatures& rows,
                std::optional<Shared<int32_t>> cancel, const std::string& simd) {
    const ForestArrays arrays(forest, true);
    const FeatureRows& x = rows_for(arrays.view, rows);
    if (arrays.view.n_nodes > INT32_MAX)
        refuse("The nodes of a forest with 2^31 nodes or more cannot be numbered.");
    Monitor monitor = make_monitor(cancel, std::nullopt);
    const Kernels& kernels = select_kernels(simd);
    SparseScores s = without_gil([&] { return route_nodes(arrays.view, x, kernels, monitor); });
    return nb::make_tuple(hand_over(std::move(s.indptr)), hand_over(std::move(s.indices)));
}

nb::object maps(nb::handle forest) {
    const ForestArrays arrays(forest, true, /*with_maps=*/false);
    ForestArrays::check_mappable(arrays.view);
    return hand_over(without_gil([&] { return feature_maps(arrays.view); }));
}

}  // namespace

void bind_router(nb::module_& m) {
    using namespace nb::literals;
    m.def("route_topk", &topk, "forest"_a, "by_rows"_a, "x"_a, "k"_a, as_is("fill_order"),
          as_is("allowed") = nb::none(), as_is("skip") = nb::none(), as_is("cancel") = nb::none(),
          "simd"_a = "auto", "The k best labels of each row and their scores.");
    m.def("route_scores", &scores, "forest"_a, "by_rows"_a, "x"_a, as_is("skip") = nb::none(),
          as_is("cancel") = nb::none(), "simd"_a = "auto",
          "All positive scores of each row: (indptr, labels, scores).");
    m.def("route_nodes", &nodes, "forest"_a, "x"_a, as_is("cancel") = nb::none(), "simd"_a = "auto",
          "The nodes each row visits: (indptr, node numbers).");
    m.def("feature_maps", &maps, "forest"_a,
          "Where each node stores each feature: makes single rows fast where there are few "
          "features.");
}

}  // namespace ldsm::bindings
