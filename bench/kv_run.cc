#include "bench/kv_run.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "bench/absl_engine.h"
#include "bench/distinct_keys.h"
#include "bench/embank_engine.h"
#include "bench/engine.h"
#include "bench/libcuckoo_engine.h"
#include "bench/machine.h"
#include "bench/phase_run.h"
#include "bench/probe_table.h"
#include "bench/workload.h"
#include "tiers/row/row_layout.h"

namespace embank {
namespace {

// The buffers that one thread passes to an engine.
struct Buffers {
  std::vector<std::byte> rows;
  std::vector<float> gradients;
  std::vector<uint8_t> outcomes;
  uint64_t unique_keys = 0;  // of the batches of the phase that runs
};

// An engine, or the limit, with so many threads.
struct Turn {
  std::string name;
  uint32_t threads = 1;
};

struct FillMemory {
  double index_bytes_per_row = 0.0;
  double bytes_per_row = 0.0;
};

StatusOr<std::unique_ptr<Engine>> MakeEngine(const std::string& name, const EngineConfig& config) {
  if (name == "libcuckoo") return MakeLibcuckooEngine(config);
  if (name == "absl") return MakeAbslEngine(config);
  return MakeEmbankEngine(config);
}

std::vector<Buffers> MakeBuffers(const KvOptions& options) {
  const CounterRandom random(options.seed);
  const uint64_t batch = std::max(options.batch, *std::rbegin(kSmallBatches));
  const uint64_t values = batch * options.shape.dim;
  std::vector<Buffers> buffers(*std::max_element(options.threads.begin(), options.threads.end()));
  for (Buffers& buffer : buffers) {
    buffer.rows.resize(values * ValueBytes(options.shape.value_type));
    buffer.gradients.resize(values);
    for (uint64_t i = 0; i < values; ++i) {
      buffer.gradients[i] = (random.UnitFloat(i) - 0.5f) * 0.01f;
    }
    buffer.outcomes.resize(batch);
  }
  return buffers;
}

// The option from which so many rows come.
std::string RowsOption(const KvOptions& options) {
  const bool is_trace = options.distribution.kind == Distribution::Kind::kTrace;
  return is_trace ? StrCat("--dist ", DistributionName(options.distribution)) : "--rows";
}

Status CheckMemory(const KvOptions& options, uint64_t rows) {
  // The dearest index, while it grows: twice 16 bytes of an entry at half its load.
  constexpr uint64_t kIndexBytesPerRow = 96;
  const RowLayout layout =
      MakeRowLayout(options.shape.dim, options.shape.value_type, options.shape.optimizer);
  const uint64_t needed_bytes = rows * (layout.row_bytes + kIndexBytesPerRow);
  const uint64_t free_bytes = DescribeMachine().memory_available_bytes;
  if (free_bytes == 0 || needed_bytes <= free_bytes) return OkStatus();
  return InvalidArgumentError(absl::StrFormat(
      "%s: %d rows of %d bytes need %.1f GiB, the machine has %.1f GiB free", RowsOption(options),
      rows, layout.row_bytes, static_cast<double>(needed_bytes) * 0x1p-30,
      static_cast<double>(free_bytes) * 0x1p-30));
}

// Some of the filled rows, at random: small enough for the cache.
std::vector<Key> SmallPositions(KeySpan rows, uint64_t seed) {
  constexpr uint64_t kPositions = uint64_t{1} << 16;
  const CounterRandom random(seed);
  const uint64_t rows_used = std::min<uint64_t>(kSmallRowsMax, rows.size());
  std::vector<Key> positions(kPositions);
  for (uint64_t i = 0; i < kPositions; ++i) positions[i] = rows[random.Bits(i) % rows_used];
  return positions;
}

Status CheckOutcomes(KeySpan keys, const std::vector<uint8_t>& outcomes, Outcome wanted) {
  // Without a branch per key: the check is part of every engine's time.
  uint8_t difference = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    difference |= static_cast<uint8_t>(outcomes[i] ^ static_cast<uint8_t>(wanted));
  }
  if (difference == 0) return OkStatus();
  for (size_t i = 0; i < keys.size(); ++i) {
    if (outcomes[i] == static_cast<uint8_t>(wanted)) continue;
    return InternalError(StrCat("key ", keys[i], ": outcome ", outcomes[i], " instead of ",
                                static_cast<int>(wanted)));
  }
  return OkStatus();
}

class KvRun {
 public:
  KvRun(const KvOptions& options, const Workload& workload, Progress* progress)
      : options_(options),
        workload_(workload),
        progress_(progress),
        small_positions_(SmallPositions(workload.rows, options.seed)),
        buffers_(MakeBuffers(options)) {
    if (Wants(Phase::kUpdate)) distinct_.emplace(workload.positions, options.batch);
    for (const uint32_t threads : options.threads) {
      for (const std::string& engine : options.engines) turns_.push_back({engine, threads});
      // Calls that stay in the cache have no limit of memory.
      if (Wants(Phase::kFill) || HasStream()) turns_.push_back({kLimitName, threads});
    }
  }

  Status Run() {
    for (uint32_t round = 0; round < options_.rounds; ++round) {
      // Another one begins each round, so that none always has the place after the same one.
      for (size_t i = 0; i < turns_.size(); ++i) {
        const Turn& turn = turns_[(i + round) % turns_.size()];
        note_ = absl::StrFormat("round %d/%d  %s %d", round + 1, options_.rounds, turn.name,
                                turn.threads);
        EMBANK_RETURN_IF_ERROR(turn.name == kLimitName ? RunLimit(turn) : RunEngine(turn));
        ++turns_done_;
      }
    }
    return OkStatus();
  }

  KvReport Report() const {
    KvReport report;
    for (const Phase phase : {Phase::kFill, Phase::kLookup, Phase::kUpdate, Phase::kSmall}) {
      for (const std::string& engine : options_.engines) AddResults(engine, phase, &report.results);
      AddResults(kLimitName, phase, &report.limits);
    }
    report.rows = workload_.rows.size();
    report.positions = workload_.positions.size();
    report.trace_is_whole = workload_.trace_is_whole;
    return report;
  }

 private:
  bool Wants(Phase phase) const {
    return std::count(options_.phases.begin(), options_.phases.end(), phase) > 0;
  }
  bool HasStream() const { return Wants(Phase::kLookup) || Wants(Phase::kUpdate); }

  void AddResults(const std::string& engine, Phase phase, std::vector<KvResult>* results) const {
    std::vector<uint64_t> batches = {options_.batch};
    if (phase == Phase::kSmall) batches.assign(std::begin(kSmallBatches), std::end(kSmallBatches));
    for (const uint32_t threads : options_.threads) {
      for (const uint64_t batch : batches) {
        const KvCase which{engine, phase, threads, batch};
        if (!samples_.Has(which)) continue;
        results->push_back(samples_.Result(which, options_.threads.front()));
      }
    }
  }

  Status RunEngine(const Turn& turn) {
    const EngineConfig config{options_.shape, options_.seed, turn.threads,
                              options_.reserve ? workload_.rows.size() : 0};
    EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, MakeEngine(turn.name, config));
    EMBANK_ASSIGN_OR_RETURN(const FillMemory memory, FillEngine(turn, engine.get()));
    const auto lookup = [&](uint32_t thread, KeySpan keys) {
      Buffers& buffers = buffers_[thread];
      EMBANK_RETURN_IF_ERROR(engine->Lookup(keys, {buffers.rows.data(), buffers.outcomes.data()}));
      return CheckOutcomes(keys, buffers.outcomes, Outcome::kFound);
    };
    const auto update = [&](uint32_t thread, KeySpan keys) {
      Buffers& buffers = buffers_[thread];
      EMBANK_RETURN_IF_ERROR(
          engine->Update(keys, buffers.gradients.data(), buffers.outcomes.data()));
      buffers.unique_keys += distinct_->Of(keys).size();
      return CheckOutcomes(keys, buffers.outcomes, Outcome::kFound);
    };
    EMBANK_RETURN_IF_ERROR(RunStream(turn, Phase::kLookup, memory, lookup));
    EMBANK_RETURN_IF_ERROR(RunStream(turn, Phase::kUpdate, memory, update));
    return RunSmall(turn, memory, lookup);
  }

  StatusOr<FillMemory> FillEngine(const Turn& turn, Engine* engine) {
    const uint64_t rows = workload_.rows.size();
    double index_bytes_per_row = 0.0;
    Status watched;
    const auto watch = [&](uint64_t done) {
      ShowPhase(Phase::kFill);
      if (done <= kIndexRowsMin || !watched.ok()) return;
      const StatusOr<EngineMemory> memory = engine->Memory();
      watched = memory.status();
      if (watched.ok()) Raise(&index_bytes_per_row, memory->index_bytes, done);
    };
    const auto body = [&](uint32_t thread, KeySpan keys) {
      Buffers& buffers = buffers_[thread];
      EMBANK_RETURN_IF_ERROR(engine->Fill(keys, {buffers.rows.data(), buffers.outcomes.data()}));
      return CheckOutcomes(keys, buffers.outcomes, Outcome::kCreated);
    };
    EMBANK_ASSIGN_OR_RETURN(const PhaseTiming timing, RunPhase(FillPlan(turn), body, watch));
    EMBANK_RETURN_IF_ERROR(watched);
    EMBANK_ASSIGN_OR_RETURN(const EngineMemory memory, engine->Memory());
    if (rows > kIndexRowsMin) Raise(&index_bytes_per_row, memory.index_bytes, rows);
    const FillMemory result{index_bytes_per_row, PerRow(memory.total_bytes, rows)};
    if (Wants(Phase::kFill)) Record(turn, Phase::kFill, options_.batch, timing, result);
    return result;
  }

  Status RunLimit(const Turn& turn) {
    const TableShape& shape = options_.shape;
    const RowLayout layout = MakeRowLayout(shape.dim, shape.value_type, shape.optimizer);
    EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<ProbeTable> table,
                            ProbeTable::Create({workload_.rows.size(), layout, PageKind::kHuge}));
    const auto fill = [&](uint32_t, KeySpan keys) {
      table->Fill(keys);
      return OkStatus();
    };
    EMBANK_ASSIGN_OR_RETURN(const PhaseTiming timing, RunPhase(FillPlan(turn), fill, [&](uint64_t) {
                              ShowPhase(Phase::kFill);
                            }));
    if (Wants(Phase::kFill)) Record(turn, Phase::kFill, options_.batch, timing, {});
    if (!HasStream()) return OkStatus();
    table->FindRows(workload_.rows);
    const auto lookup = [&](uint32_t thread, KeySpan keys) {
      table->Gather(keys, buffers_[thread].rows.data());
      return OkStatus();
    };
    const auto update = [&](uint32_t thread, KeySpan keys) {
      const KeySpan distinct = distinct_->Of(keys);
      table->ReadModifyWrite(distinct);
      buffers_[thread].unique_keys += distinct.size();
      return OkStatus();
    };
    EMBANK_RETURN_IF_ERROR(RunStream(turn, Phase::kLookup, {}, lookup));
    return RunStream(turn, Phase::kUpdate, {}, update);
  }

  PhasePlan FillPlan(const Turn& turn) const {
    return {workload_.rows, options_.batch, turn.threads, 0.0};
  }

  // Goes through the stream for the seconds of a phase, if the phase is wanted.
  Status RunStream(const Turn& turn, Phase phase, const FillMemory& memory, BatchBody body) {
    if (!Wants(phase)) return OkStatus();
    const PhasePlan plan{workload_.positions, options_.batch, turn.threads, options_.seconds};
    return RunTimed(turn, phase, memory, plan, body);
  }

  Status RunSmall(const Turn& turn, const FillMemory& memory, BatchBody body) {
    if (!Wants(Phase::kSmall)) return OkStatus();
    for (const uint64_t batch : kSmallBatches) {
      const PhasePlan plan{small_positions_, batch, turn.threads, options_.seconds};
      EMBANK_RETURN_IF_ERROR(RunTimed(turn, Phase::kSmall, memory, plan, body));
    }
    return OkStatus();
  }

  Status RunTimed(const Turn& turn, Phase phase, const FillMemory& memory, const PhasePlan& plan,
                  BatchBody body) {
    EMBANK_ASSIGN_OR_RETURN(const PhaseTiming timing,
                            RunPhase(plan, body, [&](uint64_t) { ShowPhase(phase); }));
    Record(turn, phase, plan.batch, timing, memory);
    return OkStatus();
  }

  static double PerRow(uint64_t bytes, uint64_t rows) {
    return static_cast<double>(bytes) / static_cast<double>(rows);
  }
  static void Raise(double* largest, uint64_t bytes, uint64_t rows) {
    *largest = std::max(*largest, PerRow(bytes, rows));
  }

  void ShowPhase(Phase phase) {
    const auto turns = static_cast<double>(options_.rounds * turns_.size());
    progress_->Update(static_cast<double>(turns_done_) / turns,
                      StrCat(note_, " ", PhaseName(phase)));
  }

  void Record(const Turn& turn, Phase phase, uint64_t batch, const PhaseTiming& timing,
              const FillMemory& memory) {
    KvSample sample{timing, 0, memory.index_bytes_per_row, memory.bytes_per_row};
    for (Buffers& buffers : buffers_) sample.unique_keys += std::exchange(buffers.unique_keys, 0);
    samples_.Record({turn.name, phase, turn.threads, batch}, sample);
  }

  const KvOptions& options_;
  const Workload& workload_;
  Progress* const progress_;
  const std::vector<Key> small_positions_;
  std::optional<DistinctKeys> distinct_;  // if updates are wanted
  std::vector<Buffers> buffers_;          // one per thread
  std::vector<Turn> turns_;               // of one round
  uint64_t turns_done_ = 0;
  KvSamples samples_;
  std::string note_;
};

}  // namespace

StatusOr<KvReport> RunKv(const KvOptions& options, Progress* progress) {
  if (options.distribution.kind != Distribution::Kind::kTrace) {
    EMBANK_RETURN_IF_ERROR(CheckMemory(options, options.rows));
  }
  EMBANK_ASSIGN_OR_RETURN(const Workload workload, MakeWorkload(options));
  EMBANK_RETURN_IF_ERROR(CheckMemory(options, workload.rows.size()));
  KvRun run(options, workload, progress);
  EMBANK_RETURN_IF_ERROR(run.Run());
  return run.Report();
}

}  // namespace embank
