// Trains the regressors of one node and sends the node's rows to its children.
#pragma once

#include <cstdint>
#include <string>
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
};

// What a tree may use while it grows; how much there is does not change it.
struct Memory {
    // In bytes. Half is for the copies of the rows that are being trained on, a quarter for the
    // weights of finished nodes; the others wait in a file.
    int64_t limit;
    std::string scratch_folder;  // for that file; empty: there is none
};

// A trained node: sparse weights by global feature (the bias is feature D), `arity` per feature.
struct Split {
    bool found = false;  // false: the node stays a leaf
    std::vector<int32_t> features;
    std::vector<float> weights;
    std::vector<float> mean, scale;      // per feature, when standardised
    std::vector<float> epoch_objective;  // J of the accumulators after each epoch
    std::vector<uint8_t> directions;     // per row: bit m set, the row goes to child m
    double integrity_weight = 0;         // the one that worked
};

// The training of one node at a time, in pieces: between two pieces the caller may run the rows of
// this node through a kernel alone or in step with another node's.
class Trainer {
  public:
    Trainer(const FeatureRows& x, const LabelRows& y, const TreeParams& params,
            const Memory& memory, const Kernels& kernels, Monitor& monitor);

    // Begins a node; `rows` and `out` must stay where they are until it is done.
    void start(const std::vector<int32_t>& rows, uint64_t key, Split& out);
    bool busy() const { return out_ != nullptr; }
    // Rows that wait for a kernel. False: the node is done and `out` is complete.
    bool prepare();
    TrainingRun& run() { return run_; }
    // True where rows must pass one by one: they may not be trained in step with another node's.
    bool alone() const { return tracks_scales_ && epoch_ == 0; }
    // Trains up to `n_rows` of the waiting rows.
    void train(int64_t n_rows);

  private:
    using Rows = std::vector<int32_t>;
    void begin_attempt();
    void begin_epoch();
    void begin_block();
    bool one_sided() const;
    bool found_split();
    void extend();
    float final_weight(uint32_t feature, int direction) const;
    bool collect_weights();
    void route();
    double objective() const;
    void track_scales(int64_t row);
    void apply_scales();

    const TreeParams params_;
    const Kernels& kernels_;
    const Trainers& trainers_;
    Monitor& monitor_;
    int32_t n_features_;
    int width_;
    bool tracks_scales_;  // NAG on values other than 0 and +-1
    NodeRows rows_;
    std::vector<float> cells_, scales_, weights_;
    std::vector<double> mass_;

    // Where the training stands.
    const Rows* node_rows_ = nullptr;
    Split* out_ = nullptr;
    NodeState state_;
    TrainingRun run_;
    double integrity_weight_ = 0;
    bool fits_ = false;  // the node's rows are all in one block
    int attempt_ = 0;
    int epoch_ = 0;
    int64_t block_end_ = 0;
};

}  // namespace ldsm
