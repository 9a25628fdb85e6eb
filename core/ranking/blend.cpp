#include "ranking/blend.hpp"

#include <algorithm>
#include <cmath>

namespace ldsm {

namespace {

double logistic(double odds) {
    const double e = std::exp(-std::fabs(odds));
    return (odds >= 0 ? 1 : e) / (1 + e);
}

// An extrapolated score is never more certain than the trees' own score can be.
const double kMostOdds = -std::log(kLeastScore);

// Finite also for a label that all rows have, or none.
double log_odds(double rate) {
    constexpr double kLeastRate = 1e-9;
    rate = std::clamp(rate, kLeastRate, 1 - kLeastRate);
    return std::log(rate) - std::log1p(-rate);
}

// The terms of one pair at a time.
class Terms {
  public:
    Terms(const PairSignals& pairs, const std::vector<std::string>& terms, const TailFormula* tail)
        : pairs_(pairs), tail_(tail) {
        for (const std::string& term : terms) {
            for (const char letter : term) letters_.push_back(number(letter));
            ends_.push_back(letters_.size());
        }
    }

    void compute(int64_t pair, double* out) {
        const double tree_score = pairs_.tree_scores[pair];
        double score = tree_score;
        if (tail_ != nullptr)
            // The first product is in float32, as in earlier versions.
            score =
                static_cast<float>(tail_->tree_share) * pairs_.tree_scores[pair] +
                (1 - tail_->tree_share) * logistic(-0.5 * tail_->gamma * pairs_.distances[pair]);
        score = std::clamp(score, 0.0, 1.0);  // a damaged file may give any
        signal('t') = std::log(score + kLeastScore) - std::log(1 + kLeastScore - score);
        signal('n') = tree_score <= 0;
        signal('c') = std::log1p(static_cast<double>(pairs_.label_counts[pair]));
        if (pairs_.margins != nullptr) {
            const double margin = pairs_.margins[pair];
            signal('m') = margin;
            signal('z') = std::min(2 * margin, 0.0) - std::log1p(std::exp(-std::fabs(2 * margin)));
        }
        if (pairs_.distances != nullptr) signal('q') = pairs_.distances[pair];
        if (pairs_.index_scores != nullptr)
            signal('w') = std::log(pairs_.index_scores[pair] + kLeastIndexScore);
        if (pairs_.sub_scores != nullptr)
            signal('s') = std::log(pairs_.sub_scores[pair] + kLeastIndexScore);
        for (size_t i = 0; i < pairs_.more_letters.size(); ++i)
            signal(pairs_.more_letters[i]) =
                pairs_.more[static_cast<int64_t>(i) * pairs_.n_pairs + pair];
        size_t at = 0;
        for (size_t t = 0; t < ends_.size(); ++t) {
            double product = 1;
            for (; at < ends_[t]; ++at) product *= signals_[letters_[at]];
            out[t] = product;
        }
    }

  private:
    static uint8_t number(char letter) { return static_cast<unsigned char>(letter) % 128; }
    double& signal(char letter) { return signals_[number(letter)]; }

    const PairSignals& pairs_;
    const TailFormula* tail_;
    std::vector<uint8_t> letters_;  // of all terms, one after the other
    std::vector<size_t> ends_;      // of each term among them
    double signals_[128] = {};
};

}  // namespace

void blend_terms(const PairSignals& pairs, const std::vector<std::string>& terms,
                 const TailFormula* tail, double* out) {
    Terms values(pairs, terms, tail);
    for (int64_t i = 0; i < pairs.n_pairs; ++i)
        values.compute(i, out + i * static_cast<int64_t>(terms.size()));
}

void blend_probabilities(const PairSignals& pairs, const std::vector<std::string>& terms,
                         const double* coefficients, const TailFormula* tail, float* out) {
    Terms values(pairs, terms, tail);
    std::vector<double> of_pair(terms.size());
    for (int64_t i = 0; i < pairs.n_pairs; ++i) {
        values.compute(i, of_pair.data());
        double odds = 0;
        for (size_t t = 0; t < terms.size(); ++t) odds += coefficients[t] * of_pair[t];
        const double certainty = pairs.certainty == nullptr ? 1 : pairs.certainty[i];
        if (certainty <= 0) {
            out[i] = static_cast<float>(pairs.base_rates[i]);
            continue;
        }
        if (certainty < 1) {
            const double base = log_odds(pairs.base_rates[i]);
            odds = base + certainty * (std::min(odds, kMostOdds) - base);
        }
        out[i] = static_cast<float>(logistic(odds));
    }
}

LogisticSums logistic_sums(const double* design, int64_t n, int64_t p, const uint8_t* truth,
                           const double* weights, const double* coefficients) {
    LogisticSums sums{0, std::vector<double>(static_cast<size_t>(p), 0.0),
                      std::vector<double>(static_cast<size_t>(p * p), 0.0)};
    for (int64_t i = 0; i < n; ++i) {
        const double* x = design + i * p;
        double odds = 0;
        for (int64_t t = 0; t < p; ++t) odds += coefficients[t] * x[t];
        const double e = std::exp(-std::fabs(odds));
        const double probability = (odds >= 0 ? 1 : e) / (1 + e);
        sums.loss += weights[i] * (std::max(odds, 0.0) + std::log1p(e) - truth[i] * odds);
        const double pull = weights[i] * (probability - truth[i]);
        const double bend = weights[i] * probability * (1 - probability);
        for (int64_t t = 0; t < p; ++t) {
            sums.slope[t] += pull * x[t];
            const double bent = bend * x[t];
            double* row = sums.curvature.data() + t * p;
            for (int64_t u = 0; u <= t; ++u) row[u] += bent * x[u];
        }
    }
    return sums;
}

}  // namespace ldsm
