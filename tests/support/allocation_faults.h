// Makes the n-th allocation of the process fail: every operator new, malloc, calloc, realloc and
// aligned allocation, and the page calls of a memory source. For programs that link the CMake
// target embank_allocation_faults. Allocations are counted on all threads.
#ifndef EMBANK_TESTS_SUPPORT_ALLOCATION_FAULTS_H_
#define EMBANK_TESTS_SUPPORT_ALLOCATION_FAULTS_H_

#include <cstdint>

#include "base/memory.h"

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

  // How many allocations have failed so far.
  static uint64_t Failed();
};

// Pages of the system, through the faults above.
class FaultyMemorySource final : public MemorySource {
 public:
  absl::StatusOr<std::byte*> Map(uint64_t bytes) override;
  absl::StatusOr<std::byte*> Reserve(uint64_t bytes) override;
  absl::Status Commit(std::byte* address, uint64_t bytes) override;
  void Decommit(std::byte* address, uint64_t bytes) override;
  void Unmap(std::byte* address, uint64_t bytes) override;
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_ALLOCATION_FAULTS_H_
