#include "bench/tiers_run.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/clock.h"
#include "base/threads/executor.h"
#include "base/threads/joined_thread.h"
#include "bench/access_counts.h"
#include "bench/c_store.h"
#include "bench/distinct_keys.h"
#include "bench/latency_histogram.h"
#include "bench/replay.h"
#include "bench/run_directory.h"
#include "bench/table_options.h"
#include "store/table/options.h"
#include "tiers/row/row_layout.h"

namespace embank {
namespace {

// A long trace is cut to its beginning.
constexpr uint64_t kTiersPositionsMax = uint64_t{1} << 22;
// A run makes so many; the last one is at its end.
constexpr uint64_t kCheckpoints = 4;
// Batches are most of the progress bar; the comparison of all rows is the rest.
constexpr double kBatchesShare = 0.9;
// The DRAM that device memory takes beside headers: above all staging buffers.
constexpr uint64_t kStagingBytes = uint64_t{4} << 20;

// Lookups beside flushes: so many rounds of each kind, and batches of a round.
constexpr int kFlushRounds = 10;
constexpr uint64_t kFlushBatches = 60;

uint64_t ShareOf(uint64_t bytes, double share, uint64_t bytes_min) {
  return std::max(bytes_min, static_cast<uint64_t>(share * static_cast<double>(bytes)));
}

// The difference; 0 where it would be negative.
uint64_t Less(uint64_t from, uint64_t count) { return from - std::min(from, count); }

double Share(uint64_t part, uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<uint64_t>(1, whole));
}

class TiersRun {
 public:
  TiersRun(const TiersOptions& options, std::vector<Key> keys, Progress* progress)
      : options_(options),
        keys_(std::move(keys)),
        progress_(progress),
        checked_(options.replay.shape, options.replay.batch, options.replay.seed,
                 /*keeps_heat=*/false) {
    AccessCounts counts;
    counts.Add(keys_);
    const TableShape& shape = options.replay.shape;
    const RowLayout layout = MakeRowLayout(shape.dim, shape.value_type, shape.optimizer);
    row_bytes_ = layout.payload_bytes();
    report_.positions = keys_.size();
    report_.rows = counts.distinct();
    const uint64_t data_bytes = report_.rows * row_bytes_;
    report_.data_bytes = data_bytes;
    report_.hbm_bytes = ShareOf(data_bytes, options.hbm_share, kHbmBytesMin);
    report_.dram_bytes = ShareOf(data_bytes, options.dram_share, kDramBytesMin) + kStagingBytes;
    // Rows take three quarters of the log at most.
    report_.pmem_bytes = ShareOf(data_bytes, options.pmem_share * 4.0 / 3.0, kPmemBytesMin);
  }

  StatusOr<TiersReport> Run(const std::string& path, const std::string& pmem_path) {
    EMBANK_RETURN_IF_ERROR(Open(path, pmem_path));
    EMBANK_RETURN_IF_ERROR(RunBatches());
    EMBANK_RETURN_IF_ERROR(TakeFigures());
    EMBANK_RETURN_IF_ERROR(MeasureFlushes());
    EMBANK_RETURN_IF_ERROR(checked_.Scan([&](double scanned) {
      progress_->Update(kBatchesShare + (1.0 - kBatchesShare) * scanned, "comparing all rows");
    }));
    report_.lookup = checked_.lookup();
    report_.gradients = checked_.gradients();
    static_cast<OracleFigures&>(report_) = checked_.check().figures();
    return std::move(report_);
  }

 private:
  Status Open(const std::string& path, const std::string& pmem_path) {
    embank_store_options options;
    embank_store_options_init(&options, sizeof(options));
    options.flags = EMBANK_OPEN_CREATE;
    options.path = path.c_str();
    options.pmem_path = pmem_path.c_str();
    options.pmem_bytes = report_.pmem_bytes;
    options.hbm_bytes = report_.hbm_bytes;
    options.cuda_device = options_.cuda_device;
    options.dram_bytes = report_.dram_bytes;
    options.warmup_iters = options_.flush_iters;
    options.flush_iters = options_.flush_iters;
    options.worker_threads = options_.replay.threads;
    options.seed = options_.replay.seed;
    EMBANK_ASSIGN_OR_RETURN(CStore store, OpenCStore(options, options_.replay.shape));
    checked_.Take(std::move(store));
    return OkStatus();
  }

  Status RunBatches() {
    const uint64_t batch = options_.replay.batch;
    const uint64_t batches = (keys_.size() + batch - 1) / batch;
    const DistinctKeys distinct(keys_, batch);
    const uint64_t per_checkpoint = (batches + kCheckpoints - 1) / kCheckpoints;
    for (uint64_t i = 0; i < batches; ++i) {
      const uint64_t begin = i * batch;
      const KeySpan keys =
          KeySpan(keys_).subspan(begin, std::min<uint64_t>(batch, keys_.size() - begin));
      report_.distinct += distinct.Of(keys).size();
      EMBANK_RETURN_IF_ERROR(checked_.RunBatch(keys));
      progress_->Update(kBatchesShare * static_cast<double>(i + 1) / static_cast<double>(batches),
                        StrCat("tiers: ", checked_.positions(), " keys"));
      if ((i + 1) % per_checkpoint != 0 && i + 1 != batches) continue;
      EMBANK_RETURN_IF_ERROR(
          ToStatus(embank_checkpoint(checked_.store().store.get(), nullptr, 0, nullptr)));
      ++report_.checkpoints;
    }
    return OkStatus();
  }

  // Rows that it looks up change which rows the flushes choose.
  Status MeasureFlushes() {
    const CStore& store = checked_.store();
    LatencyHistogram alone;
    LatencyHistogram beside;
    const std::unique_ptr<Executor> executor = MakeThreadPool(1);
    for (int round = 0; round < kFlushRounds; ++round) {
      EMBANK_RETURN_IF_ERROR(LookUpBatches(&alone));
      std::atomic<bool> goes_on{true};
      std::atomic<uint64_t> flushes{0};
      const std::unique_ptr<JoinedThread> flusher = executor->MakeThread([&] {
        while (goes_on && embank_flush_hot(store.store.get()) == EMBANK_OK) ++flushes;
      });
      if (flusher == nullptr) return ResourceExhaustedError("the system refuses a thread");
      const Status status = LookUpBatches(&beside);
      goes_on = false;
      EMBANK_RETURN_IF_ERROR(status);
      report_.flush.flushes += flushes;
    }
    EMBANK_ASSIGN_OR_RETURN(const std::string text, MetricsOf(store));
    const auto us = [](uint64_t ns) { return static_cast<double>(ns) * 1e-3; };
    report_.flush.batches = alone.count();
    report_.flush.p50_alone_us = us(alone.PercentileNs(0.5));
    report_.flush.p99_alone_us = us(alone.PercentileNs(0.99));
    report_.flush.p50_beside_us = us(beside.PercentileNs(0.5));
    report_.flush.p99_beside_us = us(beside.PercentileNs(0.99));
    report_.flush.longest_wait_us =
        MetricIn(text, "embank_hot_longest_wait_seconds").value_or(0.0) * 1e6;
    return OkStatus();
  }

  // Goes on in the keys where the last call ended.
  Status LookUpBatches(LatencyHistogram* latency) {
    const uint64_t batch = std::min<uint64_t>(options_.replay.batch, keys_.size());
    std::vector<std::byte> rows(batch * row_bytes_);
    for (uint64_t i = 0; i < kFlushBatches; ++i, next_key_ += batch) {
      if (next_key_ + batch > keys_.size()) next_key_ = 0;
      const uint64_t begin_ns = SteadyClock()->NowNs();
      EMBANK_RETURN_IF_ERROR(
          ToStatus(embank_lookup(checked_.store().table, keys_.data() + next_key_, batch,
                                 EMBANK_MISSING_SKIP, rows.data(), 0, nullptr)));
      latency->Record(SteadyClock()->NowNs() - begin_ns);
    }
    return OkStatus();
  }

  Status TakeFigures() {
    const CStore& store = checked_.store();
    embank_table_info info = {};
    info.struct_size = sizeof info;
    EMBANK_RETURN_IF_ERROR(ToStatus(embank_table_get_info(store.table, &info)));
    EMBANK_ASSIGN_OR_RETURN(const std::string text, MetricsOf(store));
    const auto count = [&](const std::string& name) {
      return static_cast<uint64_t>(MetricIn(text, name).value_or(0.0));
    };
    const auto lookups = [&](const char* outcome) {
      return count(StrCat("embank_keys_total{table=\"", kTableName, "\",op=\"lookup\",outcome=\"",
                          outcome, "\"}"));
    };
    const auto tier = [&](const char* name, const char* label, uint64_t rows) {
      return TierFigures{.name = name,
                         .rows = rows,
                         .bytes = rows * row_bytes_,
                         .answered = count(StrCat("embank_lookup_hits_total{table=\"", kTableName,
                                                  "\",tier=\"", label, "\"}"))};
    };
    TierFigures hbm = tier("HBM", "hbm", info.rows_hbm);
    hbm.moved_in = count("embank_hot_arrived_rows_total");
    hbm.moved_out = count("embank_hot_left_rows_total");
    // Compaction and demotion read each row that they move.
    TierFigures pmem = tier("PMem", "pmem", info.rows_pmem);
    const uint64_t pmem_compacted = count("embank_pmem_compacted_rows_total");
    const uint64_t demoted = count("embank_pmem_demoted_rows_total");
    const uint64_t pmem_read = Less(count("embank_pmem_read_rows_total"), pmem_compacted + demoted);
    pmem.moved_in = count("embank_pmem_appended_rows_total") - pmem_compacted;
    pmem.moved_out = demoted;
    TierFigures ssd = tier("SSD", "ssd", info.rows_ssd);
    const uint64_t compacted = count("embank_log_compacted_rows_total");
    const uint64_t ssd_read = Less(
        count("embank_log_read_rows_total") + count("embank_log_buffered_reads_total"), compacted);
    ssd.moved_in = count("embank_log_appended_rows_total") - compacted;
    const TierFigures dram = tier("DRAM", "dram", info.rows_dram);
    report_.found = lookups("found");
    report_.created = lookups("created");
    // A batch reads the row of a key once, and creates it once.
    hbm.unique_share =
        Share(count("embank_hot_sampled_hits_total"), count("embank_hot_sampled_keys_total"));
    pmem.unique_share = Share(pmem_read, report_.distinct);
    ssd.unique_share = Share(ssd_read, report_.distinct);
    report_.tiers = {hbm, dram, pmem, ssd};
    report_.hot_flushes = count("embank_hot_flushes_total");
    report_.early_epochs = count("embank_hot_early_epochs_total");
    const bool is_twin = MetricIn(text, "embank_device_info{device=\"twin\"}").has_value();
    report_.device = is_twin ? "twin" : "CUDA";
    return OkStatus();
  }

  const TiersOptions& options_;
  const std::vector<Key> keys_;
  Progress* const progress_;
  uint64_t row_bytes_ = 0;
  uint64_t next_key_ = 0;  // of LookUpBatches
  CheckedStore checked_;
  TiersReport report_;
};

}  // namespace

StatusOr<TiersReport> RunTiers(const TiersOptions& options, Progress* progress) {
  const uint64_t begin_ns = SteadyClock()->NowNs();
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<KeySource> source, OpenSource(options.replay));
  EMBANK_ASSIGN_OR_RETURN(std::vector<Key> keys,
                          ReadKeys(source.get(), options.replay.batch, kTiersPositionsMax));
  if (keys.empty()) return InvalidArgumentError("--trace: it has no keys");
  const RunDirectory directory("--path", options.path);
  EMBANK_RETURN_IF_ERROR(directory.status());
  const std::string& parent = options.pmem_path.empty() ? options.path : options.pmem_path;
  const RunDirectory pmem_directory("--pmem", parent);
  EMBANK_RETURN_IF_ERROR(pmem_directory.status());
  TiersRun run(options, std::move(keys), progress);
  EMBANK_ASSIGN_OR_RETURN(TiersReport report, run.Run(directory.path(), pmem_directory.path()));
  report.source = source->Description();
  report.seconds = static_cast<double>(SteadyClock()->NowNs() - begin_ns) * 1e-9;
  return report;
}

}  // namespace embank
