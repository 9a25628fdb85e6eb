// The terms of a blend: products of signals about (row, label) pairs, and the score they give.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ldsm {

// One entry per pair. What is null is not known; a term must not need it.
struct PairSignals {
    int64_t n_pairs;
    const float* tree_scores;
    const int64_t* label_counts;
    const float* margins;
    const double* distances;
    const float* index_scores;
    const float* sub_scores;  // by the index of sub-words
    // Signals that terms use as they are: a letter for each, and one row of values per letter.
    std::string more_letters;
    const double* more;
    // How far the signals can be relied on, from 0 to 1, and the share of all rows that have the
    // label, which the score is otherwise; both are null if all can be.
    const float* certainty;
    const double* base_rates;
};

// The paper's formula, beta * tree + (1 - beta) / (1 + exp(gamma * distance / 2)), in place of the
// trees' score.
struct TailFormula {
    double tree_share;
    double gamma;
};

// What keeps logarithms finite: a tree's score, and an index's, are at least this.
constexpr double kLeastScore = 1e-4, kLeastIndexScore = 1e-3;

// Values of the terms, pair by pair. A term names its signals by letters (see ldsm's blend.py): t,
// log-odds of the trees' score; m, margin; z, logarithm of the margin's likelihood; w, logarithm of
// the index's score; n, 1 for a label in no leaf; q, distance; c, logarithm of the label's rows; s,
// logarithm of the score by sub-words; and the `more_letters`.
void blend_terms(const PairSignals& pairs, const std::vector<std::string>& terms,
                 const TailFormula* tail, double* out);

// The logistic function of the sum of coefficient * term, in the order of the terms. Where signals
// cannot be relied on, that sum counts only as far as they can, and the log-odds of the base rate
// count for the rest.
void blend_probabilities(const PairSignals& pairs, const std::vector<std::string>& terms,
                         const double* coefficients, const TailFormula* tail, float* out);

// The weighted logistic loss of a linear model, its slope and the lower triangle of its curvature.
struct LogisticSums {
    double loss;
    std::vector<double> slope, curvature;  // p, p x p
};
// `design`: n rows of p; `truth` and `weights`: n; `coefficients`: p.
LogisticSums logistic_sums(const double* design, int64_t n, int64_t p, const uint8_t* truth,
                           const double* weights, const double* coefficients);

}  // namespace ldsm
