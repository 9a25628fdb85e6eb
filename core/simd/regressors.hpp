// The M linear regressors of one node: their margins for a row, and one step of each.
//
// Included by path.hpp, once per instruction set.

// ---- sparse dot product: `width` margins of one padded row -----------------------------------

// For width 2 the upper half of a wide vector is a neighbour's data and is never used.
template <int WIDTH, int STRIDE>
inline Floats<WIDTH> dot(const float* cells, const uint32_t* feature, const float* value,
                         int64_t length) {
    Floats<WIDTH> sums[kLanes] = {};
    for (int64_t i = 0; i < length; i += kLanes)
        for (int lane = 0; lane < kLanes; ++lane) {
            const float* cell = cells + static_cast<int64_t>(feature[i + lane]) * STRIDE;
            sums[lane] = plus(sums[lane], times(load<WIDTH>(cell), value[i + lane]));
        }
    return join_sums(sums);
}

// ---- SGD: cell += coefficient * x, weights and correction sums in one step --------------------

template <int WIDTH>
inline void sgd_step(float* cells, const uint32_t* feature, const float* value, int64_t length,
                     Floats<WIDTH> change, Floats<WIDTH> correction) {
    const Floats<2 * WIDTH> coefficients = joined(change, correction);
    for (int64_t i = 0; i < length; ++i) {
        float* cell = cells + static_cast<int64_t>(feature[i]) * (2 * WIDTH);
        store(cell, plus(load<2 * WIDTH>(cell), times(coefficients, value[i])));
    }
}

// ---- NAG: sum += g^2, weight -= rate * g / sqrt(sum); returns the change of the margins --------

#if LDSM_AVX2
inline __m256 nag_vector(__m256& weight, __m256& sum, __m256 x, __m256 slope, __m256 scaled_slope) {
    const __m256 g = slope * x;
    sum += g * g;
    // While the sum of squares is still 0 the step is 0, not 0/0.
    const __m256 step = _mm256_and_ps(scaled_slope * x / _mm256_sqrt_ps(sum),
                                      _mm256_cmp_ps(sum, _mm256_setzero_ps(), _CMP_GT_OQ));
    weight -= step;
    return x * step;
}

template <int WIDTH>
inline Floats<WIDTH> nag_step(float* cells, const uint32_t* feature, const float* value,
                              int64_t length, Floats<WIDTH> slope, Floats<WIDTH> scaled_slope) {
    Floats<8> moved[kLanes] = {};
    for (int64_t i = 0; i < length; i += kLanes)
        for (int lane = 0; lane < kLanes; ++lane) {
            float* cell = cells + static_cast<int64_t>(feature[i + lane]) * 16;
            __m256 weight = _mm256_loadu_ps(cell), sum = _mm256_loadu_ps(cell + 8);
            moved[lane].v[0] += nag_vector(weight, sum, _mm256_broadcast_ss(value + i + lane),
                                           slope.v[0], scaled_slope.v[0]);
            _mm256_storeu_ps(cell, weight);
            _mm256_storeu_ps(cell + 8, sum);
        }
    return join_sums(moved);
}

// Four features at a time: cells (w0 w1 s0 s1) are split into weights and sums.
template <>
inline Floats<2> nag_step(float* cells, const uint32_t* feature, const float* value, int64_t length,
                          Floats<2> slope, Floats<2> scaled_slope) {
    const auto repeated = [](__m128 pair) {
        return _mm256_castpd_ps(_mm256_broadcastsd_pd(_mm_castps_pd(pair)));
    };
    const __m256 c = repeated(slope.v[0]);
    const __m256 k = repeated(scaled_slope.v[0]);
    const __m256i spread = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    __m256 moved = _mm256_setzero_ps();
    for (int64_t i = 0; i < length; i += 4) {
        float* cell0 = cells + static_cast<int64_t>(feature[i]) * 4;
        float* cell1 = cells + static_cast<int64_t>(feature[i + 1]) * 4;
        float* cell2 = cells + static_cast<int64_t>(feature[i + 2]) * 4;
        float* cell3 = cells + static_cast<int64_t>(feature[i + 3]) * 4;
        const __m256 even = _mm256_set_m128(_mm_loadu_ps(cell2), _mm_loadu_ps(cell0));
        const __m256 odd = _mm256_set_m128(_mm_loadu_ps(cell3), _mm_loadu_ps(cell1));
        const __m256 x =
            _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(value + i)), spread);
        __m256 weight = _mm256_shuffle_ps(even, odd, 0x44);
        __m256 sum = _mm256_shuffle_ps(even, odd, 0xEE);
        moved += nag_vector(weight, sum, x, c, k);
        const __m256 new_even = _mm256_shuffle_ps(weight, sum, 0x44);
        const __m256 new_odd = _mm256_shuffle_ps(weight, sum, 0xEE);
        _mm_storeu_ps(cell0, _mm256_castps256_ps128(new_even));
        _mm_storeu_ps(cell1, _mm256_castps256_ps128(new_odd));
        _mm_storeu_ps(cell2, _mm256_extractf128_ps(new_even, 1));
        _mm_storeu_ps(cell3, _mm256_extractf128_ps(new_odd, 1));
    }
    // Lanes 0,1 | 2,3: the halves join as 0+2 and 1+3, then those two.
    const __m128 halves = _mm256_castps256_ps128(moved) + _mm256_extractf128_ps(moved, 1);
    return {{halves + _mm_movehl_ps(halves, halves)}};
}

// Two features at a time.
template <>
inline Floats<4> nag_step(float* cells, const uint32_t* feature, const float* value, int64_t length,
                          Floats<4> slope, Floats<4> scaled_slope) {
    const __m256 c = _mm256_set_m128(slope.v[0], slope.v[0]);
    const __m256 k = _mm256_set_m128(scaled_slope.v[0], scaled_slope.v[0]);
    __m256 moved[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (int64_t i = 0; i < length; i += 4)
        for (int half = 0; half < 2; ++half) {
            const int64_t at = i + 2 * half;
            float* cell0 = cells + static_cast<int64_t>(feature[at]) * 8;
            float* cell1 = cells + static_cast<int64_t>(feature[at + 1]) * 8;
            const __m256 first = _mm256_loadu_ps(cell0);
            const __m256 second = _mm256_loadu_ps(cell1);
            const __m256 x =
                _mm256_set_m128(_mm_broadcast_ss(value + at + 1), _mm_broadcast_ss(value + at));
            __m256 weight = _mm256_permute2f128_ps(first, second, 0x20);
            __m256 sum = _mm256_permute2f128_ps(first, second, 0x31);
            moved[half] += nag_vector(weight, sum, x, c, k);
            _mm256_storeu_ps(cell0, _mm256_permute2f128_ps(weight, sum, 0x20));
            _mm256_storeu_ps(cell1, _mm256_permute2f128_ps(weight, sum, 0x31));
        }
    const __m256 joined = moved[0] + moved[1];  // 0+2 | 1+3
    return {{_mm256_castps256_ps128(joined) + _mm256_extractf128_ps(joined, 1)}};
}
#else
template <int WIDTH>
inline Floats<WIDTH> nag_step(float* cells, const uint32_t* feature, const float* value,
                              int64_t length, Floats<WIDTH> slope, Floats<WIDTH> scaled_slope) {
    Floats<WIDTH> moved[kLanes] = {};
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
                moved[lane].v[m] += x * step;
            }
        }
    return join_sums(moved);
}
#endif
