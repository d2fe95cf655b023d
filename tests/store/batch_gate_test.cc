#include "store/gate/batch_gate.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <optional>
#include <thread>
#include <vector>

#include "tests/support/events.h"
#include "tests/support/threads.h"

namespace embank::test {
namespace {

void Nothing(uint32_t) {}

// ---- numbers ----

TEST(BatchGate, AFlipTellsItsCheckpointAndBeginsTheNext) {
  BatchGate gate(5);
  EXPECT_EQ(gate.checkpoint(), 5u);
  for (uint32_t expected = 5; expected < 8; ++expected) {
    uint32_t told = 0;
    gate.Flip([&](uint32_t checkpoint) {
      told = checkpoint;
      EXPECT_EQ(gate.checkpoint(), expected) << "not yet";
    });
    EXPECT_EQ(told, expected);
    EXPECT_EQ(gate.checkpoint(), expected + 1);
    EXPECT_TRUE(gate.EndSweep().ok());
  }
}

TEST(BatchGate, OnlyWhatWasChangedBeforeTheFlipIsOwedAndOnlyWhileItSweeps) {
  BatchGate gate(3);
  const auto owed = [&] {
    return std::array{gate.IsOwed(1), gate.IsOwed(2), gate.IsOwed(3), gate.IsOwed(4)};
  };
  EXPECT_FALSE(gate.IsSweeping());
  EXPECT_EQ(owed(), (std::array{false, false, false, false}));
  gate.Flip(&Nothing);
  EXPECT_TRUE(gate.IsSweeping());
  EXPECT_EQ(owed(), (std::array{true, true, true, false}));
  ASSERT_TRUE(gate.EndSweep().ok());
  EXPECT_FALSE(gate.IsSweeping());
  EXPECT_EQ(owed(), (std::array{false, false, false, false}));
  gate.Flip(&Nothing);
  EXPECT_EQ(owed(), (std::array{true, true, true, true}));
  EXPECT_FALSE(gate.IsOwed(5));
}

// ---- a sweep that fails ----

TEST(BatchGate, AFailureEndsWhatIsOwedAndIsToldOnce) {
  BatchGate gate(1);
  gate.Flip(&Nothing);
  gate.Fail(ResourceExhaustedError("full"));
  EXPECT_FALSE(gate.IsSweeping());
  EXPECT_FALSE(gate.IsOwed(1));
  EXPECT_EQ(gate.EndSweep(), ResourceExhaustedError("full"));
  EXPECT_TRUE(gate.EndSweep().ok()) << "told";
}

TEST(BatchGate, TheFirstOfTwoFailuresIsTold) {
  BatchGate gate(1);
  gate.Flip(&Nothing);
  gate.Fail(UnavailableError("first"));
  gate.Fail(ResourceExhaustedError("second"));
  EXPECT_EQ(gate.EndSweep(), UnavailableError("first"));
}

TEST(BatchGate, TheNextFlipBeginsAnew) {
  BatchGate gate(1);
  gate.Flip(&Nothing);
  gate.Fail(UnavailableError("gone"));
  gate.Flip(&Nothing);
  EXPECT_TRUE(gate.IsSweeping());
  EXPECT_TRUE(gate.IsOwed(1)) << "what the failed one has not got is owed to this one";
  EXPECT_TRUE(gate.EndSweep().ok());
}

TEST(BatchGate, AFailureWhileNothingIsSweptIsNothing) {
  BatchGate gate(1);
  gate.Fail(UnavailableError("before"));
  EXPECT_TRUE(gate.EndSweep().ok());
  gate.Flip(&Nothing);
  EXPECT_TRUE(gate.EndSweep().ok());
  gate.Fail(UnavailableError("behind"));
  EXPECT_TRUE(gate.EndSweep().ok());
  gate.Flip(&Nothing);
  EXPECT_TRUE(gate.EndSweep().ok());
}

// ---- batches ----

TEST(BatchGate, WithoutAGateTicketsAreFree) {
  // Atomic, for gcc warns of what a ticket that it knows to be of none would not have.
  const std::atomic<BatchGate*> none{nullptr};
  const BatchGate::Ticket one(none);
  const BatchGate::Ticket other(none);
}

TEST(BatchGate, BatchesGoOnBesideASweep) {
  BatchGate gate(1);
  gate.Flip(&Nothing);
  { const BatchGate::Ticket ticket(&gate); }
  EXPECT_TRUE(gate.IsSweeping());
  EXPECT_TRUE(gate.EndSweep().ok());
}

// Whoever is under way ends first; who comes meanwhile waits.
TEST(BatchGate, AFlipWaitsForBatchesUnderWayAndOthersForTheFlip) {
  constexpr int kRounds = 200;
  Events events;
  events.Expect("rounds in which a batch came during the flip");
  for (int round = 0; round < kRounds; ++round) {
    BatchGate gate(1);
    std::atomic<bool> in_flip{false};
    std::atomic<bool> flipped{false};
    std::atomic<bool> entered{false};
    std::optional<BatchGate::Ticket> first(&gate);
    std::thread flipper([&] {
      gate.Flip([&](uint32_t) {
        in_flip = true;
        // The other one is given every chance to come in.
        for (int i = 0; i < 100; ++i) {
          std::this_thread::yield();
          EXPECT_FALSE(entered.load()) << "a batch within a flip";
        }
        flipped = true;
      });
    });
    for (int i = 0; i < 100; ++i) {
      std::this_thread::yield();
      EXPECT_FALSE(in_flip.load()) << "a flip within a batch";
    }
    std::thread comer([&] {
      while (!in_flip) std::this_thread::yield();
      const bool came_during = !flipped.load();
      const BatchGate::Ticket ticket(&gate);
      entered = true;
      EXPECT_TRUE(flipped.load());
      EXPECT_EQ(gate.checkpoint(), 2u);
      if (came_during) events.Count("rounds in which a batch came during the flip");
    });
    first.reset();
    flipper.join();
    comer.join();
    EXPECT_TRUE(entered.load());
  }
  std::fputs(events.Table().c_str(), stdout);
  EXPECT_EQ(events.Missing(), "");
}

// Nobody waits for a flip that finds a moment without batches: it looks for one at first.
TEST(BatchGate, AFlipLooksForAMomentWithoutBatchesBeforeItCloses) {
  BatchGate gate(1, /*looks_max=*/UINT32_MAX);
  int closed = 0;
  gate.Flip(&Nothing, [&] { ++closed; });
  EXPECT_EQ(closed, 1) << "none is under way";
  std::optional<BatchGate::Ticket> batches[2];
  batches[0].emplace(&gate);
  std::atomic<bool> flips{false};
  std::atomic<bool> closing{false};
  std::thread flipper([&] {
    flips = true;
    gate.Flip(&Nothing, [&] { closing = true; });
  });
  while (!flips) std::this_thread::yield();
  // Others come and go as long as one is under way.
  for (int i = 0; i < 2000; ++i) {
    std::this_thread::yield();
    ASSERT_FALSE(closing);
    batches[(i + 1) % 2].emplace(&gate);
    batches[i % 2].reset();
  }
  batches[0].reset();
  flipper.join();
  EXPECT_TRUE(closing);
  EXPECT_EQ(gate.checkpoint(), 3u);
}

// One that begins between its look and its closing has the gate opened again, for others too.
TEST(BatchGate, AFlipSeesTheBatchThatBeginsWhileItCloses) {
  BatchGate gate(1);
  std::optional<BatchGate::Ticket> batch;
  std::thread other;
  int closings = 0;
  gate.Flip([&](uint32_t) { EXPECT_FALSE(batch.has_value()) << "a flip within a batch"; },
            [&] {
              if (++closings == 1) {
                batch.emplace(&gate);
                other = std::thread([&] { const BatchGate::Ticket ticket(&gate); });
                return;
              }
              other.join();
              batch.reset();
            });
  EXPECT_EQ(closings, 2);
  if (other.joinable()) other.join();
}

// One that has no end for long does not keep the flip from coming; those that come then wait.
TEST(BatchGate, AFlipThatFindsNoSuchMomentClosesAllTheSame) {
  BatchGate gate(1);
  std::optional<BatchGate::Ticket> endless(&gate);
  std::atomic<bool> closing{false};
  std::thread flipper([&] { gate.Flip(&Nothing, [&] { closing = true; }); });
  while (!closing) std::this_thread::yield();
  std::atomic<bool> entered{false};
  std::thread comer([&] {
    const BatchGate::Ticket ticket(&gate);
    EXPECT_EQ(gate.checkpoint(), 2u);
    entered = true;
  });
  for (int i = 0; i < 1000; ++i) {
    std::this_thread::yield();
    EXPECT_EQ(gate.checkpoint(), 1u);
  }
  endless.reset();
  flipper.join();
  comer.join();
  EXPECT_TRUE(entered);
}

TEST(BatchGate, CountsTheBatchesThatBegin) {
  BatchGate gate(1);
  EXPECT_EQ(gate.batches_begun(), 0u);
  OnThreads(4, [&](uint64_t) {
    for (int i = 0; i < 250; ++i) const BatchGate::Ticket ticket(&gate);
  });
  EXPECT_EQ(gate.batches_begun(), 1000u);
  const BatchGate::Ticket under_way(&gate);
  EXPECT_EQ(gate.batches_begun(), 1001u);
}

// Each thread adds one to a counter of its own, twice in a batch; a flip that finds an odd one has
// fallen into a batch. And what is seen by a batch is of one checkpoint.
TEST(BatchGate, ABatchIsWhollyBeforeOrBehindAFlip) {
  constexpr uint64_t kThreads = 4;
  constexpr int kFlips = 150;
  BatchGate gate(1);
  std::array<std::atomic<uint64_t>, kThreads> steps{};
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> torn{0};
  std::atomic<uint64_t> flips_that_saw_news{0};
  const auto sum = [&] {
    uint64_t all = 0;
    for (const auto& s : steps) all += s.load(std::memory_order_relaxed);
    return all;
  };
  OnThreads(kThreads + 1, [&](uint64_t thread) {
    if (thread < kThreads) {
      while (!stop) {
        const BatchGate::Ticket ticket(&gate);
        const uint32_t begun_in = gate.checkpoint();
        steps[thread].fetch_add(1, std::memory_order_relaxed);
        if (steps[thread].load() % 64 == 1) std::this_thread::yield();
        steps[thread].fetch_add(1, std::memory_order_relaxed);
        if (gate.checkpoint() != begun_in) ++torn;
      }
      return;
    }
    uint64_t last = 0;
    for (int i = 0; i < kFlips; ++i) {
      while (sum() == last) std::this_thread::yield();
      gate.Flip([&](uint32_t) {
        const uint64_t seen = sum();
        for (const auto& s : steps) torn += s.load(std::memory_order_relaxed) % 2;
        std::this_thread::yield();
        if (sum() != seen) ++torn;
        if (seen != last) ++flips_that_saw_news;
        last = seen;
      });
      EXPECT_TRUE(gate.EndSweep().ok());
    }
    stop = true;
  });
  EXPECT_EQ(torn, 0u);
  EXPECT_EQ(flips_that_saw_news, uint64_t{kFlips});
  EXPECT_EQ(gate.checkpoint(), 1u + kFlips);
}

// What the holder of a ticket has written the flip sees, and the other way round, without any other
// order between them.
TEST(BatchGate, AFlipOrdersWhatBatchesWrite) {
  BatchGate gate(1);
  uint64_t plain = 0;  // ThreadSanitizer looks
  std::atomic<bool> stop{false};
  OnThreads(2, [&](uint64_t thread) {
    if (thread == 0) {
      while (!stop) {
        const BatchGate::Ticket ticket(&gate);
        ++plain;
      }
      return;
    }
    for (int i = 0; i < 300; ++i) gate.Flip([&](uint32_t) { ++plain; });
    stop = true;
  });
  EXPECT_GE(plain, 300u);
}

}  // namespace
}  // namespace embank::test
