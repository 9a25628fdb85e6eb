// The rows of one node, copied together and re-numbered, so that a deep node costs what its rows
// cost and not D + K, and the training loop reads memory from front to back.
#pragma once

#include <cstdint>
#include <vector>

#include "common/csr.hpp"
#include "simd/kernels.hpp"
#include "trees/place_order.hpp"

namespace ldsm {

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
    // Turns the global numbers of a row into local ones. Without a branch: in a small node every
    // second number is new, which no predictor guesses. What changes with each number is kept out
    // of memory, where the next one would wait for it.
    void number(uint32_t* numbers, int64_t n) {
        uint32_t* const local = local_.data();
        int32_t* const global = global_.data();
        uint32_t count = count_;
        const uint32_t before = first_ - 1;
        for (int64_t i = 0; i < n; ++i) {
            const uint32_t number = numbers[i], known = local[number];
            const uint32_t is_new = known == 0;
            global[count] = static_cast<int32_t>(number);
            count += is_new;
            const uint32_t id = known + (count & (0 - is_new));
            local[number] = id;  // one too high, so that 0 can mean "not yet"
            numbers[i] = before + id;
        }
        count_ = count;
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
    // A copy takes `block_bytes`, or one row: larger nodes are streamed through it once per epoch,
    // all others are copied once and stay.
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
    void lay_out(const int32_t* rows, int64_t n);
    void copy(const int32_t* rows, int64_t n);
    void read_ahead(const PlaceOrder::Block& block) const;
    void prefetch(int64_t row) const;
    void copy_row(int64_t r, int64_t row);
    void copy_values(int64_t r, int64_t row);
    void spread_values(int64_t r, int64_t row);
    void number(int64_t r);

    FeatureRows x_;
    LabelRows y_;
    bool standardize_;
    bool keep_raw_;
    int64_t block_bytes_;
    LocalIds features_;
    LocalIds labels_;
    Standardizer standardizer_;
    std::vector<float> dense_row_;
    PlaceOrder order_;
    std::vector<int64_t> start_, label_start_;
    std::vector<uint32_t> feature_, label_;
    std::vector<int32_t> length_, label_count_;
    std::vector<float> value_, raw_, largest_;
    std::vector<double> squared_norm_;
};

}  // namespace ldsm
