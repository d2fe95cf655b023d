// The rings of a file system, and the numbers under which they know files and memory.
//
// A file that was closed, or memory that was given back, must not stay in a table: the one would
// keep its space, the other's pages would be read into though others lie at their addresses. Of
// deferred rings only the threads that made them could take it out. So when something ends that
// rings have met all of them end, idle ones at once, others when they come back; new ones are made
// as they are needed.
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
  // Of rings with these completions, or what the system has instead; nullopt: without any.
  explicit RingPool(std::optional<IoCompletions> completions);

  // What a ring does of the operations; all, nothing or, when it breaks, a part, which their
  // results tell. A ring that is refused or breaks is the last one; the log says so.
  void Run(std::span<IoOperation> operations) noexcept;

  // A number for a file that is open, until EndFile, which is called when nobody runs operations
  // of it any more; was_run: somebody may have. kNoRingNumber: there is none left, the file goes
  // without.
  uint32_t AddFile();
  void EndFile(uint32_t number, bool was_run);

  // Memory that operations will often use, until EndMemory of the same, which is called when none
  // uses it any more.
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
