// Four schedules of a step, simulated from the times of its stages: Persia (Lian et al. 2022),
// figure 3. L: lookup of rows, F and B: forward and backward, S: sum of dense gradients over ranks,
// U: update of rows, D: step of the dense parameters.
//
//   kSync       L F B S U D L F B S U D       one behind the other
//
//   kRawHybrid  rows     L L  L  U L  U       rows are up to s batches behind
//               dense      F B S D F B S D    dense parameters are in step
//
//   kHybrid     S begins beside B, in buckets: each when its part of B has ended
//   kAsync      S and D are beside the next F and B: dense parameters are up to s batches behind
//
// A batch m is looked up when the updates of all batches up to m - s - 1 have ended: at most s of
// the lookups before it have no update yet. Each stage takes batches one at a time, in order; U
// begins behind S, which is also the vote of a step. With s = 0 one thread does it all, and
// kRawHybrid is kSync.
#ifndef EMBANK_TRAIN_HYBRID_SCHEDULE_SIMULATOR_H_
#define EMBANK_TRAIN_HYBRID_SCHEDULE_SIMULATOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace embank {

enum class StepSchedule : uint8_t { kSync, kRawHybrid, kHybrid, kAsync };
inline constexpr StepSchedule kStepSchedules[] = {StepSchedule::kSync, StepSchedule::kRawHybrid,
                                                  StepSchedule::kHybrid, StepSchedule::kAsync};
enum class StepStage : uint8_t { kLookup, kForward, kBackward, kDenseSync, kUpdate, kDenseStep };
inline constexpr size_t kStepStages = 6;

// Return a name: "raw hybrid", "dense sync" for example.
const char* NameOf(StepSchedule schedule);
const char* NameOf(StepStage stage);

// Nanoseconds of each stage.
using StageTimes = std::array<uint64_t, kStepStages>;

struct ScheduleOptions {
  StepSchedule schedule = StepSchedule::kSync;
  uint32_t staleness = 0;  // s; kSync has 0
  // Whether U of batch n also waits for L of batch n + s, so that each lookup sees the same updates
  // in each run.
  bool is_deterministic = false;
  uint32_t buckets = 1;  // of dense gradients, at least 1
  uint32_t steps = 1;    // at least 1
};

// A stage of a batch, or one of its buckets.
struct StageInterval {
  StepStage stage;
  uint32_t batch;
  uint64_t begin_ns;
  uint64_t end_ns;
};

struct SimulatedSchedule {
  uint64_t end_ns = 0;       // of all stages, from 0 on
  double ns_per_step = 0.0;  // of steps in the second half of all
  std::vector<StageInterval> intervals;
};

// Simulates steps whose stages take the times of their batch: `times` again and again, at least
// one. In the order of kStepSchedules none ends later than the one before it, because it waits for
// less; and kSync ends last, because nothing takes longer than all stages in a row.
SimulatedSchedule Simulate(const ScheduleOptions& options, std::span<const StageTimes> times);

}  // namespace embank

#endif  // EMBANK_TRAIN_HYBRID_SCHEDULE_SIMULATOR_H_
