#include "train/hybrid/schedule_simulator.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "base/check.h"

namespace embank {
namespace {

class Simulation {
 public:
  Simulation(const ScheduleOptions& options, std::span<const StageTimes> times)
      : options_(options),
        times_(times),
        staleness_(options.schedule == StepSchedule::kSync ? 0 : options.staleness) {
    for (std::vector<uint64_t>& ends : ends_) ends.resize(options.steps);
  }

  // A batch whose update waits for a lookup comes behind that lookup.
  SimulatedSchedule Run() {
    for (int64_t batch = 0; batch < options_.steps + staleness_; ++batch) {
      if (batch < options_.steps) LookUp(batch);
      if (batch >= staleness_) Train(batch - staleness_);
    }
    for (const std::vector<uint64_t>& ends : ends_) {
      result_.end_ns = std::max(result_.end_ns, ends.back());
    }
    result_.ns_per_step = NsPerStep();
    return std::move(result_);
  }

 private:
  // The end of a stage; that of a batch which does not exist is not waited for.
  uint64_t EndOf(StepStage stage, int64_t batch) const {
    if (batch < 0 || batch >= options_.steps) return 0;
    return ends_[static_cast<size_t>(stage)][static_cast<size_t>(batch)];
  }

  uint64_t TimeOf(StepStage stage, int64_t batch) const {
    return times_[static_cast<size_t>(batch) % times_.size()][static_cast<size_t>(stage)];
  }

  // Adds a stage, or a part of it, behind other ends.
  void Add(StepStage stage, int64_t batch, uint64_t ns, std::initializer_list<uint64_t> behind) {
    const uint64_t begin_ns = std::max(behind);
    ends_[static_cast<size_t>(stage)][static_cast<size_t>(batch)] = begin_ns + ns;
    result_.intervals.push_back({stage, static_cast<uint32_t>(batch), begin_ns, begin_ns + ns});
  }

  void LookUp(int64_t batch) {
    const bool is_one_thread = staleness_ == 0;
    Add(StepStage::kLookup, batch, TimeOf(StepStage::kLookup, batch),
        {EndOf(StepStage::kLookup, batch - 1), EndOf(StepStage::kUpdate, batch - staleness_ - 1),
         is_one_thread ? EndOf(StepStage::kDenseStep, batch - 1) : 0});
  }

  void Train(int64_t batch) {
    const bool is_one_thread = staleness_ == 0;
    const bool is_async = options_.schedule == StepSchedule::kAsync;
    const auto time_of = [&](StepStage stage) { return TimeOf(stage, batch); };
    const auto end_of = [&](StepStage stage) { return EndOf(stage, batch); };
    const auto last_end_of = [&](StepStage stage) { return EndOf(stage, batch - 1); };
    Add(StepStage::kForward, batch, time_of(StepStage::kForward),
        {end_of(StepStage::kLookup), last_end_of(StepStage::kBackward),
         EndOf(StepStage::kDenseStep, batch - 1 - (is_async ? staleness_ : 0))});
    Add(StepStage::kBackward, batch, time_of(StepStage::kBackward), {end_of(StepStage::kForward)});
    AddDenseSync(batch);
    Add(StepStage::kUpdate, batch, time_of(StepStage::kUpdate),
        {end_of(StepStage::kDenseSync), last_end_of(StepStage::kUpdate),
         options_.is_deterministic ? EndOf(StepStage::kLookup, batch + staleness_) : 0});
    Add(StepStage::kDenseStep, batch, time_of(StepStage::kDenseStep),
        {end_of(StepStage::kDenseSync), last_end_of(StepStage::kDenseStep),
         is_one_thread ? end_of(StepStage::kUpdate) : 0});
  }

  void AddDenseSync(int64_t batch) {
    const bool is_beside = options_.schedule >= StepSchedule::kHybrid;
    const uint32_t buckets = is_beside ? options_.buckets : 1;
    const uint64_t backward_ns = TimeOf(StepStage::kBackward, batch);
    const uint64_t begin_ns = EndOf(StepStage::kForward, batch);
    const uint64_t ns = TimeOf(StepStage::kDenseSync, batch);
    uint64_t end_ns = EndOf(StepStage::kDenseSync, batch - 1);
    for (uint32_t bucket = 0; bucket < buckets; ++bucket) {
      const uint64_t part_ns = ns * (bucket + 1) / buckets - ns * bucket / buckets;
      Add(StepStage::kDenseSync, batch, part_ns,
          {begin_ns + backward_ns * (bucket + 1) / buckets, end_ns});
      end_ns = EndOf(StepStage::kDenseSync, batch);
    }
  }

  // Batches that wait for each other come in turns of s + 1: whole ones are measured. The last s
  // updates wait for no lookups.
  double NsPerStep() const {
    const auto end_of = [&](int64_t batch) {
      return std::max(EndOf(StepStage::kUpdate, batch), EndOf(StepStage::kDenseStep, batch));
    };
    const int64_t last = std::max<int64_t>(0, options_.steps - 1 - staleness_);
    const int64_t half = (last + 2) / 2;
    const int64_t turns = half / (staleness_ + 1);
    const int64_t steps = turns > 0 ? turns * (staleness_ + 1) : half;
    return static_cast<double>(end_of(last) - end_of(last - steps)) / static_cast<double>(steps);
  }

  const ScheduleOptions options_;
  const std::span<const StageTimes> times_;
  const int64_t staleness_;
  std::array<std::vector<uint64_t>, kStepStages> ends_;  // of each batch
  SimulatedSchedule result_;
};

}  // namespace

const char* NameOf(StepSchedule schedule) {
  constexpr const char* kNames[] = {"sync", "raw hybrid", "hybrid", "async"};
  return kNames[static_cast<size_t>(schedule)];
}

const char* NameOf(StepStage stage) {
  constexpr const char* kNames[] = {"lookup",     "forward", "backward",
                                    "dense sync", "update",  "dense step"};
  return kNames[static_cast<size_t>(stage)];
}

SimulatedSchedule Simulate(const ScheduleOptions& options, std::span<const StageTimes> times) {
  EMBANK_CHECK(options.steps > 0 && options.buckets > 0 && !times.empty());
  return Simulation(options, times).Run();
}

}  // namespace embank
