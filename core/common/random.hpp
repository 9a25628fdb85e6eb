// Counter-based random numbers: every number is a pure function of (seed, tree, node path,
// counter). Nothing depends on what ran before, so threads, workers and the order of work cannot
// change a tree. (Always inlined where simd/ uses it too: see partial_sums.hpp.)
#pragma once

#include <cstdint>
#include <utility>

namespace ldsm {

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15ULL;

// The finaliser of SplitMix64: a bijection that spreads every input bit over the word.
[[gnu::always_inline]] inline uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

inline uint64_t tree_key(uint64_t seed, uint64_t tree) {
    return mix(mix(seed + kGolden) + (tree + 1) * kGolden);
}

// Streams of one tree that are not a node's: their own constants keep them apart.
inline uint64_t order_key(uint64_t tree) { return mix(tree ^ 0x6F72646572ULL); }
inline uint64_t subsample_key(uint64_t tree) { return mix(tree ^ 0x73616D706CULL); }

// The key of a node's child: a hash chain along the path.
inline uint64_t child_key(uint64_t parent, uint64_t child) {
    return mix(parent + (child + 1) * kGolden);
}

struct Stream {
    uint64_t key;
    uint64_t counter = 0;

    [[gnu::always_inline]] inline uint64_t next() { return mix(key + (++counter) * kGolden); }

    // Uniform in [0, n): the high word of a 64 x 64 multiplication, written portably.
    [[gnu::always_inline]] inline uint64_t below(uint64_t n) {
        const uint64_t x = next();
        const uint64_t high = (x >> 32) * n;
        const uint64_t low = (x & 0xFFFFFFFFULL) * n;
        return (high + (low >> 32)) >> 32;  // n < 2^32
    }
};

template <typename T>
[[gnu::always_inline]] inline void shuffle(T* first, int64_t n, Stream& stream) {
    for (int64_t i = n - 1; i > 0; --i)
        std::swap(first[i], first[stream.below(static_cast<uint64_t>(i) + 1)]);
}

}  // namespace ldsm
