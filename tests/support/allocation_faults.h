// Makes the n-th allocation of the process fail: every operator new, malloc, calloc, realloc and
// aligned allocation, and the page calls of a FailingMemory that asks MustFail. For programs that
// link the CMake target embank_allocation_faults. Allocations are counted on all threads.
#ifndef EMBANK_TESTS_SUPPORT_ALLOCATION_FAULTS_H_
#define EMBANK_TESTS_SUPPORT_ALLOCATION_FAULTS_H_

#include <cstdint>

namespace embank::test {

enum class FaultKind {
  kOnce,   // the n-th fails, later ones succeed
  kSince,  // the n-th and all later ones fail
};

// Faults are armed from construction to destruction; one at a time.
class AllocationFaults {
 public:
  // `n` counts from 1.
  AllocationFaults(uint64_t n, FaultKind kind);
  ~AllocationFaults();
  AllocationFaults(const AllocationFaults&) = delete;
  AllocationFaults& operator=(const AllocationFaults&) = delete;

  // Whether the allocation that asks must fail.
  static bool MustFail();
  // How many allocations have failed so far.
  static uint64_t Failed();
  // How many there were since the faults were armed, up to the first one that failed.
  static uint64_t Seen();
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_ALLOCATION_FAULTS_H_
