// Which process something was made in: a child of fork() has a copy of its parent's memory, but not
// its threads, and shares its files.
#ifndef EMBANK_BASE_THREADS_OWNER_PROCESS_H_
#define EMBANK_BASE_THREADS_OWNER_PROCESS_H_

#include <atomic>
#include <cstdint>

#include "base/status.h"

namespace embank {

class OwnerProcess {
 public:
  // From its first success on, forks are noticed. kResourceExhausted. Thread-safe.
  static Status WatchForks();

  // This process; WatchForks has succeeded.
  OwnerProcess();

  // Whether it is this one still. Thread-safe; a load and a comparison.
  bool IsThisOne() const { return forks_ == forks_before.load(std::memory_order_relaxed); }

  // kFailedPrecondition, with what to do, in a child of the owner. Thread-safe.
  Status Check() const {
    if (IsThisOne()) [[likely]] {
      return OkStatus();
    }
    return NotThisOne();
  }

 private:
  Status NotThisOne() const;
  static void CountFork();

  // How many forks lie between this process and the one that noticed the first.
  static std::atomic<uint64_t> forks_before;

  const uint64_t forks_;
  const int64_t process_;
};

}  // namespace embank

#endif  // EMBANK_BASE_THREADS_OWNER_PROCESS_H_
