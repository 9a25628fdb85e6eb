#include "trees/node_rows.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ldsm {

namespace {

// Asks the system to read a part of a memory-mapped file; memory of other kinds stays as it is.
template <typename T>
void will_need(const T* begin, const T* end) {
    static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    constexpr uintptr_t kPiece = 128 << 10;  // Linux may read no more than this for one call
    const auto last = reinterpret_cast<uintptr_t>(end);
    for (auto at = reinterpret_cast<uintptr_t>(begin) / page * page; at < last; at += kPiece)
        posix_madvise(reinterpret_cast<void*>(at), std::min(kPiece, last - at),
                      POSIX_MADV_WILLNEED);
}

// A vector that grows on its own takes up to twice the memory it needs.
template <typename T>
void resize_exactly(std::vector<T>& numbers, int64_t n) {
    const auto size = static_cast<size_t>(n);
    if (size > numbers.capacity()) {
        std::vector<T>().swap(numbers);  // what it held is not needed
        numbers.reserve(size);
    }
    numbers.resize(size);
}

}  // namespace

NodeRows::NodeRows(const FeatureRows& x, const LabelRows& y, bool standardize, bool keep_raw,
                   int64_t block_bytes)
    : x_(x),
      y_(y),
      standardize_(standardize),
      keep_raw_(keep_raw),
      block_bytes_(block_bytes),
      features_(x.n_features, 2),
      labels_(y.n_labels, 1),
      order_(x.n_rows) {
    if (standardize_)
        dense_row_.resize(x.n_features);
    else
        largest_.resize(static_cast<size_t>(x.n_features) + 2, 0.0f);
}

int64_t NodeRows::block_end(const std::vector<int32_t>& rows, int64_t from) const {
    const int64_t n = static_cast<int64_t>(rows.size());
    const int64_t per_entry = keep_raw_ ? 12 : 8;
    int64_t bytes = 0;
    int64_t to = from;
    while (to < n) {
        const int64_t row = rows[to];
        const int64_t length = standardize_ ? x_.n_features : x_.indptr[row + 1] - x_.indptr[row];
        // With the bias and the padding; a row and its labels need some more numbers each.
        bytes +=
            per_entry * (length + kLanes) + 4 * (y_.indptr[row + 1] - y_.indptr[row] + kLanes) + 40;
        if (bytes > block_bytes_ && to > from) break;
        ++to;
    }
    return to;
}

void NodeRows::measure(const std::vector<int32_t>& rows) {
    const int32_t d = x_.n_features;
    std::vector<double> sum(d, 0.0), square(d, 0.0);
    for (const int64_t row : rows)
        for (int64_t i = x_.indptr[row]; i < x_.indptr[row + 1]; ++i)
            sum[x_.indices[i]] += x_.values[i];
    const double n = static_cast<double>(rows.size());
    // Second pass on the deviations: the textbook sum of squares cancels on large means. The
    // zeros that a sparse row does not store deviate by the mean itself.
    std::vector<double> stored(d, 0.0);
    for (const int64_t row : rows)
        for (int64_t i = x_.indptr[row]; i < x_.indptr[row + 1]; ++i) {
            const int32_t f = x_.indices[i];
            const double deviation = x_.values[i] - sum[f] / n;
            square[f] += deviation * deviation;
            stored[f] += 1;
        }
    standardizer_.mean.resize(d);
    standardizer_.scale.resize(d);
    for (int32_t f = 0; f < d; ++f) {
        const double mean = sum[f] / n;
        const double variance = (square[f] + (n - stored[f]) * mean * mean) / n;
        const float scale = static_cast<float>(1.0 / std::sqrt(variance));
        standardizer_.mean[f] = static_cast<float>(mean);
        // A constant column is useless in this node. (Inf: so is one of denormal spread.)
        standardizer_.scale[f] =
            variance > 1e-12 * mean * mean && std::isfinite(scale) ? scale : 0.0f;
    }
}

void NodeRows::begin(const std::vector<int32_t>& rows) {
    if (!standardize_) std::fill_n(largest_.begin(), features_.size(), 0.0f);
    features_.clear();
    labels_.clear();
    if (!standardize_) return;
    measure(rows);
    std::vector<uint32_t> every(x_.n_features);
    std::iota(every.begin(), every.end(), 0u);
    features_.number(every.data(), x_.n_features);
}

// Where each row will lie.
void NodeRows::lay_out(const int32_t* rows, int64_t n) {
    start_.resize(n + 1);
    label_start_.resize(n + 1);
    squared_norm_.resize(n);
    length_.resize(n);
    label_count_.resize(n);
    start_[0] = label_start_[0] = 0;
    for (int64_t r = 0; r < n; ++r) {
        const int64_t row = rows[r];
        const int64_t length = standardize_ ? x_.n_features : x_.indptr[row + 1] - x_.indptr[row];
        const int64_t n_labels = y_.indptr[row + 1] - y_.indptr[row];
        start_[r + 1] = start_[r] + (1 + length + kLanes - 1) / kLanes * kLanes;
        label_start_[r + 1] = label_start_[r] + (n_labels + kLanes - 1) / kLanes * kLanes;
        length_[r] = static_cast<int32_t>(length);
        label_count_[r] = static_cast<int32_t>(n_labels);
    }
    resize_exactly(feature_, start_[n]);
    resize_exactly(value_, start_[n]);
    resize_exactly(label_, label_start_[n]);
}

// X may be a file that does not fit into memory: one long read replaces many single pages.
void NodeRows::read_ahead(const PlaceOrder::Block& block) const {
    if (!PlaceOrder::is_full(block)) return;
    const int64_t row = block.number * kBlockRows;
    const int64_t first = x_.indptr[row], last = x_.indptr[std::min(x_.n_rows, row + kBlockRows)];
    will_need(x_.indices + first, x_.indices + last);
    will_need(x_.values + first, x_.values + last);
}

// A small node's rows are scattered over X: prefetching a row hides most of the latency.
void NodeRows::prefetch(int64_t row) const {
    constexpr int64_t kLine = 64 / sizeof(float);
    for (int64_t i = x_.indptr[row]; i < x_.indptr[row + 1]; i += kLine) {
        __builtin_prefetch(x_.indices + i);
        __builtin_prefetch(x_.values + i);
    }
    __builtin_prefetch(y_.indices + y_.indptr[row]);
}

// A large node needs a good part of each block of X, and reads it from front to back, which is best
// for disk and processor.
void NodeRows::copy(const int32_t* rows, int64_t n) {
    constexpr size_t kAhead = 2;  // blocks, or rows
    if (!order_.sort(rows, n)) {
        for (int64_t r = 0; r < n; ++r) {
            if (r + static_cast<int64_t>(kAhead) < n) prefetch(rows[r + kAhead]);
            copy_row(r, rows[r]);
        }
        return;
    }
    const std::vector<PlaceOrder::Block>& blocks = order_.blocks();
    for (size_t b = 0; b < std::min(kAhead, blocks.size()); ++b) read_ahead(blocks[b]);
    for (size_t b = 0; b < blocks.size(); ++b) {
        if (b + kAhead < blocks.size()) read_ahead(blocks[b + kAhead]);
        order_.each(blocks[b], rows, [&](int64_t r) { copy_row(r, rows[r]); });
    }
}

// With global numbers.
void NodeRows::copy_row(int64_t r, int64_t row) {
    standardize_ ? spread_values(r, row) : copy_values(r, row);
    uint32_t* const label = label_.data() + label_start_[r];
    std::copy_n(y_.indices + y_.indptr[row], label_count_[r], label);
    std::fill(label + label_count_[r], label_.data() + label_start_[r + 1], kPadLabel);
}

void NodeRows::copy_values(int64_t r, int64_t row) {
    uint32_t* const feature = feature_.data() + start_[r];
    float* const value = value_.data() + start_[r];
    const int64_t first = x_.indptr[row], length = length_[r];
    feature[0] = kBiasFeature;
    value[0] = 1.0f;
    std::copy_n(x_.indices + first, length, feature + 1);
    std::copy_n(x_.values + first, length, value + 1);
    const int64_t padded = start_[r + 1] - start_[r];
    std::fill(feature + 1 + length, feature + padded, kPadFeature);
    std::fill(value + 1 + length, value + padded, 0.0f);
}

void NodeRows::spread_values(int64_t r, int64_t row) {
    std::fill(dense_row_.begin(), dense_row_.end(), 0.0f);
    for (int64_t i = x_.indptr[row]; i < x_.indptr[row + 1]; ++i)
        dense_row_[x_.indices[i]] = x_.values[i];
    uint32_t* feature = feature_.data() + start_[r];
    float* value = value_.data() + start_[r];
    *feature++ = kBiasFeature;
    *value++ = 1.0f;
    double square = 1.0;
    for (int32_t f = 0; f < x_.n_features; ++f) {
        const float v = (dense_row_[f] - standardizer_.mean[f]) * standardizer_.scale[f];
        *feature++ = 2 + static_cast<uint32_t>(f);
        *value++ = v;
        square += static_cast<double>(v) * v;
    }
    squared_norm_[r] = square;
    std::fill(feature, feature_.data() + start_[r + 1], kPadFeature);
    std::fill(value, value_.data() + start_[r + 1], 0.0f);
}

void NodeRows::number(int64_t r) {
    labels_.number(label_.data() + label_start_[r], label_count_[r]);
    if (standardize_) return;
    uint32_t* const feature = feature_.data() + start_[r] + 1;
    const float* const value = value_.data() + start_[r] + 1;
    const int64_t length = length_[r];
    features_.number(feature, length);
    double square = 1.0;
    for (int64_t i = 0; i < length; ++i) {
        square += static_cast<double>(value[i]) * value[i];
        float& largest = largest_[feature[i]];
        largest = std::max(largest, std::fabs(value[i]));
    }
    squared_norm_[r] = square;
}

void NodeRows::fill(const std::vector<int32_t>& all, int64_t from, int64_t to) {
    const int32_t* const rows = all.data() + from;
    const int64_t n = to - from;
    lay_out(rows, n);
    copy(rows, n);
    // Numbers are given in the order of the rows, whatever the order they were copied in.
    for (int64_t r = 0; r < n; ++r) number(r);
    if (keep_raw_) raw_ = value_;
}

CompactRows NodeRows::view() const {
    return {start_.data(),       feature_.data(), value_.data(),       squared_norm_.data(),
            label_start_.data(), label_.data(),   label_count_.data(), n_rows()};
}

}  // namespace ldsm
