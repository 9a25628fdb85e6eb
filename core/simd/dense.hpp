// Products of label vectors with dense rows, in whole numbers: exact, in any order.
//
// Included by path.hpp, once per instruction set.

// Of LABELS consecutive labels with ROWS rows: what is loaded is used several times.
template <int LABELS, int ROWS>
inline void products_of_some(const int8_t* codes, int64_t width, const int16_t* const* rows,
                             int32_t* products, int64_t stride) {
    int32_t sums[LABELS][ROWS] = {};
    int64_t i = 0;
#if LDSM_AVX2
    __m256i parts[LABELS][ROWS];
    for (int l = 0; l < LABELS; ++l)
        for (int r = 0; r < ROWS; ++r) parts[l][r] = _mm256_setzero_si256();
    for (; i + 16 <= width; i += 16) {
        __m256i wide[LABELS];
        for (int l = 0; l < LABELS; ++l)
            wide[l] = _mm256_cvtepi8_epi16(
                _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + l * width + i)));
        for (int r = 0; r < ROWS; ++r) {
            const __m256i row = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[r] + i));
            for (int l = 0; l < LABELS; ++l)
                parts[l][r] = _mm256_add_epi32(parts[l][r], _mm256_madd_epi16(wide[l], row));
        }
    }
    for (int l = 0; l < LABELS; ++l)
        for (int r = 0; r < ROWS; ++r) {
            __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(parts[l][r]),
                                        _mm256_extracti128_si256(parts[l][r], 1));
            sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4E));
            sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xB1));
            sums[l][r] = _mm_cvtsi128_si32(sum);
        }
#endif
    // Pair by pair, so that the compiler can look at several numbers at once.
    for (int l = 0; l < LABELS; ++l)
        for (int r = 0; r < ROWS; ++r) {
            const int16_t* row = rows[r];
            const int8_t* own = codes + l * width;
            int32_t sum = sums[l][r];
            for (int64_t at = i; at < width; ++at) sum += int16_t{own[at]} * row[at];
            products[r * stride + l] = sum;
        }
}

template <int LABELS, int ROWS>
inline void products_of(const int8_t* codes, int64_t n_labels, int64_t width,
                        const int16_t* const* rows, int32_t* products) {
    int64_t label = 0;
    for (; label + LABELS <= n_labels; label += LABELS)
        products_of_some<LABELS, ROWS>(codes + label * width, width, rows, products + label,
                                       n_labels);
    for (; label < n_labels; ++label)
        products_of_some<1, ROWS>(codes + label * width, width, rows, products + label, n_labels);
}

inline void dense_products(const int8_t* codes, int64_t n_labels, int64_t width,
                           const int16_t* const* rows, int64_t n_rows, int32_t* products) {
    switch (n_rows) {
        case 1:
            return products_of<4, 1>(codes, n_labels, width, rows, products);
        case 2:
            return products_of<2, 2>(codes, n_labels, width, rows, products);
        case 3:
            return products_of<2, 3>(codes, n_labels, width, rows, products);
        default:
            return products_of<2, 4>(codes, n_labels, width, rows, products);
    }
}

// The rows of a ranker are a multiple of 16 numbers long. Sums run in 16 partial sums by position.
inline float full_product(const float* values, const float* weights, int64_t length) {
#if LDSM_AVX2
    __m256 low = _mm256_setzero_ps(), high = _mm256_setzero_ps();
    for (int64_t i = 0; i < length; i += 16) {
        low = _mm256_add_ps(
            low, _mm256_mul_ps(_mm256_loadu_ps(values + i), _mm256_loadu_ps(weights + i)));
        high = _mm256_add_ps(
            high, _mm256_mul_ps(_mm256_loadu_ps(values + i + 8), _mm256_loadu_ps(weights + i + 8)));
    }
    const __m256 eight = _mm256_add_ps(low, high);
    __m128 sum = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
    sum = _mm_add_ss(sum, _mm_shuffle_ps(sum, sum, 1));
    return _mm_cvtss_f32(sum);
#else
    float sums[16] = {};
    for (int64_t i = 0; i < length; i += 16)
        for (int lane = 0; lane < 16; ++lane) sums[lane] += values[i + lane] * weights[i + lane];
    for (int half = 8; half > 0; half /= 2)
        for (int lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
    return sums[0];
#endif
}

inline void full_add(float* weights, const float* values, float change, int64_t length) {
    for (int64_t i = 0; i < length; ++i) weights[i] += change * values[i];
}
