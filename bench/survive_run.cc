#include "bench/survive_run.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/clock.h"
#include "bench/access_counts.h"
#include "bench/c_store.h"
#include "bench/killed_process.h"
#include "bench/replay.h"
#include "bench/run_directory.h"
#include "store/table/options.h"
#include "tiers/row/row_layout.h"

namespace embank {
namespace {

// A long trace is cut to its beginning.
constexpr uint64_t kSurvivePositionsMax = uint64_t{1} << 22;
// Checkpoints of a run without kills.
constexpr uint64_t kCheckpoints = 16;

// The messages of the process that is killed; their number counts finished batches.
enum Place : uint64_t { kOpening, kOpened, kBatchDone, kCheckpointBegins, kCheckpointDone };

class SurviveRun {
 public:
  SurviveRun(const SurviveOptions& options, std::vector<Key> keys, const std::string& directory,
             Progress* progress)
      : options_(options),
        keys_(std::move(keys)),
        batches_((keys_.size() + options.replay.batch - 1) / options.replay.batch),
        batches_per_checkpoint_(std::max<uint64_t>(1, batches_ / kCheckpoints)),
        directory_(directory),
        progress_(progress),
        checked_(options.replay.shape, options.replay.batch, options.replay.seed,
                 /*keeps_heat=*/false) {
    AccessCounts counts;
    counts.Add(keys_);
    const RowLayout layout = MakeRowLayout(
        options.replay.shape.dim, options.replay.shape.value_type, options.replay.shape.optimizer);
    report_.rows = counts.distinct();
    report_.positions = keys_.size();
    payload_bytes_ = layout.payload_bytes();
    report_.data_bytes = report_.rows * payload_bytes_;
    report_.dram_bytes = std::max(
        kDramBytesMin,
        static_cast<uint64_t>(options.dram_fraction * static_cast<double>(report_.data_bytes)));
  }

  StatusOr<SurviveReport> Run() {
    for (uint32_t kill = 0; kill < options_.kills; ++kill) EMBANK_RETURN_IF_ERROR(RunKilled(kill));
    EMBANK_RETURN_IF_ERROR(RunToTheEnd());
    static_cast<OracleFigures&>(report_) = checked_.check().figures();
    return std::move(report_);
  }

 private:
  KeySpan Batch(uint64_t i) const {
    const uint64_t begin = i * options_.replay.batch;
    return KeySpan(keys_).subspan(begin, std::min(options_.replay.batch, keys_.size() - begin));
  }

  Status Open() {
    embank_store_options options;
    embank_store_options_init(&options, sizeof(options));
    options.flags = EMBANK_OPEN_CREATE;
    options.path = directory_.c_str();
    options.dram_bytes = report_.dram_bytes;
    options.worker_threads = options_.replay.threads;
    options.seed = options_.replay.seed;
    EMBANK_ASSIGN_OR_RETURN(CStore store, OpenCStore(options, options_.replay.shape));
    checked_.Take(std::move(store));
    return OkStatus();
  }

  // The blob of a checkpoint is the number of batches that it has.
  Status Checkpoint(uint64_t batches) const {
    return ToStatus(
        embank_checkpoint(checked_.store().store.get(), &batches, sizeof batches, nullptr));
  }

  // 0: there is no checkpoint yet.
  StatusOr<uint64_t> BatchesFound() const {
    uint64_t batches = 0;
    uint64_t needed = 0;
    const embank_status status =
        embank_checkpoint_blob(checked_.store().store.get(), &batches, sizeof batches, &needed);
    if (status == EMBANK_NOT_FOUND) return 0;
    EMBANK_RETURN_IF_ERROR(ToStatus(status));
    return batches;
  }

  // In the process that is killed, whose oracle is where the store is.
  Status Train(KilledProcess::Tell tell) {
    tell({kOpening, done_});
    EMBANK_RETURN_IF_ERROR(Open());
    tell({kOpened, done_});
    while (done_ < batches_) {
      EMBANK_RETURN_IF_ERROR(checked_.RunBatch(Batch(done_)));
      ++done_;
      if (checked_.check().mismatches() > 0) {
        return InternalError(checked_.check().first_mismatch());
      }
      tell({kBatchDone, done_});
      if (done_ % batches_per_checkpoint_ != 0) continue;
      tell({kCheckpointBegins, done_});
      EMBANK_RETURN_IF_ERROR(Checkpoint(done_));
      tell({kCheckpointDone, done_});
    }
    // The parent that kills this process reads no further messages.
    for (;;) tell({kBatchDone, done_});
  }

  // Whether it is killed behind this step. Each goes on for a part of the batches.
  bool IsTheMoment(const Kill& kill, uint64_t target, KilledProcess::Step step) const {
    if (step.number == batches_) return true;
    switch (kill.where) {
      case KilledIn::kBatches:
        return step.place == kBatchDone && step.number >= target;
      case KilledIn::kCheckpoint:
        return step.place == kCheckpointBegins && step.number >= target;
      case KilledIn::kRecovery:
        return step.place == kOpening;
    }
    return true;
  }

  Status RunKilled(uint32_t number) {
    Kill kill;
    kill.where = static_cast<KilledIn>(number % 3);
    const uint64_t target = std::min(batches_, batches_ * (number + 1) / (options_.kills + 1));
    uint64_t durable = done_;
    {
      EMBANK_ASSIGN_OR_RETURN(
          KilledProcess process,
          KilledProcess::Start([&](KilledProcess::Tell tell) { return Train(tell); }));
      for (;;) {
        const std::optional<KilledProcess::Step> step = process.Next();
        if (!step.has_value()) return InternalError("the process ended before it was killed");
        if (step->place == kCheckpointDone) durable = step->number;
        kill.batches_told = step->number;
        Show(step->number, StrCat("to be killed: ", number + 1, " of ", options_.kills));
        if (IsTheMoment(kill, target, *step)) break;
      }
      process.Kill();
      // It may have gone on until then.
      while (const std::optional<KilledProcess::Step> step = process.Next()) {
        if (step->place == kCheckpointDone) durable = step->number;
        kill.batches_told = step->number;
      }
    }
    EMBANK_RETURN_IF_ERROR(Compare(durable, &kill));
    report_.kills.push_back(kill);
    return OkStatus();
  }

  // Opens what is left, and compares it with the oracle where the checkpoint was made.
  Status Compare(uint64_t durable, Kill* kill) {
    const uint64_t begin_ns = SteadyClock()->NowNs();
    EMBANK_RETURN_IF_ERROR(Open());
    kill->recover_seconds = SecondsSince(begin_ns);
    EMBANK_ASSIGN_OR_RETURN(kill->batches_found, BatchesFound());
    if (kill->batches_found < durable || kill->batches_found > batches_) {
      return InternalError(StrCat("the checkpoint of ", durable, " batches was durable, that of ",
                                  kill->batches_found, " was found"));
    }
    for (; done_ < kill->batches_found; ++done_) {
      EMBANK_RETURN_IF_ERROR(checked_.Follow(Batch(done_)));
    }
    EMBANK_RETURN_IF_ERROR(Scan());
    checked_.Close();
    return OkStatus();
  }

  Status Scan() {
    return checked_.Scan([&](double scanned) {
      Show(done_, StrCat("comparing: ", static_cast<int>(scanned * 100.0), " %"));
    });
  }

  // The rows and bytes that the store has read from its log since it was opened.
  struct LogReads {
    double reads = 0.0;
    double rows = 0.0;
  };
  StatusOr<LogReads> ReadsSoFar() const {
    EMBANK_ASSIGN_OR_RETURN(const std::string text, MetricsOf(checked_.store()));
    const auto value = [&](const char* name) { return MetricIn(text, name).value_or(0.0); };
    return LogReads{value("embank_log_reads_total"),
                    value("embank_log_read_rows_total") + value("embank_log_buffered_reads_total")};
  }

  // Runs the next batch. Reads of checkpoints between batches count for no batch.
  StatusOr<RunSlice> RunMeasuredBatch() {
    EMBANK_ASSIGN_OR_RETURN(const LogReads before, ReadsSoFar());
    EMBANK_ASSIGN_OR_RETURN(RunSlice batch, checked_.RunTimedBatch(Batch(done_)));
    ++done_;
    EMBANK_ASSIGN_OR_RETURN(const LogReads after, ReadsSoFar());
    reads_in_batches_ += after.reads - before.reads;
    const bool has_gradients = batch.gradients_ns > 0;
    batch.accesses = has_gradients ? 2 * batch.positions : batch.positions;
    const auto missed = static_cast<uint64_t>(after.rows - before.rows);
    batch.hits = batch.accesses - std::min(batch.accesses, missed);
    return batch;
  }

  Status RunToTheEnd() {
    SurviveFigures& figures = report_.figures;
    EMBANK_RETURN_IF_ERROR(Open());
    figures.positions_before = checked_.positions();
    RunSlices slices;
    while (done_ < batches_) {
      EMBANK_ASSIGN_OR_RETURN(const RunSlice batch, RunMeasuredBatch());
      slices.Add(batch);
      Show(done_, "to the end");
      if (done_ % batches_per_checkpoint_ != 0 && done_ != batches_) continue;
      const uint64_t begin_ns = SteadyClock()->NowNs();
      EMBANK_RETURN_IF_ERROR(Checkpoint(done_));
      figures.checkpoint_seconds.push_back(SecondsSince(begin_ns));
      figures.checkpoint_positions.push_back(checked_.positions());
    }
    figures.slices = slices.slices();
    EMBANK_RETURN_IF_ERROR(TakeFigures());
    checked_.Close();
    const uint64_t begin_ns = SteadyClock()->NowNs();
    EMBANK_RETURN_IF_ERROR(Open());
    figures.recover_seconds = SecondsSince(begin_ns);
    EMBANK_RETURN_IF_ERROR(Scan());
    figures.scan = checked_.scan();
    checked_.Close();
    return OkStatus();
  }

  Status TakeFigures() {
    EMBANK_ASSIGN_OR_RETURN(const std::string text, MetricsOf(checked_.store()));
    const auto value = [&](const char* name) { return MetricIn(text, name).value_or(0.0); };
    SurviveFigures& figures = report_.figures;
    RunSlice sum;
    for (const RunSlice& slice : figures.slices) {
      sum.accesses += slice.accesses;
      sum.hits += slice.hits;
    }
    if (sum.accesses > 0) figures.hit_ratio = sum.HitRatio();
    figures.lookup = checked_.lookup();
    figures.gradients = checked_.gradients();
    const double seconds =
        static_cast<double>(figures.lookup.nanoseconds + figures.gradients.nanoseconds) * 1e-9;
    const double appended =
        value("embank_log_appended_rows_total") - value("embank_log_compacted_rows_total");
    if (seconds > 0.0) figures.iops = reads_in_batches_ / seconds;
    if (appended > 0.0) {
      figures.write_amplification = value("embank_log_written_bytes_total") /
                                    (appended * static_cast<double>(payload_bytes_));
    }
    return OkStatus();
  }

  static double SecondsSince(uint64_t begin_ns) {
    return static_cast<double>(SteadyClock()->NowNs() - begin_ns) * 1e-9;
  }

  void Show(uint64_t batches, const std::string& note) {
    progress_->Update(static_cast<double>(batches) / static_cast<double>(batches_), note);
  }

  const SurviveOptions& options_;
  const std::vector<Key> keys_;
  const uint64_t batches_;
  const uint64_t batches_per_checkpoint_;
  const std::string directory_;
  Progress* const progress_;
  uint64_t payload_bytes_ = 0;
  CheckedStore checked_;
  uint64_t done_ = 0;              // batches that the oracle has been through
  double reads_in_batches_ = 0.0;  // of the log, since the last kill
  SurviveReport report_;
};

}  // namespace

StatusOr<SurviveReport> RunSurvive(const SurviveOptions& options, Progress* progress) {
  const uint64_t begin_ns = SteadyClock()->NowNs();
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<KeySource> source, OpenSource(options.replay));
  EMBANK_ASSIGN_OR_RETURN(std::vector<Key> keys,
                          ReadKeys(source.get(), options.replay.batch, kSurvivePositionsMax));
  if (keys.empty()) return InvalidArgumentError("--trace: it has no keys");
  const RunDirectory directory("--path", options.path);
  EMBANK_RETURN_IF_ERROR(directory.status());
  SurviveRun run(options, std::move(keys), directory.path(), progress);
  EMBANK_ASSIGN_OR_RETURN(SurviveReport report, run.Run());
  report.source = source->Description();
  report.seconds = static_cast<double>(SteadyClock()->NowNs() - begin_ns) * 1e-9;
  return report;
}

}  // namespace embank
