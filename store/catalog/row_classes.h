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
#include "store/table/store_context.h"
#include "store/table/table.h"

namespace embank {

// The lock of its owner guards it.
class RowClasses {
 public:
  struct Entry {
    RowClass row_class;
    SlotClass slot_class;
    std::unique_ptr<RowMover> mover;
    std::unique_ptr<RowForgetter> forgetter;  // without a log, for tables that forget
  };

  explicit RowClasses(const StoreContext& store) : store_(store) {}
  RowClasses(const RowClasses&) = delete;
  RowClasses& operator=(const RowClasses&) = delete;

  // Returns the most memory that a table of a new row class takes, in a log with such segments.
  static uint64_t TableBytesMax(const TableOptions& options, uint64_t segment_bytes);

  // Finds the entry of a row class, or makes it; it is valid until the next call.
  // kResourceExhausted: dram_bytes has no memory for it. A repeated call completes the entry.
  StatusOr<const Entry*> FindOrAdd(const RowClass& row_class);

  // Lists all row classes; the number of a class is its place, in manifests too.
  std::vector<RowClass> List() const;

 private:
  Status CheckNotesReach(const RowClass& row_class) const;
  Status MakeMover(Entry* entry, bool has_notes);

  const StoreContext& store_;
  std::vector<Entry> entries_;
};

}  // namespace embank

#endif  // EMBANK_STORE_CATALOG_ROW_CLASSES_H_
