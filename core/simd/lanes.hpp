// One number per direction, in vectors: the arithmetic of a row between its two sparse loops.
//
// Floats<W> and Doubles<W> hold W = 2, 4 or 8 directions. On the wide path they stay in registers
// from the margins to the update: a detour through memory that writes single numbers and reads them
// back as a vector stalls the machine on every row. The portable path is loops over small arrays.
//
// Comparisons become min and max, and NaN ends at a bound: a diverged node must become a leaf, not
// a crash.
//
// Included by path.hpp, once per instruction set.

constexpr double kRoundingShift = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
constexpr double kLog2E = 1.4426950408889634;
constexpr double kLn2High = 0.693147180369123816490;
constexpr double kLn2Low = 1.90821492927058770002e-10;
constexpr double kTaylor[11] = {1.0,         1.0,          1.0 / 2,      1.0 / 6,
                                1.0 / 24,    1.0 / 120,    1.0 / 720,    1.0 / 5040,
                                1.0 / 40320, 1.0 / 362880, 1.0 / 3628800};

#if LDSM_AVX2

template <int W>
struct Floats {  // W = 2 uses the lower half
    __m128 v;
};
template <>
struct Floats<8> {
    __m256 v;
};
template <int W>
struct Doubles {
    __m256d v[W == 8 ? 2 : 1];
};

template <int W>
inline Doubles<W> to_doubles(Floats<W> a) {
    if constexpr (W == 8)
        return {{_mm256_cvtps_pd(_mm256_castps256_ps128(a.v)),
                 _mm256_cvtps_pd(_mm256_extractf128_ps(a.v, 1))}};
    else
        return {{_mm256_cvtps_pd(a.v)}};
}

template <int W>
inline Floats<W> to_floats(Doubles<W> a) {
    if constexpr (W == 8)
        return {_mm256_set_m128(_mm256_cvtpd_ps(a.v[1]), _mm256_cvtpd_ps(a.v[0]))};
    else
        return {_mm256_cvtpd_ps(a.v[0])};
}

template <int W>
inline Floats<W> minus(Floats<W> a, Floats<W> b) {
    if constexpr (W == 8)
        return {_mm256_sub_ps(a.v, b.v)};
    else
        return {_mm_sub_ps(a.v, b.v)};
}

template <int W>
inline Floats<W> times(Floats<W> a, float b) {
    if constexpr (W == 8)
        return {_mm256_mul_ps(a.v, _mm256_set1_ps(b))};
    else
        return {_mm_mul_ps(a.v, _mm_set1_ps(b))};
}

template <int W>
inline Doubles<W> times(Doubles<W> a, double b) {
    for (auto& part : a.v) part = _mm256_mul_pd(part, _mm256_set1_pd(b));
    return a;
}

// 0 or 1 by direction, from a bit mask.
template <int W>
inline Doubles<W> targets(uint32_t mask) {
    const __m256i bits = _mm256_set_epi64x(8, 4, 2, 1);
    const __m256d one = _mm256_set1_pd(1.0);
    Doubles<W> out;
    for (int part = 0; part < (W == 8 ? 2 : 1); ++part) {
        const __m256i set = _mm256_and_si256(_mm256_set1_epi64x(mask >> (4 * part)), bits);
        out.v[part] = _mm256_and_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(set, bits)), one);
    }
    return out;
}

// (a - b) where the mask has a bit, else 0.
template <int W>
inline Doubles<W> minus_within(Doubles<W> a, Doubles<W> b, Doubles<W> within) {
    for (int part = 0; part < (W == 8 ? 2 : 1); ++part)
        a.v[part] = _mm256_mul_pd(_mm256_sub_pd(a.v[part], b.v[part]), within.v[part]);
    return a;
}

// The margins clamped to [0, 1].
template <int W>
inline Doubles<W> clamp_unit(Floats<W> a) {
    if constexpr (W == 8)
        a.v = _mm256_min_ps(_mm256_max_ps(a.v, _mm256_setzero_ps()), _mm256_set1_ps(1.0f));
    else
        a.v = _mm_min_ps(_mm_max_ps(a.v, _mm_setzero_ps()), _mm_set1_ps(1.0f));
    return to_doubles<W>(a);
}

// 1 / (1 + exp(-margin)), relative error below 1e-12: far under the float32 it is rounded to.
template <int W>
inline Doubles<W> logistic(Floats<W> margins) {
    Doubles<W> out = to_doubles<W>(margins);
    for (auto& margin : out.v) {
        const auto c = [](double v) { return _mm256_set1_pd(v); };
        const auto add = [](__m256d a, __m256d b) { return _mm256_add_pd(a, b); };
        const auto mul = [](__m256d a, __m256d b) { return _mm256_mul_pd(a, b); };
        __m256d x = _mm256_xor_pd(margin, c(-0.0));
        x = _mm256_max_pd(_mm256_min_pd(x, c(60.0)), c(-60.0));
        const __m256d shifted = add(mul(x, c(kLog2E)), c(kRoundingShift));
        const __m256d k = _mm256_sub_pd(shifted, c(kRoundingShift));
        const __m256d r = _mm256_sub_pd(_mm256_sub_pd(x, mul(k, c(kLn2High))), mul(k, c(kLn2Low)));
        const __m256d r2 = mul(r, r);
        const __m256d r4 = mul(r2, r2);
        const auto pair = [&](int i) { return add(c(kTaylor[i]), mul(r, c(kTaylor[i + 1]))); };
        const __m256d low = add(pair(0), mul(r2, pair(2)));
        const __m256d middle = add(pair(4), mul(r2, pair(6)));
        const __m256d high = add(pair(8), mul(r2, c(kTaylor[10])));
        const __m256d mantissa = add(low, mul(r4, add(middle, mul(r4, high))));
        // The integer k sits in the low bits of `shifted`; it is added to the exponent.
        const __m256d power = _mm256_castsi256_pd(_mm256_add_epi64(
            _mm256_castpd_si256(mantissa), _mm256_slli_epi64(_mm256_castpd_si256(shifted), 52)));
        margin = _mm256_div_pd(c(1.0), add(c(1.0), power));
    }
    return out;
}

// to[0..W) += a
template <int W>
inline void add_to(double* to, Doubles<W> a) {
    if constexpr (W == 2) {
        _mm_storeu_pd(to, _mm_add_pd(_mm_loadu_pd(to), _mm256_castpd256_pd128(a.v[0])));
    } else {
        for (int part = 0; part < W / 4; ++part)
            _mm256_storeu_pd(to + 4 * part,
                             _mm256_add_pd(_mm256_loadu_pd(to + 4 * part), a.v[part]));
    }
}

inline double first_minus_second(Doubles<2> a) {
    const __m128d two = _mm256_castpd256_pd128(a.v[0]);
    return _mm_cvtsd_f64(_mm_sub_sd(two, _mm_unpackhi_pd(two, two)));
}

#else

template <int W>
struct Floats {
    float v[W];
};
template <int W>
struct Doubles {
    double v[W];
};

template <int W>
inline Floats<W> to_floats(Doubles<W> a) {
    Floats<W> out;
    for (int m = 0; m < W; ++m) out.v[m] = static_cast<float>(a.v[m]);
    return out;
}

template <int W>
inline Floats<W> minus(Floats<W> a, Floats<W> b) {
    for (int m = 0; m < W; ++m) a.v[m] -= b.v[m];
    return a;
}

template <int W>
inline Floats<W> times(Floats<W> a, float b) {
    for (int m = 0; m < W; ++m) a.v[m] *= b;
    return a;
}

template <int W>
inline Doubles<W> times(Doubles<W> a, double b) {
    for (int m = 0; m < W; ++m) a.v[m] *= b;
    return a;
}

// 0 or 1 by direction, from a bit mask.
template <int W>
inline Doubles<W> targets(uint32_t mask) {
    Doubles<W> out;
    for (int m = 0; m < W; ++m) out.v[m] = static_cast<double>((mask >> m) & 1);
    return out;
}

// (a - b) where the mask has a bit, else 0.
template <int W>
inline Doubles<W> minus_within(Doubles<W> a, Doubles<W> b, Doubles<W> within) {
    for (int m = 0; m < W; ++m) a.v[m] = (a.v[m] - b.v[m]) * within.v[m];
    return a;
}

// The margins clamped to [0, 1].
template <int W>
inline Doubles<W> clamp_unit(Floats<W> a) {
    Doubles<W> out;
    for (int m = 0; m < W; ++m) {
        const float low = a.v[m] > 0.0f ? a.v[m] : 0.0f;
        out.v[m] = low < 1.0f ? low : 1.0f;
    }
    return out;
}

// 1 / (1 + exp(-margin)), relative error below 1e-12: far under the float32 it is rounded to.
template <int W>
inline Doubles<W> logistic(Floats<W> margins) {
    Doubles<W> out;
    for (int m = 0; m < W; ++m) {
        double x = -static_cast<double>(margins.v[m]);
        x = x < 60.0 ? x : 60.0;
        x = x > -60.0 ? x : -60.0;
        const double shifted = x * kLog2E + kRoundingShift;
        const double k = shifted - kRoundingShift;
        const double r = (x - k * kLn2High) - k * kLn2Low;
        const double r2 = r * r;
        const double r4 = r2 * r2;
        const auto pair = [r](int i) { return kTaylor[i] + r * kTaylor[i + 1]; };
        const double low = pair(0) + r2 * pair(2);
        const double middle = pair(4) + r2 * pair(6);
        const double high = pair(8) + r2 * kTaylor[10];
        const double mantissa = low + r4 * (middle + r4 * high);
        // The integer k sits in the low bits of `shifted`; it is added to the exponent.
        const uint64_t power =
            std::bit_cast<uint64_t>(mantissa) + (std::bit_cast<uint64_t>(shifted) << 52);
        out.v[m] = 1.0 / (1.0 + std::bit_cast<double>(power));
    }
    return out;
}

// to[0..W) += a
template <int W>
inline void add_to(double* to, Doubles<W> a) {
    for (int m = 0; m < W; ++m) to[m] += a.v[m];
}

inline double first_minus_second(Doubles<2> a) { return a.v[0] - a.v[1]; }

#endif
