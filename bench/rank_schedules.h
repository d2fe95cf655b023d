// Four schedules of a step, simulated side by side (train/hybrid/schedule_simulator.h).
#ifndef EMBANK_BENCH_RANK_SCHEDULES_H_
#define EMBANK_BENCH_RANK_SCHEDULES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status_or.h"
#include "train/hybrid/schedule_simulator.h"

namespace embank {

struct RankSchedulesOptions {
  StageTimes times = {10'000'000, 3'000'000, 6'000'000, 2'000'000, 4'000'000, 1'000'000};
  uint32_t staleness = 4;
  uint32_t buckets = 4;
  bool is_deterministic = false;
  std::string svg;  // file for a picture of the first steps; empty: none
};

// Reads words "--lookup-ms 10 --staleness 4 ...". INVALID_ARGUMENT names the wrong one.
StatusOr<RankSchedulesOptions> ParseRankSchedules(std::span<char* const> words);

// A schedule of kStepSchedules each.
std::vector<SimulatedSchedule> RunRankSchedules(const RankSchedulesOptions& options);
std::string RankSchedulesTable(const RankSchedulesOptions& options,
                               std::span<const SimulatedSchedule> schedules);
// Returns an SVG file.
std::string RankSchedulesPicture(std::span<const SimulatedSchedule> schedules);

}  // namespace embank

#endif  // EMBANK_BENCH_RANK_SCHEDULES_H_
