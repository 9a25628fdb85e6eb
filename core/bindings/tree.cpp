// Bindings for growing trees.
#include <nanobind/stl/vector.h>

#include <cerrno>
#include <system_error>

#include "bindings/label_vectors.hpp"
#include "bindings/rows.hpp"
#include "trees/grower.hpp"
#include "trees/tree_rows.hpp"

namespace ldsm::bindings {

namespace {

Optimizer optimizer_named(const std::string& name) {
    if (name == "nag") return Optimizer::kNag;
    if (name == "sgd") return Optimizer::kSgd;
    if (name == "asgd") return Optimizer::kAsgd;
    refuse("optimizer must be 'nag', 'sgd' or 'asgd'. Got '", name, "' instead.");
}

void check_params(const TreeParams& p) {
    if (p.arity < 2 || p.arity > kMaxArity)
        refuse("arity must be an int in [2, 8]. Got ", p.arity, " instead.");
    if (p.max_nodes < 1 || p.max_nodes > INT32_MAX - kMaxArity)
        refuse("max_nodes must lie in [1, 2^31 - 8). Got ", p.max_nodes, ".");
    if (p.n_epochs < 1) refuse("n_epochs must be at least 1. Got ", p.n_epochs, ".");
    if (p.relaxations < 0 || p.relaxations > 64) refuse("relaxations must lie in [0, 64].");
    if (!(p.learning_rate > 0) || !std::isfinite(p.learning_rate))
        refuse("learning_rate must be a positive number. Got ", p.learning_rate, ".");
    if (!(p.integrity_weight >= 0) || !std::isfinite(p.integrity_weight) ||
        !(p.multiway_penalty >= 0) || !std::isfinite(p.multiway_penalty))
        refuse("integrity_weight and multiway_penalty must be finite and at least 0.");
    if (!(p.subsample > 0) || p.subsample > 1)
        refuse("subsample must lie in (0, 1]. Got ", p.subsample, ".");
    if (p.min_split_labels < 1) refuse("min_split_labels must be at least 1.");
    if (!(p.prune_share >= 0) || p.prune_share >= 1) refuse("prune_share must lie in [0, 1).");
}

// Parameters are any Python object with these attributes.
template <typename T>
T attribute(nb::handle params, const char* name, const char* kind) {
    const nb::object value = params.attr(name);
    T result{};
    if (!nb::try_cast(value, result))
        throw nb::type_error((std::string(name) + " must be " + kind + ". Got " +
                              nb::repr(value).c_str() + " instead.")
                                 .c_str());
    return result;
}

TreeParams read_params(nb::handle from) {
    const auto whole = [&](const char* name) { return attribute<int>(from, name, "an int"); };
    const auto real = [&](const char* name) { return attribute<double>(from, name, "a float"); };
    TreeParams p;
    p.arity = whole("arity");
    p.max_nodes = attribute<int64_t>(from, "max_nodes", "an int");
    p.n_epochs = whole("n_epochs");
    p.learning_rate = real("learning_rate");
    p.integrity_weight = real("integrity_weight");
    p.multiway_penalty = real("multiway_penalty");
    p.relaxations = whole("relaxations");
    p.optimizer = optimizer_named(attribute<std::string>(from, "optimizer", "a str"));
    p.standardize = attribute<bool>(from, "standardize", "a bool");
    p.subsample = real("subsample");
    p.min_split_labels = attribute<int64_t>(from, "min_split_labels", "an int");
    p.prune_share = real("prune_share");
    p.compress = attribute<bool>(from, "compress", "a bool");
    check_params(p);
    return p;
}

nb::dict grow(const CheckedFeatures& features, const CheckedLabels& labels, nb::handle params,
              uint64_t seed, uint64_t tree, int64_t memory_limit, const std::string& scratch_folder,
              Cancel cancel, Counter progress, const std::string& simd) {
    const FeatureRows& x = features.view();
    const LabelRows& y = labels.view();
    check_equal(x.n_rows, y.n_rows, "X and Y must have the same number of rows");
    if (x.n_rows < 1) refuse("X must have at least one row.");
    const TreeParams p = read_params(params);
    if (memory_limit < 1) refuse("memory_limit must be at least 1.");
    const Memory memory{memory_limit, scratch_folder};
    Monitor monitor = make_monitor(cancel, progress);
    const Kernels& kernels = select_kernels(simd);
    Tree t;
    try {
        t = without_gil([&] { return grow_tree(x, y, p, memory, seed, tree, kernels, monitor); });
    } catch (const std::system_error& error) {  // of the scratch file
        errno = error.code().value();
        PyErr_SetFromErrnoWithFilename(PyExc_OSError, scratch_folder.c_str());
        throw nb::python_error();
    }
    nb::dict out;
    const auto put = [&](const char* name, auto& array, int columns = 0) {
        out[name] = hand_over(std::move(array), static_cast<size_t>(columns));
    };
    put("first_child", t.first_child);
    const WeightForm form{x.n_features, p.compress, p.arity};
    put("weight_offsets", t.weights.offsets);
    out["weight_features"] = features_out(t.weights, form);
    out["weights"] = weights_out(t.weights, form, static_cast<size_t>(p.arity));
    put("weight_units", t.weights.units);
    put("weight_means", t.weight_means);
    put("weight_scales", t.weight_scales);
    put("histogram_offsets", t.histogram_offsets);
    put("histogram_labels", t.histogram_labels);
    put("histogram_counts", t.histogram_counts);
    put("node_rows", t.node_rows);
    put("node_labels", t.node_labels);
    put("node_entropy", t.node_entropy);
    put("objective", t.objective);
    put("balancedness", t.balancedness);
    put("purity", t.purity);
    put("integrity_weight", t.integrity_weight);
    put("epoch_objective", t.epoch_objective, p.n_epochs);
    return out;
}

void check_bag(int64_t n_rows, double subsample) {
    if (n_rows < 0 || n_rows > INT32_MAX) refuse("n_rows must lie in [0, 2^31).");
    if (!(subsample > 0) || subsample > 1) refuse("subsample must lie in (0, 1].");
}

nb::object mask(uint64_t seed, uint64_t tree, int64_t n_rows, double subsample) {
    check_bag(n_rows, subsample);
    return hand_over(bag_mask(seed, tree, n_rows, subsample));
}

nb::object order(uint64_t seed, uint64_t tree, int64_t n_rows, double subsample) {
    check_bag(n_rows, subsample);
    return hand_over(tree_rows(seed, tree, n_rows, subsample));
}

std::vector<std::string> paths() {
    std::vector<std::string> names;
    for (const Kernels* k : available_kernels()) names.emplace_back(k->name);
    return names;
}

}  // namespace

void bind_tree(nb::module_& m) {
    m.def("grow_tree", &grow, "x"_a, "y"_a, "params"_a, nb::kw_only(), "seed"_a, "tree"_a,
          "memory_limit"_a = int64_t{256} << 20, "scratch_folder"_a = "",
          as_is("cancel") = nb::none(), as_is("progress") = nb::none(), "simd"_a = "auto",
          "Grow one tree; returns its arrays by name.");
    m.def("bag_mask", &mask, "seed"_a, "tree"_a, "n_rows"_a, "subsample"_a,
          "1 for each row that the tree is grown on.");
    m.def("row_order", &order, "seed"_a, "tree"_a, "n_rows"_a, "subsample"_a,
          "The rows a tree is grown on, in the order its training sees them.");
    m.def("simd_paths", &paths, "The instruction-set paths of this machine, narrowest first.");
}

}  // namespace ldsm::bindings
