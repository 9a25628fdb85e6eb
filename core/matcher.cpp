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
        : rows_(x), score_(static_cast<size_t>(n_labels), 0.0f) {}

    void ask(const FeatureIndexView& index, int64_t row) {
        for (const int32_t label : touched_) score_[label] = 0;
        touched_.clear();
        int64_t entries = 0;
        rows_.each(row, [&](int32_t feature, float) {
            const Range its = entries_of(index, feature);
            entries += its.end - its.begin;
        });
        // As of leaves: many entries are cheaper to add up without account of which labels they
        // are of.
        const bool all = entries >= static_cast<int64_t>(score_.size());
        index.labels.with([&](const auto* labels) {
            rows_.each(row, [&](int32_t feature, float value) {
                all ? add<false>(index, feature, std::fabs(value), labels)
                    : add<true>(index, feature, std::fabs(value), labels);
            });
        });
        if (all)
            for (size_t label = 0; label < score_.size(); ++label)
                if (score_[label] != 0) touched_.push_back(static_cast<int32_t>(label));
        // Nothing negative is added: what grew out of range stays there.
        for (const int32_t label : touched_)
            if (!std::isfinite(score_[label])) damaged("weights too large to add up");
    }
    const std::vector<int32_t>& labels() const { return touched_; }
    float score(int32_t label) const { return score_[label]; }

  private:
    static Range entries_of(const FeatureIndexView& index, int32_t feature) {
        const Range entries{index.offsets[feature], index.offsets[feature + 1]};
        if (entries.begin < 0 || entries.end < entries.begin || entries.end > index.n_entries)
            damaged("offsets out of range");
        return entries;
    }
    template <bool TRACK, typename Label>
    void add(const FeatureIndexView& index, int32_t feature, float value, const Label* labels) {
        const Range entries = entries_of(index, feature);
        const float unit = value * index.units[feature];
        if (!std::isfinite(unit) || unit < 0) damaged("a unit that is not a positive number");
        if (unit == 0) return;
        for (int64_t e = entries.begin; e < entries.end; ++e) {
            const auto label = static_cast<uint32_t>(labels[e]);
            if (label >= score_.size()) damaged("a label out of range");
            if (TRACK && score_[label] == 0) touched_.push_back(static_cast<int32_t>(label));
            score_[label] += unit * static_cast<float>(index.codes[e]);
        }
    }
    [[noreturn]] static void damaged(const char* what) {
        throw BrokenModel(std::string("The feature index is damaged: ") + what + ".");
    }

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
    LabelSet taken(forest.n_labels);
    score_rows(forest, x, params.skip, kernels, monitor, [&](int64_t row, const LeafVotes& votes) {
        rank(votes, params.allowed, params.length, by_trees);
        if (indexed) {
            features.ask(params.indexes[params.fold == nullptr ? 0 : params.fold[row]], row);
            rank(features, params.allowed, params.length, by_index);
        }
        int64_t n_taken = 0;
        const auto take = [&](const std::vector<Scored>& ranked, size_t at) {
            if (at < ranked.size() && n_taken < params.length)
                n_taken += taken.insert(ranked[at].label());
        };
        const size_t longest = std::max(by_trees.size(), by_index.size());
        for (size_t at = 0; at < longest && n_taken < params.length; ++at) {
            take(by_trees, at);
            take(by_index, at);
        }
        taken.drain([&](int32_t label) {
            out.labels.push_back(label);
            out.tree_scores.push_back(votes.score(label));
            if (indexed) out.index_scores.push_back(features.score(label));
        });
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
