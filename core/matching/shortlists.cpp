#include "matching/shortlists.hpp"

#include <algorithm>

#include "matching/index_votes.hpp"
#include "routing/predict.hpp"
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
    NumberSet taken_;
    int64_t length_;
    std::vector<int32_t> label_at_;  // by place; empty if that is the label's number
    std::vector<int32_t> labels_;
};

// A row's labels in a given ranking that are allowed, by their places.
void listed(const GivenRanking& ranking, int64_t row, const uint8_t* allowed, const int32_t* places,
            std::vector<Scored>& out) {
    out.clear();
    for (int64_t i = ranking.offsets[row]; i < ranking.offsets[row + 1]; ++i) {
        const int32_t label = ranking.labels[i];
        if (allowed == nullptr || allowed[label])
            out.emplace_back(1.0F, places == nullptr ? label : places[label]);
    }
}

}  // namespace

ShortlistArrays match(const ForestView& forest, const MatchRows& rows, const Matchers& matchers,
                      int64_t length, const uint8_t* allowed, const Kernels& kernels,
                      Monitor& monitor) {
    ShortlistArrays out;
    const bool indexed = !matchers.indexes.empty(), spelled = !matchers.sub_indexes.empty(),
               named = matchers.names != nullptr, new_labels = named && matchers.unseen != nullptr;
    // Unused matchers get no rows, so that these are not scaled in vain.
    constexpr FeatureRows kNone{};
    const int32_t n_known = forest.n_known();
    IndexVotes features(indexed ? *rows.indexed : kNone, indexed ? n_known : 0),
        parts(spelled ? *rows.sub_words : kNone, spelled ? n_known : 0);
    NameVotes names(named ? *rows.sub_words : kNone, named ? matchers.names->n_names : 0,
                    named ? n_known : 0);
    const auto any = [=](int32_t label) { return allowed == nullptr || allowed[label]; };
    const auto unseen = [&, mask = matchers.unseen](int32_t label) {
        return mask != nullptr && mask[label] && any(label);
    };
    const auto seen = [&, mask = matchers.unseen](int32_t label) {
        return (mask == nullptr || !mask[label]) && any(label);
    };
    std::vector<Scored> by_trees, by_index, by_parts, by_names;
    std::vector<const std::vector<Scored>*> rankings{&by_trees};
    if (indexed) rankings.push_back(&by_index);
    if (spelled) rankings.push_back(&by_parts);
    if (named && matchers.match_names) rankings.push_back(&by_names);
    std::vector<std::vector<Scored>> given(rows.given.size());
    std::vector<Scored> added;
    for (const auto& one : given) rankings.push_back(&one);
    Turns turns(forest, length);
    const auto ranked = [&](const auto& votes, const auto& may, int64_t most,
                            std::vector<Scored>& out) {
        rank(votes, n_known, may, forest.places, most, out);
    };
    predict(forest, *rows.trees, rows.skip, kernels, monitor,
            [&](int64_t row, const LeafVotes& votes) {
                const size_t fold = rows.fold == nullptr ? 0 : rows.fold[row];
                ranked(votes, any, length, by_trees);
                if (indexed) {
                    features.ask(matchers.indexes[fold], row);
                    ranked(features, any, length, by_index);
                }
                if (spelled) {
                    parts.ask(matchers.sub_indexes[fold], row, matchers.telling_sub_words);
                    ranked(parts, any, length, by_parts);
                }
                if (named) {
                    names.ask(*matchers.names, row);
                    if (matchers.match_names) ranked(names, seen, length, by_names);
                    out.best_cosine.push_back(names.best_cosine());
                }
                for (size_t i = 0; i < given.size(); ++i)
                    listed(rows.given[i], row, allowed, forest.places, given[i]);
                turns.take(rankings);
                double evidence = features.evidence().total + parts.evidence().total;
                if (!indexed && !spelled)
                    evidence =
                        static_cast<double>(rows.trees->indptr[row + 1] - rows.trees->indptr[row]);
                out.evidence.push_back(static_cast<float>(evidence));
                // Sub-words do not count, because any string has some of them by chance.
                out.most_telling.push_back(static_cast<float>(features.evidence().most));
                if (new_labels) {
                    ranked(names, unseen, kUnseenLabels, by_names);
                    turns.add(by_names);
                }
                for (const GivenRanking& more : rows.added) {
                    listed(more, row, allowed, forest.places, added);
                    turns.add(added);
                }
                turns.drain(forest.n_labels, [&](int32_t label) {
                    out.labels.push_back(label);
                    out.tree_scores.push_back(votes.score(label));
                    if (indexed) out.index_scores.push_back(features.score(label));
                    if (spelled) out.sub_scores.push_back(parts.score(label));
                    if (!named) return;
                    const NameMatch its = names.match(label);
                    out.coverages.push_back(its.coverage);
                    out.cosines.push_back(its.cosine);
                });
                out.indptr.push_back(static_cast<int64_t>(out.labels.size()));
            });
    return out;
}

}  // namespace ldsm
