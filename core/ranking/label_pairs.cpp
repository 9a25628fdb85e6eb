#include "ranking/label_pairs.hpp"

#include <algorithm>
#include <numeric>

#include "common/random.hpp"

namespace ldsm {

namespace {

// The labels that one row is paired with, ascending.
class RowLabels {
  public:
    RowLabels(const LabelRows& lists, const LabelRows& y, int64_t fill_to, uint64_t seed)
        : lists_(lists),
          y_(y),
          seed_(mix(seed ^ 0x7061697273ULL)),
          // Drawing most of the labels one by one would take long: then all of them are meant.
          all_(fill_to * 2 >= y.n_labels),
          fill_to_(std::min<int64_t>(fill_to, y.n_labels)) {}

    const std::vector<int32_t>& of(int64_t row) {
        labels_.clear();
        const int32_t* list = lists_.indices + lists_.indptr[row];
        const int32_t* list_end = lists_.indices + lists_.indptr[row + 1];
        const int32_t* own = y_.indices + y_.indptr[row];
        const int32_t* own_end = y_.indices + y_.indptr[row + 1];
        std::set_union(list, list_end, own, own_end, std::back_inserter(labels_));
        if (fill_to_ > static_cast<int64_t>(labels_.size())) fill(row);
        return labels_;
    }

  private:
    void fill(int64_t row) {
        if (all_) {
            labels_.resize(static_cast<size_t>(y_.n_labels));
            std::iota(labels_.begin(), labels_.end(), 0);
            return;
        }
        Stream random{child_key(seed_, static_cast<uint64_t>(row))};
        const size_t known = labels_.size();
        while (static_cast<int64_t>(labels_.size()) < fill_to_) {
            const auto label =
                static_cast<int32_t>(random.below(static_cast<uint64_t>(y_.n_labels)));
            const auto end = labels_.begin() + static_cast<std::ptrdiff_t>(known);
            if (std::binary_search(labels_.begin(), end, label)) continue;
            if (std::find(end, labels_.end(), label) != labels_.end()) continue;
            labels_.push_back(label);
        }
        std::sort(labels_.begin(), labels_.end());
    }

    const LabelRows& lists_;
    const LabelRows& y_;
    uint64_t seed_;
    bool all_;
    int64_t fill_to_;
    std::vector<int32_t> labels_;
};

}  // namespace

LabelPairs label_pairs(const LabelRows& lists, const LabelRows& y, int64_t fill_to, uint64_t seed,
                       Monitor& monitor) {
    constexpr int64_t kRowsBetweenLooks = 1024;
    RowLabels labels(lists, y, fill_to, seed);
    LabelPairs out;
    out.offsets.assign(static_cast<size_t>(y.n_labels) + 1, 0);
    for (int64_t row = 0; row < y.n_rows; ++row) {
        if (row % kRowsBetweenLooks == 0) monitor.check();
        for (const int32_t label : labels.of(row)) ++out.offsets[label + 1];
    }
    std::partial_sum(out.offsets.begin(), out.offsets.end(), out.offsets.begin());
    out.rows.resize(static_cast<size_t>(out.offsets.back()));
    out.positive.resize(out.rows.size());
    std::vector<int64_t> next(out.offsets.begin(), out.offsets.end() - 1);
    for (int64_t row = 0; row < y.n_rows; ++row) {
        if (row % kRowsBetweenLooks == 0) monitor.check();
        const int32_t* own = y.indices + y.indptr[row];
        const int32_t* own_end = y.indices + y.indptr[row + 1];
        for (const int32_t label : labels.of(row)) {
            const int64_t at = next[label]++;
            out.rows[at] = static_cast<int32_t>(row);
            out.positive[at] = std::binary_search(own, own_end, label);
        }
    }
    return out;
}

}  // namespace ldsm
