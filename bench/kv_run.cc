#include "bench/kv_run.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "bench/absl_engine.h"
#include "bench/embank_engine.h"
#include "bench/engine.h"
#include "bench/libcuckoo_engine.h"
#include "bench/machine.h"
#include "bench/phase_run.h"
#include "bench/workload.h"
#include "tiers/row_layout.h"

namespace embank {
namespace {

// One value per round.
struct Samples {
  std::vector<double> rows_per_second;
  std::vector<double> index_bytes_per_row;
  std::vector<double> bytes_per_row;
  std::vector<double> p50_us;
  std::vector<double> p99_us;
  std::vector<double> p999_us;
};

// What one thread hands to an engine and gets back.
struct Buffers {
  std::vector<std::byte> rows;
  std::vector<float> gradients;
  std::vector<uint8_t> outcomes;
};

struct FillMemory {
  double index_bytes_per_row = 0.0;
  double bytes_per_row = 0.0;
};

absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(const std::string& name,
                                                   const EngineConfig& config) {
  if (name == "libcuckoo") return MakeLibcuckooEngine(config);
  if (name == "absl") return MakeAbslEngine(config);
  return MakeEmbankEngine(config);
}

std::vector<Buffers> MakeBuffers(const KvOptions& options) {
  const CounterRandom random(options.seed);
  const uint64_t values = options.batch * options.shape.dim;
  std::vector<Buffers> buffers(options.threads);
  for (Buffers& buffer : buffers) {
    buffer.rows.resize(values * ValueBytes(options.shape.value_type));
    buffer.gradients.resize(values);
    for (uint64_t i = 0; i < values; ++i) {
      buffer.gradients[i] = (random.UnitFloat(i) - 0.5f) * 0.01f;
    }
    buffer.outcomes.resize(options.batch);
  }
  return buffers;
}

absl::Status CheckMemory(const KvOptions& options, uint64_t rows) {
  // The dearest index, while it grows: twice 16 bytes of an entry at half its load.
  constexpr uint64_t kIndexBytesPerRow = 96;
  const RowLayout layout =
      MakeRowLayout(options.shape.dim, options.shape.value_type, options.shape.optimizer);
  const uint64_t needed_bytes = rows * (layout.row_bytes + kIndexBytesPerRow);
  const uint64_t free_bytes = DescribeMachine().memory_available_bytes;
  if (free_bytes == 0 || needed_bytes <= free_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("--rows: %d rows of %d bytes need %.1f GiB, the machine has %.1f GiB free",
                      rows, layout.row_bytes, static_cast<double>(needed_bytes) * 0x1p-30,
                      static_cast<double>(free_bytes) * 0x1p-30));
}

class KvRun {
 public:
  KvRun(const KvOptions& options, const Workload& workload, Progress* progress)
      : options_(options),
        workload_(workload),
        progress_(progress),
        buffers_(MakeBuffers(options)),
        steps_(options.rounds * options.engines.size() * (1 + TimedPhases())) {}

  absl::Status Run() {
    const size_t engines = options_.engines.size();
    for (uint32_t round = 0; round < options_.rounds; ++round) {
      // Another engine begins each round, so that none always has the place after the same one.
      for (size_t i = 0; i < engines; ++i) {
        EMBANK_RETURN_IF_ERROR(RunEngine(options_.engines[(i + round) % engines], round));
      }
    }
    return absl::OkStatus();
  }

  std::vector<KvResult> Results() const {
    std::vector<KvResult> results;
    for (const Phase phase : {Phase::kFill, Phase::kLookup, Phase::kUpdate}) {
      if (!Wants(phase)) continue;
      for (const std::string& engine : options_.engines) results.push_back(Result(engine, phase));
    }
    return results;
  }

 private:
  bool Wants(Phase phase) const {
    return std::count(options_.phases.begin(), options_.phases.end(), phase) > 0;
  }
  size_t TimedPhases() const { return options_.phases.size() - (Wants(Phase::kFill) ? 1 : 0); }

  absl::Status RunEngine(const std::string& name, uint32_t round) {
    const EngineConfig config{options_.shape, options_.seed, options_.threads,
                              options_.reserve ? workload_.rows.size() : 0};
    EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, MakeEngine(name, config));
    note_ = absl::StrFormat("round %d/%d  %s", round + 1, options_.rounds, name);
    EMBANK_ASSIGN_OR_RETURN(const FillMemory memory, RunFill(name, engine.get()));
    for (const Phase phase : {Phase::kLookup, Phase::kUpdate}) {
      if (!Wants(phase)) continue;
      EMBANK_ASSIGN_OR_RETURN(const PhaseTiming timing, RunTimed(phase, engine.get()));
      Record(name, phase, timing, memory);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<FillMemory> RunFill(const std::string& name, Engine* engine) {
    const PhasePlan plan{workload_.rows, options_.batch, options_.threads, 0.0};
    const uint64_t rows = workload_.rows.size();
    double index_bytes_per_row = 0.0;
    absl::Status watched;
    const auto watch = [&](uint64_t done) {
      Show(Phase::kFill, static_cast<double>(done) / static_cast<double>(rows));
      if (done <= kIndexRowsMin || !watched.ok()) return;
      const absl::StatusOr<EngineMemory> memory = engine->Memory();
      watched = memory.status();
      if (watched.ok()) Raise(&index_bytes_per_row, memory->index_bytes, done);
    };
    const auto body = [&](uint32_t thread, KeySpan keys) {
      Buffers& buffers = buffers_[thread];
      EMBANK_RETURN_IF_ERROR(engine->Fill(keys, {buffers.rows.data(), buffers.outcomes.data()}));
      return CheckOutcomes(keys, buffers, Outcome::kCreated);
    };
    EMBANK_ASSIGN_OR_RETURN(const PhaseTiming timing, RunPhase(plan, body, watch));
    EMBANK_RETURN_IF_ERROR(watched);
    EMBANK_ASSIGN_OR_RETURN(const EngineMemory memory, engine->Memory());
    if (rows > kIndexRowsMin) Raise(&index_bytes_per_row, memory.index_bytes, rows);
    const FillMemory result{index_bytes_per_row, PerRow(memory.total_bytes, rows)};
    if (Wants(Phase::kFill)) Record(name, Phase::kFill, timing, result);
    ++steps_done_;
    return result;
  }

  absl::StatusOr<PhaseTiming> RunTimed(Phase phase, Engine* engine) {
    const PhasePlan plan{workload_.positions, options_.batch, options_.threads, options_.seconds};
    const uint64_t start_ns = SteadyClock()->NowNs();
    const auto show = [&](uint64_t) {
      const auto elapsed_ns = static_cast<double>(SteadyClock()->NowNs() - start_ns);
      Show(phase, std::min(1.0, elapsed_ns * 1e-9 / options_.seconds));
    };
    const auto body = [&](uint32_t thread, KeySpan keys) {
      Buffers& buffers = buffers_[thread];
      const absl::Status status =
          phase == Phase::kLookup
              ? engine->Lookup(keys, {buffers.rows.data(), buffers.outcomes.data()})
              : engine->Update(keys, buffers.gradients.data(), buffers.outcomes.data());
      EMBANK_RETURN_IF_ERROR(status);
      return CheckOutcomes(keys, buffers, Outcome::kFound);
    };
    absl::StatusOr<PhaseTiming> timing = RunPhase(plan, body, show);
    ++steps_done_;
    return timing;
  }

  static absl::Status CheckOutcomes(KeySpan keys, const Buffers& buffers, Outcome wanted) {
    for (size_t i = 0; i < keys.size(); ++i) {
      if (buffers.outcomes[i] == static_cast<uint8_t>(wanted)) continue;
      return absl::InternalError(absl::StrCat("key ", keys[i], ": outcome ", buffers.outcomes[i],
                                              " instead of ", static_cast<int>(wanted)));
    }
    return absl::OkStatus();
  }

  static double PerRow(uint64_t bytes, uint64_t rows) {
    return static_cast<double>(bytes) / static_cast<double>(rows);
  }
  static void Raise(double* largest, uint64_t bytes, uint64_t rows) {
    *largest = std::max(*largest, PerRow(bytes, rows));
  }

  void Show(Phase phase, double fraction_of_step) {
    const double done =
        (static_cast<double>(steps_done_) + fraction_of_step) / static_cast<double>(steps_);
    progress_->Update(done, absl::StrCat(note_, " ", PhaseName(phase)));
  }

  void Record(const std::string& engine, Phase phase, const PhaseTiming& timing,
              const FillMemory& memory) {
    const auto percentile_us = [&](double fraction) {
      return static_cast<double>(timing.latency.PercentileNs(fraction)) * 1e-3;
    };
    Samples& samples = samples_[{engine, phase}];
    samples.rows_per_second.push_back(static_cast<double>(timing.positions) / timing.seconds);
    samples.index_bytes_per_row.push_back(memory.index_bytes_per_row);
    samples.bytes_per_row.push_back(memory.bytes_per_row);
    samples.p50_us.push_back(percentile_us(0.5));
    samples.p99_us.push_back(percentile_us(0.99));
    samples.p999_us.push_back(percentile_us(0.999));
  }

  KvResult Result(const std::string& engine, Phase phase) const {
    const Samples& samples = samples_.at({engine, phase});
    const auto [min, max] =
        std::minmax_element(samples.rows_per_second.begin(), samples.rows_per_second.end());
    KvResult result;
    result.engine = engine;
    result.phase = phase;
    result.rows_per_second = Median(samples.rows_per_second);
    result.rows_per_second_min = *min;
    result.rows_per_second_max = *max;
    if (workload_.rows.size() > kIndexRowsMin) {
      result.index_bytes_per_row = Median(samples.index_bytes_per_row);
    }
    result.bytes_per_row = Median(samples.bytes_per_row);
    result.batch_p50_us = Median(samples.p50_us);
    result.batch_p99_us = Median(samples.p99_us);
    result.batch_p999_us = Median(samples.p999_us);
    return result;
  }

  const KvOptions& options_;
  const Workload& workload_;
  Progress* const progress_;
  std::vector<Buffers> buffers_;  // one per thread
  std::map<std::pair<std::string, Phase>, Samples> samples_;
  std::string note_;
  const size_t steps_;
  size_t steps_done_ = 0;
};

}  // namespace

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

absl::StatusOr<KvReport> RunKv(const KvOptions& options, Progress* progress) {
  if (options.distribution.kind != Distribution::Kind::kTrace) {
    EMBANK_RETURN_IF_ERROR(CheckMemory(options, options.rows));
  }
  EMBANK_ASSIGN_OR_RETURN(const Workload workload, MakeWorkload(options));
  EMBANK_RETURN_IF_ERROR(CheckMemory(options, workload.rows.size()));
  KvRun run(options, workload, progress);
  EMBANK_RETURN_IF_ERROR(run.Run());
  return KvReport{run.Results(), workload.rows.size(), workload.positions.size(),
                  workload.trace_is_whole};
}

}  // namespace embank
