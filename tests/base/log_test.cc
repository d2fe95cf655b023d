#include "base/threads/log.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "base/threads/clock.h"
#include "tests/support/manual_clock.h"

namespace embank::test::log_test {
namespace {

struct Line {
  int32_t level;
  std::string message;
  bool operator==(const Line&) const = default;
};

void Keep(int32_t level, const char* message, void* user) {
  static_cast<std::vector<Line>*>(user)->push_back({level, message});
}

TEST(Log, GoesToTheSinkWithItsLevelAndNowhereWithoutOne) {
  std::vector<Line> lines;
  Log(LogLevel::kInfo, "before");
  SetLogSink(Keep, &lines);
  Log(LogLevel::kInfo, "opened");
  Log(LogLevel::kWarning, "slow");
  Log(LogLevel::kError, "");
  SetLogSink(nullptr, nullptr);
  Log(LogLevel::kError, "after");
  EXPECT_EQ(lines, (std::vector<Line>{{1, "opened"}, {2, "slow"}, {3, ""}}));
}

TEST(Log, ANewSinkTakesOverFromTheOldOne) {
  std::vector<Line> first;
  std::vector<Line> second;
  SetLogSink(Keep, &first);
  Log(LogLevel::kInfo, "one");
  SetLogSink(Keep, &second);
  Log(LogLevel::kInfo, "two");
  SetLogSink(nullptr, nullptr);
  EXPECT_EQ(first, (std::vector<Line>{{1, "one"}}));
  EXPECT_EQ(second, (std::vector<Line>{{1, "two"}}));
}

TEST(Log, LinesOfThreadsAreNeitherLostNorMixedWhileTheSinkChanges) {
  std::vector<Line> lines;
  std::vector<Line> others;
  SetLogSink(Keep, &lines);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 1000; ++i) Log(LogLevel::kInfo, "a line of the usual length");
    });
  }
  for (int i = 0; i < 100; ++i) {
    SetLogSink(Keep, &others);
    SetLogSink(Keep, &lines);
  }
  for (std::thread& thread : threads) thread.join();
  SetLogSink(nullptr, nullptr);
  EXPECT_EQ(lines.size() + others.size(), 3000u);
  for (const Line& line : lines) ASSERT_EQ(line.message, "a line of the usual length");
}

TEST(SteadyClock, NeverGoesBackAndMovesOn) {
  const uint64_t begin = SteadyClock()->NowNs();
  uint64_t before = begin;
  // Ends when the clock has moved: it must, within the test's time limit.
  do {
    const uint64_t now = SteadyClock()->NowNs();
    ASSERT_GE(now, before);
    before = now;
  } while (before < begin + 1'000'000);
}

TEST(ManualClock, StandsStillUntilItIsMoved) {
  ManualClock clock;
  EXPECT_EQ(clock.NowNs(), 0u);
  EXPECT_EQ(clock.NowNs(), 0u);
  clock.Advance(5);
  EXPECT_EQ(clock.NowNs(), 5u);
  ManualClock ticking(3);
  EXPECT_EQ(ticking.NowNs(), 0u);
  EXPECT_EQ(ticking.NowNs(), 3u);
}

}  // namespace
}  // namespace embank::test::log_test
