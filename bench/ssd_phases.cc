#include "bench/ssd_phases.h"

#include <sys/resource.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/clock.h"
#include "bench/ssd_rows.h"
#include "tiers/row/row_layout.h"

namespace embank {
namespace {

RowLayout LayoutOf(const SsdOptions& options) {
  return MakeRowLayout(options.shape.dim, options.shape.value_type, options.shape.optimizer);
}

// The processor time that all threads of the process have used.
struct CpuTime {
  double user_us = 0.0;
  double system_us = 0.0;
};

CpuTime CpuTimeNow() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  return {us(usage.ru_utime), us(usage.ru_stime)};
}

double SecondsSince(uint64_t begin_ns) {
  return static_cast<double>(std::max<uint64_t>(1, SteadyClock()->NowNs() - begin_ns)) * 1e-9;
}

void AddLatency(const LatencyHistogram& latency, SsdFigures* figures) {
  const auto us = [&](double fraction) {
    return static_cast<double>(latency.PercentileNs(fraction)) * 1e-3;
  };
  SsdFigures& f = *figures;
  f["batch_p50_us"] = us(0.5);
  f["batch_p99_us"] = us(0.99);
  f["batch_p999_us"] = us(0.999);
  f["batch_p999_over_p50"] = us(0.999) / std::max(1e-3, us(0.5));
  f["longest_batch_us"] = static_cast<double>(latency.max_ns()) * 1e-3;
}

double PositionsPerSecond(const PhaseTiming& timing) {
  return static_cast<double>(timing.positions) / timing.seconds;
}

// The bytes that an engine has written since a moment.
class WriteMeter {
 public:
  explicit WriteMeter(const SsdEngine& engine) : engine_(engine) {}
  Status Begin() {
    EMBANK_ASSIGN_OR_RETURN(before_, engine_.Counters());
    return OkStatus();
  }
  StatusOr<double> Bytes() const {
    EMBANK_ASSIGN_OR_RETURN(const SsdCounters now, engine_.Counters());
    return static_cast<double>(now.written_bytes - before_.written_bytes);
  }

 private:
  const SsdEngine& engine_;
  SsdCounters before_;
};

// Adds the work of a PMem tier in a phase of lookups, and its sums until now.
void AddPmem(const SsdPmemCounters& before, const SsdPmemCounters& after, const PhaseTiming& timing,
             double cpu_us, SsdFigures* figures) {
  const auto rows = static_cast<double>(after.read_rows - before.read_rows);
  SsdFigures& f = *figures;
  f["pmem_hit_ratio"] = rows / static_cast<double>(timing.positions);
  f["pmem_rows_per_second"] = rows / timing.seconds;
  if (rows > 0) f["pmem_cpu_us_per_row"] = cpu_us / rows;
  f["drains"] = static_cast<double>(after.drains);
  f["pmem_buffers_written"] = static_cast<double>(after.written_buffers);
}

// The rows that reach the device at least once, when each part ends with a checkpoint.
uint64_t DirtyRows(KeySpan keys, uint64_t part) {
  uint64_t rows = 0;
  absl::flat_hash_set<Key> seen;
  for (uint64_t first = 0; first < keys.size(); first += part) {
    const KeySpan span = keys.subspan(first, std::min<uint64_t>(part, keys.size() - first));
    seen.clear();
    seen.insert(span.begin(), span.end());
    rows += seen.size();
  }
  return rows;
}

// The first positions, whole batches, that have `rows` distinct keys, or all.
KeySpan WithDistinct(KeySpan keys, uint64_t rows, uint64_t batch) {
  absl::flat_hash_set<Key> seen;
  uint64_t count = 0;
  while (count < keys.size() && seen.size() < rows) seen.insert(keys[count++]);
  return keys.first(std::min<uint64_t>(keys.size(), (count + batch - 1) / batch * batch));
}

}  // namespace

SsdPhases::SsdPhases(const SsdOptions& options, const Workload& workload,
                     std::function<void()> observe)
    : options_(options),
      workload_(workload),
      observe_(std::move(observe)),
      vector_bytes_(LayoutOf(options).vector_bytes),
      payload_bytes_(LayoutOf(options).payload_bytes()) {
  const uint32_t peer_threads =
      *std::max_element(options.peer_threads.begin(), options.peer_threads.end());
  buffers_.resize(std::max(options.threads, peer_threads));
  for (Buffer& buffer : buffers_) buffer.vectors.resize(options.batch * vector_bytes_);
}

std::vector<std::string> SsdPhases::TakeNotes() { return std::exchange(notes_, {}); }

std::span<std::byte> SsdPhases::VectorOf(uint32_t thread, size_t i) {
  return std::span(buffers_[thread].vectors).subspan(i * vector_bytes_, vector_bytes_);
}

Status SsdPhases::WriteBatch(SsdEngine* engine, uint32_t thread, KeySpan keys) {
  for (size_t i = 0; i < keys.size(); ++i) WriteVersion(keys[i], version_, VectorOf(thread, i));
  return engine->Write(keys, buffers_[thread].vectors.data());
}

Status SsdPhases::ReadBatch(SsdEngine* engine, uint32_t thread, KeySpan keys) {
  EMBANK_RETURN_IF_ERROR(engine->Read(keys, buffers_[thread].vectors.data()));
  for (size_t i = 0; i < keys.size(); ++i) {
    if (IsVersionOf(keys[i], VectorOf(thread, i))) continue;
    return InternalError(StrCat("key ", keys[i], ": the row is another's, or torn"));
  }
  return OkStatus();
}

KeySpan SsdPhases::Ahead(uint64_t count) {
  const KeySpan stream = workload_.positions;
  const uint64_t wanted = count == 0 ? stream.size() / 2 : std::min(count, stream.size());
  if (next_position_ + wanted > stream.size()) next_position_ = 0;
  const KeySpan ahead = stream.subspan(next_position_);
  if (count == 0) return ahead;
  next_position_ += wanted;
  return ahead.first(wanted);
}

StatusOr<PhaseTiming> SsdPhases::WriteOnce(SsdEngine* engine, KeySpan keys) {
  return RunPhase(
      {keys, options_.batch, options_.threads, 0.0},
      [&](uint32_t thread, KeySpan batch) { return WriteBatch(engine, thread, batch); },
      [&](uint64_t) { observe_(); });
}

StatusOr<SsdFigures> SsdPhases::Fill(SsdEngine* engine) {
  WriteMeter written(*engine);
  EMBANK_RETURN_IF_ERROR(written.Begin());
  EMBANK_ASSIGN_OR_RETURN(const PhaseTiming timing, WriteOnce(engine, workload_.rows));
  const uint64_t settle_begin_ns = SteadyClock()->NowNs();
  EMBANK_RETURN_IF_ERROR(engine->Checkpoint());
  EMBANK_RETURN_IF_ERROR(engine->Compact());
  SsdFigures figures;
  figures["settle_seconds"] = SecondsSince(settle_begin_ns);
  figures["rows_per_second"] = PositionsPerSecond(timing);
  AddLatency(timing.latency, &figures);
  EMBANK_ASSIGN_OR_RETURN(const double bytes, written.Bytes());
  figures["write_amplification"] =
      bytes / static_cast<double>(workload_.rows.size() * payload_bytes_);
  return figures;
}

StatusOr<SsdFigures> SsdPhases::FillPmem(SsdEngine* engine) {
  EMBANK_RETURN_IF_ERROR(WriteOnce(engine, workload_.rows).status());
  EMBANK_ASSIGN_OR_RETURN(const SsdCounters before, engine->Counters());
  EMBANK_RETURN_IF_ERROR(engine->Checkpoint());
  EMBANK_ASSIGN_OR_RETURN(const SsdCounters after, engine->Counters());
  EMBANK_CHECK(before.pmem.has_value() && after.pmem.has_value());
  const uint64_t rows = after.pmem->ssd_appended_rows - before.pmem->ssd_appended_rows;
  return SsdFigures{{"ssd_rows_appended_by_checkpoint", static_cast<double>(rows)}};
}

StatusOr<SsdFigures> SsdPhases::Lookup(SsdEngine* engine, uint32_t threads, double seconds) {
  const PhasePlan plan{Ahead(0), options_.batch, threads, seconds};
  EMBANK_ASSIGN_OR_RETURN(const SsdCounters before, engine->Counters());
  const CpuTime cpu_before = CpuTimeNow();
  EMBANK_ASSIGN_OR_RETURN(
      const PhaseTiming timing,
      RunPhase(
          plan, [&](uint32_t thread, KeySpan batch) { return ReadBatch(engine, thread, batch); },
          [&](uint64_t) { observe_(); }));
  const CpuTime cpu_after = CpuTimeNow();
  EMBANK_ASSIGN_OR_RETURN(const SsdCounters after, engine->Counters());
  next_position_ += std::min<uint64_t>(timing.positions, plan.keys.size());
  const auto positions = static_cast<double>(timing.positions);
  const auto misses = static_cast<double>(after.missed_rows - before.missed_rows);
  SsdFigures figures;
  figures["rows_per_second"] = PositionsPerSecond(timing);
  AddLatency(timing.latency, &figures);
  figures["iops"] = static_cast<double>(after.reads - before.reads) / timing.seconds;
  const double system_us = cpu_after.system_us - cpu_before.system_us;
  const double cpu_us = cpu_after.user_us - cpu_before.user_us + system_us;
  figures["cpu_us_per_row"] = cpu_us / positions;
  if (misses > 0) {
    figures["cpu_us_per_miss"] = cpu_us / misses;
    figures["system_us_per_miss"] = system_us / misses;
  }
  figures["hit_ratio"] = std::max(0.0, 1.0 - misses / positions);
  figures["missed_rows_per_second"] = misses / timing.seconds;
  if (after.pmem.has_value()) AddPmem(*before.pmem, *after.pmem, timing, cpu_us, &figures);
  return figures;
}

// The time in which rows are looked at is not the engine's.
StatusOr<SsdFigures> SsdPhases::Scan(SsdEngine* engine) {
  EMBANK_ASSIGN_OR_RETURN(const SsdCounters before, engine->Counters());
  uint64_t rows = 0;
  uint64_t key_sum = 0;
  double looking_seconds = 0.0;
  const uint64_t begin_ns = SteadyClock()->NowNs();
  EMBANK_RETURN_IF_ERROR(
      engine->Scan(options_.batch, [&](KeySpan keys, const std::byte* vectors) -> Status {
        const uint64_t looking_begin_ns = SteadyClock()->NowNs();
        for (size_t i = 0; i < keys.size(); ++i) {
          if (!IsVersionOf(keys[i], {vectors + i * vector_bytes_, vector_bytes_})) {
            return InternalError(StrCat("key ", keys[i], ": the row is another's, or torn"));
          }
          key_sum += keys[i];
        }
        rows += keys.size();
        looking_seconds += SecondsSince(looking_begin_ns);
        return OkStatus();
      }));
  const double seconds = SecondsSince(begin_ns) - looking_seconds;
  EMBANK_ASSIGN_OR_RETURN(const SsdCounters after, engine->Counters());
  const KeySpan all = workload_.rows;
  if (rows != all.size() || key_sum != std::accumulate(all.begin(), all.end(), uint64_t{0})) {
    return InternalError(
        StrCat("a scan gave ", rows, " rows, some of them twice, of ", all.size()));
  }
  SsdFigures figures;
  figures["rows_per_second"] = static_cast<double>(rows) / seconds;
  figures["scan_seconds"] = seconds;
  figures["scan_bytes_per_second"] = static_cast<double>(rows * payload_bytes_) / seconds;
  figures["iops"] = static_cast<double>(after.reads - before.reads) / seconds;
  return figures;
}

// The engine's budget is used up: a figure, not a failure of the benchmark.
bool SsdPhases::NoteFull(const Status& status, const char* phase) {
  if (!IsResourceExhausted(status)) return false;
  notes_.push_back(StrCat(phase, ": ended early: ", status.message()));
  return true;
}

Status SsdPhases::OverwritePart(SsdEngine* engine, KeySpan keys, bool with_checkpoint,
                                PhaseTiming* timing) {
  ++version_;
  bool checkpoint_is_due = with_checkpoint;
  Status checkpoint;
  EMBANK_ASSIGN_OR_RETURN(const PhaseTiming part, RunPhase(
                                                      {keys, options_.batch, options_.threads, 0.0},
                                                      [&](uint32_t thread, KeySpan batch) {
                                                        return WriteBatch(engine, thread, batch);
                                                      },
                                                      [&](uint64_t) {
                                                        if (std::exchange(checkpoint_is_due, false))
                                                          checkpoint = engine->Checkpoint();
                                                        observe_();
                                                      }));
  timing->positions += part.positions;
  timing->latency.Merge(part.latency);
  return checkpoint;
}

StatusOr<SsdFigures> SsdPhases::Overwrite(SsdEngine* engine) {
  const auto rows = static_cast<double>(workload_.rows.size());
  const KeySpan keys =
      Ahead(std::max<uint64_t>(1, static_cast<uint64_t>(rows * options_.overwrites)));
  const uint64_t part = std::max<uint64_t>(1, workload_.rows.size() / kCheckpointsPerTable);
  WriteMeter written(*engine);
  EMBANK_RETURN_IF_ERROR(written.Begin());
  PhaseTiming timing;
  double checkpoints = 0;
  Status status;
  const uint64_t begin_ns = SteadyClock()->NowNs();
  for (uint64_t first = 0; first < keys.size() && status.ok(); first += part) {
    const KeySpan span = keys.subspan(first, std::min<uint64_t>(part, keys.size() - first));
    status = OverwritePart(engine, span, first > 0, &timing);
    if (first > 0 && status.ok()) ++checkpoints;
  }
  const double seconds = SecondsSince(begin_ns);
  if (status.ok()) status = engine->Checkpoint();
  if (!status.ok() && !NoteFull(status, "overwrite")) return status;
  EMBANK_RETURN_IF_ERROR(engine->Settle());
  EMBANK_ASSIGN_OR_RETURN(const double bytes, written.Bytes());
  EMBANK_ASSIGN_OR_RETURN(const SsdCounters now, engine->Counters());
  SsdFigures figures;
  if (now.taken_bytes > 0) figures["taken_bytes"] = static_cast<double>(now.taken_bytes);
  figures["overwritten"] = static_cast<double>(timing.positions) / rows;
  if (timing.positions == 0) return figures;
  const uint64_t dirty_rows = DirtyRows(keys.first(timing.positions), part);
  figures["rows_per_second"] = static_cast<double>(timing.positions) / seconds;
  AddLatency(timing.latency, &figures);
  figures["checkpoints"] = checkpoints + (status.ok() ? 1 : 0);
  figures["write_amplification"] = bytes / static_cast<double>(dirty_rows * payload_bytes_);
  figures["written_bytes_per_second"] = bytes / SecondsSince(begin_ns);
  return figures;
}

// Reads and writes the same batches, as training does.
StatusOr<PhaseTiming> SsdPhases::Train(SsdEngine* engine, KeySpan keys,
                                       std::vector<double>* checkpoints) {
  ++version_;
  const PhasePlan plan{keys, options_.batch, options_.threads, options_.seconds};
  Status checkpoint;
  EMBANK_ASSIGN_OR_RETURN(PhaseTiming timing,
                          RunPhase(
                              plan,
                              [&](uint32_t thread, KeySpan batch) {
                                EMBANK_RETURN_IF_ERROR(ReadBatch(engine, thread, batch));
                                return WriteBatch(engine, thread, batch);
                              },
                              [&](uint64_t) {
                                if (checkpoints != nullptr && checkpoint.ok()) {
                                  const uint64_t begin_ns = SteadyClock()->NowNs();
                                  checkpoint = engine->Checkpoint();
                                  checkpoints->push_back(SecondsSince(begin_ns));
                                }
                                observe_();
                              }));
  if (options_.changed == 0)
    next_position_ += std::min<uint64_t>(timing.positions, plan.keys.size());
  EMBANK_RETURN_IF_ERROR(checkpoint);
  return timing;
}

Status SsdPhases::TrainBeside(SsdEngine* engine, SsdFigures* figures) {
  SsdFigures& f = *figures;
  const auto keys = [&] {
    return options_.changed == 0
               ? Ahead(0)
               : WithDistinct(workload_.positions, options_.changed, options_.batch);
  };
  EMBANK_ASSIGN_OR_RETURN(const PhaseTiming alone, Train(engine, keys(), nullptr));
  EMBANK_ASSIGN_OR_RETURN(const SsdCounters before, engine->Counters());
  std::vector<double> checkpoints;
  EMBANK_ASSIGN_OR_RETURN(const PhaseTiming beside, Train(engine, keys(), &checkpoints));
  EMBANK_ASSIGN_OR_RETURN(const SsdCounters after, engine->Counters());
  const auto made = static_cast<double>(checkpoints.size());
  if (made > 0) {
    const double sum = std::accumulate(checkpoints.begin(), checkpoints.end(), 0.0);
    f["checkpoint_seconds_beside"] = sum / made;
    f["visited_slots_per_checkpoint"] =
        static_cast<double>(after.visited_slots - before.visited_slots) / made;
    f["flushed_rows_per_checkpoint"] =
        static_cast<double>(after.flushed_rows - before.flushed_rows) / made;
  }
  const auto p95_us = [](const PhaseTiming& timing) {
    return static_cast<double>(timing.latency.PercentileNs(0.95)) * 1e-3;
  };
  f["trainer_batch_p95_us"] = p95_us(alone);
  f["trainer_batch_p95_us_beside"] = p95_us(beside);
  f["trainer_p95_ratio"] = p95_us(beside) / std::max(1e-3, p95_us(alone));
  f["trainer_rows_per_second"] = PositionsPerSecond(alone);
  f["trainer_slowdown"] = 1.0 - PositionsPerSecond(beside) / PositionsPerSecond(alone);
  AddLatency(beside.latency, figures);
  if (after.longest_barrier_us > 0) f["longest_flip_us"] = after.longest_barrier_us;
  return OkStatus();
}

StatusOr<SsdFigures> SsdPhases::Checkpoint(SsdEngine* engine) {
  SsdFigures figures;
  const auto measure = [&]() -> Status {
    ++version_;
    const uint64_t rows = std::max<uint64_t>(1, workload_.rows.size() / kCheckpointsPerTable);
    EMBANK_RETURN_IF_ERROR(WriteOnce(engine, Ahead(rows)).status());
    WriteMeter written(*engine);
    EMBANK_RETURN_IF_ERROR(written.Begin());
    const uint64_t begin_ns = SteadyClock()->NowNs();
    EMBANK_RETURN_IF_ERROR(engine->Checkpoint());
    const double seconds = SecondsSince(begin_ns);
    EMBANK_ASSIGN_OR_RETURN(const double bytes, written.Bytes());
    figures["checkpoint_seconds"] = seconds;
    figures["checkpoint_bytes_per_second"] = bytes / seconds;
    EMBANK_RETURN_IF_ERROR(engine->Settle());
    EMBANK_RETURN_IF_ERROR(TrainBeside(engine, &figures));
    return engine->Settle();
  };
  const Status status = measure();
  if (!status.ok() && !NoteFull(status, "checkpoint")) return status;
  return figures;
}

// They are as they were written last, and a checkpoint had them.
Status SsdPhases::ReadMarked(SsdEngine* engine, KeySpan keys) {
  const uint64_t batch = options_.batch;
  for (uint64_t first = 0; first < keys.size(); first += batch) {
    const KeySpan span = keys.subspan(first, std::min<uint64_t>(batch, keys.size() - first));
    EMBANK_RETURN_IF_ERROR(ReadBatch(engine, 0, span));
    for (size_t i = 0; i < span.size(); ++i) {
      if (VersionIn(VectorOf(0, i)) == (version_ & kRowVersionMax)) continue;
      return InternalError(StrCat("key ", span[i], ": what a checkpoint had is gone"));
    }
  }
  return OkStatus();
}

StatusOr<SsdFigures> SsdPhases::Recover(SsdEngine* engine) {
  constexpr uint64_t kMarkedMax = uint64_t{1} << 16;
  constexpr uint64_t kReadMax = uint64_t{1} << 20;
  ++version_;
  const KeySpan marked = Ahead(std::min<uint64_t>(kMarkedMax, workload_.rows.size()));
  Status marks = WriteOnce(engine, marked).status();
  if (marks.ok()) marks = engine->Checkpoint();
  if (!marks.ok() && !NoteFull(marks, "recover")) return marks;
  EMBANK_RETURN_IF_ERROR(engine->Settle());
  EMBANK_ASSIGN_OR_RETURN(const double seconds, engine->Reopen());
  EMBANK_ASSIGN_OR_RETURN(const std::optional<uint64_t> index_bytes, engine->IndexBytes());
  const auto rows = static_cast<double>(workload_.rows.size());
  SsdFigures figures;
  figures["recover_seconds"] = seconds;
  figures["rows_per_second"] = rows / seconds;
  if (index_bytes.has_value()) {
    figures["index_bytes_per_row"] = static_cast<double>(*index_bytes) / rows;
  }
  if (marks.ok()) EMBANK_RETURN_IF_ERROR(ReadMarked(engine, marked));
  const KeySpan all = workload_.rows;
  const PhasePlan plan{all.first(std::min<uint64_t>(kReadMax, all.size())), options_.batch,
                       options_.threads, 0.0};
  EMBANK_RETURN_IF_ERROR(
      RunPhase(
          plan, [&](uint32_t thread, KeySpan batch) { return ReadBatch(engine, thread, batch); },
          [&](uint64_t) { observe_(); })
          .status());
  return figures;
}

}  // namespace embank
