#include "base/threads/owner_process.h"

#include <pthread.h>
#include <unistd.h>

#include "base/memory/memory.h"
#include "base/str_cat.h"
#include "base/threads/log.h"

namespace embank {

std::atomic<uint64_t> OwnerProcess::forks_before{0};

// Runs in a child with one thread, before fork() returns: nothing in it may wait or allocate.
void OwnerProcess::CountFork() {
  forks_before.fetch_add(1, std::memory_order_relaxed);
  ClearLogSinkAfterFork();
}

Status OwnerProcess::WatchForks() {
  // Two threads may both register at once; then a fork counts twice, which does no harm.
  static std::atomic<bool> watches{false};
  if (watches.load(std::memory_order_acquire)) return OkStatus();
  if (pthread_atfork(nullptr, nullptr, &CountFork) != 0) return NoMemory();
  watches.store(true, std::memory_order_release);
  return OkStatus();
}

OwnerProcess::OwnerProcess()
    : forks_(forks_before.load(std::memory_order_relaxed)), process_(getpid()) {}

Status OwnerProcess::NotThisOne() const {
  return FailedPreconditionError(
      StrCat("the store was opened by process ", process_, ", and this is process ", getpid(),
             ": open it again in this process, or fork before it is opened"));
}

}  // namespace embank
