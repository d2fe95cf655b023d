// The catalog of a store: its tables by name, and the row classes that they share.
#ifndef EMBANK_STORE_CATALOG_CATALOG_H_
#define EMBANK_STORE_CATALOG_CATALOG_H_

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/status_or.h"
#include "base/threads/mutex.h"
#include "store/catalog/row_classes.h"
#include "store/table/table.h"

namespace embank {

class Catalog {
 public:
  explicit Catalog(const StoreContext& store) : store_(store), classes_(store) {}
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  // Finds the table of this name, which stays until the catalog is destroyed, also when it is
  // dropped. Thread-safe. kInvalidArgument: no table can have the name. kNotFound: no table has it.
  StatusOr<Table*> Open(std::string_view name) const;
  // Lists the living tables in order of creation. Thread-safe.
  std::vector<Table*> List() const;

  // No table comes or goes while a thread holds this lock.
  Mutex* mutex() const EMBANK_LOCK_RETURNED(mutex_) { return &mutex_; }

  // Lists the living tables in order of creation, and the row classes that tables have had.
  std::span<Table* const> live() const EMBANK_SHARED_LOCKS_REQUIRED(mutex_) { return live_; }
  std::vector<RowClass> ListRowClasses() const EMBANK_SHARED_LOCKS_REQUIRED(mutex_) {
    return classes_.List();
  }
  // Finds the table of this name. kNotFound: no table has it.
  StatusOr<Table*> Find(std::string_view name) const EMBANK_SHARED_LOCKS_REQUIRED(mutex_);
  // Chooses an id for a new table of this name.
  // kAlreadyExists: a table has the name.
  // kResourceExhausted: there are as many tables as there can be.
  StatusOr<TableId> NewTableId(std::string_view name) const EMBANK_SHARED_LOCKS_REQUIRED(mutex_);

  // Gives a row class its number, unless it has one. kResourceExhausted: there is no memory.
  Status AddRowClass(const RowClass& row_class) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds a table under a free id and name, which has had `gradient_calls`.
  // kResourceExhausted: there is no memory, nothing was added; std::bad_alloc likewise.
  StatusOr<Table*> Add(TableId id, std::string_view name, const TableOptions& options,
                       uint64_t gradient_calls = 0) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes a living table, which has no rows any more, off the list.
  void Remove(Table* table) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

 private:
  Table* FindOrNull(std::string_view name) const EMBANK_SHARED_LOCKS_REQUIRED(mutex_);

  const StoreContext& store_;
  mutable Mutex mutex_;
  RowClasses classes_ EMBANK_GUARDED_BY(mutex_);
  std::vector<Table*> live_ EMBANK_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Table>> all_ EMBANK_GUARDED_BY(mutex_);
};

// The number of rows for which the index has places ahead: for each table as many as it expects, or
// has; 0 if no table expects any.
uint64_t ExpectedRows(std::span<Table* const> tables);

}  // namespace embank

#endif  // EMBANK_STORE_CATALOG_CATALOG_H_
