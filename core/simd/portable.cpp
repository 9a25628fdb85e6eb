// The portable path: plain C++ that any 64-bit machine compiles.
#define LDSM_PATH portable
#define LDSM_NAME "portable"
#define LDSM_AVX2 0
#include "simd/path.hpp"
