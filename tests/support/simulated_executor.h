// Parallel work on one thread, in an order drawn from a seed: a run is replayed by its seed.
#ifndef EMBANK_TESTS_SUPPORT_SIMULATED_EXECUTOR_H_
#define EMBANK_TESTS_SUPPORT_SIMULATED_EXECUTOR_H_

#include <atomic>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "base/executor.h"
#include "tests/support/random.h"

namespace embank::test {

class SimulatedExecutor final : public Executor {
 public:
  explicit SimulatedExecutor(uint64_t seed) : seed_(seed) {}

  void ParallelFor(uint32_t tasks, absl::FunctionRef<void(uint32_t)> body) override {
    Random random(Random(seed_).Bits() + calls_.fetch_add(1));
    std::vector<uint32_t> order(tasks);
    std::iota(order.begin(), order.end(), 0u);
    for (uint32_t i = tasks; i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
    for (const uint32_t task : order) body(task);
  }
  uint32_t concurrency() const override { return 1; }

  uint64_t calls() const { return calls_.load(); }

 private:
  const uint64_t seed_;
  std::atomic<uint64_t> calls_{0};
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_SIMULATED_EXECUTOR_H_
