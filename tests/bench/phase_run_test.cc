#include "bench/phase_run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <vector>

namespace embank::phase_run_test {
namespace {

std::vector<Key> KeysUpTo(uint64_t n) {
  std::vector<Key> keys(n);
  std::iota(keys.begin(), keys.end(), 0);
  return keys;
}

TEST(PhaseRun, OnceThroughTakesEveryPositionOnce) {
  const std::vector<Key> keys = KeysUpTo(10'001);
  for (const uint32_t threads : {1u, 3u}) {
    std::vector<std::atomic<uint32_t>> met(keys.size());
    const auto body = [&](uint32_t thread, KeySpan batch) {
      EXPECT_LT(thread, threads);
      EXPECT_LE(batch.size(), 100u);
      for (const Key key : batch) met[key].fetch_add(1);
      return OkStatus();
    };
    uint64_t observed_last = 0;
    const auto observe = [&](uint64_t done) {
      EXPECT_GE(done, observed_last);
      observed_last = done;
    };
    const PhaseTiming timing = *RunPhase({keys, 100, threads, 0.0}, body, observe);
    for (const auto& count : met) EXPECT_EQ(count.load(), 1u);
    EXPECT_EQ(timing.positions, keys.size());
    EXPECT_EQ(timing.latency.count(), 101u);
    EXPECT_GT(timing.seconds, 0.0);
  }
}

TEST(PhaseRun, TimedGoesRoundUntilTheTimeIsOver) {
  const std::vector<Key> keys = KeysUpTo(25);
  std::atomic<uint64_t> positions{0};
  std::atomic<uint64_t> firsts{0};
  const auto body = [&](uint32_t, KeySpan batch) {
    positions.fetch_add(batch.size());
    firsts.fetch_add(batch.front() == 0 ? 1 : 0);
    return OkStatus();
  };
  const PhaseTiming timing = *RunPhase({keys, 10, 2, 0.02}, body, [](uint64_t) {});
  EXPECT_EQ(timing.positions, positions.load());
  EXPECT_GT(firsts.load(), 2u);
  EXPECT_GE(timing.seconds, 0.02);
  EXPECT_GE(timing.latency.count(), timing.positions / 10);
}

TEST(PhaseRun, FirstFailureEndsIt) {
  const std::vector<Key> keys = KeysUpTo(100'000);
  std::atomic<uint64_t> batches{0};
  const auto body = [&](uint32_t, KeySpan batch) {
    batches.fetch_add(1);
    return batch.front() == 50 ? DataLossError("batch of key 50") : OkStatus();
  };
  const Status status = RunPhase({keys, 1, 1, 0.0}, body, [](uint64_t) {}).status();
  EXPECT_EQ(status, DataLossError("batch of key 50"));
  EXPECT_EQ(batches.load(), 51u);
}

TEST(PhaseRun, RefusesToRunWithoutKeys) {
  const auto body = [](uint32_t, KeySpan) { return OkStatus(); };
  EXPECT_FALSE(RunPhase({{}, 1, 1, 0.0}, body, [](uint64_t) {}).ok());
}

}  // namespace
}  // namespace embank::phase_run_test
