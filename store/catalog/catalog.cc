#include "store/catalog/catalog.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/placement/memory_plan.h"

namespace embank {
namespace {

// After it the next push_back cannot fail.
template <typename T>
void ReserveOneMore(std::vector<T>* values) {
  if (values->size() == values->capacity()) values->reserve(2 * values->size() + 8);
}

}  // namespace

StatusOr<Table*> Catalog::Open(std::string_view name) const {
  EMBANK_RETURN_IF_ERROR(ValidateTableName(name));
  ReaderMutexLock lock(&mutex_);
  return Find(name);
}

std::vector<Table*> Catalog::List() const {
  ReaderMutexLock lock(&mutex_);
  return live_;
}

StatusOr<Table*> Catalog::Find(std::string_view name) const {
  Table* const table = FindOrNull(name);
  if (table != nullptr) return table;
  return NotFoundError(StrCat("name: the store has no table \"", std::string(name), "\""));
}

Table* Catalog::FindOrNull(std::string_view name) const {
  for (Table* const table : live_) {
    if (table->name() == name) return table;
  }
  return nullptr;
}

StatusOr<TableId> Catalog::NewTableId(std::string_view name) const {
  if (FindOrNull(name) != nullptr) {
    return AlreadyExistsError(
        StrCat("name: table \"", std::string(name), "\" exists; open it, or drop it first"));
  }
  std::vector<bool> taken(kTablesMax, false);
  for (const Table* const table : live_) taken[table->id()] = true;
  const auto free = std::find(taken.begin(), taken.end(), false);
  if (free == taken.end()) {
    return ResourceExhaustedError("the store has 4095 tables, the limit; drop one first");
  }
  return static_cast<TableId>(free - taken.begin());
}

Status Catalog::AddRowClass(const RowClass& row_class) {
  return classes_.FindOrAdd(row_class).status();
}

StatusOr<Table*> Catalog::Add(TableId id, std::string_view name, const TableOptions& options,
                              uint64_t gradient_calls) {
  EMBANK_CHECK(id < kTablesMax);
  ReserveOneMore(&live_);
  ReserveOneMore(&all_);
  EMBANK_ASSIGN_OR_RETURN(const RowClasses::Entry* const entry,
                          classes_.FindOrAdd(RowClassOf(options)));
  auto table = std::make_unique<Table>(store_, id, std::string(name), options, store_.options->seed,
                                       entry->slot_class, entry->mover.get(),
                                       entry->forgetter.get(), gradient_calls);
  static_assert(sizeof(Table) + 2 * kTableNameBytesMax <= kTableFixedBytes);
  EMBANK_RETURN_IF_ERROR(store_.budget->Charge(kTableFixedBytes));
  store_.tables->Set(id, table.get());
  live_.push_back(table.get());
  all_.push_back(std::move(table));
  return live_.back();
}

void Catalog::Remove(Table* table) {
  const size_t removed = std::erase(live_, table);
  EMBANK_CHECK(removed == 1);
}

uint64_t ExpectedRows(std::span<Table* const> tables) {
  uint64_t rows = 0;
  bool is_hinted = false;
  for (const Table* const table : tables) {
    const uint32_t log2 = table->options().expected_rows_log2;
    is_hinted = is_hinted || log2 != 0;
    rows += std::max(log2 == 0 ? 0 : uint64_t{1} << log2, table->rows());
  }
  return is_hinted ? rows : 0;
}

}  // namespace embank
