// The M linear regressors of one node: their margins for a row, and one step of each.
//
// Included by path.hpp, once per instruction set.

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
        out.v[m] = join_sums(sums[0][m], sums[1][m], sums[2][m], sums[3][m]);
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
        moved.v[m] = join_sums(total[0][m], total[1][m], total[2][m], total[3][m]);
    return moved;
#endif
}
