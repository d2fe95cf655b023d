#include "bench/phase_run.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <thread>
#include <utility>
#include <vector>

#include "base/threads/clock.h"

namespace embank {
namespace {

constexpr auto kObserveInterval = std::chrono::milliseconds(2);

constexpr size_t kLineBytes = 64;

// The counters of one thread, on cache lines of their own, so that counting does not slow the
// batches that are timed.
struct alignas(kLineBytes) ThreadState {
  LatencyHistogram latency;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  std::atomic<uint64_t> positions_done{0};
  Status failure;  // the first
};

// The data that the threads of a phase share.
class PhaseThreads {
 public:
  PhaseThreads(const PhasePlan& plan, BatchBody body)
      : plan_(plan),
        body_(body),
        batches_((plan.keys.size() + plan.batch - 1) / plan.batch),
        states_(plan.threads),
        start_(plan.threads),
        running_(plan.threads) {}

  void Work(uint32_t thread) {
    ThreadState& state = states_[thread];
    start_.arrive_and_wait();
    uint64_t now_ns = state.start_ns = SteadyClock()->NowNs();
    const uint64_t deadline_ns = now_ns + static_cast<uint64_t>(plan_.seconds * 1e9);
    while (!stop_.load(std::memory_order_relaxed)) {
      if (plan_.seconds > 0 && now_ns >= deadline_ns) break;
      const KeySpan keys = TakeBatch();
      if (keys.empty()) break;
      const uint64_t begin_ns = SteadyClock()->NowNs();
      Status status = body_(thread, keys);
      now_ns = SteadyClock()->NowNs();
      state.latency.Record(now_ns - begin_ns);
      state.positions_done.fetch_add(keys.size(), std::memory_order_relaxed);
      if (status.ok()) continue;
      state.failure = std::move(status);
      stop_.store(true, std::memory_order_relaxed);
    }
    state.end_ns = now_ns;
    running_.fetch_sub(1, std::memory_order_release);
  }

  bool IsRunning() const { return running_.load(std::memory_order_acquire) > 0; }
  uint64_t positions_done() const {
    uint64_t sum = 0;
    for (const ThreadState& state : states_) {
      sum += state.positions_done.load(std::memory_order_relaxed);
    }
    return sum;
  }

  // After all threads have been joined.
  StatusOr<PhaseTiming> Result() const {
    PhaseTiming timing;
    uint64_t start_ns = states_.front().start_ns;
    uint64_t end_ns = 0;
    for (const ThreadState& state : states_) {
      if (!state.failure.ok()) return state.failure;
      start_ns = std::min(start_ns, state.start_ns);
      end_ns = std::max(end_ns, state.end_ns);
      timing.latency.Merge(state.latency);
    }
    timing.seconds = static_cast<double>(std::max<uint64_t>(1, end_ns - start_ns)) * 1e-9;
    timing.positions = positions_done();
    return timing;
  }

 private:
  KeySpan TakeBatch() {
    uint64_t number = next_batch_.fetch_add(1, std::memory_order_relaxed);
    if (plan_.seconds > 0) number %= batches_;
    if (number >= batches_) return {};
    const uint64_t first = number * plan_.batch;
    return plan_.keys.subspan(first, std::min(plan_.batch, plan_.keys.size() - first));
  }

  const PhasePlan& plan_;
  const BatchBody body_;
  const uint64_t batches_;
  std::vector<ThreadState> states_;  // of each thread
  std::latch start_;
  // Written for every batch, the rest only at the end.
  alignas(kLineBytes) std::atomic<uint64_t> next_batch_{0};
  alignas(kLineBytes) std::atomic<uint32_t> running_;
  std::atomic<bool> stop_{false};
};

}  // namespace

StatusOr<PhaseTiming> RunPhase(const PhasePlan& plan, BatchBody body, PhaseObserver observe) {
  if (plan.keys.empty()) return InvalidArgumentError("a phase without keys");
  PhaseThreads shared(plan, body);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < plan.threads; ++i) {
    threads.emplace_back([&shared, i] { shared.Work(i); });
  }
  while (shared.IsRunning()) {
    observe(shared.positions_done());
    std::this_thread::sleep_for(kObserveInterval);
  }
  for (std::thread& thread : threads) thread.join();
  return shared.Result();
}

}  // namespace embank
