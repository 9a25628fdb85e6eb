// Forests as Python holds them, and what is asked of them together with rows.
#pragma once

#include <optional>

#include "bindings/object_arrays.hpp"
#include "bindings/rows.hpp"
#include "routing/forest_view.hpp"

namespace ldsm::bindings {

// A forest is any Python object with these attributes; no copy of it is made or kept.
class ForestArrays {
  public:
    explicit ForestArrays(nb::handle forest, bool with_maps = true)
        : forest_(forest), arrays_(forest, "forest") {
        const size_t offsets = arrays_.array("tree_offsets", view.tree_offsets);
        const size_t nodes = arrays_.array("first_child", view.first_child);
        const size_t weight_offsets = arrays_.array("weight_offsets", view.weights.offsets);
        const size_t entries = arrays_.array("weight_features", view.weights.narrow_gaps,
                                             view.weights.wide_gaps, view.weights.features);
        const size_t weights = arrays_.matrix("weights", view.weights.codes, view.weights.weights);
        const size_t units = arrays_.array("weight_units", view.weights.units);
        const size_t means = arrays_.array("weight_means", view.weight_means);
        const size_t scales = arrays_.array("weight_scales", view.weight_scales);
        const size_t histogram_offsets = arrays_.array("histogram_offsets", view.histogram_offsets);
        const size_t bins = arrays_.numbers("histogram_labels", view.histogram_labels);
        const size_t counts = arrays_.numbers("histogram_counts", view.histogram_counts);
        const size_t node_rows = arrays_.array("node_rows", view.node_rows);
        const size_t places = arrays_.array("places", view.places);
        const int64_t arity = arrays_.number("arity");
        const int64_t n_features = arrays_.number("n_features");
        const int64_t n_labels = arrays_.number("n_labels");
        if (arity < 2 || arity > kMaxArity || n_features < 0 || n_features > kMostFeatures ||
            n_labels < 0 || n_labels > INT32_MAX)
            refuse("The forest's arity, n_features or n_labels is out of range.");
        if (offsets < 1 || weight_offsets != nodes + 1 || histogram_offsets != nodes + 1 ||
            node_rows != nodes || weights != entries * static_cast<size_t>(arity) ||
            counts != bins || (means != 0 && means != entries) || scales != means ||
            units != (view.weights.codes != nullptr ? nodes : 0) ||
            (places != 0 && places < static_cast<size_t>(n_labels)) || places > INT32_MAX)
            refuse("The forest's arrays do not fit each other in size.");
        view.arity = static_cast<int>(arity);
        view.n_features = static_cast<int32_t>(n_features);
        view.n_labels = static_cast<int32_t>(n_labels);
        view.n_dropped = places == 0 ? 0 : static_cast<int32_t>(places) - view.n_labels;
        if (places == 0) view.places = nullptr;
        view.n_trees = static_cast<int64_t>(offsets) - 1;
        view.n_nodes = static_cast<int64_t>(nodes);
        view.weights.arity = view.arity;
        view.weights.last_feature = view.n_features;
        view.weights.n_vectors = view.n_nodes;
        view.weights.n_entries = static_cast<int64_t>(entries);
        view.n_bins = static_cast<int64_t>(bins);
        view.standardized = means != 0;
        view.by_rows = nb::cast<bool>(forest.attr("by_rows"));
        if (with_maps) take_maps();
    }
    ForestView view{};

  private:
    void take_maps() {
        const nb::object maps = forest_.attr("feature_maps");
        if (maps.is_none()) return;
        if (view.standardized || !nb::try_cast(maps, maps_, false) || !aligned(maps_))
            refuse(
                "The forest's feature_maps must be None or what feature_maps() returns, and None "
                "if its features are standardised.");
        const auto nodes = static_cast<size_t>(view.n_nodes);
        const auto size = static_cast<size_t>(view.map_words()) * 2;
        if (maps_.size() < nodes || (maps_.size() - nodes) % size != 0)
            refuse("The forest's feature_maps do not fit its nodes in size.");
        view.map_numbers = maps_.data();
        view.maps = reinterpret_cast<const FeatureMap*>(maps_.data() + nodes);
        view.n_maps = static_cast<int64_t>((maps_.size() - nodes) / size);
    }
    nb::handle forest_;
    ArraysOf arrays_;
    In<uint64_t> maps_;
};

inline const uint8_t* checked_skip(const std::optional<In2<uint8_t>>& skip,
                                   const ForestView& forest, const FeatureRows& x) {
    if (!skip) return nullptr;
    if (static_cast<int64_t>(skip->shape(0)) != x.n_rows ||
        static_cast<int64_t>(skip->shape(1)) != forest.n_trees)
        refuse("skip must have one row per row of X and one column per tree.");
    return skip->data();
}

inline const FeatureRows& rows_for(const ForestView& forest, const CheckedFeatures& x) {
    if (x.view().n_features != forest.n_features)
        refuse("X must have the features of the forest, ", forest.n_features, ". Got ",
               x.view().n_features, ".");
    return x.view();
}

inline const uint8_t* checked_allowed(const std::optional<In<uint8_t>>& allowed, int32_t n_labels) {
    if (!allowed) return nullptr;
    if (allowed->size() != static_cast<size_t>(n_labels))
        refuse("allowed must have one entry per label, ", n_labels, ". Got ", allowed->size(), ".");
    return allowed->data();
}

// Each label must have a place of its own.
inline void check_places(const int32_t* places, int32_t n_labels) {
    std::vector<uint8_t> taken(static_cast<size_t>(n_labels), 0);
    for (int32_t label = 0; label < n_labels; ++label)
        if (places[label] < 0 || places[label] >= n_labels || taken[places[label]]++ != 0)
            refuse("The places of labels must be their numbers, each once.");
}

// Places that are not given are the labels' numbers.
inline const int32_t* checked_places(const std::optional<In<int32_t>>& places, int32_t n_labels) {
    if (!places) return nullptr;
    check_equal(static_cast<int64_t>(places->size()), n_labels, "There must be a place per label");
    check_aligned(*places, "The places");
    check_places(places->data(), n_labels);
    return places->data();
}

}  // namespace ldsm::bindings
