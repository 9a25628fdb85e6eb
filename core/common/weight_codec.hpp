// The form in which models store sparse weights, of the nodes of a forest and of labels, for
// writing and for reading. Only products of labels (ranking/label_products,
// ranking/weights_by_feature) use coded weights without decoding them first.
//
// A vector has features, ascending, and `arity` weights for each. Two forms. Exact: features as
// numbers, weights as floats. Compressed: the gap from the feature before, starting from 0, in one
// of two widths, and weights of a byte each, multiples of the vector's unit. A gap that is too wide
// for its type is bridged by entries of weight 0.
//
// The caller decides which weights are worth storing: a node drops what adds little to its margins
// (Trainer::prune), a label what is small (DenseWeights), but never its constant.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/scratch.hpp"

namespace ldsm {

// -- rounding -------------------------------------------------------------------------------------

// What the weights of a vector are multiples of, given its largest; 0 if the unit would be too
// small to divide by: then no weight is stored.
inline float byte_unit(float largest) {
    const float unit = largest / 127;
    return unit < std::numeric_limits<float>::min() ? 0 : unit;
}
// From -127 to 127.
inline int8_t as_code(float weight, float unit) {
    return static_cast<int8_t>(std::lrint(weight / unit));
}
inline float rounded(float weight, float unit) {
    return unit * static_cast<float>(as_code(weight, unit));
}

// For vectors of one weight per feature: calls visit(feature, weight, unit) with each weight as it
// is stored, unless that is 0. each(visit) visits the (feature, weight) to store, features
// ascending; it is called twice if weights are rounded.
template <typename Each, typename Visit>
void each_stored(bool compress, Each&& each, Visit&& visit) {
    float unit = 0;
    if (compress) {
        float largest = 0;
        each([&](int32_t, float weight) { largest = std::max(largest, std::fabs(weight)); });
        unit = byte_unit(largest);
        if (unit == 0) return;
    }
    each([&](int32_t feature, float weight) {
        if (compress) weight = rounded(weight, unit);
        if (weight != 0) visit(feature, weight, unit);
    });
}

// -- writing --------------------------------------------------------------------------------------

struct WeightForm {
    int32_t n_features;  // D; number D is the bias, or a constant
    bool compress;
    int arity = 1;

    // Gaps take a byte where there are few features.
    bool narrow() const { return n_features <= 4096; }
    int32_t widest_gap() const { return narrow() ? 255 : 65535; }
};

// One vector, features still as numbers.
struct SparseVector {
    std::vector<int32_t> features;
    std::vector<float> weights;  // empty when compressed:
    std::vector<int8_t> codes;   // the weights are these times `unit`
    float unit = 0;

    void clear() {
        features.clear();
        weights.clear();
        codes.clear();
        unit = 0;
    }
    // Appends a feature with `arity` weights, rounded already if the form is compressed; the unit
    // must be set. Features must ascend.
    void add(const WeightForm& form, int32_t feature, const float* values) {
        if (!form.compress) {
            features.push_back(feature);
            weights.insert(weights.end(), values, values + form.arity);
            return;
        }
        bridge(form, feature);
        for (int m = 0; m < form.arity; ++m) codes.push_back(as_code(values[m], unit));
    }
    void add_code(const WeightForm& form, int32_t feature, int8_t code) {
        bridge(form, feature);
        codes.push_back(code);
    }

  private:
    void bridge(const WeightForm& form, int32_t feature) {
        int32_t last = features.empty() ? 0 : features.back();
        for (const int32_t step = form.widest_gap(); feature - last > step;) {
            features.push_back(last += step);
            codes.insert(codes.end(), static_cast<size_t>(form.arity), 0);
        }
        features.push_back(feature);
    }
};

// Concatenated vectors, as they are stored.
struct EncodedWeights {
    std::vector<int64_t> offsets{0};
    FlatArray<int32_t> features;  // or, when compressed, one of the next two
    FlatArray<uint8_t> narrow_gaps;
    FlatArray<uint16_t> wide_gaps;
    FlatArray<float> weights;  // or, when compressed:
    FlatArray<int8_t> codes;
    std::vector<float> units;  // one per vector, when compressed

    void append(const WeightForm& form, const SparseVector& vector) {
        offsets.push_back(offsets.back() + static_cast<int64_t>(vector.features.size()));
        if (!form.compress) {
            features.append(vector.features);
            weights.append(vector.weights);
            return;
        }
        form.narrow() ? append_gaps(vector, narrow_gaps) : append_gaps(vector, wide_gaps);
        codes.append(vector.codes);
        units.push_back(vector.unit);
    }
    // Calls visit(array) with the array that the form's features are in.
    template <typename Visit>
    auto with_features(const WeightForm& form, Visit&& visit) {
        if (!form.compress) return visit(features);
        return form.narrow() ? visit(narrow_gaps) : visit(wide_gaps);
    }
    template <typename Visit>
    auto with_weights(const WeightForm& form, Visit&& visit) {
        return form.compress ? visit(codes) : visit(weights);
    }
    // Continue in files; call before adding the first vector.
    void use_files(const WeightForm& form, const std::string& folder) {
        with_features(form, [&](auto& array) { array.use_file(folder); });
        with_weights(form, [&](auto& array) { array.use_file(folder); });
    }
    void reserve(const WeightForm& form, size_t n_entries) {
        with_features(form, [&](auto& array) { array.reserve(n_entries); });
        with_weights(
            form, [&](auto& array) { array.reserve(n_entries * static_cast<size_t>(form.arity)); });
    }

  private:
    template <typename Gap>
    static void append_gaps(const SparseVector& vector, FlatArray<Gap>& out) {
        std::vector<Gap> gaps;
        gaps.reserve(vector.features.size());
        int32_t last = 0;
        for (const int32_t feature : vector.features) {
            gaps.push_back(static_cast<Gap>(feature - last));
            last = feature;
        }
        out.append(gaps);
    }
};

// -- reading --------------------------------------------------------------------------------------

struct Range {
    int64_t begin, end;
};

struct StoredWeights {
    int arity;             // weights per feature
    int32_t last_feature;  // the largest number allowed: D, the bias
    int64_t n_vectors;
    int64_t n_entries;
    const int64_t* offsets;
    // One of these is not null, and one of the two after them.
    const int32_t* features;
    const uint8_t* narrow_gaps;
    const uint16_t* wide_gaps;
    const float* weights;
    const int8_t* codes;
    const float* units;  // one per vector, with codes

    // False: the offsets point outside. Nothing here is trusted.
    bool entries_of(int64_t vector, Range& entries) const {
        entries = {offsets[vector], offsets[vector + 1]};
        return entries.begin >= 0 && entries.begin <= entries.end && entries.end <= n_entries;
    }

    // Requests the beginning of a vector's entries, which need not be read soon after another's.
    void prefetch(int64_t vector) const {
        const int64_t e = std::clamp<int64_t>(offsets[vector], 0, n_entries);
        if (narrow_gaps != nullptr) __builtin_prefetch(narrow_gaps + e);
        if (wide_gaps != nullptr) __builtin_prefetch(wide_gaps + e);
        if (features != nullptr) __builtin_prefetch(features + e);
    }

    // Calls visit(entry, feature), features ascending unless the file is damaged. False: one is out
    // of range, and the visits ended there.
    template <typename Visit>
    bool each_feature(Range entries, Visit&& visit) const {
        if (narrow_gaps != nullptr) return each_gap(narrow_gaps, entries, visit);
        if (wide_gaps != nullptr) return each_gap(wide_gaps, entries, visit);
        for (int64_t e = entries.begin; e < entries.end; ++e) {
            const auto feature = static_cast<uint32_t>(features[e]);
            if (feature > static_cast<uint32_t>(last_feature)) return false;
            visit(e, feature);
        }
        return true;
    }

  private:
    template <typename Gap, typename Visit>
    bool each_gap(const Gap* gaps, Range entries, Visit&& visit) const {
        int64_t feature = 0;
        for (int64_t e = entries.begin; e < entries.end; ++e) {
            feature += gaps[e];
            if (feature > last_feature) return false;
            visit(e, static_cast<uint32_t>(feature));
        }
        return true;
    }
};

// The weights of one vector as numbers.
class VectorWeights {
  public:
    VectorWeights(const StoredWeights& stored, int64_t vector)
        : arity_(stored.arity),
          unit_(stored.codes != nullptr ? stored.units[vector] : 0),
          weights_(stored.weights),
          codes_(stored.codes) {}
    float at(int64_t entry, int direction = 0) const {
        const int64_t i = entry * arity_ + direction;
        return codes_ != nullptr ? unit_ * static_cast<float>(codes_[i]) : weights_[i];
    }
    void prefetch(int64_t entry) const {
        if (codes_ != nullptr)
            __builtin_prefetch(codes_ + entry * arity_);
        else
            __builtin_prefetch(weights_ + entry * arity_);
    }

  private:
    int arity_;
    float unit_;
    const float* weights_;
    const int8_t* codes_;
};

}  // namespace ldsm
