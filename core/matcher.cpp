#include "matcher.hpp"

#include <algorithm>

#include "index_votes.hpp"
#include "leaf_votes.hpp"
#include "name_votes.hpp"
#include "ranked.hpp"

namespace ldsm {

namespace {

// Takes labels for a row's list from several rankings in turn.
class Turns {
  public:
    Turns(int32_t n_labels, int64_t length) : taken_(n_labels), length_(length) {}

    void take(const std::vector<const std::vector<Scored>*>& rankings) {
        int64_t n_taken = 0;
        size_t longest = 0;
        for (const auto* ranked : rankings) longest = std::max(longest, ranked->size());
        for (size_t at = 0; at < longest && n_taken < length_; ++at)
            for (const auto* ranked : rankings)
                if (at < ranked->size() && n_taken < length_)
                    n_taken += taken_.insert((*ranked)[at].label());
    }
    void add(const std::vector<Scored>& ranked) {
        for (const Scored& one : ranked) taken_.insert(one.label());
    }
    template <typename Visit>
    void drain(Visit&& visit) {
        taken_.drain(visit);
    }

  private:
    LabelSet taken_;
    int64_t length_;
};

// Which labels a ranking may hold: of those that the caller allows, the seen or the unseen ones.
std::vector<uint8_t> allowed_of(const MatchParams& params, int32_t n_labels, bool unseen) {
    std::vector<uint8_t> out(static_cast<size_t>(n_labels));
    for (size_t label = 0; label < out.size(); ++label)
        out[label] = (params.allowed == nullptr || params.allowed[label]) &&
                     (params.unseen != nullptr && params.unseen[label]) == unseen;
    return out;
}

}  // namespace

ShortlistArrays match(const ForestView& forest, const FeatureRows& x, const MatchParams& params,
                      const Kernels& kernels, Monitor& monitor) {
    ShortlistArrays out;
    const bool indexed = !params.indexes.empty(), spelled = !params.sub_indexes.empty(),
               named = params.names != nullptr, new_labels = named && params.unseen != nullptr;
    // What is not in use gets no rows, so that they are not scaled for nothing.
    constexpr FeatureRows kNone{};
    IndexVotes features(indexed ? *params.indexed : kNone, indexed ? forest.n_labels : 0),
        parts(spelled ? *params.sub_words : kNone, spelled ? forest.n_labels : 0);
    NameVotes names(named ? *params.sub_words : kNone, named ? params.names->n_names : 0,
                    named ? forest.n_labels : 0);
    std::vector<uint8_t> seen, unseen;
    if (named) seen = allowed_of(params, forest.n_labels, false);
    if (new_labels) unseen = allowed_of(params, forest.n_labels, true);
    std::vector<Scored> by_trees, by_index, by_parts, by_names;
    std::vector<const std::vector<Scored>*> rankings{&by_trees};
    if (indexed) rankings.push_back(&by_index);
    if (spelled) rankings.push_back(&by_parts);
    if (named && params.match_names) rankings.push_back(&by_names);
    Turns turns(forest.n_labels, params.length);
    score_rows(forest, x, params.skip, kernels, monitor, [&](int64_t row, const LeafVotes& votes) {
        const size_t fold = params.fold == nullptr ? 0 : params.fold[row];
        rank(votes, params.allowed, params.length, by_trees);
        if (indexed) {
            features.ask(params.indexes[fold], row);
            rank(features, params.allowed, params.length, by_index);
        }
        if (spelled) {
            parts.ask(params.sub_indexes[fold], row, params.telling_sub_words);
            rank(parts, params.allowed, params.length, by_parts);
        }
        if (named) {
            names.ask(*params.names, row);
            if (params.match_names) rank(names, seen.data(), params.length, by_names);
            out.best_cosine.push_back(names.best_cosine());
        }
        turns.take(rankings);
        double evidence = features.evidence().total + parts.evidence().total;
        if (!indexed && !spelled) evidence = static_cast<double>(x.indptr[row + 1] - x.indptr[row]);
        out.evidence.push_back(static_cast<float>(evidence));
        // A single part of a word is found in many a string by chance.
        out.most_telling.push_back(static_cast<float>(features.evidence().most));
        if (new_labels) {
            rank(names, unseen.data(), kUnseenLabels, by_names);
            turns.add(by_names);
        }
        turns.drain([&](int32_t label) {
            out.labels.push_back(label);
            out.tree_scores.push_back(votes.score(label));
            if (indexed) out.index_scores.push_back(features.score(label));
            if (spelled) out.sub_scores.push_back(parts.score(label));
            if (!named) return;
            out.coverages.push_back(names.coverage(label));
            out.cosines.push_back(names.cosine(label));
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
