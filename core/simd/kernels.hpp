// The inner loops of training and routing, behind a table of function pointers: one table per
// instruction set, all giving the same bits.
//
// Why the bits agree: sums over a row run in four partial sums, by position modulo four, joined as
// (0 + 2) + (1 + 3); there is no fused multiply-add, no estimate instruction, and one own exp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ldsm {

constexpr int kMaxArity = 8;
constexpr int kLanes = 4;  // rows are padded to a multiple of this

// Directions are stored in groups of 2, 4 or 8, so that a group is one vector.
constexpr int padded_width(int arity) { return arity <= 2 ? 2 : arity <= 4 ? 4 : 8; }

enum class Optimizer : int { kNag = 0, kSgd = 1, kAsgd = 2 };

// Rows of one node, re-numbered to the features and labels that the node's rows touch. Every row
// starts with the bias (local feature 1, value 1) and is padded with local feature 0, value 0.
struct CompactRows {
    const int64_t* start;  // n_rows + 1 offsets, multiples of kLanes
    const uint32_t* feature;
    const float* value;          // what the regressors see; for NAG divided by the feature's scale
    const double* squared_norm;  // sum of value^2 of the row, bias included
    const int64_t* label_start;  // labels are padded to whole groups with local label 0
    const uint32_t* label;
    const int32_t* label_count;
    int64_t n_rows;
};

// What training a node accumulates; the letters are the paper's and docs/algorithm.md's.
struct NodeState {
    int arity;
    float* cells;  // per local feature: `width` weights, then `width` companions
                   // (NAG: gradient sums; averaged SGD: the correction sums)
    double*
        mass;  // A: per local label, `width` sums of clamped margins; for arity 2 one difference
    double labels_seen = 0;          // C
    double reached[kMaxArity] = {};  // B
    double scaled_norm = 0;          // N of the normalised step
    int64_t rows_seen = 0;           // t
    int64_t averaged_rows = 0;       // rows of the averaged epoch so far
    uint64_t random_key = 0;
    uint64_t random_counter = 0;
};

struct StepParams {
    double integrity_weight;  // lambda 1
    double multiway_penalty;  // lambda 2
    double learning_rate;
    bool averaging;  // the last epoch of averaged SGD
};

// Rows [from, to) of a node that wait for training; `from` moves on as they are trained.
struct TrainingRun {
    CompactRows rows;
    int64_t from, to;
    NodeState* state;
    StepParams step;
};

// Train up to `most` rows of a node, or of two nodes in step until one of them has no more rows. By
// arity; 0 and 1 are unused.
struct TrainRows {
    void (*one[kMaxArity + 1])(TrainingRun&, int64_t most);
    void (*two[kMaxArity + 1])(TrainingRun&, TrainingRun&, int64_t most);
};
// Margins of one padded row; `weights` has `width` floats per feature and 8 floats of slack.
using RowMargins = void (*)(const float* weights, const uint32_t* feature, const float* value,
                            int64_t length, float* margins);

// Which of 64 consecutive features a node stores, and how many it stores before them: the place of
// a feature without a search.
struct FeatureMap {
    uint64_t present;
    uint64_t before;
};
// Places of features among the `n_stored` of a node; -1 for one that it does not store.
using FindPlaces = void (*)(const FeatureMap* maps, const uint32_t* feature, int64_t length,
                            int64_t n_stored, int32_t* places);

// Products of the vectors of consecutive labels with up to 4 dense rows, row by row. They must fit
// int32, and do so whatever the order in which they are added up.
using DenseProducts = void (*)(const int8_t* codes, int64_t n_labels, int64_t width,
                               const int16_t* const* rows, int64_t n_rows, int32_t* products);

// The product of a full row with weights, and weights plus a multiple of a full row. The length is
// a multiple of 16.
using FullProduct = float (*)(const float* values, const float* weights, int64_t length);
using FullAdd = void (*)(float* weights, const float* values, float change, int64_t length);

// Where a row goes: every direction with a margin above 0.5, else the largest (lowest number
// first).
inline uint8_t directions_of(const float* margins, int arity) {
    unsigned mask = 0;
    int best = 0;
    for (int m = 0; m < arity; ++m) {
        if (margins[m] > 0.5f) mask |= 1u << m;
        if (margins[m] > margins[best]) best = m;
    }
    return static_cast<uint8_t>(mask != 0 ? mask : 1u << best);
}

struct Kernels {
    const char* name;
    TrainRows nag;
    TrainRows sgd;  // plain and averaged
    RowMargins margins[kMaxArity + 1];
    FindPlaces find_places;
    DenseProducts dense_products;
    FullProduct full_product;
    FullAdd full_add;

    const TrainRows& train(Optimizer optimizer) const {
        return optimizer == Optimizer::kNag ? nag : sgd;
    }
};

// The paths this machine can run, narrowest first.
std::vector<const Kernels*> available_kernels();
// "auto" is the widest, unless the environment variable LDSM_SIMD names another.
const Kernels& select_kernels(const std::string& name);

}  // namespace ldsm
