// A queue of reads and writes that the kernel does while we wait: io_uring.
#ifndef EMBANK_BASE_FILES_URING_H_
#define EMBANK_BASE_FILES_URING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace embank {

// A ring has tables of files and of memory, registered with the kernel under numbers from 0 on, so
// that it need not look them up and hold them for each operation.
inline constexpr uint32_t kRingFilesMax = 1024;
inline constexpr uint32_t kRingMemoryMax = 16;
inline constexpr uint32_t kNoRingNumber = 0xFFFFFFFF;

struct IoOperation {
  static constexpr int64_t kNotDone = INT64_MIN;
  bool writes;
  int descriptor;
  uint32_t file = kNoRingNumber;  // the number of the descriptor's file, below kRingFilesMax
  uint64_t offset;
  std::byte* data;
  uint32_t bytes;
  int64_t result = kNotDone;  // bytes done, maybe fewer; or minus the system's error number
};

// A piece of memory that operations often use, and its number, below kRingMemoryMax.
struct IoMemory {
  uint32_t number = kNoRingNumber;
  std::span<std::byte> bytes = {};
};

// Ways in which completions reach the waiting thread: when it asks for them; when it is in the
// kernel anyway; at once, by an interrupt. Each costs more than the one before, and works on older
// kernels.
enum class IoCompletions { kDeferred, kCooperative, kInterrupting };

// The registrations that the system refused, as its error numbers; 0: none.
struct IoRefusals {
  int files = 0;
  int memory = 0;
};

// One thread uses a ring at a time. A file or memory that has a number belongs to the kernel until
// the ring ends, even if it is closed or unmapped meanwhile. A ring never reuses a number.
class IoRing {
 public:
  virtual ~IoRing() = default;

  // Does all operations, and returns when none is in flight. Files and memory with a number are
  // registered at their first use, and are used unregistered if that fails. False: the ring is
  // broken and must not be used again; some operations are not done.
  virtual bool Run(std::span<IoOperation> operations, const IoMemory& memory) = 0;

  // Whether this thread may call Run: a ring with deferred completions has only the thread that
  // made it.
  virtual bool IsForThisThread() const = 0;
  virtual IoRefusals refusals() const = 0;
  // Describes the features that the ring uses.
  virtual std::string About() const = 0;
};

// Makes a ring with the first completions, from `completions` on, that the system has. nullptr: the
// system refuses all; *error is its error number.
std::unique_ptr<IoRing> MakeIoRing(IoCompletions completions, int* error);

}  // namespace embank

#endif  // EMBANK_BASE_FILES_URING_H_
