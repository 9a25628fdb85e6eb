// Bindings for the blend.
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "blend.hpp"

namespace ldsm::bindings {

namespace {

// The arrays of pairs, and the letters that can be read from them.
struct PairArrays {
    PairArrays(const In<float>& tree_scores, const In<int64_t>& label_counts,
               const std::optional<In<float>>& margins, const std::optional<In<double>>& distances,
               const std::optional<In<float>>& index_scores) {
        const size_t n = tree_scores.size();
        const auto check = [n](const auto& array) {
            check_aligned(array, "An array of the pairs");
            check_equal(array.size(), n, "The arrays of the pairs must have the same length");
            return array.data();
        };
        view.n_pairs = static_cast<int64_t>(n);
        view.tree_scores = check(tree_scores);
        view.label_counts = check(label_counts);
        if (margins) view.margins = check(*margins), letters += "mz";
        if (distances) view.distances = check(*distances), letters += "q";
        if (index_scores) view.index_scores = check(*index_scores), letters += "w";
    }
    void check_terms(const std::vector<std::string>& terms, bool tail) const {
        for (const std::string& term : terms)
            if (term.find_first_not_of(letters) != std::string::npos)
                refuse("The term '", term, "' needs a signal that the pairs do not have.");
        if (tail && view.distances == nullptr) refuse("The paper's formula needs distances.");
    }
    PairSignals view{};
    std::string letters = "tnc";
};

nb::object terms_of(In<float> tree_scores, In<int64_t> label_counts,
                    std::optional<In<float>> margins, std::optional<In<double>> distances,
                    std::optional<In<float>> index_scores, const std::vector<std::string>& terms,
                    std::optional<double> tree_share, double gamma) {
    const PairArrays pairs(tree_scores, label_counts, margins, distances, index_scores);
    pairs.check_terms(terms, tree_share.has_value());
    if (terms.empty()) refuse("terms must not be empty.");
    const TailFormula tail{tree_share.value_or(1), gamma};
    std::vector<double> out(static_cast<size_t>(pairs.view.n_pairs) * terms.size());
    without_gil([&] { blend_terms(pairs.view, terms, tree_share ? &tail : nullptr, out.data()); });
    return hand_over(std::move(out), terms.size());
}

nb::object probabilities(In<float> tree_scores, In<int64_t> label_counts,
                         std::optional<In<float>> margins, std::optional<In<double>> distances,
                         std::optional<In<float>> index_scores,
                         const std::vector<std::string>& terms, std::optional<double> tree_share,
                         double gamma, const std::vector<double>& coefficients) {
    const PairArrays pairs(tree_scores, label_counts, margins, distances, index_scores);
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
    m.def("blend_terms", &terms_of, as_is("tree_scores"), as_is("label_counts"),
          as_is("margins").none(), as_is("distances").none(), as_is("index_scores").none(),
          "terms"_a, "tree_share"_a.none() = nb::none(), "gamma"_a = 0.0,
          "Values of a blend's terms, one row per pair.");
    m.def("blend_probabilities", &probabilities, as_is("tree_scores"), as_is("label_counts"),
          as_is("margins").none(), as_is("distances").none(), as_is("index_scores").none(),
          "terms"_a, "tree_share"_a.none(), "gamma"_a, "coefficients"_a,
          "The probability of each pair.");
    m.def("logistic_sums", &sums_of, as_is("design"), as_is("truth"), as_is("weights"),
          as_is("coefficients"),
          "The weighted logistic loss, its slope and the lower triangle of its curvature.");
}

}  // namespace ldsm::bindings
