#include "base/owner_process.h"

#include <pthread.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/memory.h"

namespace embank {

std::atomic<uint64_t> OwnerProcess::forks_before{0};

// Runs in a child with one thread, before fork() returns: nothing in it may wait or allocate.
void OwnerProcess::CountFork() {
  forks_before.fetch_add(1, std::memory_order_relaxed);
  ForgetLogSinkAfterFork();
}

absl::Status OwnerProcess::WatchForks() {
  // Of two threads at once both may register: then a fork counts twice, which is as good.
  static std::atomic<bool> watches{false};
  if (watches.load(std::memory_order_acquire)) return absl::OkStatus();
  if (pthread_atfork(nullptr, nullptr, &CountFork) != 0) return NoMemory();
  watches.store(true, std::memory_order_release);
  return absl::OkStatus();
}

OwnerProcess::OwnerProcess()
    : forks_(forks_before.load(std::memory_order_relaxed)), process_(getpid()) {}

absl::Status OwnerProcess::NotThisOne() const {
  return absl::FailedPreconditionError(
      absl::StrCat("the store was opened by process ", process_, ", and this is process ", getpid(),
                   ": open it again in this process, or fork before it is opened"));
}

}  // namespace embank
