// Sums over the entries of a row run in four partial sums, joined as (0 + 2) + (1 + 3): four chains
// of additions that need not wait for each other, in one fixed order, so that every machine and
// every path gives the same bits.
//
// Always inlined, as all that simd/ shares with the rest of the core: the linker must not pick a
// copy made for a wider machine to serve all the others.
#pragma once

#include <cstdint>

namespace ldsm {

[[gnu::always_inline]] inline float join_sums(float a, float b, float c, float d) {
    return (a + c) + (b + d);
}

// Of term(0), ..., term(n - 1). What is left after the last four goes to the first sum.
template <typename Term>
[[gnu::always_inline]] inline float sum_of(int64_t n, Term&& term) {
    float a = 0, b = 0, c = 0, d = 0;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        a += term(i);
        b += term(i + 1);
        c += term(i + 2);
        d += term(i + 3);
    }
    for (; i < n; ++i) a += term(i);
    return join_sums(a, b, c, d);
}

}  // namespace ldsm
