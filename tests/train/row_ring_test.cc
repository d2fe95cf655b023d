#include "train/pipeline/row_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "base/str_cat.h"
#include "tests/support/simulated_executor.h"

namespace embank::test::row_ring_test {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kBatches = 500;
#else
constexpr uint64_t kBatches = 5'000;
#endif

// Threads are refused: no step of a background task ever runs.
class NoThreads final : public Executor {
 public:
  void ParallelFor(uint32_t tasks, FunctionRef<void(uint32_t)> body) override {
    for (uint32_t i = 0; i < tasks; ++i) body(i);
  }
  std::unique_ptr<BackgroundTask> MakeBackgroundTask(BackgroundStep) override {
    return std::make_unique<Task>();
  }
  std::unique_ptr<JoinedThread> MakeThread(std::function<void()>) override { return nullptr; }
  uint32_t concurrency() const override { return 1; }

 private:
  class Task final : public BackgroundTask {
    void Wake() override {}
  };
};

// Lookups, dense parts and updates that take other times in each batch, and note their order.
class Scene {
 public:
  Scene(const RowRingOptions& options, Executor* executor, uint64_t delays)
      : options_(options),
        delays_(delays),
        ring_(
            options, executor, [this](uint64_t batch) { return LookUp(batch); },
            [this](uint64_t batch) { return Update(batch); }) {}

  // Keeps as many batches under way as may be.
  void Train(uint64_t batches) {
    for (uint64_t batch = 0; batch < batches; ++batch) {
      while (ring_.under_way() <= options_.staleness && begun_ < batches) {
        EXPECT_EQ(ring_.BeginLookup(), begun_++);
      }
      ASSERT_EQ(ring_.WaitForLookup(), OkStatus());
      EXPECT_EQ(ring_.oldest(), batch);
      EXPECT_GT(looked_up_.load(), batch);
      Delay(3 * batch);
      ring_.BeginUpdate();
    }
    EXPECT_EQ(ring_.WaitForUpdates(), OkStatus());
    EXPECT_EQ(looked_up_.load(), batches);
    EXPECT_EQ(updated_.load(), batches);
  }

  RowRingCounts counts() const { return ring_.counts(); }
  uint64_t exactly_late() const { return exactly_late_.load(); }

 private:
  void Delay(uint64_t number) const {
    if (delays_ == 0) return;
    const uint64_t draw = HashKey(delays_, number);
    if (draw % 64 == 0) std::this_thread::yield();
    // Up to 10 us.
    uint64_t x = draw;
    for (uint64_t i = draw % 5'000; i > 0; --i) x = Mix(x);
    EXPECT_NE(x | 1, 0u);
  }

  Status LookUp(uint64_t batch) {
    const uint64_t before = updated_.load();
    EXPECT_EQ(looked_up_.load(), batch) << "lookups go in order";
    EXPECT_LE(batch - before, options_.staleness) << "updates that batch " << batch << " misses";
    Delay(3 * batch + 1);
    // The updates that it sees: the missed ones were not applied meanwhile.
    const bool is_exact = batch - before == std::min<uint64_t>(batch, options_.staleness);
    exactly_late_ += is_exact && updated_.load() == before ? 1 : 0;
    ++looked_up_;
    return OkStatus();
  }

  Status Update(uint64_t batch) {
    EXPECT_EQ(updated_.load(), batch) << "updates go in order";
    EXPECT_GT(looked_up_.load(), batch);
    Delay(3 * batch + 2);
    ++updated_;
    return OkStatus();
  }

  const RowRingOptions options_;
  const uint64_t delays_;
  std::atomic<uint64_t> looked_up_{0};
  std::atomic<uint64_t> updated_{0};
  std::atomic<uint64_t> exactly_late_{0};
  uint64_t begun_ = 0;
  RowRing ring_;
};

TEST(RowRing, StalenessHasItsBoundUnderDelays) {
  for (const uint32_t staleness : {0u, 1u, 4u, 16u, 50u}) {
    for (const bool is_deterministic : {false, true}) {
      SCOPED_TRACE(StrCat(staleness, is_deterministic ? ", deterministic" : ""));
      const auto executor = MakeThreadPool(3);
      Scene scene({staleness, is_deterministic}, executor.get(), 77);
      scene.Train(kBatches);
      const RowRingCounts counts = scene.counts();
      EXPECT_EQ(counts.lookups, kBatches);
      EXPECT_EQ(counts.updates, kBatches);
      EXPECT_LE(counts.staleness_max, staleness);
      EXPECT_LE(counts.staleness_sum, kBatches * staleness);
      if (!is_deterministic) continue;
      EXPECT_EQ(scene.exactly_late(), kBatches) << "each lookup misses just these updates";
    }
  }
}

// An update that has begun takes as long as a lookup that does not wait for it needs to begin, or a
// tenth of a second: no lookup may come then.
TEST(RowRing, ADeterministicLookupWaitsForTheUpdatesBegunBeforeIt) {
  const auto executor = MakeThreadPool(3);
  std::promise<void> looked_up;
  std::future<void> second_lookup = looked_up.get_future();
  std::atomic<uint64_t> updated = 0;
  std::atomic<uint64_t> seen = 0;
  RowRing ring(
      {.staleness = 4, .is_deterministic = true}, executor.get(),
      [&](uint64_t batch) {
        if (batch != 1) return OkStatus();
        seen = updated.load();
        looked_up.set_value();
        return OkStatus();
      },
      [&](uint64_t batch) {
        if (batch == 0) second_lookup.wait_for(std::chrono::milliseconds(100));
        ++updated;
        return OkStatus();
      });
  ring.BeginLookup();
  ASSERT_EQ(ring.WaitForLookup(), OkStatus());
  ring.BeginUpdate();
  ring.BeginLookup();
  ASSERT_EQ(ring.WaitForLookup(), OkStatus());
  EXPECT_EQ(seen.load(), 1u);
  ring.BeginUpdate();
  EXPECT_EQ(ring.WaitForUpdates(), OkStatus());
}

TEST(RowRing, NeedsNoThreads) {
  NoThreads none;
  SimulatedExecutor simulated(5);
  for (Executor* const executor : std::vector<Executor*>{&none, &simulated}) {
    for (const bool is_deterministic : {false, true}) {
      Scene scene({4, is_deterministic}, executor, 0);
      scene.Train(200);
    }
  }
}

// While no update ends, just `staleness` lookups go on behind the batch whose update it is.
TEST(RowRing, AStoppedUpdateStopsLookups) {
  for (const bool is_deterministic : {false, true}) {
    constexpr uint32_t kStaleness = 4;
    const auto executor = MakeThreadPool(2);
    std::promise<void> go, stopped;
    std::future<void> gone = go.get_future();
    std::atomic<uint64_t> lookups = 0;
    RowRing ring(
        {kStaleness, is_deterministic}, executor.get(),
        [&](uint64_t) {
          ++lookups;
          return OkStatus();
        },
        [&](uint64_t batch) {
          if (batch > 0) return OkStatus();
          stopped.set_value();
          gone.wait();
          return OkStatus();
        });
    for (uint32_t batch = 0; batch <= kStaleness; ++batch) ring.BeginLookup();
    for (uint32_t batch = 0; batch <= kStaleness; ++batch) {
      ASSERT_EQ(ring.WaitForLookup(), OkStatus());
      ring.BeginUpdate();
      // A thread of the ring has taken it, not one that waits for lookups.
      if (batch == 0) stopped.get_future().wait();
      ring.BeginLookup();
    }
    EXPECT_EQ(lookups.load(), 1 + kStaleness);
    EXPECT_EQ(ring.counts().updates, 0u);
    go.set_value();
    ASSERT_EQ(ring.WaitForLookup(), OkStatus());
    ring.BeginUpdate();
    EXPECT_EQ(ring.WaitForUpdates(), OkStatus());
    EXPECT_EQ(ring.counts().updates, 2 + kStaleness);
  }
}

TEST(RowRing, AFailedLookupIsThatOfItsBatch) {
  const auto executor = MakeThreadPool(2);
  std::vector<uint64_t> updated;
  RowRing ring(
      {2, true}, executor.get(),
      [](uint64_t batch) { return batch == 1 ? UnavailableError("no rows") : OkStatus(); },
      [&](uint64_t batch) {
        updated.push_back(batch);
        return OkStatus();
      });
  for (int i = 0; i < 3; ++i) ring.BeginLookup();
  EXPECT_EQ(ring.WaitForLookup(), OkStatus());
  ring.BeginUpdate();
  EXPECT_EQ(ring.WaitForLookup(), UnavailableError("no rows"));
  ring.Drop();
  EXPECT_EQ(ring.under_way(), 0u);
  EXPECT_EQ(ring.BeginLookup(), 3u);
  EXPECT_EQ(ring.WaitForLookup(), OkStatus());
  ring.BeginUpdate();
  EXPECT_EQ(ring.WaitForUpdates(), OkStatus());
  EXPECT_EQ(updated, (std::vector<uint64_t>{0, 3})) << "dropped ones are not updated";
}

TEST(RowRing, AfterAFailedUpdateNoneIsMade) {
  const auto executor = MakeThreadPool(2);
  std::vector<uint64_t> updated;
  RowRing ring(
      {1, false}, executor.get(), [](uint64_t) { return OkStatus(); },
      [&](uint64_t batch) {
        updated.push_back(batch);
        return UnavailableError("no disk");
      });
  ring.BeginLookup();
  ring.BeginLookup();
  EXPECT_EQ(ring.WaitForLookup(), OkStatus());
  ring.BeginUpdate();
  EXPECT_EQ(ring.WaitForUpdates(), UnavailableError("no disk"));
  EXPECT_EQ(ring.WaitForLookup(), UnavailableError("no disk"));
  ring.BeginUpdate();
  EXPECT_EQ(ring.WaitForUpdates(), UnavailableError("no disk"));
  EXPECT_EQ(updated, (std::vector<uint64_t>{0}));
}

}  // namespace
}  // namespace embank::test::row_ring_test
