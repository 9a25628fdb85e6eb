#include "routing/router.hpp"

#include <algorithm>

#include "routing/leaf_votes.hpp"
#include "routing/ranked.hpp"

namespace ldsm {

FeatureMapArrays feature_maps(const ForestView& forest) {
    const int64_t words = map_words(forest);
    FeatureMapArrays out(static_cast<size_t>(forest.n_nodes), 0);
    uint64_t n_maps = 0;
    for (int64_t node = 0; node < forest.n_nodes; ++node) {
        const Range entries = entries_of(forest, node);
        // 16 bytes a word, and about four an entry.
        if (4 * words > entries.end - entries.begin) continue;
        out[node] = ++n_maps;
        out.resize(out.size() + static_cast<size_t>(words) * 2, 0);
        uint64_t* map = out.data() + out.size() - words * 2;
        if (!forest.weights.each_feature(entries, [&](int64_t, uint32_t f) {
                map[f / 64 * 2] |= uint64_t{1} << (f % 64);
                if (f / 64 + 1 < words) ++map[(f / 64 + 1) * 2 + 1];
            }))
            refuse_feature(node);
        for (int64_t w = 1; w < words; ++w) map[w * 2 + 1] += map[(w - 1) * 2 + 1];
    }
    return out;
}

void route_topk(const ForestView& forest, const FeatureRows& x, const uint8_t* skip,
                const TopK& out, const Kernels& kernels, Monitor& monitor) {
    std::vector<Scored> scored;
    TopFiller filler(out, forest.n_labels);
    score_rows(forest, x, skip, kernels, monitor, [&](int64_t row, const LeafVotes& votes) {
        rank(votes, forest.n_labels, out.allowed, nullptr, out.k, scored);
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
    std::vector<int32_t> sorted;
    score_rows(forest, x, nullptr, kernels, monitor, [&](int64_t, const LeafVotes& votes) {
        sorted = votes.labels();
        std::sort(sorted.begin(), sorted.end());
        for (const int32_t label : sorted) {
            const float score = votes.score(label);
            if (score <= 0 || label >= forest.n_labels) continue;
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
    Walker walker(forest, x, kernels, monitor);
    ByRow visits;
    const int64_t batch_rows = rows_per_batch(forest);
    for (int64_t from = 0; from < x.n_rows; from += batch_rows) {
        const int64_t to = std::min(x.n_rows, from + batch_rows);
        walker.begin(from, to);
        visits.begin(to - from);
        walker.walk_all(nullptr,
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
