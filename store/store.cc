#include "store/store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "store/estimate.h"
#include "store/new_rows.h"

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
      budget_(options.dram_bytes) {}

Store::~Store() = default;

absl::StatusOr<std::unique_ptr<Store>> Store::Open(const StoreOptions& options,
                                                   StoreEnvironment environment) {
  EMBANK_RETURN_IF_ERROR(Validate(options));
  std::unique_ptr<Store> store(new Store(options, std::move(environment)));
  EMBANK_RETURN_IF_ERROR(store->Init());
  Log(LogLevel::kInfo, absl::StrCat("store opened: memory only, dram_bytes ", options.dram_bytes,
                                    options.dram_bytes == 0 ? " (no limit)" : "", ", ",
                                    store->executor_->concurrency(), " threads, huge pages ",
                                    HugePagesOff() ? "off on this machine" : "asked for",
                                    ", crc32c by ", Crc32cImplementation()));
  return store;
}

absl::Status Store::Init() {
  EMBANK_RETURN_IF_ERROR(budget_.Charge(kStoreFixedBytes));
  EMBANK_ASSIGN_OR_RETURN(tier_,
                          DramTier::Create(memory_, &budget_, &epochs_, RowAddressBytes(options_)));
  EMBANK_ASSIGN_OR_RETURN(index_, KeyIndex::Create(memory_, &budget_, &epochs_, tier_.get()));
  heat_clock_ = std::make_unique<HeatClock>(index_.get(), tier_.get());
  if (executor_ == nullptr) executor_ = MakeThreadPool(WorkerThreads(options_));
  return absl::OkStatus();
}

absl::StatusOr<Table*> Store::CreateTable(std::string_view name, const TableOptions& options) {
  EMBANK_RETURN_IF_ERROR(ValidateTableName(name));
  EMBANK_RETURN_IF_ERROR(Validate(options));
  MutexLock lock(&tables_mutex_);
  if (FindTable(name) != nullptr) {
    return absl::AlreadyExistsError(
        absl::StrCat("name: table \"", std::string(name), "\" exists; open it, or drop it first"));
  }
  EMBANK_ASSIGN_OR_RETURN(const TableId id, FreeTableId());
  ReserveOneMore(&live_tables_);
  ReserveOneMore(&all_tables_);
  const RowLayout layout = MakeRowLayout(options.dim, options.value_type, options.optimizer);
  const SlotClass slot_class = SlotClassOf(layout.row_bytes);
  const StoreParts parts = {.tier = tier_.get(),
                            .index = index_.get(),
                            .epochs = &epochs_,
                            .executor = executor_.get(),
                            .clock = clock_,
                            .heat_clock = heat_clock_.get()};
  auto table =
      std::make_unique<Table>(parts, id, std::string(name), options, options_.seed, slot_class);
  EMBANK_RETURN_IF_ERROR(budget_.Charge(kTableFixedBytes));
  live_tables_.push_back(table.get());
  all_tables_.push_back(std::move(table));
  return live_tables_.back();
}

absl::StatusOr<Table*> Store::OpenTable(std::string_view name) {
  EMBANK_RETURN_IF_ERROR(ValidateTableName(name));
  ReaderMutexLock lock(&tables_mutex_);
  Table* const table = FindTable(name);
  if (table != nullptr) return table;
  return absl::NotFoundError(
      absl::StrCat("name: the store has no table \"", std::string(name), "\""));
}

absl::Status Store::DropTable(std::string_view name) {
  EMBANK_RETURN_IF_ERROR(ValidateTableName(name));
  MutexLock lock(&tables_mutex_);
  Table* const table = FindTable(name);
  if (table == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("name: the store has no table \"", std::string(name), "\""));
  }
  table->MarkDropped();
  EraseRowsOf(table);
  std::erase(live_tables_, table);
  return absl::OkStatus();
}

void Store::EraseRowsOf(Table* table) {
  const RowLayout& layout = table->layout();
  for (uint32_t i = 0; i < KeyIndex::kShardCount; ++i) {
    KeyIndex::Shard* const shard = index_->shard(i);
    FreedRows freed(table);
    MutexLock lock(&shard->mutex);
    index_->EraseRows(shard, [&](Location location) {
      if (TableOf(LoadIdentity(layout.Header(tier_->Row(location)))) != table->id()) return false;
      freed.Add(location);
      return true;
    });
  }
}

Table* Store::FindTable(std::string_view name) const {
  for (Table* const table : live_tables_) {
    if (table->name() == name) return table;
  }
  return nullptr;
}

SlotClass Store::SlotClassOf(uint32_t slot_bytes) {
  for (const SizedClass& sized : slot_classes_) {
    if (sized.slot_bytes == slot_bytes) return sized.slot_class;
  }
  ReserveOneMore(&slot_classes_);
  slot_classes_.push_back({slot_bytes, tier_->AddClass(slot_bytes)});
  return slot_classes_.back().slot_class;
}

absl::StatusOr<TableId> Store::FreeTableId() const {
  std::vector<bool> taken(kTablesMax, false);
  for (const Table* const table : live_tables_) taken[table->id()] = true;
  const auto free = std::find(taken.begin(), taken.end(), false);
  if (free == taken.end()) {
    return absl::ResourceExhaustedError("the store has 4095 tables, the limit; drop one first");
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
    report.rows_bytes += table->rows() * (layout.row_bytes - layout.state_bytes());
    report.state_bytes += table->rows() * layout.state_bytes();
  }
  report.budget_bytes = options_.dram_bytes;
  report.used_bytes = budget_.used_bytes();
  report.index_bytes = index_->memory_bytes();
  const uint64_t slab_bytes = tier_->committed_bytes();
  const uint64_t taken_bytes = report.rows_bytes + report.state_bytes;
  report.slack_bytes = slab_bytes - std::min(slab_bytes, taken_bytes);
  report.fixed_bytes =
      report.used_bytes - std::min(report.used_bytes, slab_bytes + report.index_bytes);
  report.huge_pages_refused_bytes = HugePagesOff() ? slab_bytes + report.index_bytes : 0;
  return report;
}

}  // namespace embank
