// EMBANK_SIMD_CLONES: on a function whose loops the compiler vectorises: it is built for several
// instruction sets, and the best one of the machine is chosen when the program is loaded. The
// results are the same bits, since nothing is contracted and no order is changed.
//
// Not under sanitizers, whose run-time is not up yet when the choice is made, and not where
// EMBANK_NO_SIMD_CLONES is defined: tests/simd builds such functions for one set alone.
#ifndef EMBANK_BASE_SIMD_CLONES_H_
#define EMBANK_BASE_SIMD_CLONES_H_

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(EMBANK_NO_SIMD_CLONES)
#define EMBANK_SIMD_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define EMBANK_SIMD_CLONES
#endif

#endif  // EMBANK_BASE_SIMD_CLONES_H_
