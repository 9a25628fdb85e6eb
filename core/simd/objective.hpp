// Algorithm 3, OptimizeObjective: which directions a row should take, namely the set of them with
// the least C*J.
//
// With n = |y| and T_jl[d] = sum over the row's labels k of |A_j[k] - A_l[k] + d|,
//   C*J(s) = sum_{j<l} ( |B_j - B_l + n d_jl| - lambda1 T_jl[d_jl] ) + lambda2 |sum B + n|s| - C|,
// where d_jl = s_j - s_l is -1, 0 or 1. The sums T cost one pass over the labels; each of the
// 2^M - 1 candidates then costs O(M^2) whatever |y| is.
//
// Included by path.hpp, once per instruction set.

template <int M>
constexpr int kPairs = M * (M - 1) / 2;

inline double absolute(double x) { return x < 0 ? -x : x; }
#if LDSM_AVX2
inline __m128d absolute(__m128d x) { return _mm_andnot_pd(_mm_set1_pd(-0.0), x); }
inline __m256d absolute(__m256d x) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), x); }
#endif

// T[d] += |difference + d| for d = -1, 0, 1.
template <typename Part>
inline void add_label(Part* sums, Part difference) {
    sums[0] += absolute(difference - 1.0);
    sums[1] += absolute(difference);
    sums[2] += absolute(difference + 1.0);
}

// T for arity 2, where one difference per label is kept. The labels are padded to whole groups; a
// group's surplus lanes are masked away.
inline void pair_sums_of_two(const double* difference, const uint32_t* label, int64_t n,
                             double* sums) {
#if LDSM_AVX2
    alignas(32) static const int64_t kKeep[8] = {-1, -1, -1, -1, 0, 0, 0, 0};
    const int64_t whole = (n - 1) / 4 * 4;  // all groups but the last
    const auto load = [&](int64_t i) {
        return _mm256_set_pd(difference[label[i + 3]], difference[label[i + 2]],
                             difference[label[i + 1]], difference[label[i]]);
    };
    __m256d lanes[3] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()};
    for (int64_t i = 0; i < whole; i += 4) add_label(lanes, load(i));
    const __m256d keep = absolute(_mm256_castsi256_pd(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kKeep + 4 - (n - whole)))));
    const __m256d last = load(whole);
    lanes[0] += _mm256_and_pd(keep, last - 1.0);
    lanes[1] += _mm256_and_pd(keep, last);
    lanes[2] += _mm256_and_pd(keep, last + 1.0);
    for (int s = 0; s < 3; ++s) {
        const __m128d halves =
            _mm256_castpd256_pd128(lanes[s]) + _mm256_extractf128_pd(lanes[s], 1);
        sums[s] = _mm_cvtsd_f64(_mm_add_sd(halves, _mm_unpackhi_pd(halves, halves)));
    }
#else
    double lanes[4][3] = {};
    for (int64_t i = 0; i < n; ++i) add_label(lanes[i % 4], difference[label[i]]);
    for (int s = 0; s < 3; ++s) sums[s] = (lanes[0][s] + lanes[2][s]) + (lanes[1][s] + lanes[3][s]);
#endif
}

#if LDSM_AVX2
// T for arity 4: the six pairs as (01 12 23 30) and (02 13); |x| makes the order within a pair
// matter only for the sign of d, which the fourth lane corrects when the sums are handed out.
inline void pair_sums_of_four(const double* mass, const uint32_t* label, int64_t n,
                              double sums[][3]) {
    __m256d ring[3] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()};
    __m128d cross[3] = {_mm_setzero_pd(), _mm_setzero_pd(), _mm_setzero_pd()};
    for (int64_t i = 0; i < n; ++i) {
        const __m256d a = _mm256_loadu_pd(mass + static_cast<int64_t>(label[i]) * 4);
        add_label(ring, a - _mm256_permute4x64_pd(a, 0x39));  // minus 1 2 3 0
        add_label(cross, _mm256_castpd256_pd128(a) - _mm256_extractf128_pd(a, 1));
    }
    for (int s = 0; s < 3; ++s) {
        double r[4], c[2];
        _mm256_storeu_pd(r, ring[s]);
        _mm_storeu_pd(c, cross[s]);
        sums[0][s] = r[0];      // 0,1
        sums[1][s] = c[0];      // 0,2
        sums[2][2 - s] = r[3];  // 0,3 from 3,0
        sums[3][s] = r[1];      // 1,2
        sums[4][s] = c[1];      // 1,3
        sums[5][s] = r[2];      // 2,3
    }
}
#endif

// T for any arity: labels in order, one sum per pair and d.
template <int WIDTH>
inline void pair_sums(const double* mass, const uint32_t* label, int64_t n, int arity,
                      double sums[][3]) {
    const int pairs = arity * (arity - 1) / 2;
    for (int p = 0; p < pairs; ++p) sums[p][0] = sums[p][1] = sums[p][2] = 0;
    for (int64_t i = 0; i < n; ++i) {
        const double* a = mass + static_cast<int64_t>(label[i]) * WIDTH;
        int p = 0;
        for (int j = 0; j < arity; ++j)
            for (int l = j + 1; l < arity; ++l, ++p) add_label(sums[p], a[j] - a[l]);
    }
}

// Uniform in [0, count), from the node's own stream.
inline uint32_t draw(uint32_t count, NodeState& state) {
    Stream stream{state.random_key, state.random_counter};
    const auto number = static_cast<uint32_t>(stream.below(count));
    state.random_counter = stream.counter;
    return number;
}

// Sets of directions are bit masks. Exact equals are drawn from at random, but "all directions"
// never wins a tie.
inline uint32_t least_of_two(const double* cost, NodeState& state) {
    // Arithmetic on comparisons, not branches: the choice is as good as random to a predictor.
    const uint32_t second = cost[2] < cost[1];
    const uint32_t both = (cost[3] < cost[1]) & (cost[3] < cost[2]);
    if ((cost[1] == cost[2]) & !both) [[unlikely]]
        return 1 + draw(2, state);
    return (1 + second) | (3 * both);
}

inline uint32_t least_candidate(const double* cost, uint32_t all, NodeState& state) {
    double least = cost[1];
    for (uint32_t s = 2; s < all; ++s) least = cost[s] < least ? cost[s] : least;
    if (cost[all] < least) return all;
    uint32_t ties = 0, first = 0;
    for (uint32_t s = all - 1; s > 0; --s) {
        const bool equal = cost[s] == least;
        ties += equal;
        first = equal ? s : first;
    }
    if (ties == 1) return first;
    if (ties == 0) return 1;  // every cost is NaN: the node has diverged and will stay a leaf
    uint32_t skip = draw(ties, state);
    for (uint32_t s = first;; ++s)
        if (cost[s] == least && skip-- == 0) return s;
}

// What the choice needs of the node's state; kept apart so that it can stay in registers.
struct Reached {
    double by_direction[kMaxArity];  // B
    double labels_seen;              // C
};

inline uint32_t choose_of_two(const Reached& r, const double* t, double n, const StepParams& p,
                              NodeState& state) {
    const double b = r.by_direction[0] - r.by_direction[1];
    const double total = r.by_direction[0] + r.by_direction[1];
    const double one_way = p.multiway_penalty * absolute(total + n - r.labels_seen);
    const double both_ways = p.multiway_penalty * absolute(total + n * 2 - r.labels_seen);
    double cost[4];
    cost[1] = (absolute(b + n) - p.integrity_weight * t[2]) + one_way;
    cost[2] = (absolute(b - n) - p.integrity_weight * t[0]) + one_way;
    cost[3] = (absolute(b) - p.integrity_weight * t[1]) + both_ways;
    return least_of_two(cost, state);
}

template <int ARITY>  // 0: known at run time only
inline uint32_t choose_directions(const Reached& r, const double sums[][3], double n,
                                  const StepParams& p, NodeState& state) {
    const int arity = ARITY ? ARITY : state.arity;
    double pair_cost[kPairs<kMaxArity>][3];
    double total = 0;
    int pair = 0;
    for (int j = 0; j < arity; ++j) {
        total += r.by_direction[j];
        for (int l = j + 1; l < arity; ++l, ++pair) {
            const double b = r.by_direction[j] - r.by_direction[l];
            pair_cost[pair][0] = absolute(b - n) - p.integrity_weight * sums[pair][0];
            pair_cost[pair][1] = absolute(b) - p.integrity_weight * sums[pair][1];
            pair_cost[pair][2] = absolute(b + n) - p.integrity_weight * sums[pair][2];
        }
    }
    double penalty[kMaxArity + 1];
    for (int q = 0; q <= arity; ++q)
        penalty[q] = p.multiway_penalty * absolute(total + n * q - r.labels_seen);

    double cost[1 << kMaxArity];
    const uint32_t all = (1u << arity) - 1;
#pragma GCC unroll 16
    for (uint32_t s = 1; s <= all; ++s) {
        double j_value = 0;
        int count = 0;
        int index = 0;
#pragma GCC unroll 8
        for (int j = 0; j < arity; ++j) {
            const int in_j = (s >> j) & 1;
            count += in_j;
#pragma GCC unroll 8
            for (int l = j + 1; l < arity; ++l, ++index)
                j_value += pair_cost[index][in_j - static_cast<int>((s >> l) & 1) + 1];
        }
        cost[s] = j_value + penalty[count];
    }
    return least_candidate(cost, all, state);
}
