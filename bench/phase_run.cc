#include "bench/phase_run.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace embank {
namespace {

constexpr auto kObserveInterval = std::chrono::milliseconds(2);

// What the threads of a phase share.
class PhaseThreads {
 public:
  PhaseThreads(const PhasePlan& plan, BatchBody body)
      : plan_(plan),
        body_(body),
        batches_((plan.keys.size() + plan.batch - 1) / plan.batch),
        start_(plan.threads),
        running_(plan.threads),
        latencies_(plan.threads),
        start_ns_(plan.threads),
        end_ns_(plan.threads),
        failures_(plan.threads) {}

  void Work(uint32_t thread) {
    start_.arrive_and_wait();
    uint64_t now_ns = start_ns_[thread] = SteadyClock()->NowNs();
    const uint64_t deadline_ns = now_ns + static_cast<uint64_t>(plan_.seconds * 1e9);
    while (!stop_.load(std::memory_order_relaxed)) {
      if (plan_.seconds > 0 && now_ns >= deadline_ns) break;
      const KeySpan keys = TakeBatch();
      if (keys.empty()) break;
      const uint64_t begin_ns = SteadyClock()->NowNs();
      failures_[thread] = body_(thread, keys);
      now_ns = SteadyClock()->NowNs();
      if (!failures_[thread].ok()) stop_.store(true, std::memory_order_relaxed);
      latencies_[thread].Record(now_ns - begin_ns);
      done_.fetch_add(keys.size(), std::memory_order_relaxed);
    }
    end_ns_[thread] = now_ns;
    running_.fetch_sub(1, std::memory_order_release);
  }

  bool IsRunning() const { return running_.load(std::memory_order_acquire) > 0; }
  uint64_t positions_done() const { return done_.load(std::memory_order_relaxed); }

  // After all threads have been joined.
  absl::StatusOr<PhaseTiming> Result() const {
    for (const absl::Status& failure : failures_) {
      if (!failure.ok()) return failure;
    }
    PhaseTiming timing;
    const uint64_t start_ns = *std::min_element(start_ns_.begin(), start_ns_.end());
    const uint64_t end_ns = *std::max_element(end_ns_.begin(), end_ns_.end());
    timing.seconds = static_cast<double>(std::max<uint64_t>(1, end_ns - start_ns)) * 1e-9;
    timing.positions = positions_done();
    for (const LatencyHistogram& latency : latencies_) timing.latency.Merge(latency);
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
  std::latch start_;
  std::atomic<uint64_t> next_batch_{0};
  std::atomic<uint64_t> done_{0};
  std::atomic<uint32_t> running_;
  std::atomic<bool> stop_{false};
  std::vector<LatencyHistogram> latencies_;  // of each thread, as all below
  std::vector<uint64_t> start_ns_;
  std::vector<uint64_t> end_ns_;
  std::vector<absl::Status> failures_;
};

}  // namespace

absl::StatusOr<PhaseTiming> RunPhase(const PhasePlan& plan, BatchBody body, PhaseObserver observe) {
  if (plan.keys.empty()) return absl::InvalidArgumentError("a phase without keys");
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
