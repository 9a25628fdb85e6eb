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
            _mm_storeu_ps(cell, _mm_add_ps(_mm_loadu_ps(cell),
                                           _mm_mul_ps(c, _mm_broadcast_ss(value + i))));
        }
    } else if constexpr (WIDTH == 4) {
        const __m256 c = _mm256_set_m128(correction.v, change.v);
        for (int64_t i = 0; i < length; ++i) {
            float* cell = cells + static_cast<int64_t>(feature[i]) * 8;
            _mm256_storeu_ps(cell,
                             _mm256_add_ps(_mm256_loadu_ps(cell),
                                           _mm256_mul_ps(c, _mm256_broadcast_ss(value + i))));
        }
    } else {
        for (int64_t i = 0; i < length; ++i) {
            float* cell = cells + static_cast<int64_t>(feature[i]) * 16;
            const __m256 x = _mm256_broadcast_ss(value + i);
            _mm256_storeu_ps(cell, _mm256_add_ps(_mm256_loadu_ps(cell), _mm256_mul_ps(change.v, x)));
            _mm256_storeu_ps(cell + 8, _mm256_add_ps(_mm256_loadu_ps(cell + 8),
                                                     _mm256_mul_ps(correction.v, x)));
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
            const __m256d even = _mm256_castps_pd(
                _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(cell0)), _mm_loadu_ps(cell2), 1));
            const __m256d odd = _mm256_castps_pd(
                _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(cell1)), _mm_loadu_ps(cell3), 1));
            const __m256 x = _mm256_permutevar8x32_ps(
                _mm256_castps128_ps256(_mm_loadu_ps(value + i)), spread);
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
                const __m256 x = _mm256_set_m128(_mm_broadcast_ss(value + at + 1),
                                                 _mm_broadcast_ss(value + at));
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
                const NagStep s = nag_vector(_mm256_loadu_ps(cell), _mm256_loadu_ps(cell + 8),
                                             _mm256_broadcast_ss(value + i + lane), slope.v, scaled_slope.v);
                total[lane] = _mm256_add_ps(total[lane], s.moved);
                _mm256_storeu_ps(cell, s.weight);
                _mm256_storeu_ps(cell + 8, s.sum);
            }
        }
        return {_mm256_add_ps(_mm256_add_ps(total[0], total[2]),
                              _mm256_add_ps(total[1], total[3]))};
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

// ARITY 2 and 4 are known at compile time; 0 serves the rest, in vectors of WIDTH.
template <int ARITY, int WIDTH, bool NAG>
void train_rows(const CompactRows& rows, int64_t from, int64_t to, NodeState& state,
                const StepParams& params) {
    const int arity = ARITY ? ARITY : state.arity;
    const double rate = params.learning_rate;
    // Locals, so that the compiler need not fear that the weights or masses overlap them.
    Reached r;
    for (int m = 0; m < kMaxArity; ++m) r.by_direction[m] = state.reached[m];
    r.labels_seen = state.labels_seen;
    double* const mass = state.mass;
    float* const cells = state.cells;
    double scaled_norm = state.scaled_norm;
    int64_t rows_seen = state.rows_seen;
    const Doubles<WIDTH> in_use = targets<WIDTH>((1u << arity) - 1);
    for (int64_t row = from; row < to; ++row) {
        const uint32_t* label = rows.label + rows.label_start[row];
        const int64_t n_labels = rows.label_count[row];
        if (n_labels == 0) continue;  // routed and counted as a row, not trained on
        const double n = static_cast<double>(n_labels);
        r.labels_seen += n;

        uint32_t target;
        if constexpr (ARITY == 2) {
            double sums[3];
            pair_sums_of_two(mass, label, n_labels, sums);
            target = choose_of_two(r, sums, n, params, state);
        } else {
            double sums[kPairs<kMaxArity>][3];
#if LDSM_AVX2
            if constexpr (ARITY == 4)
                pair_sums_of_four(mass, label, n_labels, sums);
            else
#endif
                pair_sums<WIDTH>(mass, label, n_labels, arity, sums);
            target = choose_directions<ARITY>(r, sums, n, params, state);
        }

        const int64_t start = rows.start[row];
        const int64_t length = rows.start[row + 1] - start;
        const uint32_t* feature = rows.feature + start;
        const float* value = rows.value + start;
        Floats<WIDTH> margins = dot<WIDTH, 2 * WIDTH>(cells, feature, value, length);

        // Directions beyond the arity fill up the vectors; their slopes and so their weights stay 0.
        ++rows_seen;
        const Doubles<WIDTH> slope =  // of the loss, by margin
            minus_within<WIDTH>(logistic<WIDTH>(margins), targets<WIDTH>(target), in_use);
        if constexpr (NAG) {
            scaled_norm += rows.squared_norm[row];
            const float factor = static_cast<float>(
                rate * std::sqrt(static_cast<double>(rows_seen) / scaled_norm));
            const Floats<WIDTH> gradient = to_floats<WIDTH>(slope);
            margins = minus<WIDTH>(margins, nag_step<WIDTH>(cells, feature, value, length, gradient,
                                                            times<WIDTH>(gradient, factor)));
        } else {
            const Doubles<WIDTH> step = times<WIDTH>(slope, rate);
            // Mean of the weights over the epoch = last weights - (1/T) sum (s-1) * change_s.
            const double position = params.averaging ? static_cast<double>(state.averaged_rows++) : 0;
            const Floats<WIDTH> change = to_floats<WIDTH>(times<WIDTH>(step, -1.0));
            sgd_step<WIDTH>(cells, feature, value, length, change,
                            to_floats<WIDTH>(times<WIDTH>(step, -position)));
            margins = minus<WIDTH>(margins, times<WIDTH>(to_floats<WIDTH>(step),
                                                         static_cast<float>(rows.squared_norm[row])));
        }

        // pred = the clamped margin after the update; it is what the accumulators count.
        const Doubles<WIDTH> pred = clamp_unit<WIDTH>(margins);
        add_to<WIDTH>(r.by_direction, times<WIDTH>(pred, n));
        if constexpr (ARITY == 2) {
            const double difference = first_minus_second(pred);
            // The padding of the labels is counted too, under a number of its own that nobody reads.
            for (int64_t i = 0; i < n_labels; i += kLanes)
                for (int lane = 0; lane < kLanes; ++lane) mass[label[i + lane]] += difference;
        } else {
            for (int64_t i = 0; i < n_labels; ++i)
                add_to<WIDTH>(mass + static_cast<int64_t>(label[i]) * WIDTH, pred);
        }
    }
    for (int m = 0; m < kMaxArity; ++m) state.reached[m] = r.by_direction[m];
    state.labels_seen = r.labels_seen;
    state.scaled_norm = scaled_norm;
    state.rows_seen = rows_seen;
}

template <int WIDTH>
void row_margins(const float* weights, const uint32_t* feature, const float* value, int64_t length,
                 float* margins) {
    const Floats<WIDTH> sums = dot<WIDTH, WIDTH>(weights, feature, value, length);
    std::memcpy(margins, &sums, sizeof(float) * WIDTH);
}

inline Kernels make_kernels(const char* name) {
    Kernels k{};
    k.name = name;
    k.nag[2] = train_rows<2, 2, true>;
    k.sgd[2] = train_rows<2, 2, false>;
    k.nag[3] = train_rows<0, 4, true>;
    k.sgd[3] = train_rows<0, 4, false>;
    k.nag[4] = train_rows<4, 4, true>;
    k.sgd[4] = train_rows<4, 4, false>;
    for (int m = 5; m <= kMaxArity; ++m) {
        k.nag[m] = train_rows<0, 8, true>;
        k.sgd[m] = train_rows<0, 8, false>;
    }
    for (int m = 2; m <= kMaxArity; ++m)
        k.margins[m] = m == 2 ? row_margins<2> : m <= 4 ? row_margins<4> : row_margins<8>;
    return k;
}

}  // namespace LDSM_PATH
}  // namespace ldsm
