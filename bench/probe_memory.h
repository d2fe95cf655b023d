// Memory for probes of the machine: fresh pages of a chosen kind.
#ifndef EMBANK_BENCH_PROBE_MEMORY_H_
#define EMBANK_BENCH_PROBE_MEMORY_H_

#include <cstddef>
#include <cstdint>

#include "base/status_or.h"

namespace embank {

enum class PageKind { kHuge, kSmall };  // 2 MiB, where the system has them, or 4 KiB

// Zeroed, aligned to huge pages, not yet touched. Movable.
class ProbeMemory {
 public:
  // RESOURCE_EXHAUSTED.
  static StatusOr<ProbeMemory> Create(uint64_t bytes, PageKind pages);

  ProbeMemory() = default;
  ~ProbeMemory();
  ProbeMemory(ProbeMemory&& other) noexcept;
  ProbeMemory& operator=(ProbeMemory&& other) noexcept;

  std::byte* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }  // whole huge pages

 private:
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace embank

#endif  // EMBANK_BENCH_PROBE_MEMORY_H_
