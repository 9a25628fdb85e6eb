// One number per direction, in vectors: the arithmetic of a row between its two sparse loops.
//
// Floats<W> and Doubles<W> hold W numbers in parts, which have the operators of numbers. On the
// wide path a part is a register, and stays one from the margins to the update: a detour through
// memory that writes single numbers and reads them back as a vector stalls the machine on every
// row. On the portable path a part is one number.
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
struct Floats {
    __m256 v[W / 8];
};
template <>
struct Floats<4> {
    __m128 v[1];
};
template <>
struct Floats<2> {  // uses the lower half
    __m128 v[1];
};
template <int W>
struct Doubles {
    __m256d v[W == 8 ? 2 : 1];
};

inline void read(__m128& to, const float* from) { to = _mm_loadu_ps(from); }
inline void read(__m256& to, const float* from) { to = _mm256_loadu_ps(from); }
inline void write(float* to, __m128 part) { _mm_storeu_ps(to, part); }
inline void write(float* to, __m256 part) { _mm256_storeu_ps(to, part); }

inline __m128 at_most(__m128 a, float b) { return _mm_min_ps(a, _mm_set1_ps(b)); }
inline __m256 at_most(__m256 a, float b) { return _mm256_min_ps(a, _mm256_set1_ps(b)); }
inline __m256d at_most(__m256d a, double b) { return _mm256_min_pd(a, _mm256_set1_pd(b)); }
inline __m128 at_least(__m128 a, float b) { return _mm_max_ps(a, _mm_set1_ps(b)); }
inline __m256 at_least(__m256 a, float b) { return _mm256_max_ps(a, _mm256_set1_ps(b)); }
inline __m256d at_least(__m256d a, double b) { return _mm256_max_pd(a, _mm256_set1_pd(b)); }

inline __m256d add_to_exponent(__m256d a, __m256d integer) {
    return _mm256_castsi256_pd(_mm256_add_epi64(
        _mm256_castpd_si256(a), _mm256_slli_epi64(_mm256_castpd_si256(integer), 52)));
}

template <int W>
inline Doubles<W> to_doubles(Floats<W> a) {
    if constexpr (W == 8)
        return {{_mm256_cvtps_pd(_mm256_castps256_ps128(a.v[0])),
                 _mm256_cvtps_pd(_mm256_extractf128_ps(a.v[0], 1))}};
    else
        return {{_mm256_cvtps_pd(a.v[0])}};
}

template <int W>
inline Floats<W> to_floats(Doubles<W> a) {
    if constexpr (W == 8)
        return {{_mm256_set_m128(_mm256_cvtpd_ps(a.v[1]), _mm256_cvtpd_ps(a.v[0]))}};
    else
        return {{_mm256_cvtpd_ps(a.v[0])}};
}

// a, then b.
template <int W>
inline Floats<2 * W> joined(Floats<W> a, Floats<W> b) {
    if constexpr (W == 8)
        return {{a.v[0], b.v[0]}};
    else if constexpr (W == 4)
        return {{_mm256_set_m128(b.v[0], a.v[0])}};
    else
        return {{_mm_movelh_ps(a.v[0], b.v[0])}};
}

// 0 or 1 by direction, from a bit mask.
template <int W>
inline Doubles<W> targets(uint32_t mask) {
    const __m256i bits = _mm256_set_epi64x(8, 4, 2, 1);
    Doubles<W> out;
    for (auto& part : out.v) {
        const __m256i set = _mm256_and_si256(_mm256_set1_epi64x(mask), bits);
        part =
            _mm256_and_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(set, bits)), _mm256_set1_pd(1.0));
        mask >>= 4;
    }
    return out;
}

// to[0..W) += a
template <int W>
inline void add_to(double* to, Doubles<W> a) {
    if constexpr (W == 2) {
        _mm_storeu_pd(to, _mm_loadu_pd(to) + _mm256_castpd256_pd128(a.v[0]));
    } else {
        for (int part = 0; part < W / 4; ++part, to += 4)
            _mm256_storeu_pd(to, _mm256_loadu_pd(to) + a.v[part]);
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

inline void read(float& to, const float* from) { to = *from; }
inline void write(float* to, float part) { *to = part; }

template <typename Part>
inline Part at_most(Part a, Part b) {
    return a < b ? a : b;
}
template <typename Part>
inline Part at_least(Part a, Part b) {
    return a > b ? a : b;
}

inline double add_to_exponent(double a, double integer) {
    return std::bit_cast<double>(std::bit_cast<uint64_t>(a) +
                                 (std::bit_cast<uint64_t>(integer) << 52));
}

template <int W>
inline Doubles<W> to_doubles(Floats<W> a) {
    Doubles<W> out;
    for (int m = 0; m < W; ++m) out.v[m] = a.v[m];
    return out;
}

template <int W>
inline Floats<W> to_floats(Doubles<W> a) {
    Floats<W> out;
    for (int m = 0; m < W; ++m) out.v[m] = static_cast<float>(a.v[m]);
    return out;
}

template <int W>
inline Floats<2 * W> joined(Floats<W> a, Floats<W> b) {
    Floats<2 * W> out;
    for (int m = 0; m < 2 * W; ++m) out.v[m] = m < W ? a.v[m] : b.v[m - W];
    return out;
}

template <int W>
inline Doubles<W> targets(uint32_t mask) {
    Doubles<W> out;
    for (int m = 0; m < W; ++m) out.v[m] = static_cast<double>((mask >> m) & 1);
    return out;
}

template <int W>
inline void add_to(double* to, Doubles<W> a) {
    for (int m = 0; m < W; ++m) to[m] += a.v[m];
}

inline double first_minus_second(Doubles<2> a) { return a.v[0] - a.v[1]; }

#endif

template <int W>
constexpr int kParts = sizeof(Floats<W>) / sizeof(Floats<W>::v[0]);

template <int W>
inline Floats<W> load(const float* from) {
    Floats<W> out;
    for (int p = 0; p < kParts<W>; ++p) read(out.v[p], from + W / kParts<W> * p);
    return out;
}

template <int W>
inline void store(float* to, Floats<W> a) {
    for (int p = 0; p < kParts<W>; ++p) write(to + W / kParts<W> * p, a.v[p]);
}

// Of the four partial sums over a row.
template <int W>
inline Floats<W> join_sums(const Floats<W>* sums) {
    Floats<W> out;
    for (int p = 0; p < kParts<W>; ++p)
        out.v[p] = (sums[0].v[p] + sums[2].v[p]) + (sums[1].v[p] + sums[3].v[p]);
    return out;
}

template <int W>
inline Floats<W> plus(Floats<W> a, Floats<W> b) {
    for (int p = 0; p < kParts<W>; ++p) a.v[p] += b.v[p];
    return a;
}

template <int W>
inline Floats<W> minus(Floats<W> a, Floats<W> b) {
    for (int p = 0; p < kParts<W>; ++p) a.v[p] -= b.v[p];
    return a;
}

template <int W>
inline Floats<W> times(Floats<W> a, float b) {
    for (auto& part : a.v) part *= b;
    return a;
}

template <int W>
inline Doubles<W> times(Doubles<W> a, double b) {
    for (auto& part : a.v) part *= b;
    return a;
}

// (a - b) where `within` is 1, 0 where it is 0.
template <int W>
inline Doubles<W> minus_within(Doubles<W> a, Doubles<W> b, Doubles<W> within) {
    int p = 0;
    for (auto& part : a.v) {
        part = (part - b.v[p]) * within.v[p];
        ++p;
    }
    return a;
}

// The margins clamped to [0, 1].
template <int W>
inline Doubles<W> clamp_unit(Floats<W> a) {
    for (auto& part : a.v) part = at_most(at_least(part, 0.0f), 1.0f);
    return to_doubles<W>(a);
}

// 1 / (1 + exp(-margin)), relative error below 1e-12: far under the float32 it is rounded to.
template <int W>
inline Doubles<W> logistic(Floats<W> margins) {
    Doubles<W> out = to_doubles<W>(margins);
    for (auto& part : out.v) {
        const auto x = at_least(at_most(-part, 60.0), -60.0);
        const auto shifted = x * kLog2E + kRoundingShift;  // its low bits hold the integer k
        const auto k = shifted - kRoundingShift;
        const auto r = (x - k * kLn2High) - k * kLn2Low;
        const auto r2 = r * r;
        const auto r4 = r2 * r2;
        const auto pair = [&](int i) { return kTaylor[i] + r * kTaylor[i + 1]; };
        const auto low = pair(0) + r2 * pair(2);
        const auto middle = pair(4) + r2 * pair(6);
        const auto high = pair(8) + r2 * kTaylor[10];
        const auto mantissa = low + r4 * (middle + r4 * high);
        part = 1.0 / (1.0 + add_to_exponent(mantissa, shifted));
    }
    return out;
}
