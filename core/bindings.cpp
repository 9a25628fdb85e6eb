// Trees and Python: checks what comes in, releases the GIL, hands arrays over. Only the bindings
// know Python.
#include <nanobind/stl/vector.h>

#include <cerrno>
#include <system_error>

#include "bindings.hpp"
#include "grower.hpp"
#include "router.hpp"

namespace nb = nanobind;
using namespace ldsm;
using namespace ldsm::bindings;

namespace {

Optimizer optimizer_named(const std::string& name) {
    if (name == "nag") return Optimizer::kNag;
    if (name == "sgd") return Optimizer::kSgd;
    if (name == "asgd") return Optimizer::kAsgd;
    refuse("optimizer must be 'nag', 'sgd' or 'asgd'. Got '" + name + "' instead.");
}

void check_params(const TreeParams& p) {
    if (p.arity < 2 || p.arity > kMaxArity)
        refuse("arity must be an int in [2, 8]. Got " + std::to_string(p.arity) + " instead.");
    if (p.max_nodes < 1 || p.max_nodes > INT32_MAX - kMaxArity)
        refuse("max_nodes must lie in [1, 2^31 - 8). Got " + std::to_string(p.max_nodes) + ".");
    if (p.n_epochs < 1) refuse("n_epochs must be at least 1. Got " + std::to_string(p.n_epochs) + ".");
    if (p.relaxations < 0 || p.relaxations > 64) refuse("relaxations must lie in [0, 64].");
    if (!(p.learning_rate > 0) || !std::isfinite(p.learning_rate))
        refuse("learning_rate must be a positive number. Got " + std::to_string(p.learning_rate) + ".");
    if (!(p.integrity_weight >= 0) || !std::isfinite(p.integrity_weight) ||
        !(p.multiway_penalty >= 0) || !std::isfinite(p.multiway_penalty))
        refuse("integrity_weight and multiway_penalty must be finite and at least 0.");
    if (!(p.subsample > 0) || p.subsample > 1)
        refuse("subsample must lie in (0, 1]. Got " + std::to_string(p.subsample) + ".");
    if (p.memory_limit < 1) refuse("memory_limit must be at least 1.");
}

nb::dict grow(In<int64_t> x_indptr, In<int32_t> x_indices, In<float> x_values, int64_t n_features,
              In<int64_t> y_indptr, In<int32_t> y_indices, int64_t n_labels, uint64_t seed,
              uint64_t tree, int arity, int64_t max_nodes, int n_epochs, double learning_rate,
              double integrity_weight, double multiway_penalty, int relaxations,
              const std::string& optimizer, bool standardize, double subsample,
              int64_t memory_limit, const std::string& scratch_folder, std::optional<Shared<int32_t>> cancel,
              std::optional<Shared<int64_t>> progress,
              const std::string& simd) {
    const FeatureRows x = feature_rows(x_indptr, x_indices, x_values, n_features);
    const LabelRows y = label_rows(y_indptr, y_indices, n_labels);
    if (x.n_rows != y.n_rows)
        refuse("X and Y must have the same number of rows. Got " + std::to_string(x.n_rows) +
               " and " + std::to_string(y.n_rows) + ".");
    if (x.n_rows < 1) refuse("X must have at least one row.");
    const TreeParams params{arity,          max_nodes,        n_epochs,    learning_rate,
                            integrity_weight, multiway_penalty, relaxations,
                            optimizer_named(optimizer), standardize, subsample,
                            memory_limit, scratch_folder};
    check_params(params);
    Monitor monitor = make_monitor(cancel, progress);
    const Kernels& kernels = select_kernels(simd);
    Tree t;
    try {
        t = without_gil([&] { return grow_tree(x, y, params, seed, tree, kernels, monitor); });
    } catch (const std::system_error& error) {  // of the scratch file
        errno = error.code().value();
        PyErr_SetFromErrnoWithFilename(PyExc_OSError, scratch_folder.c_str());
        throw nb::python_error();
    }
    nb::dict out;
    out["first_child"] = hand_over(std::move(t.first_child));
    out["weight_offsets"] = hand_over(std::move(t.weight_offsets));
    out["weight_features"] = hand_over(std::move(t.weight_features));
    out["weights"] = hand_over(std::move(t.weights), static_cast<size_t>(arity));
    out["weight_means"] = hand_over(std::move(t.weight_means));
    out["weight_scales"] = hand_over(std::move(t.weight_scales));
    out["histogram_offsets"] = hand_over(std::move(t.histogram_offsets));
    out["histogram_labels"] = hand_over(std::move(t.histogram_labels));
    out["histogram_counts"] = hand_over(std::move(t.histogram_counts));
    out["node_rows"] = hand_over(std::move(t.node_rows));
    out["node_labels"] = hand_over(std::move(t.node_labels));
    out["node_entropy"] = hand_over(std::move(t.node_entropy));
    out["objective"] = hand_over(std::move(t.objective));
    out["balancedness"] = hand_over(std::move(t.balancedness));
    out["purity"] = hand_over(std::move(t.purity));
    out["integrity_weight"] = hand_over(std::move(t.integrity_weight));
    out["epoch_objective"] = hand_over(std::move(t.epoch_objective), static_cast<size_t>(n_epochs));
    return out;
}

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
        if (arity < 2 || arity > kMaxArity || n_features < 0 || n_features > INT32_MAX - 8 ||
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
            refuse("The forest's feature_maps must be None or what feature_maps() returns, and None "
                   "if its features are standardised.");
        view.map_words = map_words(view);
        if (feature_maps_.size() != nodes * static_cast<size_t>(view.map_words) * 2)
            refuse("The forest's feature_maps do not fit its nodes in size.");
        view.maps = reinterpret_cast<const FeatureMap*>(feature_maps_.data());
    }
    ForestView view;

    // Words of a node's feature map, if the maps of all nodes can be counted at all.
    static int64_t map_words(const ForestView& view) {
        const int64_t words = (int64_t{view.n_features} + 2 + 63) / 64;  // the bias and the padding
        if (view.n_nodes > INT64_MAX / 16 / words)
            refuse("The forest has too many nodes and features for feature maps.");
        return words;
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

FeatureRows rows_for(const ForestView& forest, const In<int64_t>& indptr,
                     const In<int32_t>& indices, const In<float>& values) {
    return feature_rows(indptr, indices, values, forest.n_features);
}

nb::tuple topk(nb::handle forest, bool by_rows, In<int64_t> indptr, In<int32_t> indices,
               In<float> values, int64_t k, In<int32_t> fill_order,
               std::optional<In<uint8_t>> allowed, std::optional<In2<uint8_t>> skip,
               std::optional<Shared<int32_t>> cancel, const std::string& simd) {
    const ForestArrays arrays(forest, by_rows);
    const FeatureRows x = rows_for(arrays.view, indptr, indices, values);
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
        refuse("k must lie in [1, " + std::to_string(choices) + "]. Got " + std::to_string(k) + ".");
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

nb::tuple scores(nb::handle forest, bool by_rows, In<int64_t> indptr, In<int32_t> indices,
                 In<float> values, std::optional<In2<uint8_t>> skip,
                 std::optional<Shared<int32_t>> cancel, const std::string& simd) {
    const ForestArrays arrays(forest, by_rows);
    const FeatureRows x = rows_for(arrays.view, indptr, indices, values);
    const uint8_t* skipped = checked_skip(skip, arrays.view, x);
    Monitor monitor = make_monitor(cancel, std::nullopt);
    const Kernels& kernels = select_kernels(simd);
    return as_csr(
        without_gil([&] { return route_scores(arrays.view, x, skipped, kernels, monitor); }));
}

nb::tuple nodes(nb::handle forest, In<int64_t> indptr, In<int32_t> indices, In<float> values,
                std::optional<Shared<int32_t>> cancel, const std::string& simd) {
    const ForestArrays arrays(forest, true);
    const FeatureRows x = rows_for(arrays.view, indptr, indices, values);
    if (arrays.view.n_nodes > INT32_MAX)
        refuse("The nodes of a forest with 2^31 nodes or more cannot be numbered.");
    Monitor monitor = make_monitor(cancel, std::nullopt);
    const Kernels& kernels = select_kernels(simd);
    SparseScores s =
        without_gil([&] { return route_nodes(arrays.view, x, kernels, monitor); });
    return nb::make_tuple(hand_over(std::move(s.indptr)), hand_over(std::move(s.indices)));
}

// True where the arrays are a well-formed CSR matrix of the canonical kind, as the core can read it;
// never reads outside them.
bool canonical(In<int64_t> indptr, In<int32_t> indices, In<float> values) {
    const int64_t* offsets = indptr.data();
    const auto n = static_cast<int64_t>(indices.size());
    if (!aligned(indptr) || !aligned(indices) || !aligned(values) || indptr.size() < 1 ||
        values.size() != indices.size() || offsets[0] != 0 || offsets[indptr.size() - 1] != n)
        return false;
    for (size_t row = 0; row + 1 < indptr.size(); ++row) {
        if (offsets[row + 1] < offsets[row] || offsets[row + 1] > n) return false;
        int32_t before = -1;
        for (int64_t i = offsets[row]; i < offsets[row + 1]; ++i) {
            const float v = values.data()[i];
            if (indices.data()[i] <= before || v == 0 || !std::isfinite(v)) return false;
            before = indices.data()[i];
        }
    }
    return true;
}

nb::object maps(nb::handle forest) {
    const ForestArrays arrays(forest, true, /*with_maps=*/false);
    ForestArrays::map_words(arrays.view);
    return hand_over(without_gil([&] { return feature_maps(arrays.view); }));
}

nb::object mask(uint64_t seed, uint64_t tree, int64_t n_rows, double subsample) {
    if (n_rows < 0 || n_rows > INT32_MAX) refuse("n_rows must lie in [0, 2^31).");
    if (!(subsample > 0) || subsample > 1) refuse("subsample must lie in (0, 1].");
    return hand_over(bag_mask(seed, tree, n_rows, subsample));
}

nb::object order(uint64_t seed, uint64_t tree, int64_t n_rows, double subsample) {
    if (n_rows < 0 || n_rows > INT32_MAX) refuse("n_rows must lie in [0, 2^31).");
    if (!(subsample > 0) || subsample > 1) refuse("subsample must lie in (0, 1].");
    return hand_over(tree_rows(seed, tree, n_rows, subsample));
}

std::vector<std::string> paths() {
    std::vector<std::string> names;
    for (const Kernels* k : available_kernels()) names.emplace_back(k->name);
    return names;
}

}  // namespace

void bind_text_format(nb::module_& m);  // bindings_text.cpp
void bind_ranker(nb::module_& m);       // bindings_ranker.cpp

NB_MODULE(_core, m) {
    using namespace nb::literals;
    m.doc() = "The compiled core of ldsm: pure functions over arrays.";
    bind_text_format(m);
    bind_ranker(m);
    const auto na = [](const char* name) { return nb::arg(name).noconvert(); };
    m.def("grow_tree", &grow, na("x_indptr"), na("x_indices"), na("x_values"), "n_features"_a,
          na("y_indptr"), na("y_indices"), "n_labels"_a, nb::kw_only(), "seed"_a, "tree"_a,
          "arity"_a, "max_nodes"_a, "n_epochs"_a, "learning_rate"_a, "integrity_weight"_a,
          "multiway_penalty"_a, "relaxations"_a, "optimizer"_a, "standardize"_a, "subsample"_a,
          "memory_limit"_a = int64_t{256} << 20, "scratch_folder"_a = "", na("cancel") = nb::none(),
          na("progress") = nb::none(), "simd"_a = "auto",
          "Grow one tree; returns its arrays by name.");
    m.def("route_topk", &topk, "forest"_a, "by_rows"_a, na("indptr"), na("indices"), na("values"),
          "k"_a, na("fill_order"), na("allowed") = nb::none(), na("skip") = nb::none(),
          na("cancel") = nb::none(), "simd"_a = "auto",
          "The k best labels of each row and their scores.");
    m.def("route_scores", &scores, "forest"_a, "by_rows"_a, na("indptr"), na("indices"),
          na("values"), na("skip") = nb::none(), na("cancel") = nb::none(), "simd"_a = "auto",
          "All positive scores of each row: (indptr, labels, scores).");
    m.def("route_nodes", &nodes, "forest"_a, na("indptr"), na("indices"), na("values"),
          na("cancel") = nb::none(), "simd"_a = "auto",
          "The nodes each row visits: (indptr, node numbers).");
    m.def("feature_maps", &maps, "forest"_a,
          "Where each node stores each feature: makes single rows fast where there are few features.");
    m.def("is_canonical", &canonical, na("indptr"), na("indices"), na("values"),
          "Rows are sorted, without duplicates, and hold finite values other than 0.");
    m.def("bag_mask", &mask, "seed"_a, "tree"_a, "n_rows"_a, "subsample"_a,
          "1 for each row that the tree is grown on.");
    m.def("row_order", &order, "seed"_a, "tree"_a, "n_rows"_a, "subsample"_a,
          "The rows a tree is grown on, in the order its training sees them.");
    m.def("simd_paths", &paths, "The instruction-set paths of this machine, narrowest first.");
}
