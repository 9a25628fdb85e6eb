// Fuzzes what reads the arrays of a model: their sizes fit, as the bindings check, their contents
// are anything. Nothing may be read or written out of bounds, or loop forever.
#include <cmath>
#include <cstdlib>

#include "bytes.hpp"
#include "common/monitor.hpp"
#include "matching/shortlists.hpp"
#include "ranking/blend.hpp"
#include "ranking/label_products.hpp"
#include "ranking/weights_by_feature.hpp"
#include "routing/feature_maps.hpp"
#include "routing/router.hpp"
#include "text/names.hpp"

using namespace ldsm;

namespace {

// Weights in one of the stored forms.
struct Weights {
    Weights(Bytes& bytes, int64_t n_vectors, int arity, int32_t n_features) {
        const int64_t entries = bytes.number(0, 64);
        offsets = bytes.offsets(n_vectors, entries);
        const int form = static_cast<int>(bytes.number(0, 2));
        if (form == 0) features = bytes.numbers<int32_t>(entries, n_features + 2);
        if (form == 1) narrow = bytes.numbers<uint8_t>(entries, 4);
        if (form == 2) wide = bytes.numbers<uint16_t>(entries, 4);
        const bool compressed = bytes.coin();
        if (compressed) {
            codes = bytes.array<int8_t>(entries * arity);
            units = bytes.array<float>(n_vectors);
        } else {
            weights = bytes.array<float>(entries * arity);
        }
        view = {arity,
                n_features,
                n_vectors,
                entries,
                offsets.data(),
                form == 0 ? features.data() : nullptr,
                form == 1 ? narrow.data() : nullptr,
                form == 2 ? wide.data() : nullptr,
                compressed ? nullptr : weights.data(),
                compressed ? codes.data() : nullptr,
                compressed ? units.data() : nullptr};
    }
    std::vector<int64_t> offsets;
    std::vector<int32_t> features;
    std::vector<uint8_t> narrow;
    std::vector<uint16_t> wide;
    std::vector<float> weights, units;
    std::vector<int8_t> codes;
    StoredWeights view{};
};

struct Numbers {
    Numbers(Bytes& bytes, int64_t n, int64_t limit) {
        const int width = static_cast<int>(bytes.number(0, 2));
        if (width == 0) a = bytes.numbers<uint8_t>(n, limit);
        if (width == 1) b = bytes.numbers<uint16_t>(n, limit);
        if (width == 2) c = bytes.numbers<int32_t>(n, limit);
        view = {width == 0 ? a.data() : nullptr, width == 1 ? b.data() : nullptr,
                width == 2 ? c.data() : nullptr};
        // Of no numbers at all one pointer is set, too.
        static const uint8_t none = 0;
        if (n == 0) view = {&none, nullptr, nullptr};
    }
    std::vector<uint8_t> a;
    std::vector<uint16_t> b;
    std::vector<int32_t> c;
    NumbersView view{};
};

// Rows as `CheckedFeatures` lets them through: ascending features in range, finite values.
struct Rows {
    Rows(Bytes& bytes, int32_t n_features) {
        const int64_t n = bytes.number(1, 12);
        for (int64_t row = 0; row < n; ++row) {
            int32_t feature = -1;
            for (int64_t left = bytes.number(0, 9); left > 0; --left) {
                feature += 1 + static_cast<int32_t>(bytes.number(0, 30));
                if (feature >= n_features) break;
                const auto value = bytes.take<float>();
                indices.push_back(feature);
                values.push_back(std::isfinite(value) ? value : 1.0f);
            }
            indptr.push_back(static_cast<int64_t>(indices.size()));
        }
        view = {indptr.data(), indices.data(), values.data(), n, n_features};
    }
    std::vector<int64_t> indptr{0};
    std::vector<int32_t> indices;
    std::vector<float> values;
    FeatureRows view{};
};

template <typename Work>
void attempt(Work&& work) {
    try {
        work();
    } catch (const BrokenModel&) {
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    Bytes bytes{data, size};
    int32_t cancel = 0;
    int64_t progress = 0;
    Monitor monitor(&cancel, &progress, [] {});
    const Kernels& kernels = select_kernels(bytes.coin() ? "auto" : "portable");
    const int arity = static_cast<int>(bytes.number(2, kMaxArity));
    const auto n_features = static_cast<int32_t>(bytes.number(0, 300));
    // Of some, the last few labels were dropped.
    const auto n_known = static_cast<int32_t>(bytes.number(1, 200));
    const int32_t n_dropped = n_known > 4 ? n_known % 4 : 0, n_labels = n_known - n_dropped;
    std::vector<int32_t> places;
    for (int32_t label = 0; n_dropped > 0 && label < n_known; ++label)
        places.push_back((label + n_known / 2) % n_known);
    const Rows rows(bytes, n_features);
    const FeatureRows& x = rows.view;

    // A forest.
    const int64_t n_trees = bytes.number(1, 3), n_nodes = bytes.number(1, 24);
    const auto tree_offsets = bytes.offsets(n_trees, n_nodes);
    const auto first_child = bytes.numbers<int32_t>(n_nodes, n_nodes);
    const Weights weights(bytes, n_nodes, arity, n_features);
    const bool standardized = bytes.take<uint8_t>() % 8 == 0;
    const auto means = bytes.array<float>(standardized ? weights.view.n_entries : 0);
    const auto scales = bytes.array<float>(standardized ? weights.view.n_entries : 0);
    const int64_t n_bins = bytes.number(0, 48);
    const auto histogram_offsets = bytes.offsets(n_nodes, n_bins);
    const Numbers labels(bytes, n_bins, n_known), counts(bytes, n_bins, 9);
    const auto node_rows = bytes.numbers<int64_t>(n_nodes, 20);
    ForestView forest{arity,
                      n_features,
                      n_labels,
                      n_dropped,
                      n_trees,
                      n_nodes,
                      n_bins,
                      standardized,
                      bytes.coin(),
                      tree_offsets.data(),
                      first_child.data(),
                      weights.view,
                      means.data(),
                      scales.data(),
                      histogram_offsets.data(),
                      labels.view,
                      counts.view,
                      node_rows.data(),
                      places.empty() ? nullptr : places.data()};
    FeatureMapArrays maps;
    if (!standardized && bytes.coin()) {
        attempt([&] { maps = feature_maps(forest); });
        if (!maps.empty()) {
            const auto words = static_cast<size_t>(forest.map_words()) * 2;
            if (bytes.take<uint8_t>() == 255 && maps.size() > 0)
                maps[static_cast<size_t>(bytes.number(0, static_cast<int64_t>(maps.size()) - 1))] =
                    bytes.take<uint64_t>();
            forest.map_numbers = maps.data();
            forest.maps = reinterpret_cast<const FeatureMap*>(maps.data() + n_nodes);
            forest.n_maps =
                static_cast<int64_t>((maps.size() - static_cast<size_t>(n_nodes)) / words);
        }
    }
    const int64_t k = bytes.number(1, n_labels);
    const auto order = bytes.numbers<int32_t>(n_labels, n_labels);
    std::vector<int32_t> fill_order(order);
    for (int32_t& label : fill_order)
        if (label < 0 || label >= n_labels) label = 0;
    std::vector<int32_t> top(static_cast<size_t>(x.n_rows * k));
    std::vector<float> scores(top.size());
    attempt([&] {
        route_topk(forest, x, nullptr, {k, fill_order.data(), nullptr, top.data(), scores.data()},
                   kernels, monitor);
    });
    attempt([&] { route_scores(forest, x, kernels, monitor); });
    attempt([&] { route_nodes(forest, x, kernels, monitor); });

    // An index, and shortlists.
    const int64_t entries = bytes.number(0, 48);
    const auto index_offsets = bytes.offsets(n_features, entries);
    const Numbers index_labels(bytes, entries, n_known);
    const auto codes = bytes.array<uint8_t>(entries);
    const auto units = bytes.array<float>(n_features);
    const int64_t length = bytes.number(1, 40);
    Matchers matchers{};
    if (bytes.coin())
        matchers.indexes.push_back(
            {entries, index_offsets.data(), index_labels.view, codes.data(), units.data()});
    ShortlistArrays lists;
    attempt([&] {
        lists = match(forest, {&x, &x, nullptr, nullptr, nullptr}, matchers, length, nullptr,
                      kernels, monitor);
    });

    // The vectors of a second stage.
    const Weights vectors(bytes, n_labels, 1, n_features);
    if (lists.indptr.size() != static_cast<size_t>(x.n_rows) + 1) return 0;
    const LabelRows listed{lists.indptr.data(), lists.labels.data(), x.n_rows, n_labels};
    std::vector<float> products(lists.labels.size()), again(lists.labels.size());
    attempt([&] { label_products(vectors.view, x, listed, products.data(), monitor); });
    attempt([&] {
        const WeightsByFeature by_feature = weights_by_feature(vectors.view);
        few_label_products(by_feature, x, listed, again.data(), kernels, monitor);
    });

    // Names.
    const int64_t n_names = bytes.number(0, 12);
    const auto text = bytes.array<uint8_t>(bytes.number(0, 64));
    auto name_offsets = bytes.offsets(n_names, static_cast<int64_t>(text.size()));
    bool ascending = name_offsets[0] == 0;
    for (int64_t i = 0; i < n_names; ++i) ascending &= name_offsets[i] <= name_offsets[i + 1];
    if (!ascending || name_offsets[n_names] != static_cast<int64_t>(text.size())) return 0;
    const auto kinds = bytes.numbers<uint8_t>(n_names, 3);
    NameRules rules{"", "", bytes.coin()};
    if (bytes.coin()) rules.low = "-128", rules.high = "127";
    check_names({text.data(), name_offsets.data(), n_names, kinds.data()}, rules);
    return 0;
}
