// The streams of a twin: queues of work that run when somebody waits. Stream 0 is the device's own;
// the others are those of callers. A stream can wait for what is on another one.
#ifndef EMBANK_GPU_TWIN_STREAMS_H_
#define EMBANK_GPU_TWIN_STREAMS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

#include "base/threads/mutex.h"

namespace embank {

// A piece of work: a function object of plain values, kept in place, so that enqueuing allocates
// nothing.
class TwinWork {
 public:
  TwinWork() = default;
  template <typename Body>
  requires(!std::is_same_v<Body, TwinWork>) explicit TwinWork(const Body& body)
      : run_([](std::byte* bytes) { (*std::launder(reinterpret_cast<Body*>(bytes)))(); }) {
    static_assert(std::is_trivially_copyable_v<Body> && sizeof(Body) <= kBytesMax);
    ::new (static_cast<void*>(bytes_.data())) Body(body);
  }

  void Run() { run_(bytes_.data()); }

 private:
  static constexpr size_t kBytesMax = 320;

  void (*run_)(std::byte*) = nullptr;
  alignas(16) std::array<std::byte, kBytesMax> bytes_{};
};

// Thread-safe. Work runs on threads that call EnqueueWork or RunUntil, one piece at a time.
class TwinStreams {
 public:
  using Stream = uint32_t;
  static constexpr Stream kOwn = 0;
  // The most that a stream keeps for later, about as much as a device's queue of launches. A
  // thread that enqueues more runs the older half first.
  static constexpr uint64_t kPendingMax = 1024;

  // Makes the device's stream. A seed other than 0 also runs work while more is enqueued.
  explicit TwinStreams(uint64_t seed);

  // Makes one more stream.
  Stream Add();

  // Enqueues work, which is ready at `ready_ns` of the link's clock. Returns its number in the
  // stream: 1, 2, ...
  uint64_t EnqueueWork(Stream stream, const TwinWork& work, uint64_t ready_ns = 0);
  // Makes all later work of `stream` wait for all that is on `other` now.
  void EnqueueWait(Stream stream, Stream other);

  // Returns the number of the last that was enqueued.
  uint64_t enqueued(Stream stream) const;
  // Runs work until number `n` has run. The caller must not be such work.
  void RunUntil(Stream stream, uint64_t n);
  // Returns when number n, or the last before it that is still known, is ready.
  uint64_t ReadyNs(Stream stream, uint64_t n) const;

 private:
  // A piece of work, or a wait for number `n` of another stream.
  struct Item {
    TwinWork work = {};
    bool is_wait = false;
    Stream other = 0;
    uint64_t n = 0;
    uint64_t ready_ns = 0;
  };
  // Number n is items[n % kPendingMax]; those in (done, enqueued] are pending.
  struct Queue {
    std::vector<Item> items = std::vector<Item>(kPendingMax);
    uint64_t enqueued = 0;
    uint64_t done = 0;
  };

  uint64_t Enqueue(Stream stream, const Item& item) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunUntilLocked(Stream stream, uint64_t n) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunNext(Stream stream) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t seed_;
  mutable Mutex mutex_;
  ConditionVariable ran_;
  bool running_ EMBANK_GUARDED_BY(mutex_) = false;  // a thread runs work, without the lock
  uint64_t draws_ EMBANK_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<Queue>> queues_ EMBANK_GUARDED_BY(mutex_);
};

}  // namespace embank

#endif  // EMBANK_GPU_TWIN_STREAMS_H_
