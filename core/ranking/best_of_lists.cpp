#include "ranking/best_of_lists.hpp"

#include <algorithm>
#include <vector>

namespace ldsm {

void best_of_lists(const ScoredLists& lists, const double* label_weights, int32_t n_labels,
                   const TopK& out) {
    struct Candidate {
        double merit;
        int32_t label;
        float score;
        bool operator<(const Candidate& other) const {
            return merit != other.merit ? merit > other.merit : label < other.label;
        }
    };
    std::vector<Candidate> candidates;
    TopFiller filler(out, n_labels);
    for (int64_t row = 0; row < lists.n_rows; ++row) {
        candidates.clear();
        for (int64_t i = lists.indptr[row]; i < lists.indptr[row + 1]; ++i) {
            const int32_t label = lists.labels[i];
            const double weight = label_weights == nullptr ? 1.0 : label_weights[label];
            if (lists.scores[i] > 0)
                candidates.push_back({lists.scores[i] * weight, label, lists.scores[i]});
        }
        const auto n = std::min<int64_t>(out.k, static_cast<int64_t>(candidates.size()));
        std::partial_sort(candidates.begin(), candidates.begin() + n, candidates.end());
        for (int64_t i = 0; i < n; ++i) {
            out.labels[row * out.k + i] = candidates[i].label;
            out.scores[row * out.k + i] = candidates[i].score;
        }
        filler.fill(row, n);
    }
}

}  // namespace ldsm
