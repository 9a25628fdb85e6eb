#include "matching/matcher.hpp"

#include <algorithm>

#include "matching/index_votes.hpp"
#include "matching/name_votes.hpp"
#include "routing/leaf_votes.hpp"
#include "routing/ranked.hpp"

namespace ldsm {

namespace {

// Takes labels for a row's list from several rankings in turn. Labels are known by their places.
class Turns {
  public:
    Turns(const ForestView& forest, int64_t length) : taken_(forest.n_known()), length_(length) {
        if (forest.places == nullptr) return;
        label_at_.resize(static_cast<size_t>(forest.n_known()));
        for (int32_t label = 0; label < forest.n_known(); ++label)
            label_at_[forest.places[label]] = label;
    }

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
    // Takes all of them out: calls visit(label), ascending, for those below `n_labels`.
    template <typename Visit>
    void drain(int32_t n_labels, Visit&& visit) {
        if (label_at_.empty()) return taken_.drain(visit);
        labels_.clear();
        taken_.drain([&](int32_t place) {
            if (label_at_[place] < n_labels) labels_.push_back(label_at_[place]);
        });
        std::sort(labels_.begin(), labels_.end());
        for (const int32_t label : labels_) visit(label);
    }

  private:
    LabelSet taken_;
    int64_t length_;
    std::vector<int32_t> label_at_;  // by place; empty if that is the label's number
    std::vector<int32_t> labels_;
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
    const int32_t n_known = forest.n_known();
    IndexVotes features(indexed ? *params.indexed : kNone, indexed ? n_known : 0),
        parts(spelled ? *params.sub_words : kNone, spelled ? n_known : 0);
    NameVotes names(named ? *params.sub_words : kNone, named ? params.names->n_names : 0,
                    named ? n_known : 0);
    std::vector<uint8_t> seen, unseen;
    if (named) seen = allowed_of(params, n_known, false);
    if (new_labels) unseen = allowed_of(params, n_known, true);
    std::vector<Scored> by_trees, by_index, by_parts, by_names;
    std::vector<const std::vector<Scored>*> rankings{&by_trees};
    if (indexed) rankings.push_back(&by_index);
    if (spelled) rankings.push_back(&by_parts);
    if (named && params.match_names) rankings.push_back(&by_names);
    Turns turns(forest, params.length);
    const auto ranked = [&](const auto& votes, const uint8_t* allowed, int64_t length,
                            std::vector<Scored>& out) {
        rank(votes, n_known, allowed, forest.places, length, out);
    };
    score_rows(forest, x, params.skip, kernels, monitor, [&](int64_t row, const LeafVotes& votes) {
        const size_t fold = params.fold == nullptr ? 0 : params.fold[row];
        ranked(votes, params.allowed, params.length, by_trees);
        if (indexed) {
            features.ask(params.indexes[fold], row);
            ranked(features, params.allowed, params.length, by_index);
        }
        if (spelled) {
            parts.ask(params.sub_indexes[fold], row, params.telling_sub_words);
            ranked(parts, params.allowed, params.length, by_parts);
        }
        if (named) {
            names.ask(*params.names, row);
            if (params.match_names) ranked(names, seen.data(), params.length, by_names);
            out.best_cosine.push_back(names.best_cosine());
        }
        turns.take(rankings);
        double evidence = features.evidence().total + parts.evidence().total;
        if (!indexed && !spelled) evidence = static_cast<double>(x.indptr[row + 1] - x.indptr[row]);
        out.evidence.push_back(static_cast<float>(evidence));
        // A single part of a word is found in many a string by chance.
        out.most_telling.push_back(static_cast<float>(features.evidence().most));
        if (new_labels) {
            ranked(names, unseen.data(), kUnseenLabels, by_names);
            turns.add(by_names);
        }
        turns.drain(forest.n_labels, [&](int32_t label) {
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
