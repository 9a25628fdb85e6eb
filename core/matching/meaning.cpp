#include "matching/meaning.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace ldsm {

namespace {

constexpr int64_t kRows = 32;     // that share a tile of labels while it is in the cache
constexpr int64_t kLabels = 256;  // of a tile
constexpr int64_t kTogether = 4;  // rows for which a vector is unpacked once, at most

// The scores of consecutive labels, also of those of which nothing is known.
void scores_of(const MeaningView& vectors, int64_t first, int64_t n, const int32_t* products,
               float* scores) {
    const float* units = vectors.units + first;
    const float* biases = vectors.biases + first;
    bool finite = true;
    for (int64_t i = 0; i < n; ++i) {
        scores[i] = units[i] * static_cast<float>(products[i]) - biases[i];
        finite &= std::abs(scores[i]) <= std::numeric_limits<float>::max();
    }
    if (!finite) throw BrokenModel("A label vector of the meaning is not finite.");
}

bool is_empty(const int16_t* row, int64_t width) {
    return std::all_of(row, row + width, [](int16_t value) { return value == 0; });
}

// The best of one row so far, by score, then by place.
class Best {
  public:
    void start(int64_t length) {
        length_ = static_cast<size_t>(length);
        keys_.clear();
        least_ = -std::numeric_limits<float>::infinity();
    }
    // Whether a label of this score may be among them.
    bool takes(float score) const { return score >= least_; }
    void add(float score, int32_t place) {
        keys_.push_back(uint64_t{~ascending(score)} << 32 | static_cast<uint32_t>(place));
        if (keys_.size() >= 2 * length_ + 64) cut();
    }
    void finish(std::vector<int32_t>& places) {
        if (keys_.size() > length_) cut();
        std::sort(keys_.begin(), keys_.end());
        for (const uint64_t key : keys_)
            places.push_back(static_cast<int32_t>(static_cast<uint32_t>(key)));
    }

  private:
    // The bits of a float as a number in the order of its values, also of negative ones.
    static uint32_t ascending(float score) {
        const auto bits = std::bit_cast<uint32_t>(score + 0.0F);  // one zero
        return bits & kSign ? ~bits : bits | kSign;
    }
    static float score_of(uint64_t key) {
        const auto bits = ~static_cast<uint32_t>(key >> 32);
        return std::bit_cast<float>(bits & kSign ? bits & ~kSign : ~bits);
    }
    void cut() {
        const auto end = keys_.begin() + static_cast<int64_t>(length_);
        std::nth_element(keys_.begin(), end - 1, keys_.end());
        least_ = score_of(*(end - 1));
        keys_.erase(end, keys_.end());
    }

    static constexpr uint32_t kSign = 0x80000000U;
    std::vector<uint64_t> keys_;
    size_t length_ = 0;
    float least_ = 0;  // what is below it is not among the best
};

}  // namespace

LabelLists rank_by_meaning(const MeaningView& vectors, const DenseRows& rows, int64_t length,
                           const uint8_t* allowed, const int32_t* places, const Kernels& kernels,
                           Monitor& monitor) {
    LabelLists out;
    std::vector<Best> best(kRows);
    std::vector<const int16_t*> asked;
    std::vector<int32_t> products(static_cast<size_t>(kLabels * kTogether));
    std::vector<float> scores(static_cast<size_t>(kLabels));
    for (int64_t first = 0; first < rows.n_rows; first += kRows) {
        const int64_t n = std::min(kRows, rows.n_rows - first);
        asked.clear();
        for (int64_t row = first; row < first + n; ++row) {
            const int16_t* values = rows.values + row * vectors.width;
            best[row - first].start(length);
            if (!is_empty(values, vectors.width)) asked.push_back(values);
        }
        const auto n_asked = static_cast<int64_t>(asked.size());
        for (int64_t from = 0; from < vectors.n_labels; from += kLabels) {
            monitor.check();
            const int64_t n_labels = std::min(kLabels, vectors.n_labels - from);
            for (int64_t at = 0; at < n_asked; at += kTogether) {
                const int64_t together = std::min(kTogether, n_asked - at);
                kernels.dense_products(vectors.codes + from * vectors.width, n_labels,
                                       vectors.width, asked.data() + at, together, products.data());
                for (int64_t r = 0; r < together; ++r) {
                    scores_of(vectors, from, n_labels, products.data() + r * n_labels,
                              scores.data());
                    Best& own = best[at + r];
                    for (int64_t l = 0; l < n_labels; ++l) {
                        if (!own.takes(scores[l])) continue;
                        const int64_t label = from + l;
                        if (vectors.units[label] == 0 || (allowed != nullptr && !allowed[label]))
                            continue;
                        own.add(scores[l],
                                places == nullptr ? static_cast<int32_t>(label) : places[label]);
                    }
                }
            }
        }
        int64_t at = 0;
        for (int64_t row = first; row < first + n; ++row) {
            const int16_t* values = rows.values + row * vectors.width;
            if (at < n_asked && asked[at] == values) best[at++].finish(out.labels);
            out.offsets.push_back(static_cast<int64_t>(out.labels.size()));
        }
    }
    if (places == nullptr) return out;
    std::vector<int32_t> label_at(static_cast<size_t>(vectors.n_labels));
    for (int64_t label = 0; label < vectors.n_labels; ++label)
        label_at[places[label]] = static_cast<int32_t>(label);
    for (int32_t& label : out.labels) label = label_at[label];
    return out;
}

void meaning_scores(const MeaningView& vectors, const DenseRows& rows, const LabelRows& lists,
                    float* scores, const Kernels& kernels, Monitor& monitor) {
    for (int64_t row = 0; row < rows.n_rows; ++row) {
        monitor.check();
        const int16_t* values = rows.values + row * vectors.width;
        const bool empty = is_empty(values, vectors.width);
        for (int64_t p = lists.indptr[row]; p < lists.indptr[row + 1]; ++p) {
            const int64_t label = lists.indices[p];
            int32_t product = 0;
            scores[p] = 0;
            if (empty || vectors.units[label] == 0) continue;
            kernels.dense_products(vectors.codes + label * vectors.width, 1, vectors.width, &values,
                                   1, &product);
            scores_of(vectors, label, 1, &product, scores + p);
        }
    }
}

template <typename Sum>
void sum_by_label(const DenseRows& rows, int64_t width, const LabelRows& labels,
                  const int32_t* slot, Sum* sums, int64_t* counts, Monitor& monitor) {
    for (int64_t row = 0; row < rows.n_rows; ++row) {
        if (row % 256 == 0) monitor.check();
        const int16_t* values = rows.values + row * width;
        if (is_empty(values, width)) continue;
        for (int64_t p = labels.indptr[row]; p < labels.indptr[row + 1]; ++p) {
            const int64_t at = slot[labels.indices[p]];
            if (at < 0) continue;
            Sum* sum = sums + at * width;
            for (int64_t i = 0; i < width; ++i) sum[i] += values[i];
            ++counts[at];
        }
    }
}

template void sum_by_label(const DenseRows&, int64_t, const LabelRows&, const int32_t*, int32_t*,
                           int64_t*, Monitor&);
template void sum_by_label(const DenseRows&, int64_t, const LabelRows&, const int32_t*, int64_t*,
                           int64_t*, Monitor&);

}  // namespace ldsm
