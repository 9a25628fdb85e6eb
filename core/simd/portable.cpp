// The portable path: plain C++ that any 64-bit machine compiles.
#define LDSM_PATH portable
#define LDSM_AVX2 0
#include "path.hpp"

namespace ldsm {

const Kernels& portable_kernels() {
    static const Kernels kernels = portable::make_kernels("portable");
    return kernels;
}

}  // namespace ldsm
