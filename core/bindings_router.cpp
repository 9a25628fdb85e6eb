// Bindings for asking forests.
#include "bindings_rows.hpp"
#include "router.hpp"

namespace ldsm::bindings {

namespace {

// A forest is any Python object with these attributes; no copy of it is made or kept.
class ForestArrays {
  public:
    ForestArrays(nb::handle forest, bool by_rows, bool with_maps = true) : forest_(forest) {
        const size_t offsets = array("tree_offsets", view.tree_offsets);
        const size_t nodes = array("first_child", view.first_child);
        const size_t weight_offsets = array("weight_offsets", view.weight_offsets);
        const size_t entries = array("weight_features", view.weight_features);
        const auto weights = kept<In2<float>>("weights");
        const size_t means = array("weight_means", view.weight_means);
        const size_t scales = array("weight_scales", view.weight_scales);
        const size_t histogram_offsets = array("histogram_offsets", view.histogram_offsets);
        const size_t bins = array("histogram_labels", view.histogram_labels);
        const size_t counts = array("histogram_counts", view.histogram_counts);
        const size_t node_rows = array("node_rows", view.node_rows);
        const int64_t arity = number("arity");
        const int64_t n_features = number("n_features");
        const int64_t n_labels = number("n_labels");
        if (arity < 2 || arity > kMaxArity || n_features < 0 || n_features > kMostFeatures ||
            n_labels < 0 || n_labels > INT32_MAX)
            refuse("The forest's arity, n_features or n_labels is out of range.");
        if (offsets < 1 || weight_offsets != nodes + 1 || histogram_offsets != nodes + 1 ||
            node_rows != nodes || weights.shape(0) != entries ||
            weights.shape(1) != static_cast<size_t>(arity) || counts != bins ||
            (means != 0 && means != entries) || scales != means)
            refuse("The forest's arrays do not fit each other in size.");
        view.arity = static_cast<int>(arity);
        view.n_features = static_cast<int32_t>(n_features);
        view.n_labels = static_cast<int32_t>(n_labels);
        view.n_trees = static_cast<int64_t>(offsets) - 1;
        view.n_nodes = static_cast<int64_t>(nodes);
        view.n_entries = static_cast<int64_t>(entries);
        view.n_bins = static_cast<int64_t>(bins);
        view.standardized = means != 0;
        view.by_rows = by_rows;
        view.weights = weights.data();
        if (with_maps) take_maps();
    }
    ForestView view{};

    // The bytes of all maps can be counted.
    static void check_mappable(const ForestView& view) {
        if (view.n_nodes > INT64_MAX / 16 / map_words(view))
            refuse("The forest has too many nodes and features for feature maps.");
    }

  private:
    template <typename Array>
    Array kept(const char* name) {
        Array result;
        if (!nb::try_cast(forest_.attr(name), result, false) || !aligned(result))
            refuse("The forest's ", name,
                   " must be a contiguous, aligned array of the documented type.");
        kept_.emplace_back(result);
        return result;
    }
    // Sets `data`, returns the size.
    template <typename T>
    size_t array(const char* name, const T*& data) {
        const auto result = kept<In<T>>(name);
        data = result.data();
        return result.size();
    }
    int64_t number(const char* name) const {
        int64_t result = 0;
        if (!nb::try_cast(forest_.attr(name), result, false))
            refuse("The forest's ", name, " must be an int.");
        return result;
    }
    void take_maps() {
        const nb::object maps = forest_.attr("feature_maps");
        if (maps.is_none()) return;
        In<uint64_t> words;
        if (view.standardized || !nb::try_cast(maps, words, false) || !aligned(words))
            refuse(
                "The forest's feature_maps must be None or what feature_maps() returns, and None "
                "if its features are standardised.");
        check_mappable(view);
        if (words.size() != static_cast<size_t>(view.n_nodes * map_words(view)) * 2)
            refuse("The forest's feature_maps do not fit its nodes in size.");
        view.maps = reinterpret_cast<const FeatureMap*>(words.data());
        kept_.emplace_back(words);
    }
    nb::handle forest_;
    std::vector<nb::ndarray<>> kept_;  // the arrays live as long as the view
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
        refuse("X must have the features of the forest, ", forest.n_features, ". Got ",
               x.view().n_features, ".");
    return x.view();
}

nb::tuple topk(nb::handle forest, bool by_rows, const CheckedFeatures& rows, int64_t k,
               In<int32_t> fill_order, std::optional<In<uint8_t>> allowed,
               std::optional<In2<uint8_t>> skip, Cancel cancel, const std::string& simd) {
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
    if (k < 1 || k > choices) refuse("k must lie in [1, ", choices, "]. Got ", k, ".");
    const uint8_t* skipped = checked_skip(skip, arrays.view, x);
    Monitor monitor = make_monitor(cancel);
    std::vector<int32_t> labels(static_cast<size_t>(x.n_rows * k));
    std::vector<float> scores(static_cast<size_t>(x.n_rows * k));
    const TopK out{k, fill_order.data(), allowed ? allowed->data() : nullptr, labels.data(),
                   scores.data()};
    const Kernels& kernels = select_kernels(simd);
    without_gil([&] { route_topk(arrays.view, x, skipped, out, kernels, monitor); });
    return nb::make_tuple(hand_over(std::move(labels), static_cast<size_t>(k)),
                          hand_over(std::move(scores), static_cast<size_t>(k)));
}

nb::tuple scores(nb::handle forest, bool by_rows, const CheckedFeatures& rows, Cancel cancel,
                 const std::string& simd) {
    const ForestArrays arrays(forest, by_rows);
    const FeatureRows& x = rows_for(arrays.view, rows);
    Monitor monitor = make_monitor(cancel);
    const Kernels& kernels = select_kernels(simd);
    SparseScores s = without_gil([&] { return route_scores(arrays.view, x, kernels, monitor); });
    return hand_over_all(s.indptr, s.indices, s.values);
}

nb::tuple nodes(nb::handle forest, const CheckedFeatures& rows, const std::string& simd) {
    const ForestArrays arrays(forest, true);
    const FeatureRows& x = rows_for(arrays.view, rows);
    if (arrays.view.n_nodes > INT32_MAX)
        refuse("The nodes of a forest with 2^31 nodes or more cannot be numbered.");
    Monitor monitor = make_monitor({});
    const Kernels& kernels = select_kernels(simd);
    SparseScores s = without_gil([&] { return route_nodes(arrays.view, x, kernels, monitor); });
    return hand_over_all(s.indptr, s.indices);
}

nb::object maps(nb::handle forest) {
    const ForestArrays arrays(forest, true, /*with_maps=*/false);
    ForestArrays::check_mappable(arrays.view);
    return hand_over(without_gil([&] { return feature_maps(arrays.view); }));
}

}  // namespace

void bind_router(nb::module_& m) {
    m.def("route_topk", &topk, "forest"_a, "by_rows"_a, "x"_a, "k"_a, as_is("fill_order"),
          as_is("allowed") = nb::none(), as_is("skip") = nb::none(), as_is("cancel") = nb::none(),
          "simd"_a = "auto", "The k best labels of each row and their scores.");
    m.def("route_scores", &scores, "forest"_a, "by_rows"_a, "x"_a, as_is("cancel") = nb::none(),
          "simd"_a = "auto", "All positive scores of each row: (indptr, labels, scores).");
    m.def("route_nodes", &nodes, "forest"_a, "x"_a, "simd"_a = "auto",
          "The nodes each row visits: (indptr, node numbers).");
    m.def("feature_maps", &maps, "forest"_a,
          "Where each node stores each feature: makes single rows fast where there are few "
          "features.");
}

}  // namespace ldsm::bindings
