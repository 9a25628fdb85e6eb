// How good a split is: numbers for people and figures, no part of the algorithm.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>

#include "trees/node.hpp"

namespace ldsm {

// J, beta and alpha from routed histograms: P_j^k = child_j[k] / node[k], pi_k = node[k] / sum.
inline void measure(Node& node, const std::deque<Node>& nodes, const TreeParams& params) {
    const int arity = params.arity;
    const auto total = static_cast<double>(node.n_labels);
    double share[kMaxArity];
    double sum = 0;
    size_t at[kMaxArity] = {};
    for (int m = 0; m < arity; ++m) {
        share[m] = static_cast<double>(nodes[node.first_child + m].n_labels) / total;
        sum += share[m];
    }
    double integrity = 0, impure = 0;
    for (const int32_t label : node.histogram.labels) {
        double c[kMaxArity];
        double all = 0;
        for (int m = 0; m < arity; ++m) {
            const Histogram& h = nodes[node.first_child + m].histogram;
            const bool has = at[m] < h.labels.size() && h.labels[at[m]] == label;
            c[m] = has ? h.counts[at[m]++] : 0;
            all += c[m];
        }
        for (int j = 0; j < arity; ++j) {
            impure += std::min(c[j], all - c[j]);
            for (int l = j + 1; l < arity; ++l) integrity += std::fabs(c[j] - c[l]);
        }
    }
    double balance = 0, beta = 0;
    for (int j = 0; j < arity; ++j) {
        beta = std::max(beta, std::fabs(share[j] - sum / arity));
        for (int l = j + 1; l < arity; ++l) balance += std::fabs(share[j] - share[l]);
    }
    node.objective = balance - params.integrity_weight * integrity / total +
                     params.multiway_penalty * std::fabs(sum - 1);
    node.balancedness = beta;
    node.purity = impure / total / arity;
}

}  // namespace ldsm
