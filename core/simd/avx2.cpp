// The wide path of x86-64, compiled with -mavx2 and called only where the machine has it.
#define LDSM_PATH avx2
#define LDSM_AVX2 1
#include "path.hpp"

namespace ldsm {

const Kernels& avx2_kernels() {
    static const Kernels kernels = avx2::make_kernels("avx2");
    return kernels;
}

}  // namespace ldsm
