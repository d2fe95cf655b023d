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

// How completions reach the thread that waits: when it asks for them; when it is in the kernel
// anyway; at once, by interrupting it. Each is dearer than the one before, and of older kernels.
enum class IoCompletions { kDeferred, kCooperative, kInterrupting };

// What the system refused to register, as its error numbers; 0: nothing.
struct IoRefusals {
  int files = 0;
  int memory = 0;
};

// One thread at a time. What it was given under a number is the kernel's until the ring ends, a
// file that is closed and memory that is unmapped meanwhile too: a number is never another's in
// the life of a ring.
class IoRing {
 public:
  virtual ~IoRing() = default;

  // Does all operations; returns when none is on its way any more. What has a number is registered
  // when it is first used; what cannot be is used all the same. False: the ring is broken and is
  // not to be used again; some operations are not done.
  virtual bool Run(std::span<IoOperation> operations, const IoMemory& memory) = 0;

  // Whether this thread may Run it: of deferred completions only the one that made it.
  virtual bool IsForThisThread() const = 0;
  virtual IoRefusals refusals() const = 0;
  // What it uses, in words.
  virtual std::string About() const = 0;
};

// With the first completions, from `completions` on, that the system has. nullptr: it refuses all,
// with its error number in *error.
std::unique_ptr<IoRing> MakeIoRing(IoCompletions completions, int* error);

}  // namespace embank

#endif  // EMBANK_BASE_FILES_URING_H_
