#include "matching/meaning.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ldsm {

namespace {

constexpr int64_t kRows = 32;     // that share a tile of labels while it is in the cache
constexpr int64_t kLabels = 256;  // of a tile
constexpr int64_t kTogether = 4;  // rows for which a vector is unpacked once, at most

float score_of(const MeaningView& vectors, int64_t label, int32_t product) {
    const float score = vectors.units[label] * static_cast<float>(product) - vectors.biases[label];
    if (!std::isfinite(score)) throw BrokenModel("A label vector of the meaning is not finite.");
    return score;
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
        least_ = UINT64_MAX;
    }
    void add(float score, int32_t place) {
        const uint64_t key = uint64_t{~ascending(score)} << 32 | static_cast<uint32_t>(place);
        if (key > least_) return;
        keys_.push_back(key);
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
        return bits & 0x80000000U ? ~bits : bits | 0x80000000U;
    }
    void cut() {
        const auto end = keys_.begin() + static_cast<int64_t>(length_);
        std::nth_element(keys_.begin(), end - 1, keys_.end());
        least_ = *(end - 1);
        keys_.erase(end, keys_.end());
    }

    std::vector<uint64_t> keys_;
    size_t length_ = 0;
    uint64_t least_ = UINT64_MAX;  // what is not below it is not among the best
};

}  // namespace

LabelLists rank_by_meaning(const MeaningView& vectors, const DenseRows& rows, int64_t length,
                           const uint8_t* allowed, const int32_t* places, const Kernels& kernels,
                           Monitor& monitor) {
    LabelLists out;
    std::vector<Best> best(kRows);
    std::vector<const int16_t*> asked;
    std::vector<int32_t> products(static_cast<size_t>(kLabels * kTogether));
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
                for (int64_t l = 0; l < n_labels; ++l) {
                    const int64_t label = from + l;
                    if (vectors.units[label] == 0 || (allowed != nullptr && !allowed[label]))
                        continue;
                    for (int64_t r = 0; r < together; ++r)
                        best[at + r].add(
                            score_of(vectors, label, products[l * together + r]),
                            places == nullptr ? static_cast<int32_t>(label) : places[label]);
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
            scores[p] = score_of(vectors, label, product);
        }
    }
}

}  // namespace ldsm
