// Which features one row has, and where.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/weight_codec.hpp"

namespace ldsm {

// All entries of a vector are read, and the bits of the row show which of them it has. For a few
// rows this is cheaper than spreading the vector over all features.
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
        // The row has few of them, which a branch predictor cannot guess: noted without a branch.
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
