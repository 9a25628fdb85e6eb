#include "trees/tree.hpp"

#include <limits>

namespace ldsm {

Tree flatten(std::deque<Node>& nodes, const FinishedWeights& weights, const TreeParams& params,
             int32_t n_features, const std::string& scratch_folder) {
    const WeightForm form{n_features, params.compress, params.arity};
    Tree t;
    t.histogram_offsets.push_back(0);
    size_t entries = 0, bins = 0;
    for (const Node& node : nodes) {
        entries += node.first_child != 0 ? node.split.weights.features.size() : 0;
        bins += node.histogram.labels.size();
    }
    if (weights.in_file()) {
        t.weights.use_files(form, scratch_folder);
        t.weight_means.use_file(scratch_folder);
        t.weight_scales.use_file(scratch_folder);
    }
    t.weights.reserve(form, entries);
    t.histogram_labels.reserve(bins);
    t.histogram_counts.reserve(bins);
    const auto append = [](auto& to, auto& from) {
        to.insert(to.end(), from.begin(), from.end());
        release(from);
    };
    const auto release_weights = [](Split& split) {
        each_weight_array(split, [](auto& numbers) { release(numbers); });
    };
    for (Node& node : nodes) {
        t.first_child.push_back(node.first_child);
        t.node_rows.push_back(node.n_rows);
        t.node_labels.push_back(node.n_labels);
        t.node_entropy.push_back(node.entropy);
        t.objective.push_back(node.objective);
        t.balancedness.push_back(node.balancedness);
        t.purity.push_back(node.purity);
        if (node.first_child != 0) {
            t.integrity_weight.push_back(static_cast<float>(node.split.integrity_weight));
            weights.fetch(node);
            append(t.epoch_objective, node.split.epoch_objective);
        } else {
            t.integrity_weight.push_back(std::numeric_limits<float>::quiet_NaN());
            release_weights(node.split);  // of a split that failed; its unit is stored
        }
        t.weights.append(form, node.split.weights);
        t.weight_means.append(node.split.mean);
        t.weight_scales.append(node.split.scale);
        release_weights(node.split);
        append(t.histogram_labels, node.histogram.labels);
        append(t.histogram_counts, node.histogram.counts);
        t.histogram_offsets.push_back(static_cast<int64_t>(t.histogram_labels.size()));
    }
    return t;
}

}  // namespace ldsm
