// The rings of a file system, and the numbers under which they know files and memory.
//
// A closed file or freed memory must not stay in a ring's table. The file would keep its disk
// space, and reads would go into pages that now belong to others. In rings with deferred
// completions only the thread that made a ring can remove an entry. So closing a registered file or
// buffer invalidates every ring: idle rings end at once, rings in use when they are returned, and
// new ones are made on demand.
#ifndef EMBANK_BASE_FILES_RING_POOL_H_
#define EMBANK_BASE_FILES_RING_POOL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files/uring.h"
#include "base/threads/mutex.h"

namespace embank {

// Thread-safe.
class RingPool {
 public:
  // Makes rings with these completions, or with others if the system does not have them; nullopt:
  // no rings.
  explicit RingPool(std::optional<IoCompletions> completions);

  // Runs the operations on a ring. It runs all of them or none; if the ring breaks, it runs a part,
  // which their results tell. A ring that is refused or breaks is the last one; the log says so.
  void Run(std::span<IoOperation> operations) noexcept;

  // Returns a number for an open file, until EndFile. Call EndFile when no thread runs operations
  // of the file any more; was_run: one may have. kNoRingNumber: none is left, and the file works
  // without.
  uint32_t AddFile();
  void EndFile(uint32_t number, bool was_run);

  // Registers memory that operations will often use, until EndMemory. Call EndMemory when no
  // operation uses the memory any more.
  void AddMemory(std::span<std::byte> memory);
  void EndMemory(std::span<std::byte> memory);

 private:
  struct Taken {
    std::unique_ptr<IoRing> ring;
    uint64_t ends;  // as ends_ was then
    IoMemory memory;
  };
  using Rings = std::vector<std::unique_ptr<IoRing>>;

  Taken Take(std::span<const IoOperation> operations);
  void Return(Taken taken);
  void DisableRings(const std::string& reason);
  void LogRefusals(const IoRefusals& refusals);
  IoMemory MemoryOf(const std::byte* address) const EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  std::optional<IoCompletions> completions_ EMBANK_GUARDED_BY(mutex_);  // nullopt: no rings
  Rings idle_ EMBANK_GUARDED_BY(mutex_);                                // the latest last
  uint64_t ends_ EMBANK_GUARDED_BY(mutex_) = 0;  // of files and memory that rings have met
  std::vector<uint32_t> free_files_ EMBANK_GUARDED_BY(mutex_);
  std::array<std::span<std::byte>, kRingMemoryMax> memory_ EMBANK_GUARDED_BY(mutex_);  // by number
  IoRefusals said_ EMBANK_GUARDED_BY(mutex_);
};

}  // namespace embank

#endif  // EMBANK_BASE_FILES_RING_POOL_H_
