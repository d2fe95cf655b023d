// Tables by their ids, for code that has a row and needs its table.
#ifndef EMBANK_STORE_TABLE_TABLE_DIRECTORY_H_
#define EMBANK_STORE_TABLE_TABLE_DIRECTORY_H_

#include <array>
#include <atomic>

#include "tiers/row/row_header.h"

namespace embank {

class Table;

// The tables of a store by id, so that a row tells its table. A table stays registered until its
// id is another's; by then no row is left that names it.
class TableDirectory {
 public:
  void Set(TableId id, Table* table) { tables_[id].store(table, std::memory_order_release); }
  Table* Get(TableId id) const { return tables_[id].load(std::memory_order_acquire); }

 private:
  std::array<std::atomic<Table*>, kTablesMax> tables_{};
};

}  // namespace embank

#endif  // EMBANK_STORE_TABLE_TABLE_DIRECTORY_H_
