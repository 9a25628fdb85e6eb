// For the few functions that the files of simd/ share with the rest of the core. Always inlined:
// the linker must not pick a copy made for a wider machine to serve all the others.
#pragma once

#define LDSM_ALWAYS_INLINE [[gnu::always_inline]] inline
