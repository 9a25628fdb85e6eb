#include "simd/kernels.hpp"

#include <cstdlib>
#include <stdexcept>

namespace ldsm {

namespace portable {
const Kernels& kernels();  // simd/portable.cpp
}
namespace avx2 {
const Kernels& kernels();  // simd/avx2.cpp
}

std::vector<const Kernels*> available_kernels() {
    std::vector<const Kernels*> paths{&portable::kernels()};
#if LDSM_HAVE_AVX2
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt"))
        paths.push_back(&avx2::kernels());
#endif
    return paths;
}

const Kernels& select_kernels(const std::string& name) {
    const auto paths = available_kernels();
    std::string wanted = name;
    if (wanted == "auto") {
        const char* forced = std::getenv("LDSM_SIMD");
        if (forced == nullptr || *forced == 0) return *paths.back();
        wanted = forced;
    }
    std::string known;
    for (const Kernels* k : paths) {
        if (wanted == k->name) return *k;
        known += std::string(known.empty() ? "" : ", ") + k->name;
    }
    throw std::invalid_argument("The SIMD path must be one of: " + known + ". Got '" + wanted +
                                "' instead.");
}

}  // namespace ldsm
