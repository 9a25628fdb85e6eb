// Trains the regressors of one node and sends the node's rows to its children.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels.hpp"
#include "monitor.hpp"
#include "node_rows.hpp"

namespace ldsm {

struct TreeParams {
    int arity;
    int64_t max_nodes;
    int n_epochs;
    double learning_rate;
    double integrity_weight;
    double multiway_penalty;
    int relaxations;  // how often a degenerate split may halve its integrity weight
    Optimizer optimizer;
    bool standardize;
    double subsample;
    int64_t block_entries;  // memory of a node's copy; does not change the tree
};

// A trained node: sparse weights by global feature (the bias is feature D), `arity` per feature.
struct Split {
    std::vector<int32_t> features;
    std::vector<float> weights;
    std::vector<float> mean, scale;         // per feature, when standardised
    std::vector<float> epoch_objective;     // J of the accumulators after each epoch
    std::vector<uint8_t> directions;        // per row: bit m set, the row goes to child m
    double integrity_weight = 0;            // the one that worked
};

class Trainer {
  public:
    Trainer(const FeatureRows& x, const LabelRows& y, const TreeParams& params,
            const Kernels& kernels, Monitor& monitor);

    // False: no acceptable split was found, the node stays a leaf.
    bool split(const std::vector<int32_t>& rows, uint64_t key, Split& out);

  private:
    using Rows = std::vector<int32_t>;
    void train(const Rows& rows, double integrity_weight, NodeState& state, Split& out);
    void train_block(NodeState& state, const StepParams& step, bool first_epoch);
    void extend();
    bool collect_weights(const NodeState& state, Split& out);
    void route(const Rows& rows, Split& out);
    double objective(const NodeState& state, double integrity_weight) const;
    void track_scales(int64_t row);
    void apply_scales();

    const TreeParams params_;
    const Kernels& kernels_;
    Monitor& monitor_;
    int32_t n_features_;
    int width_;
    bool tracks_scales_;  // NAG on values other than 0 and +-1
    bool fits_;           // the node's rows are all in one block
    NodeRows rows_;
    std::vector<float> cells_, scales_, weights_;
    std::vector<double> mass_;
};

}  // namespace ldsm
