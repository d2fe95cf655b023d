#include "bench/ssd_run.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "bench/embank_ssd_engine.h"
#include "bench/fio_probe.h"
#include "bench/rocksdb_engine.h"
#include "bench/run_directory.h"
#include "bench/ssd_phases.h"
#include "bench/workload.h"
#include "store/table/options.h"
#include "tiers/row/row_layout.h"
#include "tiers/segment/log_record.h"

namespace embank {
namespace {

// The store of the phase pmem.
constexpr const char* kPmemEngine = "embank-pmem";

bool IsPeer(const std::string& engine) {
  return engine != kPmemEngine && !EmbankSsdKindOf(engine).has_value();
}

// The free bytes of the directory that an option names.
StatusOr<double> FreeBytesAt(const char* option, const std::string& path) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(path, error);
  if (!error && std::filesystem::is_directory(path, error)) {
    return static_cast<double>(space.available);
  }
  return InvalidArgumentError(StrCat(option, ": ", path, ": no directory"));
}

// Copies of the data that may lie on the device at once: an engine's before it has removed what was
// overwritten, and fio's.
Status CheckSpace(const SsdOptions& options, const SsdSizes& sizes) {
  constexpr double kCopiesPerEngine = 2.5;
  EMBANK_ASSIGN_OR_RETURN(const double free, FreeBytesAt("--path", options.path));
  const size_t engines = options.engines.size() + (sizes.pmem_bytes > 0 ? 1 : 0);
  const double copies = 1.0 + kCopiesPerEngine * static_cast<double>(engines);
  const double needed = copies * static_cast<double>(sizes.data_bytes);
  if (needed > free) {
    return InvalidArgumentError(absl::StrFormat(
        "--rows: %d rows of %d bytes need %.1f GiB, %s has %.1f GiB free", sizes.rows,
        sizes.payload_bytes, needed * 0x1p-30, options.path, free * 0x1p-30));
  }
  if (sizes.pmem_bytes == 0) return OkStatus();
  EMBANK_ASSIGN_OR_RETURN(const double pmem_free, FreeBytesAt("--pmem", options.pmem_path));
  if (static_cast<double>(sizes.pmem_bytes) <= pmem_free) return OkStatus();
  return InvalidArgumentError(
      absl::StrFormat("--pmem-bytes: %d bytes do not fit, %s has %.1f GiB free", sizes.pmem_bytes,
                      options.pmem_path, pmem_free * 0x1p-30));
}

KvOptions StreamOptions(const SsdOptions& options) {
  KvOptions stream;
  stream.rows = options.rows;
  stream.distribution = options.distribution;
  stream.trace_format = options.trace_format;
  stream.batch = options.batch;
  stream.seed = options.seed;
  return stream;
}

class SsdRun {
 public:
  SsdRun(const SsdOptions& options, const Workload& workload, const std::string& directory,
         const std::string& pmem_directory, Progress* progress)
      : options_(options),
        sizes_(SizesOf(options, workload.rows.size())),
        directory_(directory),
        pmem_directory_(pmem_directory),
        progress_(progress),
        phases_(options, workload, [this] { Show(); }) {}

  Status Run() {
    EMBANK_RETURN_IF_ERROR(MakeEngines());
    MakeFio();
    CountParts();
    for (Member& member : engines_) {
      EMBANK_RETURN_IF_ERROR(RunPart(&member, SsdPhase::kFill, options_.threads, nullptr));
    }
    EMBANK_RETURN_IF_ERROR(MakePmem());
    for (round_ = 0; round_ < options_.rounds; ++round_) {
      for (const SsdPhase phase :
           {SsdPhase::kLookup, SsdPhase::kPmem, SsdPhase::kScan, SsdPhase::kOverwrite,
            SsdPhase::kCheckpoint, SsdPhase::kRecover}) {
        if (Wants(phase)) EMBANK_RETURN_IF_ERROR(RunRound(phase));
      }
    }
    return OkStatus();
  }

  SsdReport Report() {
    SsdReport report;
    report.sizes = sizes_;
    for (const SsdPhase phase :
         {SsdPhase::kFill, SsdPhase::kLookup, SsdPhase::kPmem, SsdPhase::kScan,
          SsdPhase::kOverwrite, SsdPhase::kCheckpoint, SsdPhase::kRecover}) {
      if (!Wants(phase)) continue;
      phase == SsdPhase::kPmem ? AddPmemResults(&report.results)
                               : AddResults(phase, &report.results);
    }
    report.notes = std::move(notes_);
    return report;
  }

 private:
  struct Member {
    std::string name;
    std::unique_ptr<SsdEngine> engine;
    bool is_warm = false;
    bool is_compact = true;
  };
  // An engine with so many threads, or fio.
  struct Turn {
    Member* member;  // nullptr: fio
    uint32_t threads;
  };

  bool Wants(SsdPhase phase) const {
    return std::count(options_.phases.begin(), options_.phases.end(), phase) > 0;
  }

  StatusOr<std::unique_ptr<SsdEngine>> MakeEngine(const std::string& name) const {
    const std::string path = StrCat(directory_, "/", name);
    std::filesystem::create_directory(path);
    SsdEngineConfig config;
    config.shape = options_.shape;
    config.seed = options_.seed;
    config.path = path;
    config.dram_bytes = sizes_.dram_bytes;
    config.ssd_bytes = sizes_.ssd_bytes;
    config.threads = options_.threads;
    config.sync_us = options_.sync_us;
    if (name == kPmemEngine) {
      config.pmem_path = pmem_directory_;
      config.pmem_bytes = sizes_.pmem_bytes;
      return MakeEmbankSsdEngine(config, EmbankSsdKind::kClock);
    }
    const std::optional<EmbankSsdKind> kind = EmbankSsdKindOf(name);
    if (kind.has_value()) return MakeEmbankSsdEngine(config, *kind);
    return MakeRocksdbEngine(config,
                             name == "rocksdb" ? RocksdbCache::kBlocks : RocksdbCache::kRows);
  }

  // A peer that cannot be had is left out.
  Status MakeEngines() {
    for (const std::string& name : options_.engines) {
      StatusOr<std::unique_ptr<SsdEngine>> engine = MakeEngine(name);
      if (engine.ok()) {
        engines_.push_back({name, *std::move(engine)});
        continue;
      }
      if (!IsPeer(name)) return engine.status();
      notes_.push_back(StrCat(name, " is left out: ", engine.status().message()));
    }
    if (!engines_.empty()) return OkStatus();
    return InvalidArgumentError(StrCat("--engines: ", notes_.front()));
  }

  // The store of the phase pmem, filled. Where no PMem tier can be had, the phase is left out.
  Status MakePmem() {
    if (!Wants(SsdPhase::kPmem)) return OkStatus();
    note_ = StrCat(kPmemEngine, " fill");
    Show();
    StatusOr<std::unique_ptr<SsdEngine>> engine = MakeEngine(kPmemEngine);
    if (IsUnavailable(engine.status()) || IsUnimplemented(engine.status())) {
      notes_.push_back(StrCat("the phase pmem is left out: ", engine.status().message()));
      return OkStatus();
    }
    EMBANK_RETURN_IF_ERROR(engine.status());
    pmem_ = {kPmemEngine, *std::move(engine)};
    EMBANK_ASSIGN_OR_RETURN(pmem_filled_, phases_.FillPmem(pmem_.engine.get()));
    ++parts_done_;
    return OkStatus();
  }

  bool NeedsFio() const {
    return std::any_of(options_.phases.begin(), options_.phases.end(), [](SsdPhase phase) {
      return phase != SsdPhase::kFill && phase != SsdPhase::kPmem;
    });
  }

  // Counts the phases of an engine, for the progress.
  void CountParts() {
    const bool has_pmem = Wants(SsdPhase::kPmem);
    const size_t own = (Wants(SsdPhase::kFill) ? 1 : 0) + (has_pmem ? 1 : 0);
    const size_t per_round = (options_.phases.size() - own) * engines_.size() + (has_pmem ? 1 : 0);
    parts_ = engines_.size() + (has_pmem ? 1 : 0) + options_.rounds * per_round;
  }

  void MakeFio() {
    if (!NeedsFio()) return;
    note_ = "fio";
    Show();
    StatusOr<std::unique_ptr<FioProbe>> fio = FioProbe::Create(directory_, sizes_.data_bytes);
    if (fio.ok()) {
      fio_ = *std::move(fio);
    } else {
      notes_.push_back(std::string(fio.status().message()));
    }
  }

  // Returns the measurements of fio, if it is installed. After its first failure it is not run
  // again.
  template <typename Value>
  std::optional<Value> FromFio(const StatusOr<Value>& measured) {
    if (measured.ok()) return *measured;
    notes_.push_back(std::string(measured.status().message()));
    fio_.reset();
    return std::nullopt;
  }

  StatusOr<SsdFigures> Measure(Member* member, SsdPhase phase, uint32_t threads) {
    SsdEngine* const engine = member->engine.get();
    switch (phase) {
      case SsdPhase::kFill:
        return phases_.Fill(engine);
      case SsdPhase::kLookup:
      case SsdPhase::kPmem:
        EMBANK_RETURN_IF_ERROR(Warm(member));
        return phases_.Lookup(engine, threads, options_.seconds);
      case SsdPhase::kScan:
        EMBANK_RETURN_IF_ERROR(Warm(member));
        return phases_.Scan(engine);
      case SsdPhase::kOverwrite:
        return phases_.Overwrite(engine);
      case SsdPhase::kCheckpoint:
        return phases_.Checkpoint(engine);
      case SsdPhase::kRecover:
        return phases_.Recover(engine);
    }
    return InternalError("no such phase");
  }

  // Lookups begin with rows in their best order and memory full of the rows that are looked up.
  Status Warm(Member* member) {
    if (!std::exchange(member->is_compact, true)) {
      EMBANK_RETURN_IF_ERROR(member->engine->Compact());
    }
    if (std::exchange(member->is_warm, true) || options_.warmup == 0.0) return OkStatus();
    const uint32_t threads = IsPeer(member->name) ? *std::max_element(options_.peer_threads.begin(),
                                                                      options_.peer_threads.end())
                                                  : options_.threads;
    return phases_.Lookup(member->engine.get(), threads, options_.warmup).status();
  }

  // A phase of an engine; recorded at once, or given out.
  Status RunPart(Member* member, SsdPhase phase, uint32_t threads, SsdFigures* out) {
    note_ = absl::StrFormat("round %d/%d  %s %d %s", std::min(round_ + 1, options_.rounds),
                            options_.rounds, member->name, threads, PhaseName(phase));
    StatusOr<SsdFigures> figures = Measure(member, phase, threads);
    if (!figures.ok()) {
      return Status(figures.status().code(), StrCat(note_, ": ", figures.status().message()));
    }
    for (const std::string& note : phases_.TakeNotes()) {
      notes_.push_back(StrCat(member->name, ", round ", round_ + 1, ": ", note));
    }
    if (phase == SsdPhase::kRecover) member->is_warm = false;
    const bool writes = phase == SsdPhase::kOverwrite || phase == SsdPhase::kCheckpoint ||
                        phase == SsdPhase::kRecover;
    if (writes) member->is_compact = false;
    if (phase != SsdPhase::kLookup) ++parts_done_;
    if (out != nullptr) {
      *out = *std::move(figures);
    } else if (Wants(phase)) {
      samples_.Record({phase, member->name, threads}, *figures);
    }
    return OkStatus();
  }

  std::vector<Turn> LookupTurns() {
    std::vector<Turn> turns;
    for (Member& member : engines_) {
      if (!IsPeer(member.name)) {
        turns.push_back({&member, options_.threads});
        continue;
      }
      for (const uint32_t threads : options_.peer_threads) turns.push_back({&member, threads});
    }
    if (fio_ != nullptr) turns.push_back({nullptr, options_.threads});
    return turns;
  }

  Status RunRound(SsdPhase phase) {
    if (phase == SsdPhase::kLookup) return RunLookups();
    return phase == SsdPhase::kPmem ? RunPmem() : RunOthers(phase);
  }

  Status RunPmem() {
    if (pmem_.engine == nullptr) return OkStatus();
    SsdFigures figures;
    EMBANK_RETURN_IF_ERROR(RunPart(&pmem_, SsdPhase::kPmem, options_.threads, &figures));
    figures.insert(pmem_filled_.begin(), pmem_filled_.end());
    samples_.Record({SsdPhase::kPmem, pmem_.name, options_.threads}, figures);
    return OkStatus();
  }

  // Another one begins each round, fio among them; its figure is that of the round.
  Status RunLookups() {
    const std::vector<Turn> turns = LookupTurns();
    std::vector<std::pair<SsdCase, SsdFigures>> round;
    std::optional<FioReads> fio;
    for (size_t i = 0; i < turns.size(); ++i) {
      const Turn& turn = turns[(i + round_) % turns.size()];
      if (turn.member == nullptr) {
        note_ = "fio";
        Show();
        fio = FromFio(fio_->RandomReads(options_.depth, options_.threads, options_.seconds));
        continue;
      }
      SsdFigures figures;
      EMBANK_RETURN_IF_ERROR(RunPart(turn.member, SsdPhase::kLookup, turn.threads, &figures));
      round.emplace_back(SsdCase{SsdPhase::kLookup, turn.member->name, turn.threads},
                         std::move(figures));
    }
    parts_done_ += engines_.size();
    for (auto& [which, figures] : round) {
      if (fio.has_value()) {
        figures["fio_iops"] = fio->per_second;
        figures["fio_cpu_us_per_read"] = fio->cpu_us_per_read;
        figures["fraction_of_fio"] = figures["iops"] / fio->per_second;
      }
      samples_.Record(which, figures);
    }
    return OkStatus();
  }

  // One of the other phases; what fio says of the device is measured in the same round.
  Status RunOthers(SsdPhase phase) {
    std::optional<double> write;
    std::optional<double> read;
    if (fio_ != nullptr && phase == SsdPhase::kCheckpoint) write = FromFio(fio_->SequentialWrite());
    const bool is_scan = phase == SsdPhase::kScan;
    if (fio_ != nullptr && (is_scan || phase == SsdPhase::kRecover)) {
      read = FromFio(fio_->SequentialRead());
    }
    for (size_t i = 0; i < engines_.size(); ++i) {
      Member& member = engines_[(i + round_) % engines_.size()];
      SsdFigures figures;
      EMBANK_RETURN_IF_ERROR(RunPart(&member, phase, options_.threads, &figures));
      if (write.has_value()) AddWriteLimit(*write, &figures);
      if (read.has_value() && !is_scan) AddReadLimit(*read, &figures);
      if (read.has_value() && is_scan) {
        figures["fio_read_bytes_per_second"] = *read;
        figures["fraction_of_fio_read"] = figures["scan_bytes_per_second"] / *read;
      }
      samples_.Record({phase, member.name, options_.threads}, figures);
    }
    return OkStatus();
  }

  static void AddWriteLimit(double bytes_per_second, SsdFigures* figures) {
    (*figures)["fio_write_bytes_per_second"] = bytes_per_second;
    const auto found = figures->find("checkpoint_bytes_per_second");
    if (found == figures->end()) return;
    (*figures)["fraction_of_fio_write"] = found->second / bytes_per_second;
  }

  // Keys and tables of all rows, read in order: what no recovery can do without.
  void AddReadLimit(double bytes_per_second, SsdFigures* figures) const {
    constexpr double kFooterBytesPerRow = 10.0;
    const double seconds = kFooterBytesPerRow * static_cast<double>(sizes_.rows) / bytes_per_second;
    (*figures)["footer_read_seconds"] = seconds;
    (*figures)["times_footer_read"] = (*figures)["recover_seconds"] / seconds;
  }

  void AddResults(SsdPhase phase, std::vector<SsdResult>* results) const {
    double best_peer = 0.0;
    double memory = 0.0;
    for (const Member& member : engines_) {
      const bool is_memory = EmbankSsdKindOf(member.name) == EmbankSsdKind::kMemory;
      if (!IsPeer(member.name) && !is_memory) continue;
      double& best = is_memory ? memory : best_peer;
      for (const SsdResult& result : samples_.Results(phase, member.name)) {
        best = std::max(best, result.Figure("rows_per_second").value_or(0.0));
      }
    }
    for (const Member& member : engines_) {
      for (SsdResult& result : samples_.Results(phase, member.name)) {
        const std::optional<double> rate = result.Figure("rows_per_second");
        if (rate.has_value() && !IsPeer(member.name)) {
          if (best_peer > 0.0) result.figures["times_best_peer"] = *rate / best_peer;
          if (memory > 0.0) result.figures["times_memory"] = *rate / memory;
        }
        results->push_back(std::move(result));
      }
    }
  }

  // Beside the rows that the same store without PMem had from the SSD.
  void AddPmemResults(std::vector<SsdResult>* results) const {
    const std::vector<SsdResult> lookups = samples_.Results(SsdPhase::kLookup, "embank");
    for (SsdResult& result : samples_.Results(SsdPhase::kPmem, kPmemEngine)) {
      const double ssd =
          lookups.empty() ? 0.0 : lookups[0].Figure("missed_rows_per_second").value_or(0.0);
      const double pmem = result.Figure("pmem_rows_per_second").value_or(0.0);
      if (ssd > 0.0) result.figures["pmem_times_ssd"] = pmem / ssd;
      results->push_back(std::move(result));
    }
  }

  void Show() {
    progress_->Update(static_cast<double>(parts_done_) / static_cast<double>(parts_), note_);
  }

  const SsdOptions& options_;
  const SsdSizes sizes_;
  const std::string directory_;
  const std::string pmem_directory_;
  Progress* const progress_;
  SsdPhases phases_;
  std::vector<Member> engines_;
  Member pmem_;  // without an engine: the phase pmem is not run
  SsdFigures pmem_filled_;
  std::unique_ptr<FioProbe> fio_;  // nullptr: not installed, or it failed
  SsdSamples samples_;
  std::vector<std::string> notes_;
  std::string note_;
  uint32_t round_ = 0;
  uint64_t parts_ = 1;
  uint64_t parts_done_ = 0;
};

}  // namespace

SsdSizes SizesOf(const SsdOptions& options, uint64_t rows) {
  const RowLayout layout =
      MakeRowLayout(options.shape.dim, options.shape.value_type, options.shape.optimizer);
  SsdSizes sizes;
  sizes.rows = rows;
  sizes.payload_bytes = layout.payload_bytes();
  sizes.record_bytes = RecordBytesOf(layout.row_bytes);
  sizes.data_bytes = rows * sizes.payload_bytes;
  const double dram_bytes = options.dram_fraction * static_cast<double>(sizes.data_bytes);
  sizes.dram_bytes = std::max(kDramBytesMin, static_cast<uint64_t>(dram_bytes));
  if (options.utilisation > 0.0) {
    sizes.ssd_bytes =
        static_cast<uint64_t>(static_cast<double>(rows * sizes.record_bytes) / options.utilisation);
  }
  const bool has_pmem =
      std::count(options.phases.begin(), options.phases.end(), SsdPhase::kPmem) > 0;
  if (has_pmem) {
    sizes.pmem_bytes = options.pmem_bytes;
    // A PMem tier has rows in three quarters of its bytes.
    const uint64_t suits = rows * sizes.record_bytes / 2 * 3;
    if (sizes.pmem_bytes == 0) sizes.pmem_bytes = std::max(kPmemBytesMin, suits);
  }
  return sizes;
}

StatusOr<SsdReport> RunSsd(const SsdOptions& options, Progress* progress) {
  if (options.distribution.kind != Distribution::Kind::kTrace) {
    EMBANK_RETURN_IF_ERROR(CheckSpace(options, SizesOf(options, options.rows)));
  }
  constexpr uint64_t kPositionsPerRow = 16;
  EMBANK_ASSIGN_OR_RETURN(const Workload workload,
                          MakeWorkload(StreamOptions(options), kPositionsPerRow));
  const SsdSizes sizes = SizesOf(options, workload.rows.size());
  EMBANK_RETURN_IF_ERROR(CheckSpace(options, sizes));
  const RunDirectory directory("--path", options.path);
  EMBANK_RETURN_IF_ERROR(directory.status());
  std::optional<RunDirectory> pmem_directory;
  if (sizes.pmem_bytes > 0) {
    EMBANK_RETURN_IF_ERROR(pmem_directory.emplace("--pmem", options.pmem_path).status());
  }
  SsdRun run(options, workload, directory.path(),
             pmem_directory.has_value() ? pmem_directory->path() : "", progress);
  EMBANK_RETURN_IF_ERROR(run.Run());
  return run.Report();
}

}  // namespace embank
