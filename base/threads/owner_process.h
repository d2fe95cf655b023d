// Knows the process in which an object was made. A child of fork() has a copy of its parent's
// memory, but not its threads, and shares its files.
#ifndef EMBANK_BASE_THREADS_OWNER_PROCESS_H_
#define EMBANK_BASE_THREADS_OWNER_PROCESS_H_

#include <atomic>
#include <cstdint>

#include "base/status.h"

namespace embank {

class OwnerProcess {
 public:
  // Makes forks count from its first success on. kResourceExhausted. Thread-safe.
  static Status WatchForks();

  // Makes this process the owner; WatchForks has succeeded.
  OwnerProcess();

  // Whether the running process is the owner. Thread-safe; a load and a comparison.
  bool IsThisOne() const { return forks_ == forks_before.load(std::memory_order_relaxed); }

  // kFailedPrecondition: this is a child of the owner; the message says what to do. Thread-safe.
  Status Check() const {
    if (IsThisOne()) [[likely]] {
      return OkStatus();
    }
    return NotThisOne();
  }

 private:
  Status NotThisOne() const;
  static void CountFork();

  // The number of forks between this process and the one that counted the first fork.
  static std::atomic<uint64_t> forks_before;

  const uint64_t forks_;
  const int64_t process_;
};

}  // namespace embank

#endif  // EMBANK_BASE_THREADS_OWNER_PROCESS_H_
