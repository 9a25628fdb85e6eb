// The inner loops for one instruction set, and the table that leads to them.
//
// The files of this folder are compiled once per instruction set: a .cpp defines LDSM_PATH (a
// namespace), LDSM_NAME and LDSM_AVX2 and includes this file, which includes the others inside that
// namespace. Only raw pointers and plain types may be used in them: a standard library template
// instantiated in a wide file could be picked by the linker for every machine.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "common/partial_sums.hpp"
#include "common/random.hpp"
#include "simd/kernels.hpp"

#if LDSM_AVX2
#include <immintrin.h>
#endif

namespace ldsm {
namespace LDSM_PATH {

#include "simd/dense.hpp"
#include "simd/lanes.hpp"
#include "simd/objective.hpp"
#include "simd/regressors.hpp"
#include "simd/row_trainer.hpp"

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
        // A map is derived data, but it must never lead outside the node.
        const auto stored = static_cast<int32_t>(((map.present >> (feature[i] % 64)) & 1) &
                                                 (at < static_cast<uint64_t>(n_stored)));
        // This cannot be predicted: without a branch.
        places[i] = static_cast<int32_t>(at) | (stored - 1);
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

inline Kernels make_kernels() {
    Kernels k{};
    k.name = LDSM_NAME;
    fill_trainers<true>(k.nag);
    fill_trainers<false>(k.sgd);
    for (int m = 2; m <= kMaxArity; ++m)
        k.margins[m] = m == 2 ? row_margins<2> : m <= 4 ? row_margins<4> : row_margins<8>;
    k.find_places = find_places;
    k.dense_products = dense_products;
    k.full_product = full_product;
    k.full_add = full_add;
    return k;
}

const Kernels& kernels() {
    static const Kernels kernels = make_kernels();
    return kernels;
}

}  // namespace LDSM_PATH
}  // namespace ldsm
