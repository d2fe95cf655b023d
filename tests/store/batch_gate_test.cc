#include "store/gate/batch_gate.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <future>
#include <optional>
#include <thread>
#include <vector>

#include "tests/support/events.h"
#include "tests/support/threads.h"

namespace embank::test::batch_gate_test {
namespace {

void Nothing(uint32_t) {}

// ---- numbers ----

TEST(BatchGate, ABarrierTellsItsCheckpointAndBeginsTheNext) {
  BatchGate gate(5);
  EXPECT_EQ(gate.checkpoint(), 5u);
  for (uint32_t expected = 5; expected < 8; ++expected) {
    uint32_t told = 0;
    gate.RunBarrier([&](uint32_t checkpoint) {
      told = checkpoint;
      EXPECT_EQ(gate.checkpoint(), expected) << "not yet";
    });
    EXPECT_EQ(told, expected);
    EXPECT_EQ(gate.checkpoint(), expected + 1);
    EXPECT_TRUE(gate.EndFlushPass().ok());
  }
}

TEST(BatchGate, OnlyRowsChangedBeforeTheBarrierArePendingAndOnlyDuringTheFlushPass) {
  BatchGate gate(3);
  const auto pending = [&] {
    return std::array{gate.IsFlushPending(1), gate.IsFlushPending(2), gate.IsFlushPending(3),
                      gate.IsFlushPending(4)};
  };
  EXPECT_FALSE(gate.IsFlushing());
  EXPECT_EQ(pending(), (std::array{false, false, false, false}));
  gate.RunBarrier(&Nothing);
  EXPECT_TRUE(gate.IsFlushing());
  EXPECT_EQ(pending(), (std::array{true, true, true, false}));
  ASSERT_TRUE(gate.EndFlushPass().ok());
  EXPECT_FALSE(gate.IsFlushing());
  EXPECT_EQ(pending(), (std::array{false, false, false, false}));
  gate.RunBarrier(&Nothing);
  EXPECT_EQ(pending(), (std::array{true, true, true, true}));
  EXPECT_FALSE(gate.IsFlushPending(5));
}

// ---- a flush pass that fails ----

TEST(BatchGate, AFailureEndsTheFlushPassAndIsReportedOnce) {
  BatchGate gate(1);
  gate.RunBarrier(&Nothing);
  gate.Fail(ResourceExhaustedError("full"));
  EXPECT_FALSE(gate.IsFlushing());
  EXPECT_FALSE(gate.IsFlushPending(1));
  EXPECT_EQ(gate.EndFlushPass(), ResourceExhaustedError("full"));
  EXPECT_TRUE(gate.EndFlushPass().ok()) << "told";
}

TEST(BatchGate, TheFirstOfTwoFailuresIsTold) {
  BatchGate gate(1);
  gate.RunBarrier(&Nothing);
  gate.Fail(UnavailableError("first"));
  gate.Fail(ResourceExhaustedError("second"));
  EXPECT_EQ(gate.EndFlushPass(), UnavailableError("first"));
}

TEST(BatchGate, TheNextBarrierBeginsAnew) {
  BatchGate gate(1);
  gate.RunBarrier(&Nothing);
  gate.Fail(UnavailableError("gone"));
  gate.RunBarrier(&Nothing);
  EXPECT_TRUE(gate.IsFlushing());
  EXPECT_TRUE(gate.IsFlushPending(1))
      << "the rows that the failed one has not flushed are pending for this one";
  EXPECT_TRUE(gate.EndFlushPass().ok());
}

TEST(BatchGate, AFailureWhileNothingIsSweptIsNothing) {
  BatchGate gate(1);
  gate.Fail(UnavailableError("before"));
  EXPECT_TRUE(gate.EndFlushPass().ok());
  gate.RunBarrier(&Nothing);
  EXPECT_TRUE(gate.EndFlushPass().ok());
  gate.Fail(UnavailableError("behind"));
  EXPECT_TRUE(gate.EndFlushPass().ok());
  gate.RunBarrier(&Nothing);
  EXPECT_TRUE(gate.EndFlushPass().ok());
}

// ---- batches ----

// The gate of a store in memory: a thread may have any number of guards of it.
TEST(BatchGate, WithoutBarriersWriteGuardsAreFree) {
  BatchGate gate;
  const BatchGate::WriteGuard one(&gate);
  const BatchGate::WriteGuard other(&gate);
  EXPECT_FALSE(gate.IsFlushing());
}

TEST(BatchGate, BatchesGoOnBesideAFlushPass) {
  BatchGate gate(1);
  gate.RunBarrier(&Nothing);
  { const BatchGate::WriteGuard write_guard(&gate); }
  EXPECT_TRUE(gate.IsFlushing());
  EXPECT_TRUE(gate.EndFlushPass().ok());
}

// A barrier waits for all pieces of a batch. Until then others, and the batch itself, change rows;
// only further batches in pieces wait.
TEST(BatchGate, ABarrierWaitsForABatchInPiecesAndWriteGuardsDoNotWaitForIt) {
  BatchGate gate(1);
  std::atomic<bool> is_inside{false};
  std::atomic<int> closings{0};
  std::atomic<uint64_t> begun{0};
  std::promise<void> over;
  std::future<void> barrier_is_over = over.get_future();
  const auto is_over = [&](std::chrono::milliseconds wait) {
    return barrier_is_over.wait_for(wait) == std::future_status::ready;
  };
  std::optional<BatchGate::PiecesGuard> first(&gate);
  std::atomic<bool> is_done{false};
  std::thread barrier_thread([&] {
    gate.RunBarrier(
        [&](uint32_t) {
          EXPECT_FALSE(is_inside.load());
          is_done = true;
          over.set_value();
        },
        [&] { ++closings; });
  });
  // They begin until the barrier waits, whenever that is, and none begins from then on.
  std::thread others([&] {
    while (!is_done) {
      const BatchGate::PiecesGuard guard(&gate);
      is_inside = true;
      ++begun;
      is_inside = false;
    }
  });
  for (int i = 0; i < 10'000'000 && closings == 0 && !is_done; ++i) {
    const BatchGate::WriteGuard write_guard(&gate);
    std::this_thread::yield();
  }
  EXPECT_GT(closings.load(), 0) << "batches in pieces keep a barrier waiting";
  const uint64_t before = begun;
  for (int i = 0; i < 1000; ++i) const BatchGate::WriteGuard write_guard(&gate);
  // As long as a barrier that does not wait needs, and longer.
  EXPECT_FALSE(is_over(std::chrono::milliseconds(100))) << "a barrier between two pieces";
  EXPECT_EQ(begun.load(), before) << "a batch in pieces began";
  first.reset();
  barrier_thread.join();
  others.join();
  EXPECT_TRUE(is_over(std::chrono::milliseconds(0)));
  EXPECT_TRUE(gate.EndFlushPass().ok());
}

// One that waits for a barrier, which waits for another batch, is the first that waits for it.
template <typename Guard>
void CheckThatTheSecondIsTheFirstToWait(const char* first_batch) {
  SCOPED_TRACE(first_batch);
  // The barrier does not stop looking for a moment without batches.
  BatchGate gate(1, /*looks_max=*/UINT32_MAX);
  std::atomic<int> closings{0};
  std::optional<Guard> first(&gate);
  std::thread barrier_thread([&] { gate.RunBarrier(&Nothing, [&] { ++closings; }); });
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  EXPECT_EQ(closings.load(), 0) << "none waits";
  std::thread second([&] {
    while (closings == 0) {
      // Comes in as long as no barrier is near.
      const BatchGate::PiecesGuard guard(&gate);
    }
  });
  for (int i = 0; i < 10'000'000 && closings == 0; ++i) std::this_thread::yield();
  EXPECT_EQ(closings.load(), 1) << "the second one waits";
  first.reset();
  barrier_thread.join();
  second.join();
  EXPECT_EQ(closings.load(), 1) << "the time before a later call would not count";
  EXPECT_TRUE(gate.EndFlushPass().ok());
}

TEST(BatchGate, ABarrierTellsWhenABatchInPiecesBeginsToWait) {
  CheckThatTheSecondIsTheFirstToWait<BatchGate::PiecesGuard>("in pieces");
  CheckThatTheSecondIsTheFirstToWait<BatchGate::WriteGuard>("not in pieces");
}

// Batches under way end first; batches that come meanwhile wait.
TEST(BatchGate, ABarrierWaitsForBatchesUnderWayAndOthersForTheBarrier) {
  constexpr int kRounds = 200;
  Events events;
  events.Expect("rounds in which a batch came during the barrier");
  for (int round = 0; round < kRounds; ++round) {
    BatchGate gate(1);
    std::atomic<bool> in_barrier{false};
    std::atomic<bool> barrier_is_over{false};
    std::atomic<bool> entered{false};
    std::optional<BatchGate::WriteGuard> first(&gate);
    std::thread barrier_thread([&] {
      gate.RunBarrier([&](uint32_t) {
        in_barrier = true;
        // The other one is given every chance to come in.
        for (int i = 0; i < 100; ++i) {
          std::this_thread::yield();
          EXPECT_FALSE(entered.load()) << "a batch within a barrier";
        }
        barrier_is_over = true;
      });
    });
    for (int i = 0; i < 100; ++i) {
      std::this_thread::yield();
      EXPECT_FALSE(in_barrier.load()) << "a barrier within a batch";
    }
    std::thread comer([&] {
      while (!in_barrier) std::this_thread::yield();
      const bool came_during = !barrier_is_over.load();
      const BatchGate::WriteGuard write_guard(&gate);
      entered = true;
      EXPECT_TRUE(barrier_is_over.load());
      EXPECT_EQ(gate.checkpoint(), 2u);
      if (came_during) events.Count("rounds in which a batch came during the barrier");
    });
    first.reset();
    barrier_thread.join();
    comer.join();
    EXPECT_TRUE(entered.load());
  }
  std::fputs(events.Table().c_str(), stdout);
  EXPECT_EQ(events.Missing(), "");
}

// Nobody waits for a barrier that finds a moment without batches: it looks for one at first.
TEST(BatchGate, ABarrierLooksForAMomentWithoutBatchesBeforeItCloses) {
  BatchGate gate(1, /*looks_max=*/UINT32_MAX);
  int closed = 0;
  gate.RunBarrier(&Nothing, [&] { ++closed; });
  EXPECT_EQ(closed, 1) << "none is under way";
  ASSERT_TRUE(gate.EndFlushPass().ok());
  std::optional<BatchGate::WriteGuard> batches[2];
  batches[0].emplace(&gate);
  std::atomic<bool> barrier_begins{false};
  std::atomic<bool> closing{false};
  std::thread barrier_thread([&] {
    barrier_begins = true;
    gate.RunBarrier(&Nothing, [&] { closing = true; });
  });
  while (!barrier_begins) std::this_thread::yield();
  // Others come and go as long as one is under way.
  for (int i = 0; i < 2000; ++i) {
    std::this_thread::yield();
    ASSERT_FALSE(closing);
    batches[(i + 1) % 2].emplace(&gate);
    batches[i % 2].reset();
  }
  batches[0].reset();
  barrier_thread.join();
  EXPECT_TRUE(closing);
  EXPECT_EQ(gate.checkpoint(), 3u);
}

// One that begins between its look and its closing has the gate opened again, for others too.
TEST(BatchGate, ABarrierSeesTheBatchThatBeginsWhileItCloses) {
  BatchGate gate(1);
  std::optional<BatchGate::WriteGuard> batch;
  std::thread other;
  int closings = 0;
  gate.RunBarrier([&](uint32_t) { EXPECT_FALSE(batch.has_value()) << "a barrier within a batch"; },
                  [&] {
                    if (++closings == 1) {
                      batch.emplace(&gate);
                      other = std::thread([&] { const BatchGate::WriteGuard write_guard(&gate); });
                      return;
                    }
                    other.join();
                    batch.reset();
                  });
  EXPECT_EQ(closings, 2);
  if (other.joinable()) other.join();
}

// One that has no end for long does not keep the barrier from coming; those that come then wait.
TEST(BatchGate, ABarrierThatFindsNoSuchMomentClosesAllTheSame) {
  BatchGate gate(1);
  std::optional<BatchGate::WriteGuard> endless(&gate);
  std::atomic<bool> closing{false};
  std::thread barrier_thread([&] { gate.RunBarrier(&Nothing, [&] { closing = true; }); });
  while (!closing) std::this_thread::yield();
  std::atomic<bool> entered{false};
  std::thread comer([&] {
    const BatchGate::WriteGuard write_guard(&gate);
    EXPECT_EQ(gate.checkpoint(), 2u);
    entered = true;
  });
  for (int i = 0; i < 1000; ++i) {
    std::this_thread::yield();
    EXPECT_EQ(gate.checkpoint(), 1u);
  }
  endless.reset();
  barrier_thread.join();
  comer.join();
  EXPECT_TRUE(entered);
}

TEST(BatchGate, CountsTheBatchesThatBegin) {
  BatchGate gate(1);
  EXPECT_EQ(gate.batches_begun(), 0u);
  OnThreads(4, [&](uint64_t) {
    for (int i = 0; i < 250; ++i) const BatchGate::WriteGuard write_guard(&gate);
  });
  EXPECT_EQ(gate.batches_begun(), 1000u);
  const BatchGate::WriteGuard under_way(&gate);
  EXPECT_EQ(gate.batches_begun(), 1001u);
}

// Each thread adds one to a counter of its own, twice in a batch; a barrier that finds an odd
// counter is within a batch. A batch also sees one checkpoint only.
TEST(BatchGate, ABatchIsWhollyBeforeOrBehindABarrier) {
  constexpr uint64_t kThreads = 4;
  constexpr int kBarriers = 50;
  BatchGate gate(1);
  std::array<std::atomic<uint64_t>, kThreads> steps{};
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> torn{0};
  std::atomic<uint64_t> barriers_that_saw_news{0};
  const auto sum = [&] {
    uint64_t all = 0;
    for (const auto& s : steps) all += s.load(std::memory_order_relaxed);
    return all;
  };
  OnThreads(kThreads + 1, [&](uint64_t thread) {
    if (thread < kThreads) {
      while (!stop) {
        const BatchGate::WriteGuard write_guard(&gate);
        const uint32_t begun_in = gate.checkpoint();
        steps[thread].fetch_add(1, std::memory_order_relaxed);
        if (steps[thread].load() % 64 == 1) std::this_thread::yield();
        steps[thread].fetch_add(1, std::memory_order_relaxed);
        if (gate.checkpoint() != begun_in) ++torn;
      }
      return;
    }
    uint64_t last = 0;
    for (int i = 0; i < kBarriers; ++i) {
      while (sum() == last) std::this_thread::yield();
      gate.RunBarrier([&](uint32_t) {
        const uint64_t seen = sum();
        for (const auto& s : steps) torn += s.load(std::memory_order_relaxed) % 2;
        std::this_thread::yield();
        if (sum() != seen) ++torn;
        if (seen != last) ++barriers_that_saw_news;
        last = seen;
      });
      EXPECT_TRUE(gate.EndFlushPass().ok());
    }
    stop = true;
  });
  EXPECT_EQ(torn, 0u);
  EXPECT_EQ(barriers_that_saw_news, uint64_t{kBarriers});
  EXPECT_EQ(gate.checkpoint(), 1u + kBarriers);
}

// The barrier sees everything that the holder of a write guard has written, and the other way
// round, without any other order between them.
TEST(BatchGate, ABarrierOrdersWhatBatchesWrite) {
  BatchGate gate(1);
  uint64_t plain = 0;  // ThreadSanitizer looks
  std::atomic<bool> stop{false};
  OnThreads(2, [&](uint64_t thread) {
    if (thread == 0) {
      while (!stop) {
        const BatchGate::WriteGuard write_guard(&gate);
        ++plain;
      }
      return;
    }
    for (int i = 0; i < 300; ++i) {
      gate.RunBarrier([&](uint32_t) { ++plain; });
      EXPECT_TRUE(gate.EndFlushPass().ok());
    }
    stop = true;
  });
  EXPECT_GE(plain, 300u);
}

}  // namespace
}  // namespace embank::test::batch_gate_test
