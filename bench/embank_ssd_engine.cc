#include "bench/embank_ssd_engine.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/clock.h"
#include "bench/c_store.h"
#include "bench/slow_sync.h"
#include "tiers/row/row_layout.h"

namespace embank {
namespace {

class EmbankSsdEngine final : public SsdEngine {
 public:
  EmbankSsdEngine(const SsdEngineConfig& config, EmbankSsdKind kind)
      : config_(config),
        kind_(kind),
        slow_files_(config.sync_us > 0 ? MakeSlowSyncFiles(config.sync_us) : nullptr) {}

  Status Open(uint32_t worker_threads) {
    embank_store_options options;
    embank_store_options_init(&options, sizeof(options));
    if (has_path()) {
      options.flags = EMBANK_OPEN_CREATE;
      options.path = config_.path.c_str();
      options.dram_bytes = config_.dram_bytes;
      options.ssd_bytes = config_.ssd_bytes;
      if (has_pmem()) {
        options.pmem_path = config_.pmem_path.c_str();
        options.pmem_bytes = config_.pmem_bytes;
      }
    }
    options.worker_threads = worker_threads;
    options.seed = config_.seed;
    const int32_t eviction = kind_ == EmbankSsdKind::kLfu ? EMBANK_EVICT_LFU : EMBANK_EVICT_CLOCK;
    StoreEnvironment environment;
    environment.files = slow_files_.get();
    EMBANK_ASSIGN_OR_RETURN(store_, OpenCStore(options, config_.shape, eviction, EMBANK_FULL_REFUSE,
                                               std::move(environment)));
    return OkStatus();
  }

  Status Write(KeySpan keys, const std::byte* vectors) override {
    return ToStatus(embank_upsert(store_.table, keys.data(), keys.size(), vectors, 0, nullptr));
  }

  Status Read(KeySpan keys, std::byte* vectors) override {
    thread_local std::vector<uint8_t> outcomes;
    outcomes.resize(keys.size());
    EMBANK_RETURN_IF_ERROR(ToStatus(embank_lookup(
        store_.table, keys.data(), keys.size(), EMBANK_MISSING_SKIP, vectors, 0, outcomes.data())));
    for (size_t i = 0; i < keys.size(); ++i) {
      if (outcomes[i] == EMBANK_ROW_FOUND) continue;
      return outcomes[i] == EMBANK_ROW_ABSENT
                 ? NotFoundError(StrCat("key ", keys[i], " has no row"))
                 : DataLossError(StrCat("key ", keys[i], ": its row is damaged"));
    }
    return OkStatus();
  }

  Status Scan(uint64_t batch, const ScanVisit& visit) override {
    embank_scan* opened = nullptr;
    EMBANK_RETURN_IF_ERROR(ToStatus(embank_scan_open(store_.table, &opened)));
    const ScanPointer scan(opened);
    std::vector<Key> keys(batch);
    std::vector<std::byte> vectors(
        batch * MakeRowLayout(config_.shape.dim, config_.shape.value_type, config_.shape.optimizer)
                    .vector_bytes);
    for (uint64_t n = 1; n > 0;) {
      EMBANK_RETURN_IF_ERROR(
          ToStatus(embank_scan_next(scan.get(), keys.data(), vectors.data(), 0, batch, &n)));
      EMBANK_RETURN_IF_ERROR(visit(KeySpan(keys).first(n), vectors.data()));
    }
    return OkStatus();
  }

  Status Checkpoint() override {
    if (!has_path()) return OkStatus();
    EMBANK_RETURN_IF_ERROR(ToStatus(embank_checkpoint(store_.store.get(), nullptr, 0, nullptr)));
    EMBANK_ASSIGN_OR_RETURN(const std::string text, MetricsOf(store_));
    const double barrier_us = MetricIn(text, "embank_checkpoint_flip_seconds").value_or(0.0) * 1e6;
    longest_barrier_us_ = std::max(longest_barrier_us_, barrier_us);
    return OkStatus();
  }
  // The remainder is buffers on their way to the device.
  Status Settle() override { return OkStatus(); }
  Status Compact() override { return OkStatus(); }

  StatusOr<double> Reopen() override {
    if (!has_path()) return UnimplementedError("a store in memory has nothing to open");
    EMBANK_RETURN_IF_ERROR(CountClosed());
    const uint64_t begin_ns = SteadyClock()->NowNs();
    EMBANK_RETURN_IF_ERROR(Open(config_.threads));
    const uint64_t taken_ns = SteadyClock()->NowNs() - begin_ns;
    if (config_.threads != kWorkerThreads) {
      store_ = {};
      EMBANK_RETURN_IF_ERROR(Open(kWorkerThreads));
    }
    return static_cast<double>(taken_ns) * 1e-9;
  }

  StatusOr<SsdCounters> Counters() const override {
    EMBANK_ASSIGN_OR_RETURN(const std::string text, MetricsOf(store_));
    const auto value = [&](const char* name) {
      return static_cast<uint64_t>(MetricIn(text, name).value_or(0.0));
    };
    SsdCounters counters = closed_;
    counters.reads += value("embank_log_reads_total");
    counters.missed_rows +=
        value("embank_log_read_rows_total") + value("embank_log_buffered_reads_total");
    counters.written_bytes += value("embank_log_written_bytes_total");
    counters.visited_slots += value("embank_checkpoint_visited_slots_total");
    counters.flushed_rows += value("embank_checkpoint_flushed_rows_total");
    counters.longest_barrier_us = longest_barrier_us_;
    counters.taken_bytes = value("embank_tier_bytes{tier=\"ssd\",kind=\"used\"}");
    if (!has_pmem()) return counters;
    SsdPmemCounters pmem = closed_.pmem.value_or(SsdPmemCounters());
    const uint64_t read_rows = value("embank_pmem_read_rows_total");
    counters.missed_rows += read_rows;
    pmem.read_rows += read_rows;
    pmem.written_buffers += value("embank_pmem_written_buffers_total");
    pmem.drains += value("embank_pmem_drains_total");
    pmem.ssd_appended_rows += value("embank_log_appended_rows_total");
    counters.pmem = pmem;
    return counters;
  }

  StatusOr<std::optional<uint64_t>> IndexBytes() const override {
    EMBANK_ASSIGN_OR_RETURN(const CStoreMemory memory, MemoryOf(store_));
    return memory.index_bytes;
  }

  static constexpr uint32_t kWorkerThreads = 1;

 private:
  bool has_path() const { return kind_ != EmbankSsdKind::kMemory; }
  bool has_pmem() const { return !config_.pmem_path.empty(); }

  // A store's counters end with it.
  Status CountClosed() {
    EMBANK_ASSIGN_OR_RETURN(closed_, Counters());
    store_ = {};
    return OkStatus();
  }

  const SsdEngineConfig config_;
  const EmbankSsdKind kind_;
  const std::unique_ptr<FileSystem> slow_files_;  // nullptr: the store has the system's
  CStore store_;
  SsdCounters closed_;  // of stores that were open before
  double longest_barrier_us_ = 0;
};

}  // namespace

std::optional<EmbankSsdKind> EmbankSsdKindOf(const std::string& engine) {
  if (engine == "embank") return EmbankSsdKind::kClock;
  if (engine == "embank-lfu") return EmbankSsdKind::kLfu;
  if (engine == "embank-memory") return EmbankSsdKind::kMemory;
  return std::nullopt;
}

StatusOr<std::unique_ptr<SsdEngine>> MakeEmbankSsdEngine(const SsdEngineConfig& config,
                                                         EmbankSsdKind kind) {
  auto engine = std::make_unique<EmbankSsdEngine>(config, kind);
  EMBANK_RETURN_IF_ERROR(engine->Open(EmbankSsdEngine::kWorkerThreads));
  return engine;
}

}  // namespace embank
