// Trains two nodes at a time, row by row in step.
//
// Within a node every row waits for the row before it, and a row is a chain of long operations: one
// node alone leaves the machine waiting most of the time. So the node that is due is trained beside
// the one that will most likely be due next. What a node learns depends only on its rows and its
// key: being trained early, or beside another node, changes nothing.
#pragma once

#include <array>

#include "common/monitor.hpp"
#include "trees/generator.hpp"
#include "trees/node.hpp"
#include "trees/trainer.hpp"

namespace ldsm {

class PairTrainer {
  public:
    PairTrainer(const FeatureRows& x, const LabelRows& y, const TreeParams& params,
                const Memory& memory, const Kernels& kernels, Monitor& monitor)
        : one_(kernels.train(params.optimizer).one[params.arity]),
          two_(kernels.train(params.optimizer).two[params.arity]),
          monitor_(monitor),
          places_{Place{Trainer(x, y, params, memory, kernels, monitor)},
                  Place{Trainer(x, y, params, memory, kernels, monitor)}} {}

    // Trains a node to the end. Whenever a place is free beside it, the node that next() returns
    // (null: none) is begun there; it continues when its own turn comes. Nodes must stay where they
    // are.
    template <typename Next>
    void train(Node& due, Next&& next) {
        if (due.progress == Progress::kWaiting) begin(due);
        while (due.progress != Progress::kTrained) {
            for (const Place& place : places_) {
                if (place.rows != nullptr) continue;
                if (Node* early = next()) begin(*early);
            }
            step();
        }
    }

  private:
    struct Place {
        Trainer trainer;
        Node* node = nullptr;
        Generator<TrainingRun> training{};
        TrainingRun* rows = nullptr;  // that wait for a kernel; null: the place is free
    };

    void begin(Node& node) {
        Place& place = places_[places_[0].rows == nullptr ? 0 : 1];
        place.node = &node;
        place.training = place.trainer.train_regressors(node.rows, node.key, node.split);
        node.progress = Progress::kTraining;
        advance(place);
    }

    // Some rows of both nodes, or of the one there is.
    void step() {
        constexpr int64_t kRows = 256;  // between two checks for cancelling
        monitor_.check();
        TrainingRun* const first = places_[0].rows;
        TrainingRun* const second = places_[1].rows;
        if (first != nullptr && second != nullptr)
            two_(*first, *second, kRows);
        else
            one_(first != nullptr ? *first : *second, kRows);
        for (Place& place : places_)
            if (place.rows != nullptr && place.rows->from == place.rows->to) advance(place);
    }

    static void advance(Place& place) {
        place.rows = place.training.next();
        if (place.rows == nullptr) place.node->progress = Progress::kTrained;
    }

    void (*one_)(TrainingRun&, int64_t);
    void (*two_)(TrainingRun&, TrainingRun&, int64_t);
    Monitor& monitor_;
    std::array<Place, 2> places_;
};

}  // namespace ldsm
