#include "store/gate/entry_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

namespace embank::test::entry_gate_test {
namespace {

// More naps than a thread needs to come to run on a busy machine.
constexpr uint32_t kLooksMax = 100'000;

TEST(EntryGate, AThreadThatWaitsEntersBeforeTheGateClosesAgain) {
  constexpr int kRounds = 50;
  for (int round = 0; round < kRounds; ++round) {
    EntryGate gate(kLooksMax);
    gate.Close();
    std::atomic<bool> has_entered{false};
    std::thread waiter([&] {
      std::optional<EpochTable::Guard> inside;
      gate.Enter(&inside);
      has_entered = true;
    });
    while (gate.entered() == 0) std::this_thread::yield();
    EXPECT_FALSE(has_entered);
    gate.Open();
    gate.Close();
    EXPECT_TRUE(has_entered) << "in round " << round;
    gate.Open();
    waiter.join();
  }
}

TEST(EntryGate, ClosesWhereThreadsAlwaysWait) {
  EntryGate gate(/*looks_max=*/3);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> entered{0};
  const auto come_and_go = [&] {
    while (!stop) {
      std::optional<EpochTable::Guard> inside;
      gate.Enter(&inside);
      ++entered;
    }
  };
  std::thread one(come_and_go);
  std::thread other(come_and_go);
  for (int round = 0; round < 200; ++round) {
    gate.Close();
    const uint64_t before = entered;
    std::this_thread::yield();
    EXPECT_EQ(entered, before) << "a thread inside a closed gate";
    gate.Open();
  }
  stop = true;
  one.join();
  other.join();
}

TEST(EntryGate, ATriedClosingLooksOnce) {
  EntryGate gate(kLooksMax);
  std::optional<EpochTable::Guard> inside;
  gate.Enter(&inside);
  EXPECT_FALSE(gate.TryClose());
  inside.reset();
  ASSERT_TRUE(gate.TryClose());
  std::thread waiter([&] {
    std::optional<EpochTable::Guard> other;
    gate.Enter(&other);
  });
  while (gate.entered() == 1) std::this_thread::yield();
  gate.Open();
  waiter.join();
  EXPECT_TRUE(gate.TryClose()) << "nobody waits any more";
  gate.Open();
}

}  // namespace
}  // namespace embank::test::entry_gate_test
