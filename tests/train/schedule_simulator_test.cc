#include "train/hybrid/schedule_simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tests/support/random.h"

namespace embank::test::schedule_simulator_test {
namespace {

using ::testing::ElementsAre;

constexpr uint32_t kSteps = 3000;

double NsPerStep(const ScheduleOptions& options, const StageTimes& times) {
  return Simulate(options, {&times, 1}).ns_per_step;
}

// "L0 0-2": the stages' letters are those of the header.
std::vector<std::string> TextsOf(const SimulatedSchedule& simulated) {
  std::vector<std::string> texts;
  for (const StageInterval& interval : simulated.intervals) {
    texts.push_back("LFBSUD"[static_cast<size_t>(interval.stage)] + std::to_string(interval.batch) +
                    " " + std::to_string(interval.begin_ns) + "-" +
                    std::to_string(interval.end_ns));
  }
  return texts;
}

TEST(ScheduleSimulator, HasTheStepsThatAreComputedByHand) {
  const struct {
    ScheduleOptions options;
    StageTimes times;  // L, F, B, S, U, D
    double ns_per_step;
  } cases[] = {{{.schedule = StepSchedule::kSync}, {10, 3, 4, 2, 5, 1}, 25},
               {{.schedule = StepSchedule::kSync, .staleness = 4}, {10, 3, 4, 2, 5, 1}, 25},
               // F, B, S and D take 10, as a lookup does; then the lookups alone.
               {{.schedule = StepSchedule::kRawHybrid, .staleness = 4}, {10, 3, 4, 2, 5, 1}, 10},
               {{.schedule = StepSchedule::kRawHybrid, .staleness = 4}, {30, 3, 4, 2, 5, 1}, 30},
               // L, F, B, S and U of two batches at once: 24 / 2.
               {{.schedule = StepSchedule::kRawHybrid, .staleness = 1}, {10, 3, 4, 2, 5, 1}, 12},
               // A lookup and an update by turns.
               {{.schedule = StepSchedule::kRawHybrid, .staleness = 4, .is_deterministic = true},
                {10, 3, 4, 2, 5, 1},
                15},
               // The last of four buckets of S comes behind B: 300 + 400 + 200 / 4 + 100.
               {{.schedule = StepSchedule::kHybrid, .staleness = 4, .buckets = 4},
                {600, 300, 400, 200, 500, 100},
                850},
               // S of 900 begins when a quarter of B has ended: 300 + 100 + 900 + 100.
               {{.schedule = StepSchedule::kHybrid, .staleness = 4, .buckets = 4},
                {600, 300, 400, 900, 500, 100},
                1400},
               {{.schedule = StepSchedule::kAsync, .staleness = 4, .buckets = 4},
                {600, 300, 400, 200, 500, 100},
                700},
               {{.schedule = StepSchedule::kAsync, .staleness = 4, .buckets = 4},
                {600, 300, 400, 900, 500, 100},
                900},
               // An injected wait of 10 beside 7 of dense work, and behind it.
               {{.schedule = StepSchedule::kHybrid, .staleness = 4}, {10, 3, 4, 0, 0, 0}, 10},
               {{.schedule = StepSchedule::kHybrid, .staleness = 0}, {10, 3, 4, 0, 0, 0}, 17}};
  for (const auto& one : cases) {
    ScheduleOptions options = one.options;
    options.steps = kSteps;
    EXPECT_NEAR(NsPerStep(options, one.times), one.ns_per_step, 1e-9)
        << NameOf(options.schedule) << " of staleness " << options.staleness;
  }
}

TEST(ScheduleSimulator, HasTheIntervalsThatAreDrawnByHand) {
  const StageTimes times[] = {{2, 1, 1, 1, 2, 1}};
  EXPECT_THAT(
      TextsOf(Simulate({.schedule = StepSchedule::kRawHybrid, .staleness = 1, .steps = 3}, times)),
      ElementsAre("L0 0-2", "L1 2-4", "F0 2-3", "B0 3-4", "S0 4-5", "U0 5-7", "D0 5-6", "L2 7-9",
                  "F1 6-7", "B1 7-8", "S1 8-9", "U1 9-11", "D1 9-10", "F2 10-11", "B2 11-12",
                  "S2 12-13", "U2 13-15", "D2 13-14"));
}

TEST(ScheduleSimulator, WithoutStalenessHasAllStagesInARow) {
  const StageTimes times[] = {{10, 3, 4, 2, 5, 1}, {7, 1, 2, 9, 1, 4}};
  const auto texts = [&](StepSchedule schedule) {
    return TextsOf(Simulate({.schedule = schedule, .staleness = 0, .steps = 5}, times));
  };
  EXPECT_EQ(texts(StepSchedule::kRawHybrid), texts(StepSchedule::kSync));
  EXPECT_EQ(texts(StepSchedule::kAsync), texts(StepSchedule::kHybrid));
}

StageTimes RandomTimes(Random* random) {
  StageTimes times;
  for (uint64_t& ns : times) ns = random->Between(1'000, 1'000'000);
  return times;
}

// The longest of all circles of stages that wait for each other, each divided by the batches that
// it goes back. No schedule is faster; where all steps are equal, none is slower in the end.
double CircleNs(const ScheduleOptions& options, const StageTimes& times) {
  const std::array<double, kStepStages> ns = {
      static_cast<double>(times[0]), static_cast<double>(times[1]), static_cast<double>(times[2]),
      static_cast<double>(times[3]), static_cast<double>(times[4]), static_cast<double>(times[5])};
  const auto& [l, f, b, s, u, d] = ns;
  if (options.schedule == StepSchedule::kSync) return l + f + b + s + u + d;
  const double k = options.schedule == StepSchedule::kRawHybrid ? 1.0 : options.buckets;
  const double behind = std::max(s / k, b / k + s - b);  // the part of S that is not beside B
  const double batches = options.staleness + 1.0;
  const double rows = options.is_deterministic ? l + u : std::max(l, u);
  const double of_staleness = (l + f + b + behind + u) / batches;
  if (options.schedule == StepSchedule::kAsync) {
    return std::max({f + b, s, d, (f + b + behind + d) / batches, rows, of_staleness});
  }
  return std::max({f + b + behind + d, rows, of_staleness});
}

TEST(ScheduleSimulator, HasTheRateOfItsLongestCircle) {
  Random random(1);
  for (int round = 0; round < 100; ++round) {
    const StageTimes times = RandomTimes(&random);
    for (const StepSchedule schedule : kStepSchedules) {
      const ScheduleOptions options = {.schedule = schedule,
                                       .staleness = 1 + static_cast<uint32_t>(random.Below(8)),
                                       .is_deterministic = random.OneIn(2),
                                       .buckets = 1 + static_cast<uint32_t>(random.Below(8)),
                                       .steps = kSteps};
      EXPECT_NEAR(NsPerStep(options, times) / CircleNs(options, times), 1.0, 0.01)
          << NameOf(schedule);
    }
  }
}

// For any times above 0, and s >= 1: sync > raw hybrid, because no chain of stages that wait for
// each other has both F of the first batch and L of the second one. Raw hybrid > hybrid with two
// buckets or more, because each chain to the end has an S, which begins before B has ended; where
// updates wait for lookups it is >=, because a chain of these may have no S. Hybrid >= async.
TEST(ScheduleSimulator, SchedulesThatWaitForLessEndFirst) {
  Random random(2);
  for (int round = 0; round < 300; ++round) {
    std::vector<StageTimes> times(random.Between(1, 9));
    for (StageTimes& of_step : times) of_step = RandomTimes(&random);
    ScheduleOptions options = {.staleness = static_cast<uint32_t>(random.Between(1, 8)),
                               .is_deterministic = random.OneIn(2),
                               .buckets = static_cast<uint32_t>(random.Between(2, 8)),
                               .steps = static_cast<uint32_t>(random.Between(2, 60))};
    std::vector<uint64_t> ends;
    for (const StepSchedule schedule : kStepSchedules) {
      options.schedule = schedule;
      ends.push_back(Simulate(options, times).end_ns);
    }
    EXPECT_GT(ends[0], ends[1]);
    EXPECT_GE(ends[1], ends[2] + (options.is_deterministic ? 0 : 1));
    EXPECT_GE(ends[2], ends[3]);
  }
}

TEST(ScheduleSimulator, LookupsAreAtMostTheirStalenessAheadOfUpdates) {
  Random random(3);
  for (int round = 0; round < 100; ++round) {
    std::vector<StageTimes> times(7);
    for (StageTimes& of_step : times) of_step = RandomTimes(&random);
    const auto staleness = static_cast<uint32_t>(random.Below(8));
    const SimulatedSchedule simulated = Simulate({.schedule = kStepSchedules[1 + round % 3],
                                                  .staleness = staleness,
                                                  .is_deterministic = round % 2 == 0,
                                                  .buckets = 3,
                                                  .steps = 50},
                                                 times);
    uint32_t most = 0;
    for (const StageInterval& lookup : simulated.intervals) {
      if (lookup.stage != StepStage::kLookup) continue;
      const auto applied = std::ranges::count_if(simulated.intervals, [&](const auto& update) {
        return update.stage == StepStage::kUpdate && update.end_ns <= lookup.begin_ns;
      });
      most = std::max(most, lookup.batch - static_cast<uint32_t>(applied));
    }
    EXPECT_LE(most, staleness);
    // Where updates wait for lookups, these go on up to the bound.
    EXPECT_GE(most, round % 2 == 0 ? staleness : 0);
  }
}

}  // namespace
}  // namespace embank::test::schedule_simulator_test
