#include "ranking/weights_by_feature.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <type_traits>

#include "common/monitor.hpp"
#include "common/partial_sums.hpp"

namespace ldsm {

void damaged_vector(int64_t label, const char* what) {
    throw BrokenModel("The second stage is damaged at label " + std::to_string(label) + ": " +
                      what + ".");
}

WeightsByFeature weights_by_feature(const StoredWeights& vectors) {
    WeightsByFeature out;
    const size_t n_features = static_cast<size_t>(vectors.last_feature) + 1;
    out.offsets.assign(n_features + 1, 0);
    const auto each_entry = [&](auto&& visit) {
        for (int64_t label = 0; label < vectors.n_vectors; ++label) {
            Range entries;
            if (!vectors.entries_of(label, entries)) damaged_vector(label, "offsets out of range");
            const VectorWeights weights(vectors, label);
            if (!vectors.each_feature(entries, [&](int64_t e, uint32_t f) {
                    const float weight = weights.at(e);
                    if (!std::isfinite(weight))
                        damaged_vector(label, "a weight that is not finite");
                    if (weight != 0) visit(label, e, f);
                }))
                damaged_vector(label, "a feature out of range");
        }
    };
    each_entry([&](int64_t, int64_t, uint32_t f) { ++out.offsets[f + 1]; });
    std::partial_sum(out.offsets.begin(), out.offsets.end(), out.offsets.begin());
    out.labels.resize(static_cast<size_t>(out.offsets.back()));
    const bool compressed = vectors.codes != nullptr;
    compressed ? out.codes.resize(out.labels.size()) : out.weights.resize(out.labels.size());
    if (compressed) out.units.assign(vectors.units, vectors.units + vectors.n_vectors);
    std::vector<int64_t> next(out.offsets.begin(), out.offsets.end() - 1);
    each_entry([&](int64_t label, int64_t e, uint32_t f) {
        const int64_t at = next[f]++;
        out.labels[at] = static_cast<int32_t>(label);
        if (compressed)
            out.codes[at] = vectors.codes[e];
        else
            out.weights[at] = vectors.weights[e];
    });

    out.map_words = (vectors.n_vectors + 63) / 64;
    out.map_numbers.assign(n_features, 0);
    int32_t n_maps = 0;
    for (size_t f = 0; f < n_features; ++f) {
        const int64_t begin = out.offsets[f], end = out.offsets[f + 1];
        if (end == begin || end - begin < 4 * out.map_words) continue;
        out.map_numbers[f] = ++n_maps;
        out.maps.resize(out.maps.size() + static_cast<size_t>(out.map_words), FeatureMap{0, 0});
        FeatureMap* const map = out.maps.data() + out.maps.size() - out.map_words;
        for (int64_t e = begin; e < end; ++e)
            map[out.labels[e] / 64].present |= uint64_t{1} << (out.labels[e] % 64);
        int64_t e = begin;
        for (int64_t w = 0; w < out.map_words; ++w) {
            map[w].before = static_cast<uint64_t>(e - begin);
            while (e < end && out.labels[e] / 64 == w) ++e;
        }
    }
    return out;
}

void RowProducts::products(int64_t row, const int32_t* labels, int64_t n, float* out) {
    slot_.resize(n_labels_, 0);
    listed_.clear();
    units_.assign(1, 1.0f);
    for (int64_t i = 0; i < n; ++i) {
        if (slot_[labels[i]] != 0) continue;
        listed_.push_back(static_cast<uint32_t>(labels[i]));
        units_.push_back(weights_.units.empty() ? 1.0f : weights_.units[labels[i]]);
        slot_[labels[i]] = static_cast<int32_t>(listed_.size());
    }
    weights_.units.empty() ? add_up(row, weights_.weights.data(), n, labels, out)
                           : add_up(row, weights_.codes.data(), n, labels, out);
    for (const uint32_t label : listed_) slot_[label] = 0;
}

template <typename Weight>
void RowProducts::add_up(int64_t row, const Weight* weights, int64_t n, const int32_t* labels,
                         float* out) {
    sums_.assign(units_.size() * 4, 0.0f);
    const int64_t length = rows_.length(row);
    for (int64_t i = 0; i < length; ++i)
        // What is left after the last four goes to the first sum.
        add(rows_.feature(row, i), rows_.value(row, i), i < length / 4 * 4 ? i % 4 : 0, weights);
    for (int64_t i = 0; i < n; ++i) {
        const float* s = sums_.data() + int64_t{slot_[labels[i]]} * 4;
        out[i] = rows_.scale(row) * join_sums(s[0], s[1], s[2], s[3]);
    }
    // The constant comes last, and is not scaled.
    sums_.assign(sums_.size(), 0.0f);
    add(rows_.n_features(), 1.0f, 0, weights);
    for (int64_t i = 0; i < n; ++i) {
        out[i] += sums_[int64_t{slot_[labels[i]]} * 4];
        if (!std::isfinite(out[i])) damaged_vector(labels[i], "weights too large to add up");
    }
}

template <typename Weight>
void RowProducts::add(int32_t feature, float x, int64_t lane, const Weight* weights) {
    const int64_t begin = weights_.offsets[feature], end = weights_.offsets[feature + 1];
    float* const sums = sums_.data() + lane;
    const auto weight = [=](int64_t e, float unit) {
        return std::is_same_v<Weight, float> ? weights[e] : unit * static_cast<float>(weights[e]);
    };
    if (const int64_t number = weights_.map_numbers[feature]; number != 0) {
        const auto n = static_cast<int64_t>(listed_.size());
        places_.resize(listed_.size());
        find_places_(weights_.maps.data() + (number - 1) * weights_.map_words, listed_.data(), n,
                     end - begin, places_.data());
        // A label without the feature adds 0 times some weight: cheaper than a branch that cannot
        // be predicted.
        for (int64_t i = 0; i < n; ++i) {
            const int32_t place = places_[i];
            const auto has = static_cast<float>(1 + (place >> 31));
            sums[(i + 1) * 4] +=
                x * (has * weight(begin + (place & ~(place >> 31)), units_[i + 1]));
        }
        return;
    }
    for (int64_t e = begin; e < end; ++e) {
        const int64_t slot = slot_[weights_.labels[e]];
        sums[slot * 4] += x * weight(e, units_[slot]);
    }
}

}  // namespace ldsm
