// EMBANK_SIMD_CLONES stands before a function with loops that the compiler vectorises. The function
// is built for several instruction sets, and the loader chooses the best one of the machine. The
// results are the same bits, since nothing is contracted and no order is changed.
//
// It does nothing under sanitizers, whose run-time is not ready when the choice is made, and where
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
