// The innermost loop of Algorithm 4: what training does with each row.
//
// Included by path.hpp, once per instruction set.

// One node's training, a row at a time, cut into phases: the phases of two nodes can be
// interleaved, so that the machine works on one while it waits for the other. (Within a node every
// row waits for the row before it, and a row is a chain of long operations.)
//
// ARITY 2 and 4 are known at compile time; 0 serves the rest, in vectors of WIDTH.
template <int ARITY, int WIDTH, bool NAG>
class RowTrainer {
  public:
    RowTrainer(TrainingRun& run, int64_t most)
        : run_(run),
          stop_(run.to - run.from < most ? run.to : run.from + most),
          state_(*run.state),
          arity_(ARITY ? ARITY : run.state->arity),
          mass_(run.state->mass),
          cells_(run.state->cells),
          scaled_norm_(run.state->scaled_norm),
          rows_seen_(run.state->rows_seen),
          in_use_(targets<WIDTH>((1u << arity_) - 1)) {
        for (int m = 0; m < kMaxArity; ++m) reached_.by_direction[m] = state_.reached[m];
        reached_.labels_seen = state_.labels_seen;
    }

    // Everything that lives in registers goes back into the state.
    void finish() {
        for (int m = 0; m < kMaxArity; ++m) state_.reached[m] = reached_.by_direction[m];
        state_.labels_seen = reached_.labels_seen;
        state_.scaled_norm = scaled_norm_;
        state_.rows_seen = rows_seen_;
    }

    // Moves to the next row that has labels (others are routed and counted, not trained on).
    bool next() {
        while (run_.from < stop_) {
            row_ = run_.from++;
            n_labels_ = run_.rows.label_count[row_];
            if (n_labels_ != 0) return true;
        }
        return false;
    }

    void put_back() { run_.from = row_; }

    // Which directions the row should take (Algorithm 3).
    void choose() {
        const uint32_t* label = run_.rows.label + run_.rows.label_start[row_];
        const double n = static_cast<double>(n_labels_);
        reached_.labels_seen += n;
        if constexpr (ARITY == 2) {
            double sums[3];
            pair_sums_of_two(mass_, label, n_labels_, sums);
            target_ = choose_of_two(reached_, sums, n, run_.step, state_);
        } else {
            double sums[kPairs<kMaxArity>][3];
#if LDSM_AVX2
            if constexpr (ARITY == 4)
                pair_sums_of_four(mass_, label, n_labels_, sums);
            else
#endif
                pair_sums<WIDTH>(mass_, label, n_labels_, arity_, sums);
            target_ = choose_directions<ARITY>(reached_, sums, n, run_.step, state_);
        }
    }

    void predict() {
        const int64_t start = run_.rows.start[row_];
        length_ = run_.rows.start[row_ + 1] - start;
        feature_ = run_.rows.feature + start;
        value_ = run_.rows.value + start;
        margins_ = dot<WIDTH, 2 * WIDTH>(cells_, feature_, value_, length_);
    }

    // Slope of the loss by margin. Directions beyond the arity fill up the vectors; their slopes
    // and so their weights stay 0.
    void differentiate() {
        slope_ = minus_within<WIDTH>(logistic<WIDTH>(margins_), targets<WIDTH>(target_), in_use_);
    }

    void update() {
        ++rows_seen_;
        const double square = run_.rows.squared_norm[row_];
        if constexpr (NAG) {
            scaled_norm_ += square;
            const float factor =
                static_cast<float>(run_.step.learning_rate *
                                   std::sqrt(static_cast<double>(rows_seen_) / scaled_norm_));
            const Floats<WIDTH> gradient = to_floats<WIDTH>(slope_);
            margins_ =
                minus<WIDTH>(margins_, nag_step<WIDTH>(cells_, feature_, value_, length_, gradient,
                                                       times<WIDTH>(gradient, factor)));
        } else {
            const Doubles<WIDTH> step = times<WIDTH>(slope_, run_.step.learning_rate);
            // Mean of the weights over the epoch = last weights - (1/T) sum (s-1) * change_s.
            const double position =
                run_.step.averaging ? static_cast<double>(state_.averaged_rows++) : 0;
            sgd_step<WIDTH>(cells_, feature_, value_, length_,
                            to_floats<WIDTH>(times<WIDTH>(step, -1.0)),
                            to_floats<WIDTH>(times<WIDTH>(step, -position)));
            margins_ = minus<WIDTH>(
                margins_, times<WIDTH>(to_floats<WIDTH>(step), static_cast<float>(square)));
        }
    }

    // The accumulators count the clamped margins after the update.
    void record() {
        const uint32_t* label = run_.rows.label + run_.rows.label_start[row_];
        const Doubles<WIDTH> pred = clamp_unit<WIDTH>(margins_);
        add_to<WIDTH>(reached_.by_direction, times<WIDTH>(pred, static_cast<double>(n_labels_)));
        if constexpr (ARITY == 2) {
            const double difference = first_minus_second(pred);
            // The padding of the labels is counted too, under a number that is never read.
            for (int64_t i = 0; i < n_labels_; i += kLanes)
                for (int lane = 0; lane < kLanes; ++lane) mass_[label[i + lane]] += difference;
        } else {
            for (int64_t i = 0; i < n_labels_; ++i)
                add_to<WIDTH>(mass_ + static_cast<int64_t>(label[i]) * WIDTH, pred);
        }
    }

  private:
    TrainingRun& run_;
    const int64_t stop_;
    NodeState& state_;
    const int arity_;
    double* const mass_;
    float* const cells_;
    double scaled_norm_;
    int64_t rows_seen_;
    const Doubles<WIDTH> in_use_;
    Reached reached_;
    int64_t row_ = 0, n_labels_ = 0, length_ = 0;
    const uint32_t* feature_ = nullptr;
    const float* value_ = nullptr;
    uint32_t target_ = 0;
    Floats<WIDTH> margins_;
    Doubles<WIDTH> slope_;
};

// The next row of each node, phase by phase.
template <typename... Nodes>
inline void train_row(Nodes&... node) {
    (node.choose(), ...);
    (node.predict(), ...);
    (node.differentiate(), ...);
    (node.update(), ...);
    (node.record(), ...);
}

template <int ARITY, int WIDTH, bool NAG>
void train_one(TrainingRun& run, int64_t most) {
    RowTrainer<ARITY, WIDTH, NAG> node(run, most);
    while (node.next()) train_row(node);
    node.finish();
}

// Two nodes in step, until one has no more rows.
template <int ARITY, int WIDTH, bool NAG>
void train_two(TrainingRun& first, TrainingRun& second, int64_t most) {
    RowTrainer<ARITY, WIDTH, NAG> a(first, most), b(second, most);
    while (a.next()) {
        if (!b.next()) {
            a.put_back();
            break;
        }
        train_row(a, b);
    }
    a.finish();
    b.finish();
}
