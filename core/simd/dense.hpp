// Products of label vectors with dense rows, in whole numbers: exact, in any order.
//
// Included by path.hpp, once per instruction set.

template <int ROWS>
inline void products_of(const int8_t* codes, int64_t n_labels, int64_t width,
                        const int16_t* const* rows, int32_t* products) {
    for (int64_t label = 0; label < n_labels; ++label, codes += width, products += ROWS) {
        int64_t i = 0;
#if LDSM_AVX2
        __m256i sums[ROWS];
        for (int r = 0; r < ROWS; ++r) sums[r] = _mm256_setzero_si256();
        for (; i + 16 <= width; i += 16) {
            const __m256i wide =
                _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + i)));
            for (int r = 0; r < ROWS; ++r)
                sums[r] = _mm256_add_epi32(
                    sums[r],
                    _mm256_madd_epi16(
                        wide, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[r] + i))));
        }
        for (int r = 0; r < ROWS; ++r) {
            __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(sums[r]),
                                        _mm256_extracti128_si256(sums[r], 1));
            sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4E));
            sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xB1));
            products[r] = _mm_cvtsi128_si32(sum);
        }
#else
        for (int r = 0; r < ROWS; ++r) products[r] = 0;
#endif
        // By rows, so that the compiler can look at several numbers at once.
        for (int r = 0; r < ROWS; ++r) {
            const int16_t* row = rows[r];
            int32_t sum = 0;
            for (int64_t at = i; at < width; ++at) sum += int16_t{codes[at]} * row[at];
            products[r] += sum;
        }
    }
}

inline void dense_products(const int8_t* codes, int64_t n_labels, int64_t width,
                           const int16_t* const* rows, int64_t n_rows, int32_t* products) {
    switch (n_rows) {
        case 1:
            return products_of<1>(codes, n_labels, width, rows, products);
        case 2:
            return products_of<2>(codes, n_labels, width, rows, products);
        case 3:
            return products_of<3>(codes, n_labels, width, rows, products);
        default:
            return products_of<4>(codes, n_labels, width, rows, products);
    }
}
