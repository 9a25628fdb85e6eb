// Sparse weights as models store them: of the nodes of a forest, or of labels.
//
// Two forms. Exact: a number per feature, and its weights as floats. Compressed: the gap from the
// feature before, starting from 0, in one of two widths, and weights of a byte each, multiples of
// the vector's unit. A gap that is too wide for its type is bridged by entries of weight 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

namespace ldsm {

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

    // Calls visit(entry, feature), features ascending in what was written by us. False: one is out
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

// The widest gap of compressed features: they take a byte where there are few of them.
inline int32_t widest_gap(int32_t n_features) { return n_features <= 4096 ? 255 : 65535; }

// A weight as a multiple of a unit.
inline float byte_unit(float largest) { return largest / 127; }
inline int8_t as_code(float weight, float unit) {
    return static_cast<int8_t>(std::lrint(weight / unit));
}

// The features of one vector, numbers `begin` to `end`, as gaps.
template <typename Gap>
void append_gaps(const std::vector<int32_t>& features, int64_t begin, int64_t end,
                 std::vector<Gap>& gaps) {
    int32_t last = 0;
    for (int64_t i = begin; i < end; ++i) {
        gaps.push_back(static_cast<Gap>(features[i] - last));
        last = features[i];
    }
}

// Which features one row has, and where: all entries of a vector are passed, and the bits of the
// row say what it has of them. For a few rows this is cheaper than spreading the vector over all
// features.
class LaidOutRow {
  public:
    // `n_features` features numbered from 0.
    explicit LaidOutRow(int64_t n_features) : n_features_(n_features) {}

    bool holds(int64_t row) const { return row == row_; }
    // `feature(i)` for i < length.
    template <typename Feature>
    void lay_out(int64_t row, int64_t length, Feature&& feature) {
        has_.resize(static_cast<size_t>(n_features_ / 64 + 1), 0);
        if (position_ == nullptr)
            position_ = std::make_unique_for_overwrite<int32_t[]>(static_cast<size_t>(n_features_));
        clear();
        for (int64_t i = 0; i < length; ++i) {
            const auto f = static_cast<uint32_t>(feature(i));
            has_[f / 64] |= uint64_t{1} << (f % 64);
            position_[f] = static_cast<int32_t>(i);
            set_.push_back(f);
        }
        row_ = row;
    }
    void clear() {
        for (const uint32_t f : set_) has_[f / 64] = 0;
        set_.clear();
        row_ = -1;
    }
    // Calls found(position in the row, entry), entries ascending. False: a feature of the vector is
    // out of range.
    template <typename Found>
    bool find(const StoredWeights& stored, Range entries, Found&& found) {
        // What the row has is rare, and no predictor guesses it: noted without a branch.
        hits_.resize(std::max(hits_.size(), static_cast<size_t>(entries.end - entries.begin) + 1));
        const uint64_t* const has = has_.data();
        Hit* hit = hits_.data();
        const bool known = stored.each_feature(entries, [&](int64_t e, uint32_t f) {
            *hit = {static_cast<uint32_t>(e - entries.begin), f};
            hit += (has[f / 64] >> (f % 64)) & 1;
        });
        for (const Hit* h = hits_.data(); h < hit; ++h)
            found(position_[h->feature], entries.begin + h->place);
        return known;
    }

  private:
    struct Hit {
        uint32_t place;  // among the vector's entries, of which a node or a label has fewer
        uint32_t feature;
    };

    int64_t n_features_;
    int64_t row_ = -1;
    std::vector<Hit> hits_;
    std::vector<uint64_t> has_;
    std::unique_ptr<int32_t[]> position_;  // set for the features of the row alone
    std::vector<uint32_t> set_;
};

}  // namespace ldsm
