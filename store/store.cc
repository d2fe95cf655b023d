#include "store/store.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/files/posix_file_system.h"
#include "base/status_macros.h"
#include "base/status_with_room.h"
#include "base/str_cat.h"
#include "base/threads/log.h"
#include "base/utf8.h"
#include "store/batch/new_rows.h"
#include "store/placement/memory_plan.h"

namespace embank {
namespace {

// So that the next push_back cannot fail.
template <typename T>
void ReserveOneMore(std::vector<T>* values) {
  if (values->size() == values->capacity()) values->reserve(2 * values->size() + 8);
}

}  // namespace

Store::Store(const StoreOptions& options, StoreEnvironment environment)
    : options_(options),
      memory_(environment.memory != nullptr ? environment.memory : SystemMemorySource()),
      clock_(environment.clock != nullptr ? environment.clock : SteadyClock()),
      executor_(std::move(environment.executor)),
      budget_(options.dram_bytes),
      pin_budget_(PinBytes(options.dram_bytes)),
      log_sizes_(environment.log),
      own_files_(environment.files == nullptr && !options.path.empty() ? MakePosixFileSystem({})
                                                                       : nullptr),
      files_(environment.files != nullptr ? environment.files : own_files_.get()) {}

Store::~Store() = default;

StatusOr<std::unique_ptr<Store>> Store::Open(const StoreOptions& options,
                                             StoreEnvironment environment) {
  EMBANK_RETURN_IF_ERROR(Validate(options));
  std::unique_ptr<Store> store(new Store(options, std::move(environment)));
  EMBANK_RETURN_IF_ERROR(store->Init());
  Log(LogLevel::kInfo,
      StrCat("store opened: ", options.path.empty() ? "memory only" : options.path, ", dram_bytes ",
             options.dram_bytes, options.dram_bytes == 0 ? " (no limit)" : "",
             options.read_only ? ", read-only" : "", ", ", store->executor_->concurrency(),
             " threads, huge pages ", HugePagesOff() ? "off on this machine" : "asked for",
             ", crc32c by ", Crc32cImplementation()));
  return store;
}

Status Store::Init() {
  EMBANK_RETURN_IF_ERROR(budget_.Charge(kStoreFixedBytes));
  EMBANK_ASSIGN_OR_RETURN(tier_,
                          DramTier::Create(memory_, &budget_, &epochs_, RowAddressBytes(options_)));
  EMBANK_ASSIGN_OR_RETURN(index_, KeyIndex::Create(memory_, &budget_, &epochs_, tier_.get()));
  heat_clock_ = std::make_unique<HeatClock>(index_.get(), tier_.get(), &rows_);
  EMBANK_ASSIGN_OR_RETURN(row_memory_, RowMemoryPool::Create());
  EMBANK_ASSIGN_OR_RETURN(read_memory_, RowMemoryPool::Create());
  if (executor_ == nullptr) executor_ = MakeThreadPool(WorkerThreads(options_));
  return options_.path.empty() ? OkStatus() : InitLog();
}

namespace {

// Older stores have names of any bytes, which are opened, and dropped, as they are.
Status ValidateNewTableName(std::string_view name) {
  EMBANK_RETURN_IF_ERROR(ValidateTableName(name));
  const size_t wrong = FirstNotUtf8(name);
  if (wrong == name.size()) return OkStatus();
  return InvalidArgumentError(StrCat("name: byte 0x", Hex(static_cast<uint8_t>(name[wrong])),
                                     " at position ", wrong, " is no UTF-8; it must be"));
}

}  // namespace

StatusOr<Table*> Store::CreateTable(std::string_view name, const TableOptions& options) {
  EMBANK_RETURN_IF_ERROR(ValidateNewTableName(name));
  EMBANK_RETURN_IF_ERROR(Validate(options));
  if (options_.read_only) return OpenedReadOnly();
  FreeForTable(options);
  MutexLock lock(&tables_mutex_);
  if (FindTable(name) != nullptr) {
    return AlreadyExistsError(
        StrCat("name: table \"", std::string(name), "\" exists; open it, or drop it first"));
  }
  EMBANK_ASSIGN_OR_RETURN(const TableId id, FreeTableId());
  if (log_ != nullptr) {
    EMBANK_RETURN_IF_ERROR(MakeRoomInManifests({id, std::string(name), options}));
  }
  EMBANK_ASSIGN_OR_RETURN(Table* const table, AddTable(id, name, options));
  return table;
}

StatusOr<Table*> Store::AddTable(TableId id, std::string_view name, const TableOptions& options) {
  ReserveOneMore(&live_tables_);
  ReserveOneMore(&all_tables_);
  EMBANK_ASSIGN_OR_RETURN(const SlotsOfClass* const slots, SlotsOf(RowClassOf(options)));
  const StoreParts parts = {.tier = tier_.get(),
                            .index = index_.get(),
                            .epochs = &epochs_,
                            .executor = executor_.get(),
                            .clock = clock_,
                            .heat_clock = heat_clock_.get(),
                            .store_rows = &rows_,
                            .row_memory = row_memory_.get(),
                            .read_memory = read_memory_.get(),
                            .pins = &pin_budget_,
                            .gate = gate_.get(),
                            .compaction = compaction_.get(),
                            .pages = pages_.get(),
                            .read_only = options_.read_only};
  auto table =
      std::make_unique<Table>(parts, id, std::string(name), options, options_.seed,
                              slots->slot_class, slots->mover.get(), slots->forgetter.get());
  EMBANK_RETURN_IF_ERROR(budget_.Charge(kTableFixedBytes));
  if (tables_by_id_ != nullptr) tables_by_id_->Set(id, table.get());
  live_tables_.push_back(table.get());
  all_tables_.push_back(std::move(table));
  return live_tables_.back();
}

StatusOr<Table*> Store::OpenTable(std::string_view name) {
  EMBANK_RETURN_IF_ERROR(ValidateTableName(name));
  ReaderMutexLock lock(&tables_mutex_);
  Table* const table = FindTable(name);
  if (table != nullptr) return table;
  return NotFoundError(StrCat("name: the store has no table \"", std::string(name), "\""));
}

Status Store::DropTable(std::string_view name) {
  EMBANK_RETURN_IF_ERROR(ValidateTableName(name));
  if (options_.read_only) return OpenedReadOnly();
  // A checkpoint has all of a table, or nothing.
  HurriedLock checkpoint_lock(&checkpoint_mutex_, pace());
  MutexLock lock(&tables_mutex_);
  Table* const table = FindTable(name);
  if (table == nullptr) {
    return NotFoundError(StrCat("name: the store has no table \"", std::string(name), "\""));
  }
  table->MarkDropped();
  EMBANK_RETURN_IF_ERROR(EraseRowsOf(table));
  std::erase(live_tables_, table);
  return OkStatus();
}

Status Store::EraseRowsOf(Table* table) {
  const RowLayout& layout = table->layout();
  for (uint32_t i = 0; i < KeyIndex::kShardCount; ++i) {
    KeyIndex::Shard* const shard = index_->shard(i);
    FreedRows freed(table);
    MutexLock lock(&shard->mutex);
    index_->EraseRows(shard, [&](Location location) {
      shard->mutex.AssertHeld();
      if (location.tier() != Tier::kDram) return false;
      if (TableOf(LoadIdentity(layout.Header(tier_->Row(location)))) != table->id()) return false;
      freed.Add(shard, location);
      return true;
    });
  }
  return table->rows_in_log() == 0 ? OkStatus() : EraseLoggedRowsOf(table);
}

// Whose the records are the log's segments say; rows of other tables may move meanwhile.
Status Store::EraseLoggedRowsOf(Table* table) {
  // Rows that move meanwhile might be missed.
  const Compaction::Pause pause(compaction_.get());
  const Status visited = log_->owners().VisitOwners(
      table->slot_class(), [&](Location location, TableId owner, Key key) {
        if (owner != table->id()) return;
        const RowId id = table->IdOf(key, table->HashOf(key));
        KeyIndex::Shard* const shard = index_->shard(KeyIndex::ShardOf(id.hash));
        FreedRows freed(table);
        MutexLock lock(&shard->mutex);
        index_->VisitMatches(shard, id, [&](const Match& match) {
          shard->mutex.AssertHeld();
          if (!(match.location() == location)) return false;
          index_->Erase(shard, id.hash, match);
          freed.Add(shard, location);
          return true;
        });
      });
  // What cannot be read may be others'.
  return table->rows_in_log() == 0 ? OkStatus() : visited;
}

Table* Store::FindTable(std::string_view name) const {
  for (Table* const table : live_tables_) {
    if (table->name() == name) return table;
  }
  return nullptr;
}

StatusOr<const Store::SlotsOfClass*> Store::SlotsOf(const RowClass& row_class) {
  // With a log it is the mover that forgets.
  const bool forgets = row_class.on_full == OnFull::kForget && log_ == nullptr;
  auto slots = std::find_if(slot_classes_.begin(), slot_classes_.end(),
                            [&](const SlotsOfClass& one) { return one.row_class == row_class; });
  if (slots == slot_classes_.end()) {
    ReserveOneMore(&slot_classes_);
    // A class's number is its place, also in manifests.
    const SlotClass slot_class =
        tier_->AddClass(row_class.slot_bytes, /*has_notes=*/log_ != nullptr || forgets);
    EMBANK_CHECK(slot_class == slot_classes_.size());
    slot_classes_.push_back({row_class, slot_class, nullptr, nullptr});
    slots = slot_classes_.end() - 1;
  }
  if (log_ != nullptr && slots->mover == nullptr) EMBANK_RETURN_IF_ERROR(MakeMover(&*slots));
  if (forgets && slots->forgetter == nullptr) EMBANK_RETURN_IF_ERROR(MakeForgetter(&*slots));
  return &*slots;
}

Status Store::CheckNotesReach(const RowClass& row_class) const {
  const uint64_t bytes_max = SlotNotes::AddressBytesMax(row_class.slot_bytes);
  if (RowAddressBytes(options_) <= bytes_max) return OkStatus();
  return ResourceExhaustedError(
      StrCat("rows of ", row_class.slot_bytes, " bytes can have at most ", bytes_max,
             " bytes of dram_bytes in a store with a path, and in tables that forget"));
}

Status Store::MakeMover(SlotsOfClass* slots) {
  EMBANK_RETURN_IF_ERROR(CheckNotesReach(slots->row_class));
  const uint32_t record_bytes = RecordBytesOf(slots->row_class.slot_bytes);
  const bool forgets = slots->row_class.on_full == OnFull::kForget;
  if (!log_->space().AddRowClass(slots->slot_class, record_bytes, forgets).ok()) {
    return StatusWithRoom(StatusCode::kResourceExhausted, [&] {
      return StrCat("dram_bytes: ", options_.dram_bytes, ", of which ", budget_.used_bytes(),
                    " are used, leaves no memory for saving rows of ", slots->row_class.slot_bytes,
                    " bytes; embank_estimate says how much such tables need");
    });
  }
  auto mover = std::make_unique<RowMover>(PlacementParts{.tier = tier_.get(),
                                                         .index = index_.get(),
                                                         .log = log_.get(),
                                                         .heat_clock = heat_clock_.get(),
                                                         .heat_sketch = heat_sketch_.get(),
                                                         .tables = tables_by_id_.get(),
                                                         .gate = gate_.get()},
                                          slots->slot_class, slots->row_class);
  EMBANK_RETURN_IF_ERROR(budget_.Charge(RowMover::kFixedBytes));
  if (pages_ != nullptr) pages_->AddClass(mover.get());
  slots->mover = std::move(mover);
  return OkStatus();
}

// What a table of a new row class takes; if rows have the memory, they leave it.
void Store::FreeForTable(const TableOptions& options) {
  if (pages_ == nullptr) return;
  const SegmentGeometry geometry = SegmentGeometry::Of(
      RecordBytesOf(RowClassOf(options).slot_bytes), log_->options().segment_bytes);
  pages_->FreeBytes(kTableFixedBytes + RowMover::kFixedBytes + LogMemory::ClassBytesMax(geometry));
}

Status Store::MakeForgetter(SlotsOfClass* slots) {
  EMBANK_RETURN_IF_ERROR(CheckNotesReach(slots->row_class));
  if (tables_by_id_ == nullptr) {
    auto tables = std::make_unique<TableDirectory>();
    EMBANK_RETURN_IF_ERROR(budget_.Charge(sizeof *tables));
    tables_by_id_ = std::move(tables);
  }
  auto forgetter = std::make_unique<RowForgetter>(ForgetterParts{.tier = tier_.get(),
                                                                 .index = index_.get(),
                                                                 .heat_clock = heat_clock_.get(),
                                                                 .tables = tables_by_id_.get()},
                                                  slots->row_class);
  EMBANK_RETURN_IF_ERROR(budget_.Charge(RowForgetter::kFixedBytes));
  slots->forgetter = std::move(forgetter);
  return OkStatus();
}

StatusOr<TableId> Store::FreeTableId() const {
  std::vector<bool> taken(kTablesMax, false);
  for (const Table* const table : live_tables_) taken[table->id()] = true;
  const auto free = std::find(taken.begin(), taken.end(), false);
  if (free == taken.end()) {
    return ResourceExhaustedError("the store has 4095 tables, the limit; drop one first");
  }
  return static_cast<TableId>(free - taken.begin());
}

std::vector<Table*> Store::Tables() const {
  ReaderMutexLock lock(&tables_mutex_);
  return live_tables_;
}

MemoryReport Store::ReportMemory() const {
  MemoryReport report{};
  for (const Table* const table : Tables()) {
    const RowLayout& layout = table->layout();
    // Rows of a batch under way may be counted in the log and not yet at all.
    const uint64_t in_log = table->rows_in_log();
    const uint64_t all = table->rows();
    const uint64_t rows = all - std::min(all, in_log);
    report.rows_bytes += rows * (layout.row_bytes - layout.state_bytes());
    report.state_bytes += rows * layout.state_bytes();
  }
  report.budget_bytes = options_.dram_bytes;
  report.used_bytes = budget_.used_bytes();
  report.index_bytes = index_->memory()->bytes();
  const uint64_t slab_bytes = tier_->pool()->committed_bytes();
  const uint64_t taken_bytes = report.rows_bytes + report.state_bytes;
  report.slack_bytes = slab_bytes - std::min(slab_bytes, taken_bytes);
  report.fixed_bytes =
      report.used_bytes - std::min(report.used_bytes, slab_bytes + report.index_bytes);
  report.huge_pages_refused_bytes = HugePagesOff() ? slab_bytes + report.index_bytes : 0;
  if (log_ != nullptr) report.ssd = log_->space().Report();
  return report;
}

}  // namespace embank
