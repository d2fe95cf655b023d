#include "bench/rank_schedules.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "absl/strings/str_format.h"
#include "base/str_cat.h"
#include "bench/report_parts.h"
#include "train/pipeline/lane_picture.h"

namespace embank {
namespace {

constexpr uint32_t kSteps = 4000;
constexpr uint32_t kStepsDrawn = 6;
constexpr uint32_t kNumberMax = 1'000'000;  // ms, batches or buckets

constexpr const char* kStageOptions[kStepStages] = {"--lookup-ms", "--forward-ms", "--backward-ms",
                                                    "--sync-ms",   "--update-ms",  "--step-ms"};

constexpr const char* kLegend =
    "ms a step: in the second half of 4,000 simulated steps; of sync: the steps of the schedule by "
    "those of sync in the same time; ahead: the most lookups whose update had not ended";

// The most lookups that began before their update was needed and had not ended.
uint32_t MostAhead(const SimulatedSchedule& simulated) {
  std::vector<uint64_t> updates;
  for (const StageInterval& interval : simulated.intervals) {
    if (interval.stage == StepStage::kUpdate) updates.push_back(interval.end_ns);
  }
  uint32_t most = 0;
  for (const StageInterval& interval : simulated.intervals) {
    if (interval.stage != StepStage::kLookup) continue;
    const auto applied = std::ranges::upper_bound(updates, interval.begin_ns) - updates.begin();
    most = std::max(most, interval.batch - static_cast<uint32_t>(applied));
  }
  return most;
}

// The lane of a stage among those of its schedule.
size_t LaneOf(StepSchedule schedule, StepStage stage) {
  if (schedule == StepSchedule::kSync || stage == StepStage::kLookup) return 0;
  if (stage == StepStage::kUpdate) return 3;
  if (stage == StepStage::kDenseSync && schedule != StepSchedule::kRawHybrid) return 2;
  return stage == StepStage::kDenseStep && schedule == StepSchedule::kAsync ? 4 : 1;
}

Status SetNumber(std::string_view option, const char* word, RankSchedulesOptions* options) {
  char* end = nullptr;
  const double number = std::strtod(word, &end);
  if (*word == '\0' || *end != '\0' || !(number >= 0.0 && number <= kNumberMax)) {
    return InvalidArgumentError(StrCat(option, " is ", word, "; it must be 0 to ", kNumberMax));
  }
  for (size_t i = 0; i < kStepStages; ++i) {
    if (option != kStageOptions[i]) continue;
    options->times[i] = static_cast<uint64_t>(std::llround(number * 1e6));
    return OkStatus();
  }
  const auto whole = static_cast<uint32_t>(number);
  if (static_cast<double>(whole) != number) {
    return InvalidArgumentError(StrCat(option, " is ", word, "; it must be a whole number"));
  }
  if (option == "--staleness") {
    options->staleness = whole;
  } else if (option == "--buckets" && whole > 0) {
    options->buckets = whole;
  } else if (option == "--buckets") {
    return InvalidArgumentError("--buckets is 0; it must be at least 1");
  } else if (option == "--deterministic") {
    options->is_deterministic = whole > 0;
  } else {
    return InvalidArgumentError(StrCat("there is no option ", option, " ", word));
  }
  return OkStatus();
}

}  // namespace

StatusOr<RankSchedulesOptions> ParseRankSchedules(std::span<char* const> words) {
  RankSchedulesOptions options;
  for (size_t i = 0; i < words.size(); i += 2) {
    const std::string_view option = words[i];
    if (i + 1 == words.size()) return InvalidArgumentError(StrCat(option, " has no value"));
    if (option == "--svg") {
      options.svg = words[i + 1];
      continue;
    }
    const Status status = SetNumber(option, words[i + 1], &options);
    if (!status.ok()) return status;
  }
  return options;
}

std::vector<SimulatedSchedule> RunRankSchedules(const RankSchedulesOptions& options) {
  std::vector<SimulatedSchedule> schedules;
  for (const StepSchedule schedule : kStepSchedules) {
    schedules.push_back(Simulate({.schedule = schedule,
                                  .staleness = options.staleness,
                                  .is_deterministic = options.is_deterministic,
                                  .buckets = options.buckets,
                                  .steps = kSteps},
                                 {&options.times, 1}));
  }
  return schedules;
}

std::string RankSchedulesTable(const RankSchedulesOptions& options,
                               std::span<const SimulatedSchedule> schedules) {
  std::string text = "embank-ranks schedules\n  ms      ";
  for (size_t i = 0; i < kStepStages; ++i) {
    absl::StrAppendFormat(&text, "%s %s %g", i > 0 ? "," : "", NameOf(static_cast<StepStage>(i)),
                          static_cast<double>(options.times[i]) * 1e-6);
  }
  absl::StrAppendFormat(&text, "\n  rows     staleness %d%s, %d buckets\n\n", options.staleness,
                        options.is_deterministic ? ", deterministic" : "", options.buckets);
  absl::StrAppendFormat(&text, "  %-11s %10s %8s %6s\n", "schedule", "ms a step", "of sync",
                        "ahead");
  for (size_t i = 0; i < schedules.size(); ++i) {
    absl::StrAppendFormat(&text, "  %-11s %10.3f %8.2f %6d\n", NameOf(kStepSchedules[i]),
                          schedules[i].ns_per_step * 1e-6,
                          schedules[0].ns_per_step / schedules[i].ns_per_step,
                          MostAhead(schedules[i]));
  }
  return text + "\n" + Legend(kLegend);
}

std::string RankSchedulesPicture(std::span<const SimulatedSchedule> schedules) {
  constexpr const char* kLanes[] = {"", "dense", "dense sync", "update", "dense step"};
  LanePicture picture;
  for (size_t i = 0; i < kStepStages; ++i) {
    picture.kinds.push_back({NameOf(static_cast<StepStage>(i)), ""});
  }
  for (size_t i = 0; i < schedules.size(); ++i) {
    const StepSchedule schedule = kStepSchedules[i];
    size_t lanes[std::size(kLanes)];
    for (size_t lane = 0; lane < std::size(kLanes); ++lane) {
      const bool is_used = std::ranges::any_of(schedules[i].intervals, [&](const auto& interval) {
        return LaneOf(schedule, interval.stage) == lane;
      });
      lanes[lane] = picture.lanes.size();
      if (is_used) picture.lanes.emplace_back(lane == 0 ? NameOf(schedule) : kLanes[lane]);
    }
    for (const StageInterval& interval : schedules[i].intervals) {
      if (interval.batch >= kStepsDrawn) continue;
      picture.bars.push_back({.lane = lanes[LaneOf(schedule, interval.stage)],
                              .kind = static_cast<size_t>(interval.stage),
                              .begin_ns = interval.begin_ns,
                              .end_ns = interval.end_ns,
                              .title = StrCat(NameOf(interval.stage), " ", interval.batch)});
    }
  }
  return SvgText(picture);
}

}  // namespace embank
