// The rows of one node, copied together and re-numbered, so that a deep node costs what its rows
// cost and not D + K, and the training loop reads memory from front to back.
#pragma once

#include <cstdint>
#include <vector>

#include "csr.hpp"
#include "kernels.hpp"

namespace ldsm {

// Rows that lie together stay together in a tree's order (see tree_rows), so that X can be read from
// disk block by block.
constexpr int64_t kBlockRows = 4096;

// Local numbers that are taken: the padding and the bias among features, the padding among labels.
constexpr uint32_t kPadFeature = 0;
constexpr uint32_t kBiasFeature = 1;
constexpr uint32_t kPadLabel = 0;

// Global -> local numbers in order of first appearance, cleared by touching only what was set.
class LocalIds {
  public:
    LocalIds(int64_t n_global, uint32_t first)
        : local_(static_cast<size_t>(n_global), 0),
          global_(static_cast<size_t>(n_global) + 1),
          first_(first) {}

    void clear() {
        for (uint32_t i = 0; i < count_; ++i) local_[global_[i]] = 0;
        count_ = 0;
    }
    // Without a branch: in a small node every second number is new, which no predictor guesses.
    uint32_t of(int32_t global) {
        const uint32_t known = local_[global];
        const bool is_new = known == 0;
        global_[count_] = global;
        count_ += is_new;
        const uint32_t id = is_new ? count_ : known;
        local_[global] = id;  // one too high, so that 0 can mean "not yet"
        return first_ + id - 1;
    }
    uint32_t size() const { return first_ + count_; }
    // The global number behind a local one, which must be at least `first`.
    int32_t global(uint32_t local) const { return global_[local - first_]; }

  private:
    std::vector<uint32_t> local_;
    std::vector<int32_t> global_;  // one entry of slack behind the last
    uint32_t first_;
    uint32_t count_ = 0;
};

// Mean and inverse deviation of every feature over a node's rows, for dense data.
struct Standardizer {
    std::vector<float> mean, scale;
};

class NodeRows {
  public:
    // `standardize`: every row is spread over all features and (x - mean) * scale is stored.
    // A copy takes `block_bytes`, or one row: larger nodes are streamed through it once per epoch, all
    // others are copied once and stay.
    NodeRows(const FeatureRows& x, const LabelRows& y, bool standardize, bool keep_raw,
             int64_t block_bytes);

    // Starts a node: forgets the local numbers, measures the features if they are standardised.
    void begin(const std::vector<int32_t>& rows);
    // Copies rows[from, to); later calls for the same node keep the local numbers.
    void fill(const std::vector<int32_t>& rows, int64_t from, int64_t to);
    // As many rows from `from` on as fit the memory of one block; at least one.
    int64_t block_end(const std::vector<int32_t>& rows, int64_t from) const;

    CompactRows view() const;
    int64_t n_rows() const { return static_cast<int64_t>(start_.size()) - 1; }
    uint32_t n_features() const { return features_.size(); }
    uint32_t n_labels() const { return labels_.size(); }
    // The bias is number D.
    int32_t global_feature(uint32_t local) const {
        return local == kBiasFeature ? x_.n_features : features_.global(local);
    }
    const Standardizer& standardizer() const { return standardizer_; }
    // The largest |x| of each feature among the node's rows; 1 for features that are standardised.
    float largest_value(uint32_t local) const { return standardize_ ? 1.0f : largest_[local]; }

    // NAG divides by the largest |x| seen of each feature. `raw` are the values as they came.
    std::vector<float>& scaled_values() { return value_; }
    std::vector<double>& squared_norms() { return squared_norm_; }
    const std::vector<float>& raw_values() const { return keep_raw_ ? raw_ : value_; }

  private:
    void measure(const std::vector<int32_t>& rows);
    void read_ahead(const std::vector<int32_t>& rows, int64_t from, int64_t to);
    void prefetch(int64_t row) const;

    FeatureRows x_;
    LabelRows y_;
    bool standardize_;
    bool keep_raw_;
    int64_t block_bytes_;
    LocalIds features_;
    LocalIds labels_;
    Standardizer standardizer_;
    std::vector<float> dense_row_;
    std::vector<int32_t> wanted_;  // of each block of X, all zero between uses
    std::vector<int64_t> start_, label_start_;
    std::vector<uint32_t> feature_, label_;
    std::vector<int32_t> label_count_;
    std::vector<float> value_, raw_, largest_;
    std::vector<double> squared_norm_;
};

}  // namespace ldsm
