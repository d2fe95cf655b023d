#include "base/threads/epoch.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace embank::test::epoch_test {
namespace {

TEST(EpochTable, WithoutReadersAnEpochHasPassedAtOnce) {
  EpochTable epochs;
  const uint64_t first = epochs.Retire();
  EXPECT_TRUE(epochs.HasPassed(first));
  epochs.WaitUntilPassed(first);
  EXPECT_GT(epochs.Retire(), first);
}

TEST(EpochTable, AGuardHoldsBackEpochsThatEndWhileItLives) {
  EpochTable epochs;
  std::optional<EpochTable::Guard> guard(std::in_place, &epochs);
  const uint64_t first = epochs.Retire();
  const uint64_t second = epochs.Retire();
  EXPECT_FALSE(epochs.HasPassed(first));
  EXPECT_FALSE(epochs.HasPassed(second));
  guard.reset();
  EXPECT_TRUE(epochs.HasPassed(first));
  EXPECT_TRUE(epochs.HasPassed(second));
}

TEST(EpochTable, CountsWhoEnters) {
  EpochTable epochs;
  EXPECT_EQ(epochs.entered(), 0u);
  for (int i = 0; i < 5; ++i) const EpochTable::Guard guard(&epochs);
  const EpochTable::Guard one(&epochs);
  const EpochTable::Guard other(&epochs);
  EXPECT_EQ(epochs.entered(), 7u);
}

TEST(EpochTable, AGuardMadeLaterHoldsNothingBack) {
  EpochTable epochs;
  const uint64_t before = epochs.Retire();
  const EpochTable::Guard guard(&epochs);
  EXPECT_TRUE(epochs.HasPassed(before));
  epochs.WaitUntilPassed(before);
  EXPECT_FALSE(epochs.HasPassed(epochs.Retire()));
}

TEST(EpochTable, EveryOneOfManyGuardsHoldsBack) {
  EpochTable epochs;
  std::deque<EpochTable::Guard> guards;
  for (int i = 0; i < 300; ++i) guards.emplace_back(&epochs);
  const uint64_t epoch = epochs.Retire();
  std::deque<EpochTable::Guard> later;
  for (int i = 0; i < 200; ++i) later.emplace_back(&epochs);
  while (!guards.empty()) {
    ASSERT_FALSE(epochs.HasPassed(epoch)) << guards.size() << " are left";
    guards.size() % 2 == 0 ? guards.pop_back() : guards.pop_front();
  }
  EXPECT_TRUE(epochs.HasPassed(epoch));
}

TEST(EpochTable, WaitsForTheReaderWhoWasThereAndForNoOther) {
  EpochTable epochs;
  std::atomic<bool> reads{false};
  std::atomic<bool> may_end{false};
  std::atomic<bool> ended{false};
  std::thread reader([&] {
    const EpochTable::Guard guard(&epochs);
    reads = true;
    reads.notify_all();
    may_end.wait(false);
    ended = true;
  });
  reads.wait(false);
  const uint64_t epoch = epochs.Retire();
  const EpochTable::Guard later(&epochs);
  std::atomic<bool> waited{false};
  std::thread waiter([&] {
    epochs.WaitUntilPassed(epoch);
    EXPECT_TRUE(ended);
    waited = true;
  });
  for (int i = 0; i < 100; ++i) std::this_thread::yield();
  EXPECT_FALSE(waited);
  may_end = true;
  may_end.notify_all();
  reader.join();
  waiter.join();
  EXPECT_TRUE(waited);
}

// More threads than slots cannot be had here; as many as slots are asked for in turns.
TEST(EpochTable, MoreReadersThanPlacesWait) {
  EpochTable epochs;
  std::deque<EpochTable::Guard> guards;
  for (int i = 0; i < 512; ++i) guards.emplace_back(&epochs);
  std::atomic<bool> entered{false};
  std::thread one_more([&] {
    const EpochTable::Guard guard(&epochs);
    entered = true;
  });
  for (int i = 0; i < 100; ++i) std::this_thread::yield();
  EXPECT_FALSE(entered);
  guards.pop_front();
  one_more.join();
  EXPECT_TRUE(entered);
}

// Objects that are replaced, and overwritten once nobody can be looking at them: the use that the
// table is for. The overwriting is not atomic, so that ThreadSanitizer sees a reader too late.
TEST(EpochTable, NoReaderOfManyThreadsSeesWhatWasRetiredBeforeItBegan) {
  constexpr uint64_t kGone = ~uint64_t{0};
#if defined(__SANITIZE_THREAD__)
  constexpr int kReplacements = 300;
#else
  constexpr int kReplacements = 5000;
#endif
  EpochTable epochs;
  std::array<uint64_t, 2> objects = {1, 1};
  std::atomic<uint64_t*> current{&objects[0]};
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      // On few cores a reader that is interrupted makes the writer wait for a time slice: most of
      // them go of their own accord, while they read nothing.
      while (!stop) {
        for (int looks = 0; looks < 100; ++looks) {
          const EpochTable::Guard guard(&epochs);
          if (*current.load() == kGone) ++wrong;
        }
        std::this_thread::yield();
      }
    });
  }
  for (int i = 0; i < kReplacements; ++i) {
    uint64_t* const old = current.load();
    uint64_t* const next = old == &objects[0] ? &objects[1] : &objects[0];
    *next = 1;
    current = next;
    epochs.WaitUntilPassed(epochs.Retire());
    *old = kGone;
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace embank::test::epoch_test
