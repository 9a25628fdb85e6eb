#include "matcher.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "leaf_votes.hpp"
#include "ranked.hpp"
#include "unit_rows.hpp"

namespace ldsm {

namespace {

// What the features of a row say of the labels, one row at a time.
class IndexVotes {
  public:
    IndexVotes(const FeatureRows& x, int32_t n_labels)
        : x_(x), rows_(x), score_(static_cast<size_t>(n_labels), 0.0f) {}

    void ask(const FeatureIndexView& index, int64_t row) {
        for (const int32_t label : touched_) score_[label] = 0;
        touched_.clear();
        index.labels.with([&](const auto* labels) {
            rows_.each(row, [&](int32_t feature, float value) {
                add(index, feature, std::fabs(value), labels);
            });
        });
    }
    const std::vector<int32_t>& labels() const { return touched_; }
    float score(int32_t label) const { return score_[label]; }

  private:
    template <typename Label>
    void add(const FeatureIndexView& index, int32_t feature, float value, const Label* labels) {
        const int64_t begin = index.offsets[feature], end = index.offsets[feature + 1];
        if (begin < 0 || end < begin || end > index.n_entries) damaged("offsets out of range");
        const float unit = value * index.units[feature];
        if (!std::isfinite(unit) || unit < 0) damaged("a unit that is not a positive number");
        if (unit == 0) return;
        for (int64_t e = begin; e < end; ++e) {
            const auto label = static_cast<uint32_t>(labels[e]);
            if (label >= score_.size()) damaged("a label out of range");
            if (score_[label] == 0) touched_.push_back(static_cast<int32_t>(label));
            score_[label] += unit * static_cast<float>(index.codes[e]);
            if (!std::isfinite(score_[label])) damaged("weights too large to add up");
        }
    }
    [[noreturn]] static void damaged(const char* what) {
        throw BrokenModel(std::string("The feature index is damaged: ") + what + ".");
    }

    const FeatureRows& x_;
    UnitRows rows_;
    std::vector<float> score_;
    std::vector<int32_t> touched_;
};

}  // namespace

ShortlistArrays match(const ForestView& forest, const FeatureRows& x, const MatchParams& params,
                      const Kernels& kernels, Monitor& monitor) {
    ShortlistArrays out;
    const bool indexed = !params.indexes.empty();
    IndexVotes features(x, forest.n_labels);
    std::vector<Scored> by_trees, by_index;
    std::vector<uint8_t> taken(static_cast<size_t>(forest.n_labels), 0);
    score_rows(forest, x, params.skip, kernels, monitor, [&](int64_t row, const LeafVotes& votes) {
        rank(votes, params.allowed, params.length, by_trees);
        if (indexed) {
            features.ask(params.indexes[params.fold == nullptr ? 0 : params.fold[row]], row);
            rank(features, params.allowed, params.length, by_index);
        }
        const size_t first = out.labels.size();
        const auto take = [&](const std::vector<Scored>& ranked, size_t at) {
            if (at >= ranked.size() || taken[ranked[at].label]) return;
            if (static_cast<int64_t>(out.labels.size() - first) == params.length) return;
            taken[ranked[at].label] = 1;
            out.labels.push_back(ranked[at].label);
        };
        for (size_t at = 0; at < std::max(by_trees.size(), by_index.size()); ++at) {
            take(by_trees, at);
            take(by_index, at);
        }
        std::sort(out.labels.begin() + static_cast<std::ptrdiff_t>(first), out.labels.end());
        for (size_t i = first; i < out.labels.size(); ++i) {
            const int32_t label = out.labels[i];
            taken[label] = 0;
            out.tree_scores.push_back(votes.score(label));
            if (indexed) out.index_scores.push_back(features.score(label));
        }
        out.indptr.push_back(static_cast<int64_t>(out.labels.size()));
    });
    return out;
}

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
