// Label vectors as Python holds them, and encoded weights on their way there.
#pragma once

#include "bindings/object_arrays.hpp"
#include "common/weight_codec.hpp"

namespace ldsm::bindings {

// Vectors are any Python object with these attributes; no copy of it is made or kept.
struct VectorArrays {
    VectorArrays(nb::handle vectors, int64_t n_features) : arrays_(vectors, "vectors") {
        if (n_features < 0 || n_features > kMostFeatures) refuse("n_features is out of range.");
        const size_t offsets = arrays_.array("offsets", view.offsets);
        const size_t entries =
            arrays_.array("features", view.narrow_gaps, view.wide_gaps, view.features);
        const size_t weights = arrays_.array("weights", view.codes, view.weights);
        const size_t units = arrays_.array("units", view.units);
        if (offsets < 1 || offsets - 1 > INT32_MAX || entries != weights ||
            units != (view.codes != nullptr ? offsets - 1 : 0))
            refuse("The arrays of the vectors do not fit each other in size.");
        view.arity = 1;
        view.last_feature = static_cast<int32_t>(n_features);
        view.n_vectors = static_cast<int64_t>(offsets) - 1;
        view.n_entries = static_cast<int64_t>(entries);
    }
    StoredWeights view{};

  private:
    ArraysOf arrays_;
};

inline nb::object features_out(EncodedWeights& weights, const WeightForm& form) {
    return weights.with_features(form, [](auto& array) { return hand_over(std::move(array)); });
}
inline nb::object weights_out(EncodedWeights& weights, const WeightForm& form, size_t columns = 0) {
    return weights.with_weights(form,
                                [=](auto& array) { return hand_over(std::move(array), columns); });
}
// (offsets, features, weights, units)
inline nb::tuple vectors_out(EncodedWeights&& weights, const WeightForm& form) {
    return nb::make_tuple(hand_over(std::move(weights.offsets)), features_out(weights, form),
                          weights_out(weights, form), hand_over(std::move(weights.units)));
}

}  // namespace ldsm::bindings
