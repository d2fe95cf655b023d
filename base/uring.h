// A queue of reads and writes that the kernel does while we wait: io_uring.
#ifndef EMBANK_BASE_URING_H_
#define EMBANK_BASE_URING_H_

#include <cstdint>
#include <memory>
#include <span>

namespace embank {

struct IoOperation {
  static constexpr int64_t kNotDone = INT64_MIN;
  bool writes;
  int descriptor;
  uint64_t offset;
  void* data;
  uint32_t bytes;
  int64_t result = kNotDone;  // bytes done, maybe fewer; or minus the system's error number
};

// One thread at a time.
class IoRing {
 public:
  virtual ~IoRing() = default;

  // Does all operations; returns when none is on its way any more. False: the ring is broken and is
  // not to be used again; some operations are not done.
  virtual bool Run(std::span<IoOperation> operations) = 0;
};

// nullptr: the system refuses it, with its error number in *error.
std::unique_ptr<IoRing> MakeIoRing(int* error);

}  // namespace embank

#endif  // EMBANK_BASE_URING_H_
