// Bindings for label vectors: their encoding, and their products with rows.
#include "bindings/label_vectors.hpp"

#include "bindings/rows.hpp"
#include "ranking/label_products.hpp"
#include "ranking/weights_by_feature.hpp"

namespace ldsm::bindings {

namespace {

template <typename Weight>
void check_vectors(const In<int64_t>& offsets, const In<int32_t>& features,
                   const In<Weight>& weights, int64_t n_features) {
    if (n_features < 0 || n_features > kMostFeatures) refuse("n_features is out of range.");
    check_offsets(offsets, features.size(), "The offsets of the vectors");
    check_range(features, n_features + 1, "The features of the vectors");
    check_aligned(weights, "The weights of the vectors");
    check_equal(weights.size(), features.size(), "There must be a weight for each feature");
    for (size_t v = 0; v + 1 < offsets.size(); ++v)
        for (int64_t e = offsets.data()[v] + 1; e < offsets.data()[v + 1]; ++e)
            if (features.data()[e] <= features.data()[e - 1])
                refuse("The features of a vector must ascend.");
}

nb::tuple encode(In<int64_t> offsets, In<int32_t> features, In<float> weights, int64_t n_features,
                 bool compress) {
    check_vectors(offsets, features, weights, n_features);
    const WeightForm form{static_cast<int32_t>(n_features), compress};
    EncodedWeights out = without_gil([&] {
        EncodedWeights encoded;
        SparseVector vector;
        for (size_t v = 0; v + 1 < offsets.size(); ++v) {
            vector.clear();
            const auto each = [&](auto&& take) {
                for (int64_t e = offsets.data()[v]; e < offsets.data()[v + 1]; ++e)
                    take(features.data()[e], weights.data()[e]);
            };
            each_stored(compress, each, [&](int32_t feature, float weight, float unit) {
                vector.unit = unit;
                vector.add(form, feature, &weight);
            });
            encoded.append(form, vector);
        }
        return encoded;
    });
    return vectors_out(std::move(out), form);
}

nb::tuple encode_codes(In<int64_t> offsets, In<int32_t> features, In<int8_t> codes,
                       int64_t n_features) {
    check_vectors(offsets, features, codes, n_features);
    const WeightForm form{static_cast<int32_t>(n_features), /*compress=*/true};
    EncodedWeights out = without_gil([&] {
        EncodedWeights encoded;
        SparseVector vector;
        for (size_t v = 0; v + 1 < offsets.size(); ++v) {
            vector.clear();
            for (int64_t e = offsets.data()[v]; e < offsets.data()[v + 1]; ++e)
                vector.add_code(form, features.data()[e], codes.data()[e]);
            encoded.append(form, vector);
        }
        return encoded;
    });
    return nb::make_tuple(hand_over(std::move(out.offsets)), features_out(out, form),
                          weights_out(out, form));
}

int32_t widest_gap(int64_t n_features) {
    return WeightForm{static_cast<int32_t>(std::min(n_features, kMostFeatures)), true}.widest_gap();
}

// Made from checked vectors and not accessible afterwards, so it needs no checks.
struct VectorsByFeature {
    VectorsByFeature(nb::handle vectors, int64_t n_features) {
        const VectorArrays arrays(vectors, n_features);
        n_labels = arrays.view.n_vectors;
        weights = without_gil([&] { return weights_by_feature(arrays.view); });
    }
    int64_t n_labels;
    WeightsByFeature weights;
};

nb::object products(nb::handle vectors, const CheckedFeatures& rows, In<int64_t> list_indptr,
                    In<int32_t> list_labels, Cancel cancel, const VectorsByFeature* by_feature) {
    const FeatureRows& x = rows.view();
    const VectorArrays arrays(vectors, x.n_features);
    const int64_t n_labels = arrays.view.n_vectors;
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
        if (by_feature == nullptr || !few_label_products(arrays.view, by_feature->weights, x, lists,
                                                         out.data(), kernels, monitor))
            label_products(arrays.view, x, lists, out.data(), monitor);
    });
    return hand_over(std::move(out));
}

nb::object norms(nb::handle vectors, In<int32_t> labels) {
    const VectorArrays arrays(vectors, kMostFeatures);
    check_range(labels, arrays.view.n_vectors, "The label numbers");
    std::vector<double> out(labels.size());
    without_gil([&] { squared_norms(arrays.view, labels.data(), out); });
    return hand_over(std::move(out));
}

}  // namespace

void bind_label_vectors(nb::module_& m) {
    m.def("encode_vectors", &encode, as_is("offsets"), as_is("features"), as_is("weights"),
          "n_features"_a, "compress"_a,
          "Sparse vectors in the stored form: (offsets, features, weights, units).");
    m.def("encode_codes", &encode_codes, as_is("offsets"), as_is("features"), as_is("codes"),
          "n_features"_a,
          "Rounded vectors with other features, compressed: (offsets, gaps, codes).");
    m.def("widest_gap", &widest_gap, "n_features"_a,
          "The largest gap between two features that compressed vectors can store.");
    nb::class_<VectorsByFeature>(m, "VectorsByFeature",
                                 "The weights of vectors by feature: makes single rows fast.")
        .def(nb::init<nb::handle, int64_t>(), "vectors"_a, "n_features"_a);
    m.def("label_products", &products, "vectors"_a, "x"_a, as_is("list_indptr"),
          as_is("list_labels"), as_is("cancel") = nb::none(), "by_feature"_a.none() = nb::none(),
          "Products of unit rows with the vectors of the labels on their lists.");
    m.def("squared_norms", &norms, "vectors"_a, as_is("labels"),
          "Squared norms of the vectors of some labels.");
}

}  // namespace ldsm::bindings
