#include "routing/router.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "routing/predict.hpp"

namespace ldsm {

void route_topk(const ForestView& forest, const FeatureRows& x, const uint8_t* skip,
                const TopK& out, const Kernels& kernels, Monitor& monitor) {
    std::vector<Scored> scored;
    TopFiller filler(out, forest.n_labels);
    predict(forest, x, skip, kernels, monitor, [&](int64_t row, const LeafVotes& votes) {
        const auto may = [&](int32_t label) {
            return out.allowed == nullptr || out.allowed[label];
        };
        rank(votes, forest.n_labels, may, nullptr, out.k, scored);
        int32_t* labels = out.labels + row * out.k;
        float* scores = out.scores + row * out.k;
        for (size_t i = 0; i < scored.size(); ++i) {
            labels[i] = scored[i].label();
            scores[i] = scored[i].score();
        }
        filler.fill(row, static_cast<int64_t>(scored.size()));
    });
}

SparseScores route_scores(const ForestView& forest, const FeatureRows& x, const Kernels& kernels,
                          Monitor& monitor) {
    SparseScores out;
    std::vector<std::pair<int32_t, float>> sorted;
    predict(forest, x, nullptr, kernels, monitor, [&](int64_t, const LeafVotes& votes) {
        sorted.clear();
        votes.each([&](int32_t label, float score) {
            if (score > 0 && label < forest.n_labels) sorted.emplace_back(label, score);
        });
        std::sort(sorted.begin(), sorted.end());
        for (const auto& [label, score] : sorted) {
            out.indices.push_back(label);
            out.values.push_back(score);
        }
        out.indptr.push_back(static_cast<int64_t>(out.indices.size()));
    });
    return out;
}

SparseScores route_nodes(const ForestView& forest, const FeatureRows& x, const Kernels& kernels,
                         Monitor& monitor) {
    SparseScores out;
    Descent descent(forest, x, nullptr, kernels, monitor);
    NodesByRow visits;
    const int64_t batch_rows = rows_per_batch(forest);
    for (int64_t from = 0; from < x.n_rows; from += batch_rows) {
        const int64_t to = std::min(x.n_rows, from + batch_rows);
        visits.begin(to - from);
        descent.run(from, to,
                    [&](int32_t row, int64_t node, int64_t, bool) { visits.add(row, node); });
        visits.sort();
        for (int64_t row = 0; row < to - from; ++row) {
            for (const int64_t* node = visits.begin_of(row); node < visits.end_of(row); ++node)
                out.indices.push_back(static_cast<int32_t>(*node));
            out.indptr.push_back(static_cast<int64_t>(out.indices.size()));
        }
    }
    return out;
}

}  // namespace ldsm
