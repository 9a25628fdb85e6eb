// Bindings for feature indexes, shortlists and their final order.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "bindings/forest.hpp"
#include "matching/shortlists.hpp"
#include "ranking/best_of_lists.hpp"
#include "routing/ranked.hpp"

namespace ldsm::bindings {

namespace {

// An index is any Python object with these attributes; no copy of it is made or kept.
struct IndexArrays {
    explicit IndexArrays(nb::handle index) : arrays(index, "feature index") {
        const size_t offsets = arrays.array("offsets", view.offsets);
        const size_t labels = arrays.numbers("labels", view.labels);
        const size_t codes = arrays.array("codes", view.codes);
        const size_t units = arrays.array("units", view.units);
        if (units + 1 != offsets || codes != labels) refuse_sizes();
        n_features = static_cast<int64_t>(units);
        view.n_entries = static_cast<int64_t>(labels);
    }
    void check(int64_t n) const {
        if (n_features != n) refuse_sizes();
    }
    [[noreturn]] static void refuse_sizes() {
        refuse("The arrays of the feature index do not fit each other or X in size.");
    }
    ArraysOf arrays;
    FeatureIndexView view{};
    int64_t n_features = 0;
};

nb::list train(const CheckedFeatures& features, const CheckedLabels& labels, In<uint8_t> fold,
               int n_folds, int64_t keep, int64_t first, std::optional<int64_t> end,
               Cancel cancel) {
    const FeatureRows& x = features.view();
    const LabelRows& y = labels.view();
    check_equal(x.n_rows, y.n_rows, "X and Y must have the same number of rows");
    if (n_folds < 1 || n_folds > 64 || keep < 1)
        refuse("n_folds must lie in [1, 64] and keep be at least 1.");
    if (static_cast<int64_t>(fold.size()) != x.n_rows) refuse("fold must have one entry per row.");
    for (size_t i = 0; i < fold.size(); ++i)
        if (fold.data()[i] >= n_folds) refuse("fold must lie in [0, n_folds).");
    const int64_t last = end.value_or(x.n_features);
    if (first < 0 || last < first || last > x.n_features)
        refuse("first and last must be ints with 0 <= first <= last <= ", x.n_features, ". Got ",
               first, " and ", last, ".");
    Monitor monitor = make_monitor(cancel);
    auto found = without_gil([&] {
        return train_feature_indexes(x, y, static_cast<int32_t>(first), static_cast<int32_t>(last),
                                     fold.data(), n_folds, keep, monitor);
    });
    nb::list out;
    for (FeatureIndex& index : found)
        out.append(hand_over_all(index.offsets, index.labels, index.codes, index.units));
    return out;
}

nb::tuple extend(nb::handle index, In<float> masses, const CheckedFeatures& features,
                 const CheckedLabels& labels, In<double> lift_before, In<double> lift_after,
                 int64_t keep, uint64_t seed, Cancel cancel) {
    const FeatureRows& x = features.view();
    const LabelRows& y = labels.view();
    check_equal(x.n_rows, y.n_rows, "X and Y must have the same number of rows");
    check_equal(static_cast<int64_t>(masses.size()), int64_t{x.n_features},
                "masses must be per feature");
    for (const auto& lift : {lift_before, lift_after})
        check_equal(static_cast<int64_t>(lift.size()), int64_t{y.n_labels},
                    "lift_before and lift_after must be per label");
    if (keep < 1) refuse("keep must be at least 1.");
    const IndexArrays before(index);
    before.check(x.n_features);
    Monitor monitor = make_monitor(cancel);
    FeatureIndex out = without_gil([&] {
        return extend_feature_index(before.view, masses.data(), x, y, lift_before.data(),
                                    lift_after.data(), keep, seed, monitor);
    });
    return hand_over_all(out.offsets, out.labels, out.codes, out.units);
}

struct NameArrays {
    explicit NameArrays(nb::handle names) : arrays(names, "index of names") {
        const size_t offsets = arrays.array("offsets", view.offsets);
        view.n_entries = static_cast<int64_t>(arrays.numbers("names", view.names));
        const size_t idf = arrays.array("idf", view.idf);
        const size_t norms = arrays.array("norms", view.norms);
        const size_t owners = arrays.array("owners", view.owners);
        if (idf + 1 != offsets || norms != owners || norms > INT32_MAX) refuse_sizes();
        n_sub_words = static_cast<int64_t>(idf);
        view.n_names = static_cast<int64_t>(norms);
    }
    void check(int64_t n) const {
        if (n_sub_words != n) refuse_sizes();
    }
    [[noreturn]] static void refuse_sizes() {
        refuse("The arrays of the index of names do not fit each other or X in size.");
    }
    ArraysOf arrays;
    NameIndexView view{};
    int64_t n_sub_words = 0;
};

using Ranking = std::pair<In<int64_t>, In<int32_t>>;  // offsets, labels

std::vector<GivenRanking> checked_rankings(const std::vector<Ranking>& rankings, int64_t n_rows,
                                           int32_t n_known) {
    std::vector<GivenRanking> out;
    for (const auto& [offsets, labels] : rankings) {
        check_offsets(offsets, labels.size(), "The offsets of a ranking");
        check_equal(static_cast<int64_t>(offsets.size()) - 1, n_rows,
                    "A ranking must have one list per row");
        check_range(labels, n_known, "The labels of a ranking");
        out.push_back({offsets.data(), labels.data()});
    }
    return out;
}

// The same rows as each matcher reads them.
class CheckedMatchRows {
  public:
    // `indexed`: none if an index knows the features that the trees know.
    CheckedMatchRows(const CheckedFeatures& trees, const CheckedFeatures* indexed,
                     const CheckedFeatures* sub_words, std::optional<In2<uint8_t>> skip,
                     std::optional<In<uint8_t>> fold, std::vector<Ranking> given,
                     std::vector<Ranking> added)
        : trees_(trees),
          indexed_(indexed == nullptr ? trees : *indexed),
          skip_(std::move(skip)),
          fold_(std::move(fold)),
          given_(std::move(given)),
          added_(std::move(added)) {
        if (sub_words != nullptr) sub_words_.emplace(*sub_words);
        const int64_t n_rows = trees.view().n_rows;
        for (const CheckedFeatures* others : {indexed, sub_words})
            if (others != nullptr)
                check_equal(others->view().n_rows, n_rows, "X must have one number of rows");
        if (fold_ && static_cast<int64_t>(fold_->size()) != n_rows)
            refuse("fold must have one entry per row.");
    }
    MatchRows of(const ForestView& forest) const {
        const int64_t n_rows = trees_.view().n_rows;
        return {&rows_for(forest, trees_),
                &indexed_.view(),
                sub_words_ ? &sub_words_->view() : nullptr,
                checked_skip(skip_, forest, trees_.view()),
                fold_ ? fold_->data() : nullptr,
                checked_rankings(given_, n_rows, forest.n_known()),
                checked_rankings(added_, n_rows, forest.n_known())};
    }
    void check_folds(size_t n_folds) const {
        for (size_t i = 0; fold_ && i < fold_->size(); ++i)
            if (fold_->data()[i] >= n_folds) refuse("fold must name one of the indexes.");
    }

  private:
    CheckedFeatures trees_, indexed_;
    std::optional<CheckedFeatures> sub_words_;
    std::optional<In2<uint8_t>> skip_;
    std::optional<In<uint8_t>> fold_;
    std::vector<Ranking> given_, added_;
};

// What finds labels besides the trees.
class CheckedMatchers {
  public:
    CheckedMatchers(const std::vector<nb::object>& indexes,
                    const std::vector<nb::object>& sub_indexes,
                    std::optional<In<uint8_t>> telling_sub_words, nb::handle names,
                    bool match_names, std::optional<In<uint8_t>> unseen)
        : telling_sub_words_(std::move(telling_sub_words)),
          match_names_(match_names),
          unseen_(std::move(unseen)) {
        for (const nb::object& index : indexes) indexes_.emplace_back(index);
        for (const nb::object& index : sub_indexes) sub_indexes_.emplace_back(index);
        if (!names.is_none()) names_.emplace(names);
    }
    Matchers of(const ForestView& forest, const MatchRows& rows) const {
        if (rows.sub_words == nullptr && (!sub_indexes_.empty() || names_))
            refuse("Matchers that read sub-words need those of the rows.");
        const int64_t n_sub_words = rows.sub_words == nullptr ? 0 : rows.sub_words->n_features;
        if (telling_sub_words_)
            check_equal(static_cast<int64_t>(telling_sub_words_->size()), n_sub_words,
                        "telling_sub_words must be per sub-word");
        if (names_) names_->check(n_sub_words);
        return {views(indexes_, rows.indexed->n_features),
                views(sub_indexes_, n_sub_words),
                telling_sub_words_ ? telling_sub_words_->data() : nullptr,
                names_ ? &names_->view : nullptr,
                match_names_,
                checked_allowed(unseen_, forest.n_known())};
    }
    size_t n_folds() const {
        const size_t a = indexes_.size(), b = sub_indexes_.size();
        return a > 0 && b > 0 ? std::min(a, b) : std::max(a, b);
    }

  private:
    static std::vector<FeatureIndexView> views(const std::vector<IndexArrays>& indexes,
                                               int64_t n_features) {
        std::vector<FeatureIndexView> out;
        for (const IndexArrays& index : indexes) {
            index.check(n_features);
            out.push_back(index.view);
        }
        return out;
    }
    std::vector<IndexArrays> indexes_, sub_indexes_;
    std::optional<In<uint8_t>> telling_sub_words_;
    std::optional<NameArrays> names_;
    bool match_names_;
    std::optional<In<uint8_t>> unseen_;
};

nb::tuple shortlists(nb::handle forest, const CheckedMatchRows& match_rows,
                     const CheckedMatchers& others, int64_t length,
                     std::optional<In<uint8_t>> allowed, Cancel cancel, const std::string& simd) {
    const ForestArrays arrays(forest);
    if (length < 1) refuse("length must be at least 1. Got ", length, ".");
    const MatchRows rows = match_rows.of(arrays.view);
    const Matchers matchers = others.of(arrays.view, rows);
    match_rows.check_folds(others.n_folds());
    if (arrays.view.places != nullptr) check_places(arrays.view.places, arrays.view.n_known());
    const uint8_t* may = checked_allowed(allowed, arrays.view.n_known());
    Monitor monitor = make_monitor(cancel);
    const Kernels& kernels = select_kernels(simd);
    ShortlistArrays s = without_gil(
        [&] { return match(arrays.view, rows, matchers, length, may, kernels, monitor); });
    return hand_over_all(s.indptr, s.labels, s.tree_scores, s.index_scores, s.sub_scores,
                         s.coverages, s.cosines, s.best_cosine, s.most_telling, s.evidence);
}

nb::tuple best(In<int64_t> indptr, In<int32_t> labels, In<float> scores, int64_t k,
               In<int32_t> fill_order, std::optional<In<uint8_t>> allowed,
               std::optional<In<double>> label_weights) {
    const auto n_labels = static_cast<int64_t>(fill_order.size());
    check_offsets(indptr, labels.size(), "The offsets of the lists");
    check_range(labels, n_labels, "The labels of the lists");
    check_aligned(fill_order, "fill_order");
    check_equal(labels.size(), scores.size(), "The lists must have as many scores as labels");
    if (label_weights && static_cast<int64_t>(label_weights->size()) != n_labels)
        refuse("label_weights must have one entry per label.");
    const uint8_t* may = checked_allowed(allowed, static_cast<int32_t>(n_labels));
    const int64_t choices =
        may == nullptr ? n_labels
                       : std::count_if(may, may + n_labels, [](uint8_t a) { return a != 0; });
    if (k < 1 || k > choices) refuse("k must lie in [1, ", choices, "]. Got ", k, ".");
    const auto n_rows = static_cast<int64_t>(indptr.size()) - 1;
    std::vector<int32_t> top(static_cast<size_t>(n_rows * k));
    std::vector<float> values(top.size());
    const ScoredLists lists{indptr.data(), labels.data(), scores.data(), n_rows};
    const TopK out{k, fill_order.data(), may, top.data(), values.data()};
    without_gil([&] {
        best_of_lists(lists, label_weights ? label_weights->data() : nullptr,
                      static_cast<int32_t>(n_labels), out);
    });
    return nb::make_tuple(hand_over(std::move(top), static_cast<size_t>(k)),
                          hand_over(std::move(values), static_cast<size_t>(k)));
}

}  // namespace

void bind_matching(nb::module_& m) {
    m.def("train_feature_indexes", &train, "x"_a, "y"_a, as_is("fold"), nb::kw_only(), "n_folds"_a,
          "keep"_a, "first"_a = 0, "last"_a.none() = nb::none(), as_is("cancel") = nb::none(),
          "An index from features to labels for each fold, of the other folds' rows, and one of "
          "all rows: lists of (offsets, labels, codes, units). Only for some consecutive features, "
          "if given.");
    m.def("extend_feature_index", &extend, "index"_a, as_is("masses"), "x"_a, "y"_a,
          as_is("lift_before"), as_is("lift_after"), nb::kw_only(), "keep"_a, "seed"_a,
          as_is("cancel") = nb::none(),
          "An index with new rows added: (offsets, labels, codes, units).");
    nb::class_<CheckedMatchRows>(m, "MatchRows", "The same rows as each matcher reads them.")
        .def(nb::init<const CheckedFeatures&, const CheckedFeatures*, const CheckedFeatures*,
                      std::optional<In2<uint8_t>>, std::optional<In<uint8_t>>, std::vector<Ranking>,
                      std::vector<Ranking>>(),
             "trees"_a, "indexed"_a.none() = nb::none(), "sub_words"_a.none() = nb::none(),
             as_is("skip") = nb::none(), as_is("fold") = nb::none(),
             as_is("given") = std::vector<Ranking>(), as_is("added") = std::vector<Ranking>());
    nb::class_<CheckedMatchers>(m, "Matchers", "What finds labels besides the trees.")
        .def(nb::init<const std::vector<nb::object>&, const std::vector<nb::object>&,
                      std::optional<In<uint8_t>>, nb::handle, bool, std::optional<In<uint8_t>>>(),
             "indexes"_a, "sub_indexes"_a = std::vector<nb::object>(),
             as_is("telling_sub_words") = nb::none(), "names"_a.none() = nb::none(),
             "match_names"_a = false, as_is("unseen") = nb::none());
    m.def("shortlists", &shortlists, "forest"_a, "rows"_a, "matchers"_a, "length"_a,
          as_is("allowed") = nb::none(), as_is("cancel") = nb::none(), "simd"_a = "auto",
          "The candidates of each row: indptr, labels and, as far as they are known, the scores of "
          "trees, index and index of sub-words, coverage and cosine of the name; then, by row, the "
          "largest cosine, and how much its most telling feature and all of them tell.");
    m.def("best_of_lists", &best, as_is("indptr"), as_is("labels"), as_is("scores"), "k"_a,
          as_is("fill_order"), as_is("allowed") = nb::none(), as_is("label_weights") = nb::none(),
          "The k best labels of each list and their scores.");
}

}  // namespace ldsm::bindings
