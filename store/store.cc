#include "store/store.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/files/posix_file_system.h"
#include "base/no_throw_status.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/log.h"
#include "store/batch/write.h"
#include "store/checkpoint/recovery.h"
#include "store/placement/memory_plan.h"

namespace embank {
namespace {

StatusOr<std::unique_ptr<CheckpointDirectory>> OpenDirectory(FileSystem* files,
                                                             const StoreOptions& options) {
  if (!options.read_only) {
    return CheckpointDirectory::Open(files, options.path, options.may_create);
  }
  EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<CheckpointDirectory> directory,
                          CheckpointDirectory::OpenToRead(files, options.path, "path"));
  EMBANK_RETURN_IF_ERROR(directory->CheckHasManifest());
  return directory;
}

// Refusals of memory have no text, because they allocate nothing.
Status WithBudget(const Status& opened, const StoreOptions& options, const MemoryBudget& budget) {
  const bool says_why = !IsResourceExhausted(opened) || !opened.message().empty();
  if (says_why || budget.refused_bytes() == 0) return opened;
  return NoThrowStatus(StatusCode::kResourceExhausted, [&] {
    return StrCat("dram_bytes is ", options.dram_bytes, "; when ", budget.used_when_refused(),
                  " of them were used, opening ",
                  options.path.empty() ? "a store in memory" : options.path, " needed ",
                  budget.refused_bytes(), " more; embank_estimate says how much its rows need");
  });
}

}  // namespace

Store::Store(const StoreOptions& options, StoreEnvironment environment)
    : options_(options),
      own_files_(environment.files == nullptr && !options.path.empty() ? MakePosixFileSystem({})
                                                                       : nullptr),
      environment_(std::move(environment)),
      budget_(options.dram_bytes),
      pin_budget_(PinBytes(options.dram_bytes)) {
  static_assert(sizeof(Store) <= kStoreFixedBytes);
  if (environment_.memory == nullptr) environment_.memory = SystemMemorySource();
  if (environment_.clock == nullptr) environment_.clock = SteadyClock();
  if (environment_.wall_clock == nullptr) environment_.wall_clock = SystemWallClock();
  if (environment_.files == nullptr) environment_.files = own_files_.get();
  context_.options = &options_;
  context_.budget = &budget_;
  context_.epochs = &epochs_;
  context_.clock = environment_.clock;
  context_.store_rows = &rows_.count;
  context_.pins = &pin_budget_;
  context_.tables = &tables_by_id_;
}

// A checkpoint copies rows out of device memory, which ends before the other parts.
Store::~Store() { checkpoints_.started.reset(); }

StatusOr<std::unique_ptr<Store>> Store::Open(const StoreOptions& options,
                                             StoreEnvironment environment) {
  EMBANK_RETURN_IF_ERROR(Validate(options));
  std::unique_ptr<Store> store(new Store(options, std::move(environment)));
  store->budget_.NoteRefusals(true);
  Status made = store->MakeRowParts();
  if (made.ok()) made = store->MakeOtherParts();
  if (!made.ok()) return WithBudget(made, options, store->budget_);
  store->budget_.NoteRefusals(false);
  // The log is best effort: no open fails for it.
  const auto log = [&] {
    Log(LogLevel::kInfo,
        StrCat("store opened: ", options.path.empty() ? "memory only" : options.path,
               ", dram_bytes ", options.dram_bytes, options.dram_bytes == 0 ? " (no limit)" : "",
               options.read_only ? ", read-only" : "", ", ",
               store->environment_.executor->concurrency(), " threads, huge pages ",
               HugePagesOff() ? "off on this machine" : "asked for", ", crc32c by ",
               Crc32cImplementation(), store->pmem_kind() == nullptr ? "" : ", PMem: ",
               store->pmem_kind() == nullptr ? "" : store->pmem_kind()));
    return OkStatus();
  };
  CatchNoMemory(log).IgnoreError();
  return store;
}

Status Store::MakeRowParts() {
  EMBANK_RETURN_IF_ERROR(budget_.Charge(kStoreFixedBytes));
  MemorySource* const memory = environment_.memory;
  EMBANK_ASSIGN_OR_RETURN(tier_,
                          DramTier::Create(memory, &budget_, &epochs_, RowAddressBytes(options_)));
  EMBANK_ASSIGN_OR_RETURN(index_, KeyIndex::Create(memory, &budget_, &epochs_, tier_.get()));
  heat_.clock = std::make_unique<HeatClock>(index_.get(), tier_.get(), &rows_.count);
  EMBANK_ASSIGN_OR_RETURN(rows_.memory, RowMemoryPools::Create());
  if (environment_.executor == nullptr) {
    environment_.executor = MakeThreadPool(WorkerThreads(options_));
  }
  context_.tier = tier_.get();
  context_.index = index_.get();
  context_.heat_clock = heat_.clock.get();
  context_.row_memory = rows_.memory.under_locks.get();
  context_.read_memory = rows_.memory.outside_locks.get();
  context_.executor = environment_.executor.get();
  return OkStatus();
}

// A refused open leaves no file and no directory that it has made.
Status Store::MakeOtherParts() {
  if (options_.path.empty()) {
    gate_ = std::make_unique<BatchGate>();
    logs_ = std::make_unique<RowLogs>();
    context_.gate = gate_.get();
    context_.logs = logs_.get();
    EMBANK_RETURN_IF_ERROR(MakePayloads());
    MakeCatalog();
    return OkStatus();
  }
  EMBANK_RETURN_IF_ERROR(PmemDirectory::CheckPaths(options_));
  Status opened = CatchNoMemory([this] { return OpenParts(); });
  if (opened.ok() || options_.read_only) return opened;
  if (directories_.pmem != nullptr) directories_.pmem->Abandon(directories_.store.get());
  if (directories_.store != nullptr) directories_.store->Abandon();
  return opened;
}

Status Store::OpenParts() {
  auto directory = OpenDirectory(environment_.files, options_);
  if (IsInvalidArgument(directory.status())) {
    return InvalidArgumentError(StrCat("path: ", directory.status().message()));
  }
  EMBANK_RETURN_IF_ERROR(directory.status());
  directories_.store = *std::move(directory);
  EMBANK_ASSIGN_OR_RETURN(
      const OpenedManifests manifests,
      OpenedManifests::Load(directories_.store.get(), options_, environment_.clock->NowNs()));
  options_.seed = manifests.opened().seed;
  EMBANK_ASSIGN_OR_RETURN(
      directories_.pmem,
      PmemDirectory::Open(environment_.pmem_files, options_, directories_.store.get(), manifests,
                          environment_.clock->NowNs()));
  EMBANK_RETURN_IF_ERROR(MakeLogParts(manifests));
  MakeCatalog();
  EMBANK_RETURN_IF_ERROR(Recover(context_, directories_.store->files(), catalog_.get(), manifests));
  MakeCheckpoints(manifests);
  // Only now: rows that were accepted find their places again, whatever order they come in.
  if (options_.dram_bytes != 0) index_->memory()->KeepFree(IndexLeavesBytes(options_.dram_bytes));
  {
    MutexLock lock(catalog_->mutex());
    GrowIndexFor(catalog_->live());
  }
  if (const uint64_t rows = manifests.opened().rows_lost; rows > 0) {
    Log(LogLevel::kWarning, StrCat(options_.path, ": ", rows,
                                   " rows of the store were lost: a repair, or a checkpoint after "
                                   "PMem was removed, could not read them"));
  }
  return OkStatus();
}

Status Store::MakeLogs(const OpenedManifests& manifests) {
  const uint64_t store_id = manifests.opened().store_id;
  const StoreListing& listing = directories_.store->listing();
  RowLogOptions ssd = environment_.log.value_or(LogSizes(options_));
  ssd.directory = directories_.store->files();
  ssd.store_id = store_id;
  ssd.ssd_bytes = options_.read_only ? 0 : options_.ssd_bytes;
  ssd.read_only = options_.read_only;
  ssd.first_segment_id =
      std::max(listing.next_segment_ids[Tier::kSsd], manifests.next_segment_id(Tier::kSsd));
  ssd.first_sequence = manifests.next_sequence();
  const auto make = [&](FileSystem* files, const RowLogOptions& options) {
    return RowLog::Create(files, environment_.memory, &budget_, environment_.executor.get(),
                          options);
  };
  EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<RowLog> ssd_log, make(environment_.files, ssd));
  std::unique_ptr<RowLog> pmem_log;
  if (const PmemDirectory* const directory = directories_.pmem.get(); directory != nullptr) {
    RowLogOptions pmem = PmemLogSizes(options_, environment_.pmem_log);
    pmem.directory = directory->files();
    pmem.store_id = store_id;
    // An export or a repair has segments with numbers of PMem on the SSD.
    pmem.first_segment_id =
        std::max({directory->next_segment_id(), listing.next_segment_ids[Tier::kPmem],
                  manifests.next_segment_id(Tier::kPmem)});
    pmem.first_sequence = manifests.next_sequence();
    EMBANK_ASSIGN_OR_RETURN(pmem_log, make(directory->file_system(), pmem));
  }
  logs_ = std::make_unique<RowLogs>(std::move(ssd_log), std::move(pmem_log));
  return OkStatus();
}

Status Store::MakeLogParts(const OpenedManifests& manifests) {
  gate_ = std::make_unique<BatchGate>(directories_.store->listing().next_checkpoint());
  context_.gate = gate_.get();
  EMBANK_RETURN_IF_ERROR(MakeLogs(manifests));
  context_.logs = logs_.get();
  const uint64_t ssd_bytes = logs_->lowest().options().ssd_bytes;
  const Manifest& opened = manifests.opened();
  const uint64_t saved_bytes = opened.heat.SketchBytesFor(CountRows(opened));
  EMBANK_ASSIGN_OR_RETURN(
      heat_.sketch,
      HeatSketch::Create(environment_.memory, &budget_,
                         HeatSketchBytesOfLog(options_.dram_bytes, ssd_bytes, saved_bytes)));
  context_.heat_sketch = heat_.sketch.get();
  if (!options_.read_only) {
    if (logs_->pmem() != nullptr) {
      compactions_.pmem = std::make_unique<Compaction>(context_, logs_->pmem());
      compactions_.all.push_back(compactions_.pmem.get());
    }
    compactions_.ssd = std::make_unique<Compaction>(context_, &logs_->lowest());
    compactions_.all.push_back(compactions_.ssd.get());
    context_.compactions = compactions_.all;
  }
  if (options_.dram_bytes != 0) {
    pages_ = std::make_unique<PageMover>(context_);
    context_.pages = pages_.get();
  }
  return MakePayloads();
}

Status Store::MakePayloads() {
  if (options_.hbm_bytes == 0) return OkStatus();
  std::unique_ptr<Device> device = std::move(environment_.device);
  if (device == nullptr && options_.cuda_device < 0) device = MakeTwin({});
  if (device == nullptr) {
    EMBANK_ASSIGN_OR_RETURN(device, OpenCudaDevice(options_.cuda_device));
  }
  EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<PayloadMemory> memory,
                          PayloadMemory::Create(std::move(device), &budget_, options_.hbm_bytes));
  payloads_.rows = std::make_unique<PayloadRows>(context_, std::move(memory));
  context_.payloads = payloads_.rows.get();
  TopkFlushOptions flush{.hysteresis = environment_.topk_hysteresis};
  if (options_.warmup_iters != 0) flush.warmup_iters = options_.warmup_iters;
  if (options_.flush_iters != 0) flush.flush_iters = options_.flush_iters;
  payloads_.flush = std::make_unique<TopkFlush>(payloads_.rows.get(), flush);
  context_.topk_flush = payloads_.flush.get();
  return OkStatus();
}

void Store::MakeCatalog() {
  catalog_ = std::make_unique<Catalog>(context_);
  index_->capacity()->RenewAheadBy([this] {
    ReaderMutexLock lock(catalog_->mutex());
    index_->capacity()->KeepAhead(ExpectedRows(catalog_->live()));
  });
}

void Store::MakeCheckpoints(const OpenedManifests& manifests) {
  const auto segment_bytes =
      environment_.log.has_value() ? std::optional(environment_.log->segment_bytes) : std::nullopt;
  checkpoints_.all =
      std::make_unique<Checkpoints>(CheckpointParts{.store = &context_,
                                                    .files = environment_.files,
                                                    .memory = environment_.memory,
                                                    .wall_clock = environment_.wall_clock,
                                                    .catalog = catalog_.get(),
                                                    .directory = directories_.store.get(),
                                                    .pmem = directories_.pmem.get(),
                                                    .segment_bytes = segment_bytes},
                                    manifests);
  checkpoints_.started = std::make_unique<StartedCheckpoint>(context_, checkpoints_.all.get());
}

StatusOr<Table*> Store::CreateTable(std::string_view name, const TableOptions& options) {
  EMBANK_RETURN_IF_ERROR(ValidateNewTableName(name));
  EMBANK_RETURN_IF_ERROR(Validate(options));
  if (options_.read_only) return OpenedReadOnly();
  // If rows have the memory that the table takes, they leave it.
  if (pages_ != nullptr) {
    pages_->FreeBytes(RowClasses::TableBytesMax(options, logs_->lowest().options().segment_bytes));
  }
  MutexLock lock(catalog_->mutex());
  EMBANK_ASSIGN_OR_RETURN(const TableId id, catalog_->NewTableId(name));
  if (checkpoints_.all != nullptr) {
    EMBANK_RETURN_IF_ERROR(checkpoints_.all->space()->ReserveForTable(
        DescribeTables(*catalog_), {id, std::string(name), options}));
  }
  EMBANK_ASSIGN_OR_RETURN(Table* const table, catalog_->Add(id, name, options));
  if (options.expected_rows_log2 != 0) GrowIndexFor(catalog_->live());
  return table;
}

// Rows have the larger part of the memory.
void Store::GrowIndexFor(std::span<Table* const> tables) {
  const uint64_t rows = ExpectedRows(tables);
  if (rows == 0 || options_.read_only) return;
  const uint64_t free_bytes = std::min(budget_.free_bytes(), PhysicalMemoryBytes());
  index_->capacity()->GrowAhead(rows, index_->memory()->bytes() + free_bytes / 2);
}

Status Store::DropTable(std::string_view name) {
  EMBANK_RETURN_IF_ERROR(ValidateTableName(name));
  if (options_.read_only) return OpenedReadOnly();
  // A checkpoint has all of a table, or nothing.
  const Checkpoints::Pause pause(checkpoints_.all.get());
  const TopkFlush::Pause flush_pause(payloads_.flush.get());
  {
    MutexLock lock(catalog_->mutex());
    EMBANK_ASSIGN_OR_RETURN(Table* const table, catalog_->Find(name));
    table->MarkDropped();
    EMBANK_RETURN_IF_ERROR(EraseAll(table));
    catalog_->Remove(table);
  }
  index_->capacity()->Shrink();
  return OkStatus();
}

uint64_t Store::demoted_rows() const {
  return compactions_.pmem == nullptr ? 0 : compactions_.pmem->demoted_rows();
}

const char* Store::pmem_kind() const {
  return directories_.pmem == nullptr ? nullptr : directories_.pmem->kind();
}

uint64_t Store::pmem_drains() const {
  return directories_.pmem == nullptr ? 0 : directories_.pmem->drains();
}

}  // namespace embank
