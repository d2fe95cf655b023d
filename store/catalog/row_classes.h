// The row classes of a store: for each class of tables the slots of its rows in DRAM, the part that
// moves its rows, and the part that forgets them where there is no log.
#ifndef EMBANK_STORE_CATALOG_ROW_CLASSES_H_
#define EMBANK_STORE_CATALOG_ROW_CLASSES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "base/memory/memory.h"
#include "base/status_or.h"
#include "store/placement/row_forgetter.h"
#include "store/placement/row_mover.h"
#include "store/table/options.h"
#include "store/table/table.h"
#include "store/table/table_directory.h"

namespace embank {

// The parts that a catalog and its row classes work with; all of them outlive it.
struct CatalogParts {
  const StoreOptions* options;
  MemoryBudget* budget;
  StoreParts store;
  RowLogs* logs;
  HeatSketch* heat_sketch;       // nullptr: there is no log
  TableDirectory* tables_by_id;  // nullptr: there is neither a log nor device memory
};

// The lock of its owner guards it.
class RowClasses {
 public:
  struct Entry {
    RowClass row_class;
    SlotClass slot_class;
    std::unique_ptr<RowMover> mover;
    std::unique_ptr<RowForgetter> forgetter;  // without a log, for tables that forget
  };

  explicit RowClasses(const CatalogParts& parts) : parts_(parts) {}
  RowClasses(const RowClasses&) = delete;
  RowClasses& operator=(const RowClasses&) = delete;

  // Returns the most memory that a table of a new row class takes, in a log with such segments.
  static uint64_t TableBytesMax(const TableOptions& options, uint64_t segment_bytes);

  // Finds the entry of a row class, or makes it; it is valid until the next call.
  // kResourceExhausted: dram_bytes has no memory for it. A repeated call completes the entry.
  StatusOr<const Entry*> FindOrAdd(const RowClass& row_class);

  // Lists all row classes; the number of a class is its place, in manifests too.
  std::vector<RowClass> List() const;
  // Returns the tables by id; nullptr: no row class needs them yet.
  TableDirectory* tables_by_id() const {
    return parts_.tables_by_id != nullptr ? parts_.tables_by_id : own_tables_by_id_.get();
  }

 private:
  Status CheckNotesReach(const RowClass& row_class) const;
  Status MakeMover(Entry* entry, bool has_notes);
  Status MakeDirectory();

  const CatalogParts parts_;
  // Exists since the first table that forgets, in a store in memory.
  std::unique_ptr<TableDirectory> own_tables_by_id_;
  std::vector<Entry> entries_;
};

}  // namespace embank

#endif  // EMBANK_STORE_CATALOG_ROW_CLASSES_H_
