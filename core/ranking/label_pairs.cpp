#include "ranking/label_pairs.hpp"

#include <algorithm>
#include <numeric>

#include "common/random.hpp"

namespace ldsm {

namespace {

struct Labels {
    const int32_t* begin;
    const int32_t* end;
    int64_t size() const { return end - begin; }
    Labels within(int32_t first, int32_t last) const {
        const int32_t* from = std::lower_bound(begin, end, first);
        return {from, std::lower_bound(from, end, last)};
    }
};

Labels labels_of(const LabelRows& rows, int64_t row) {
    return {rows.indices + rows.indptr[row], rows.indices + rows.indptr[row + 1]};
}

// The labels of a range that one row is paired with, ascending.
class RowLabels {
  public:
    RowLabels(const LabelRows& y, int32_t first, int32_t last, int64_t fill_to, uint64_t seed)
        : y_(y),
          first_(first),
          last_(last),
          seed_(mix(seed ^ 0x7061697273ULL)),
          // Drawing most of the labels one by one would be slow, so all of them are taken.
          all_(fill_to * 2 >= y.n_labels),
          fill_to_(std::min<int64_t>(fill_to, y.n_labels)) {}

    Labels of(int64_t row, const Labels& list) {
        const Labels own = labels_of(y_, row);
        const bool enough = list.size() >= fill_to_;
        join(enough ? list.within(first_, last_) : list, enough ? own.within(first_, last_) : own);
        if (!enough && fill_to_ > static_cast<int64_t>(labels_.size())) fill(row);
        return Labels{labels_.data(), labels_.data() + labels_.size()}.within(first_, last_);
    }

  private:
    void join(const Labels& a, const Labels& b) {
        labels_.clear();
        std::set_union(a.begin, a.end, b.begin, b.end, std::back_inserter(labels_));
    }
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

    const LabelRows& y_;
    int32_t first_, last_;
    uint64_t seed_;
    bool all_;
    int64_t fill_to_;
    std::vector<int32_t> labels_;
};

}  // namespace

LabelPairs label_pairs(const std::vector<LabelRows>& lists, const LabelRows& y, int32_t first,
                       int32_t last, int64_t fill_to, uint64_t seed, Monitor& monitor) {
    constexpr int64_t kRowsBetweenLooks = 1024;
    RowLabels labels(y, first, last, fill_to, seed);
    const auto each = [&](auto&& visit) {
        int64_t row = 0;
        for (const LabelRows& chunk : lists)
            for (int64_t i = 0; i < chunk.n_rows; ++i, ++row) {
                if (row % kRowsBetweenLooks == 0) monitor.check();
                const Labels mine = labels.of(row, labels_of(chunk, i));
                for (const int32_t* label = mine.begin; label < mine.end; ++label)
                    visit(row, *label);
            }
    };
    LabelPairs out;
    out.offsets.assign(static_cast<size_t>(last - first) + 1, 0);
    each([&](int64_t, int32_t label) { ++out.offsets[label - first + 1]; });
    std::partial_sum(out.offsets.begin(), out.offsets.end(), out.offsets.begin());
    out.rows.resize(static_cast<size_t>(out.offsets.back()));
    out.positive.resize(out.rows.size());
    std::vector<int64_t> next(out.offsets.begin(), out.offsets.end() - 1);
    each([&](int64_t row, int32_t label) {
        const Labels own = labels_of(y, row);
        const int64_t at = next[label - first]++;
        out.rows[at] = static_cast<int32_t>(row);
        out.positive[at] = std::binary_search(own.begin, own.end, label);
    });
    return out;
}

}  // namespace ldsm
