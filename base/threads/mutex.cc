#include "base/threads/mutex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "base/check.h"
#include "base/threads/spin_wait.h"

namespace embank {
namespace {

// A lock is mostly held for a shorter time than a sleep costs: some 2 us. Below SpinWait's yield.
constexpr uint32_t kPausesMax = 60;

// The kernel reads and compares the word itself.
long Futex(std::atomic<uint32_t>* word, int operation, uint32_t value, const timespec* limit) {
  static_assert(sizeof(*word) == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), operation | FUTEX_PRIVATE_FLAG,
                 value, limit, nullptr, 0);
}

// Sleeps unless the word has another value, until it is woken. May return without a reason.
void SleepWhile(std::atomic<uint32_t>* word, uint32_t value, const timespec* limit = nullptr) {
  Futex(word, FUTEX_WAIT, value, limit);
}

// Wakes sleepers; returns whether there were any.
bool Wake(std::atomic<uint32_t>* word, int threads_max) {
  return Futex(word, FUTEX_WAKE, static_cast<uint32_t>(threads_max), nullptr) > 0;
}

// Spins until is_over(word) or for a while; returns the word.
template <typename IsOver>
uint32_t SpinUntil(const std::atomic<uint32_t>& word, IsOver is_over) {
  SpinWait wait;
  uint32_t state = word.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < kPausesMax && !is_over(state); ++i) {
    wait.Pause();
    state = word.load(std::memory_order_relaxed);
  }
  return state;
}

}  // namespace

void Mutex::WaitAndLock() {
  const auto is_over = [](uint32_t state) {
    return Holders(state) == 0 || (state & kWritersWait) != 0;
  };
  // Other writers may sleep since this one did; the holder of the lock wakes them, too.
  uint32_t others_wait = 0;
  uint32_t state = SpinUntil(state_, is_over);
  while (true) {
    if (Holders(state) == 0) {
      if (Take(&state, state | kWriter | others_wait)) return;
      continue;
    }
    if ((state & kWritersWait) == 0 && !Take(&state, state | kWritersWait)) continue;
    others_wait = kWritersWait;
    // An unlock from here on increments the counter, so that the sleep does not begin.
    const uint32_t woken = writers_woken_.load(std::memory_order_acquire);
    state = state_.load(std::memory_order_relaxed);
    if (Holders(state) == 0 || (state & kWritersWait) == 0) continue;
    SleepWhile(&writers_woken_, woken);
    state = SpinUntil(state_, is_over);
  }
}

void Mutex::WaitAndReaderLock() {
  const auto is_over = [](uint32_t state) {
    return Holders(state) != kWriter || (state & (kReadersWait | kWritersWait)) != 0;
  };
  uint32_t state = SpinUntil(state_, is_over);
  while (true) {
    if (ReadersMayEnter(state)) {
      if (Take(&state, state + 1)) return;
      continue;
    }
    EMBANK_CHECK(Holders(state) != kReadersMax);
    if ((state & kReadersWait) == 0 && !Take(&state, state | kReadersWait)) continue;
    SleepWhile(&state_, state | kReadersWait);
    state = SpinUntil(state_, is_over);
  }
}

// No thread held the lock when it was `state`: a waiting writer is next, else all readers are.
void Mutex::WakeOne(uint32_t state) {
  EMBANK_CHECK(Holders(state) == 0 && state != 0);
  if (state == kWritersWait) {
    if (Take(&state, 0)) {
      WakeWriter();
      return;
    }
  }
  if (state == (kReadersWait | kWritersWait)) {
    // Another thread has taken it meanwhile, and will wake the others.
    if (!Take(&state, kReadersWait)) return;
    if (WakeWriter()) return;
    // No writer sleeps any more, or yet: readers must not wait for one that does not come.
    state = kReadersWait;
  }
  if (state == kReadersWait && Take(&state, 0)) Wake(&state_, INT_MAX);
}

bool Mutex::WakeWriter() {
  writers_woken_.fetch_add(1, std::memory_order_release);
  return Wake(&writers_woken_, 1);
}

void ConditionVariable::Wait(Mutex* mutex) {
  mutex->AssertHeld();
  waiting_.fetch_add(1, std::memory_order_relaxed);
  const uint32_t notified = notified_.load(std::memory_order_relaxed);
  mutex->Unlock();
  SleepWhile(&notified_, notified);
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  mutex->Lock();
}

void ConditionVariable::WaitFor(Mutex* mutex, uint64_t ns) {
  mutex->AssertHeld();
  constexpr uint64_t kSecondNs = 1'000'000'000;
  constexpr uint64_t kSecondsMax = uint64_t{1} << 31;
  const timespec limit = {.tv_sec = static_cast<time_t>(std::min(ns / kSecondNs, kSecondsMax)),
                          .tv_nsec = static_cast<long>(ns % kSecondNs)};
  waiting_.fetch_add(1, std::memory_order_relaxed);
  const uint32_t notified = notified_.load(std::memory_order_relaxed);
  mutex->Unlock();
  SleepWhile(&notified_, notified, &limit);
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  mutex->Lock();
}

void ConditionVariable::WakeAll() {
  notified_.fetch_add(1, std::memory_order_relaxed);
  Wake(&notified_, INT_MAX);
}

}  // namespace embank
