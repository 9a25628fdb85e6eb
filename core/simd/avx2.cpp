// The wide path of x86-64, compiled with -mavx2 and called only where the machine has it.
#define LDSM_PATH avx2
#define LDSM_NAME "avx2"
#define LDSM_AVX2 1
#include "simd/path.hpp"
