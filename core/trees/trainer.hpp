// Trains the regressors of a node and finds where they send its rows (Algorithm 4 of the paper).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/monitor.hpp"
#include "common/weight_codec.hpp"
#include "simd/kernels.hpp"
#include "trees/generator.hpp"
#include "trees/node_rows.hpp"

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
    int64_t min_split_labels;  // a node of fewer (row, label) pairs stays a leaf
    double prune_share;        // weights that add less, beside the strongest feature, are dropped
    bool compress;             // weights are rounded to a byte
};

// What a tree may use while it grows; how much there is does not change it.
struct Memory {
    // In bytes. Half is for the copies of the rows that are being trained on, a quarter for the
    // weights of finished nodes; the others wait in a file.
    int64_t limit;
    std::string scratch_folder;  // for that file; empty: there is none
};

// A trained node.
struct Split {
    bool found = false;                  // false: the node stays a leaf
    SparseVector weights;                // by global feature
    std::vector<float> mean, scale;      // per feature, when standardised
    std::vector<float> epoch_objective;  // J of the accumulators after each epoch
    std::vector<uint8_t> directions;     // per row: bit m set, the row goes to child m
    double integrity_weight = 0;         // the one that worked
};

// Calls visit(numbers) for the parts of a split that a tree keeps.
template <typename Visit>
void each_weight_array(Split& split, Visit&& visit) {
    visit(split.weights.features);
    visit(split.weights.weights);
    visit(split.weights.codes);
    visit(split.mean);
    visit(split.scale);
}

// Trains nodes, one after the other; what it keeps between them is memory only.
class Trainer {
  public:
    Trainer(const FeatureRows& x, const LabelRows& y, const TreeParams& params,
            const Memory& memory, const Kernels& kernels, Monitor& monitor);

    // Algorithm 4, TrainRegressors. Yields rows, which the caller must run through a kernel before
    // it asks for more. After the last ones, `out` is complete. `rows` and `out` must stay where
    // they are until then.
    Generator<TrainingRun> train_regressors(const std::vector<int32_t>& rows, uint64_t key,
                                            Split& out);

  private:
    using Rows = std::vector<int32_t>;
    void begin_attempt(uint64_t key);
    int64_t read_block(const Rows& rows, int64_t from);
    void extend();
    void train_tracking_scales(TrainingRun& run);
    void track_scales(int64_t row);
    void apply_scales();
    bool one_sided() const;
    double objective(double integrity_weight) const;
    float final_weight(uint32_t feature, int direction) const;
    bool collect_weights(Split& out);
    std::vector<uint64_t> prune(double most);
    float round_weights(std::vector<uint64_t>& kept);
    void route(const Rows& rows, std::vector<uint8_t>& directions);

    const TreeParams& params_;
    const Kernels& kernels_;
    Monitor& monitor_;
    WeightForm form_;
    int width_;
    bool tracks_scales_;  // NAG on values other than 0 and +-1
    NodeRows rows_;
    bool fits_ = false;  // the node's rows are all in one block
    NodeState state_{};
    std::vector<float> cells_, scales_, weights_;
    std::vector<double> mass_;
};

}  // namespace ldsm
