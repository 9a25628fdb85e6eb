// The M linear regressors of one node and the loop that trains them.
//
// This file is compiled once per instruction set: a kernels_*.cpp defines LDSM_PATH (a namespace)
// and LDSM_AVX2, then includes it. Only raw pointers and plain types may be used here: a standard
// library template instantiated in a wide file could be picked by the linker for every machine.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels.hpp"
#include "random.hpp"

#if LDSM_AVX2
#include <immintrin.h>
#endif

namespace ldsm {
namespace LDSM_PATH {

#include "lanes.hpp"
#include "objective.hpp"

// ---- sparse dot product: `width` margins of one padded row -----------------------------------

template <int WIDTH, int STRIDE>
inline Floats<WIDTH> dot(const float* cells, const uint32_t* feature, const float* value,
                         int64_t length) {
#if LDSM_AVX2
    if constexpr (WIDTH == 8) {
        __m256 a0 = _mm256_setzero_ps(), a1 = a0, a2 = a0, a3 = a0;
        for (int64_t i = 0; i < length; i += 4) {
            const auto part = [&](int lane) {
                return _mm256_mul_ps(
                    _mm256_broadcast_ss(value + i + lane),
                    _mm256_loadu_ps(cells + static_cast<int64_t>(feature[i + lane]) * STRIDE));
            };
            a0 = _mm256_add_ps(a0, part(0));
            a1 = _mm256_add_ps(a1, part(1));
            a2 = _mm256_add_ps(a2, part(2));
            a3 = _mm256_add_ps(a3, part(3));
        }
        return {_mm256_add_ps(_mm256_add_ps(a0, a2), _mm256_add_ps(a1, a3))};
    } else {
        // For width 2 the upper half of each vector is a neighbour's data and is never used.
        __m128 a0 = _mm_setzero_ps(), a1 = a0, a2 = a0, a3 = a0;
        for (int64_t i = 0; i < length; i += 4) {
            const auto part = [&](int lane) {
                return _mm_mul_ps(
                    _mm_broadcast_ss(value + i + lane),
                    _mm_loadu_ps(cells + static_cast<int64_t>(feature[i + lane]) * STRIDE));
            };
            a0 = _mm_add_ps(a0, part(0));
            a1 = _mm_add_ps(a1, part(1));
            a2 = _mm_add_ps(a2, part(2));
            a3 = _mm_add_ps(a3, part(3));
        }
        return {_mm_add_ps(_mm_add_ps(a0, a2), _mm_add_ps(a1, a3))};
    }
#else
    float sums[kLanes][WIDTH] = {};
    for (int64_t i = 0; i < length; i += kLanes)
        for (int lane = 0; lane < kLanes; ++lane) {
            const float x = value[i + lane];
            const float* w = cells + static_cast<int64_t>(feature[i + lane]) * STRIDE;
            for (int m = 0; m < WIDTH; ++m) sums[lane][m] += x * w[m];
        }
    Floats<WIDTH> out;
    for (int m = 0; m < WIDTH; ++m)
        out.v[m] = (sums[0][m] + sums[2][m]) + (sums[1][m] + sums[3][m]);
    return out;
#endif
}

// ---- SGD: cell += coefficient * x, weights and correction sums in one step --------------------

template <int WIDTH>
inline void sgd_step(float* cells, const uint32_t* feature, const float* value, int64_t length,
                     Floats<WIDTH> change, Floats<WIDTH> correction) {
#if LDSM_AVX2
    if constexpr (WIDTH == 2) {
        const __m128 c = _mm_movelh_ps(change.v, correction.v);
        for (int64_t i = 0; i < length; ++i) {
            float* cell = cells + static_cast<int64_t>(feature[i]) * 4;
            _mm_storeu_ps(
                cell, _mm_add_ps(_mm_loadu_ps(cell), _mm_mul_ps(c, _mm_broadcast_ss(value + i))));
        }
    } else if constexpr (WIDTH == 4) {
        const __m256 c = _mm256_set_m128(correction.v, change.v);
        for (int64_t i = 0; i < length; ++i) {
            float* cell = cells + static_cast<int64_t>(feature[i]) * 8;
            _mm256_storeu_ps(cell, _mm256_add_ps(_mm256_loadu_ps(cell),
                                                 _mm256_mul_ps(c, _mm256_broadcast_ss(value + i))));
        }
    } else {
        for (int64_t i = 0; i < length; ++i) {
            float* cell = cells + static_cast<int64_t>(feature[i]) * 16;
            const __m256 x = _mm256_broadcast_ss(value + i);
            _mm256_storeu_ps(cell,
                             _mm256_add_ps(_mm256_loadu_ps(cell), _mm256_mul_ps(change.v, x)));
            _mm256_storeu_ps(
                cell + 8, _mm256_add_ps(_mm256_loadu_ps(cell + 8), _mm256_mul_ps(correction.v, x)));
        }
    }
#else
    for (int64_t i = 0; i < length; ++i) {
        float* cell = cells + static_cast<int64_t>(feature[i]) * (2 * WIDTH);
        const float x = value[i];
        for (int m = 0; m < WIDTH; ++m) {
            cell[m] += change.v[m] * x;
            cell[WIDTH + m] += correction.v[m] * x;
        }
    }
#endif
}

// ---- NAG: sum += g^2, weight -= rate * g / sqrt(sum); returns the change of the margins --------

#if LDSM_AVX2
struct NagStep {
    __m256 weight, sum, moved;
};
inline NagStep nag_vector(__m256 weight, __m256 sum, __m256 x, __m256 slope, __m256 scaled_slope) {
    const __m256 g = _mm256_mul_ps(slope, x);
    sum = _mm256_add_ps(sum, _mm256_mul_ps(g, g));
    __m256 step = _mm256_div_ps(_mm256_mul_ps(scaled_slope, x), _mm256_sqrt_ps(sum));
    // While the sum of squares is still 0 the step is 0, not 0/0.
    step = _mm256_and_ps(step, _mm256_cmp_ps(sum, _mm256_setzero_ps(), _CMP_GT_OQ));
    return {_mm256_sub_ps(weight, step), sum, _mm256_mul_ps(x, step)};
}
#endif

template <int WIDTH>
inline Floats<WIDTH> nag_step(float* cells, const uint32_t* feature, const float* value,
                              int64_t length, Floats<WIDTH> slope, Floats<WIDTH> scaled_slope) {
#if LDSM_AVX2
    if constexpr (WIDTH == 2) {
        // Four features at a time: cells (w0 w1 s0 s1) are split into weights and sums.
        const __m256 c = _mm256_castpd_ps(_mm256_broadcastsd_pd(_mm_castps_pd(slope.v)));
        const __m256 k = _mm256_castpd_ps(_mm256_broadcastsd_pd(_mm_castps_pd(scaled_slope.v)));
        const __m256i spread = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
        __m256 total = _mm256_setzero_ps();
        for (int64_t i = 0; i < length; i += 4) {
            float* cell0 = cells + static_cast<int64_t>(feature[i]) * 4;
            float* cell1 = cells + static_cast<int64_t>(feature[i + 1]) * 4;
            float* cell2 = cells + static_cast<int64_t>(feature[i + 2]) * 4;
            float* cell3 = cells + static_cast<int64_t>(feature[i + 3]) * 4;
            const __m256d even = _mm256_castps_pd(_mm256_insertf128_ps(
                _mm256_castps128_ps256(_mm_loadu_ps(cell0)), _mm_loadu_ps(cell2), 1));
            const __m256d odd = _mm256_castps_pd(_mm256_insertf128_ps(
                _mm256_castps128_ps256(_mm_loadu_ps(cell1)), _mm_loadu_ps(cell3), 1));
            const __m256 x =
                _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(value + i)), spread);
            const NagStep s = nag_vector(_mm256_castpd_ps(_mm256_unpacklo_pd(even, odd)),
                                         _mm256_castpd_ps(_mm256_unpackhi_pd(even, odd)), x, c, k);
            total = _mm256_add_ps(total, s.moved);
            const __m256 new_even = _mm256_castpd_ps(
                _mm256_unpacklo_pd(_mm256_castps_pd(s.weight), _mm256_castps_pd(s.sum)));
            const __m256 new_odd = _mm256_castpd_ps(
                _mm256_unpackhi_pd(_mm256_castps_pd(s.weight), _mm256_castps_pd(s.sum)));
            _mm_storeu_ps(cell0, _mm256_castps256_ps128(new_even));
            _mm_storeu_ps(cell1, _mm256_castps256_ps128(new_odd));
            _mm_storeu_ps(cell2, _mm256_extractf128_ps(new_even, 1));
            _mm_storeu_ps(cell3, _mm256_extractf128_ps(new_odd, 1));
        }
        // Lanes 0,1 | 2,3: the halves join as 0+2 and 1+3, then those two.
        const __m128 halves =
            _mm_add_ps(_mm256_castps256_ps128(total), _mm256_extractf128_ps(total, 1));
        return {_mm_add_ps(halves, _mm_movehl_ps(halves, halves))};
    } else if constexpr (WIDTH == 4) {
        const __m256 c = _mm256_set_m128(slope.v, slope.v);
        const __m256 k = _mm256_set_m128(scaled_slope.v, scaled_slope.v);
        __m256 total[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
        for (int64_t i = 0; i < length; i += 4) {
            for (int half = 0; half < 2; ++half) {
                const int64_t at = i + 2 * half;
                float* cell0 = cells + static_cast<int64_t>(feature[at]) * 8;
                float* cell1 = cells + static_cast<int64_t>(feature[at + 1]) * 8;
                const __m256 first = _mm256_loadu_ps(cell0);
                const __m256 second = _mm256_loadu_ps(cell1);
                const __m256 x =
                    _mm256_set_m128(_mm_broadcast_ss(value + at + 1), _mm_broadcast_ss(value + at));
                const NagStep s = nag_vector(_mm256_permute2f128_ps(first, second, 0x20),
                                             _mm256_permute2f128_ps(first, second, 0x31), x, c, k);
                total[half] = _mm256_add_ps(total[half], s.moved);
                _mm256_storeu_ps(cell0, _mm256_permute2f128_ps(s.weight, s.sum, 0x20));
                _mm256_storeu_ps(cell1, _mm256_permute2f128_ps(s.weight, s.sum, 0x31));
            }
        }
        const __m256 joined = _mm256_add_ps(total[0], total[1]);  // 0+2 | 1+3
        return {_mm_add_ps(_mm256_castps256_ps128(joined), _mm256_extractf128_ps(joined, 1))};
    } else {
        __m256 total[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                           _mm256_setzero_ps()};
        for (int64_t i = 0; i < length; i += 4) {
            for (int lane = 0; lane < 4; ++lane) {
                float* cell = cells + static_cast<int64_t>(feature[i + lane]) * 16;
                const NagStep s =
                    nag_vector(_mm256_loadu_ps(cell), _mm256_loadu_ps(cell + 8),
                               _mm256_broadcast_ss(value + i + lane), slope.v, scaled_slope.v);
                total[lane] = _mm256_add_ps(total[lane], s.moved);
                _mm256_storeu_ps(cell, s.weight);
                _mm256_storeu_ps(cell + 8, s.sum);
            }
        }
        return {
            _mm256_add_ps(_mm256_add_ps(total[0], total[2]), _mm256_add_ps(total[1], total[3]))};
    }
#else
    float total[kLanes][WIDTH] = {};
    for (int64_t i = 0; i < length; i += kLanes)
        for (int lane = 0; lane < kLanes; ++lane) {
            float* cell = cells + static_cast<int64_t>(feature[i + lane]) * (2 * WIDTH);
            const float x = value[i + lane];
            for (int m = 0; m < WIDTH; ++m) {
                const float g = slope.v[m] * x;
                const float sum = cell[WIDTH + m] + g * g;
                // While the sum of squares is still 0 the step is 0, not 0/0.
                const float step = sum > 0 ? (scaled_slope.v[m] * x) / std::sqrt(sum) : 0.0f;
                cell[WIDTH + m] = sum;
                cell[m] -= step;
                total[lane][m] += x * step;
            }
        }
    Floats<WIDTH> moved;
    for (int m = 0; m < WIDTH; ++m)
        moved.v[m] = (total[0][m] + total[2][m]) + (total[1][m] + total[3][m]);
    return moved;
#endif
}

// ---- the training loop -----------------------------------------------------------------------

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

    // Which directions the row should take.
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
            // The padding of the labels is counted too, under a number that nobody reads.
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

template <int ARITY, int WIDTH, bool NAG>
void train_one(TrainingRun& run, int64_t most) {
    RowTrainer<ARITY, WIDTH, NAG> node(run, most);
    while (node.next()) {
        node.choose();
        node.predict();
        node.differentiate();
        node.update();
        node.record();
    }
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
        a.choose();
        b.choose();
        a.predict();
        b.predict();
        a.differentiate();
        b.differentiate();
        a.update();
        b.update();
        a.record();
        b.record();
    }
    a.finish();
    b.finish();
}

template <int WIDTH>
void row_margins(const float* weights, const uint32_t* feature, const float* value, int64_t length,
                 float* margins) {
    const Floats<WIDTH> sums = dot<WIDTH, WIDTH>(weights, feature, value, length);
    std::memcpy(margins, &sums, sizeof(float) * WIDTH);
}

inline uint64_t count_bits(uint64_t x) {
#if LDSM_AVX2
    return static_cast<uint64_t>(_mm_popcnt_u64(x));
#else
    x -= (x >> 1) & 0x5555555555555555ULL;
    x = (x & 0x3333333333333333ULL) + ((x >> 2) & 0x3333333333333333ULL);
    return (((x + (x >> 4)) & 0x0F0F0F0F0F0F0F0FULL) * 0x0101010101010101ULL) >> 56;
#endif
}

inline void find_places(const FeatureMap* maps, const uint32_t* feature, int64_t length,
                        int64_t n_stored, int32_t* places) {
    for (int64_t i = 0; i < length; ++i) {
        const FeatureMap& map = maps[feature[i] / 64];
        const uint64_t bit = uint64_t{1} << (feature[i] % 64);
        const uint64_t at = map.before + count_bits(map.present & (bit - 1));
        // A map is derived data, but no place outside the node may come of it.
        const bool stored = (map.present & bit) != 0 && at < static_cast<uint64_t>(n_stored);
        places[i] = stored ? static_cast<int32_t>(at) : -1;
    }
}

template <bool NAG>
inline void fill_trainers(TrainRows& t) {
    t.one[2] = train_one<2, 2, NAG>;
    t.two[2] = train_two<2, 2, NAG>;
    t.one[3] = train_one<0, 4, NAG>;
    t.two[3] = train_two<0, 4, NAG>;
    t.one[4] = train_one<4, 4, NAG>;
    t.two[4] = train_two<4, 4, NAG>;
    for (int m = 5; m <= kMaxArity; ++m) {
        t.one[m] = train_one<0, 8, NAG>;
        t.two[m] = train_two<0, 8, NAG>;
    }
}

inline Kernels make_kernels(const char* name) {
    Kernels k{};
    k.name = name;
    fill_trainers<true>(k.nag);
    fill_trainers<false>(k.sgd);
    for (int m = 2; m <= kMaxArity; ++m)
        k.margins[m] = m == 2 ? row_margins<2> : m <= 4 ? row_margins<4> : row_margins<8>;
    k.find_places = find_places;
    return k;
}

}  // namespace LDSM_PATH
}  // namespace ldsm
