#include "trees/tree.hpp"

#include <limits>

namespace ldsm {

Tree flatten(std::deque<Node>& nodes, const FinishedWeights& weights, const TreeParams& params,
             int32_t n_features, const std::string& scratch_folder) {
    const bool narrow = widest_gap(n_features) <= 255;
    Tree t;
    t.weight_offsets.push_back(0);
    t.histogram_offsets.push_back(0);
    size_t entries = 0, bins = 0;
    for (const Node& node : nodes) {
        entries += node.first_child != 0 ? node.split.features.size() : 0;
        bins += node.histogram.labels.size();
    }
    if (weights.in_file()) {
        t.weight_features.use_file(scratch_folder);
        t.weights.use_file(scratch_folder);
        t.narrow_gaps.use_file(scratch_folder);
        t.wide_gaps.use_file(scratch_folder);
        t.weight_codes.use_file(scratch_folder);
        t.weight_means.use_file(scratch_folder);
        t.weight_scales.use_file(scratch_folder);
    }
    if (params.compress) {
        narrow ? t.narrow_gaps.reserve(entries) : t.wide_gaps.reserve(entries);
        t.weight_codes.reserve(entries * static_cast<size_t>(params.arity));
    } else {
        t.weight_features.reserve(entries);
        t.weights.reserve(entries * static_cast<size_t>(params.arity));
    }
    t.histogram_labels.reserve(bins);
    t.histogram_counts.reserve(bins);
    const auto append = [](auto& to, auto& from) {
        to.insert(to.end(), from.begin(), from.end());
        release(from);
    };
    const auto append_as_gaps = [](const std::vector<int32_t>& features, auto& to, auto gaps) {
        append_gaps(features, 0, static_cast<int64_t>(features.size()), gaps);
        to.append(gaps);
    };
    int64_t entries_before = 0;
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
            entries_before += static_cast<int64_t>(node.split.features.size());
            if (!params.compress)
                t.weight_features.append(node.split.features);
            else if (narrow)
                append_as_gaps(node.split.features, t.narrow_gaps, std::vector<uint8_t>());
            else
                append_as_gaps(node.split.features, t.wide_gaps, std::vector<uint16_t>());
            t.weights.append(node.split.weights);
            t.weight_codes.append(node.split.codes);
            t.weight_means.append(node.split.mean);
            t.weight_scales.append(node.split.scale);
            each_weight_array(node.split, [](auto& numbers) { release(numbers); });
            append(t.epoch_objective, node.split.epoch_objective);
        } else {
            t.integrity_weight.push_back(std::numeric_limits<float>::quiet_NaN());
        }
        append(t.histogram_labels, node.histogram.labels);
        append(t.histogram_counts, node.histogram.counts);
        t.weight_offsets.push_back(entries_before);
        if (params.compress) t.weight_units.push_back(node.split.unit);
        t.histogram_offsets.push_back(static_cast<int64_t>(t.histogram_labels.size()));
    }
    return t;
}

}  // namespace ldsm
