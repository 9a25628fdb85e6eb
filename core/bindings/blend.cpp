// Bindings for the blend.
#include <nanobind/stl/vector.h>

#include "bindings/object_arrays.hpp"
#include "ranking/blend.hpp"

namespace ldsm::bindings {

namespace {

// The arrays of an object of pairs, and the letters that can be read from them.
class PairArrays {
  public:
    explicit PairArrays(nb::handle pairs) : arrays_(pairs, "pairs") {
        view.n_pairs = static_cast<int64_t>(arrays_.array("tree_scores", view.tree_scores));
        take("label_counts", view.label_counts, "c");
        take("margins", view.margins, "mz");
        take("distances", view.distances, "q");
        take("index_scores", view.index_scores, "w");
        take("sub_scores", view.sub_scores, "s");
        take("certainty", view.certainty, "");
        take("base_rates", view.base_rates, "");
        if ((view.certainty == nullptr) != (view.base_rates == nullptr))
            refuse("The arrays of the pairs must have both certainty and base rates, or neither.");
        if (!nb::try_cast(pairs.attr("more_letters"), view.more_letters, false))
            refuse("The letters of more signals must be a str.");
        if (view.more_letters.empty()) return;
        const size_t n = arrays_.matrix("more", view.more);
        check_equal(n, view.more_letters.size() * static_cast<size_t>(view.n_pairs),
                    "The arrays of the pairs must have the same length");
        letters_ += view.more_letters;
    }
    void check_terms(const std::vector<std::string>& terms, bool tail) const {
        if (view.label_counts == nullptr) refuse("The pairs must have label counts.");
        for (const std::string& term : terms)
            if (term.find_first_not_of(letters_) != std::string::npos)
                refuse("The term '", term, "' needs a signal that the pairs do not have.");
        if (tail && view.distances == nullptr) refuse("The paper's formula needs distances.");
    }
    PairSignals view{};

  private:
    template <typename T>
    void take(const char* name, const T*& data, const char* letters) {
        if (!arrays_.has(name)) return;
        const size_t n = arrays_.array(name, data);
        check_equal(n, static_cast<size_t>(view.n_pairs),
                    "The arrays of the pairs must have the same length");
        letters_ += letters;
    }
    ArraysOf arrays_;
    std::string letters_ = "tn";
};

nb::object terms_of(nb::handle of, const std::vector<std::string>& terms,
                    std::optional<double> tree_share, double gamma) {
    const PairArrays pairs(of);
    pairs.check_terms(terms, tree_share.has_value());
    if (terms.empty()) refuse("terms must not be empty.");
    const TailFormula tail{tree_share.value_or(1), gamma};
    std::vector<double> out(static_cast<size_t>(pairs.view.n_pairs) * terms.size());
    without_gil([&] { blend_terms(pairs.view, terms, tree_share ? &tail : nullptr, out.data()); });
    return hand_over(std::move(out), terms.size());
}

nb::object probabilities(nb::handle of, const std::vector<std::string>& terms,
                         std::optional<double> tree_share, double gamma,
                         const std::vector<double>& coefficients) {
    const PairArrays pairs(of);
    pairs.check_terms(terms, tree_share.has_value());
    check_equal(coefficients.size(), terms.size(), "There must be a coefficient for each term");
    const TailFormula tail{tree_share.value_or(1), gamma};
    std::vector<float> out(static_cast<size_t>(pairs.view.n_pairs));
    without_gil([&] {
        blend_probabilities(pairs.view, terms, coefficients.data(), tree_share ? &tail : nullptr,
                            out.data());
    });
    return hand_over(std::move(out));
}

nb::tuple sums_of(In2<double> design, In<uint8_t> truth, In<double> weights,
                  In<double> coefficients) {
    check_aligned(design, "The design");
    check_aligned(weights, "The weights");
    check_aligned(coefficients, "The coefficients");
    check_equal(truth.size(), design.shape(0), "There must be a truth for each row of the design");
    check_equal(weights.size(), design.shape(0), "There must be a weight for each row");
    check_equal(coefficients.size(), design.shape(1),
                "There must be a coefficient for each column");
    LogisticSums sums = without_gil([&] {
        return logistic_sums(design.data(), static_cast<int64_t>(design.shape(0)),
                             static_cast<int64_t>(design.shape(1)), truth.data(), weights.data(),
                             coefficients.data());
    });
    const size_t p = design.shape(1);
    return nb::make_tuple(sums.loss, hand_over(std::move(sums.slope)),
                          hand_over(std::move(sums.curvature), p));
}

}  // namespace

void bind_blend(nb::module_& m) {
    m.def("blend_terms", &terms_of, "pairs"_a, "terms"_a, "tree_share"_a.none() = nb::none(),
          "gamma"_a = 0.0, "Values of a blend's terms, one row per pair.");
    m.def("blend_probabilities", &probabilities, "pairs"_a, "terms"_a, "tree_share"_a.none(),
          "gamma"_a, "coefficients"_a, "The probability of each pair.");
    m.def("logistic_sums", &sums_of, as_is("design"), as_is("truth"), as_is("weights"),
          as_is("coefficients"),
          "The weighted logistic loss, its slope and the lower triangle of its curvature.");
}

}  // namespace ldsm::bindings
