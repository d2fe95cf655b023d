// Compares the copies of a table whose rows are in several stores. Vectors and states count; heat
// does not, because each store counts its own lookups.
#ifndef EMBANK_STORE_INSPECT_REPLICATED_ROWS_H_
#define EMBANK_STORE_INSPECT_REPLICATED_ROWS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status_or.h"
#include "store/inspect/checkpoint_rows.h"
#include "tiers/row/row_layout.h"

namespace embank {

// A checksum of rows in any order.
struct RowSum {
  uint64_t rows = 0;
  uint64_t sum = 0;  // of 64 mixed bits of each row

  // Adds a row of a table with this layout.
  void Add(const RowLayout& layout, const CheckpointRow& row);
  bool operator==(const RowSum&) const = default;
};

// A key whose rows in two stores are not the same.
struct RowDifference {
  Key key = 0;
  bool in_first = false;
  bool in_second = false;
};

// Reads two stores, which have other checksums of a table, twice. Returns the lowest key that
// differs in the first range of hashes that has one. Memory: a 4096th of the table's keys. Throws
// std::bad_alloc. The statuses of CheckpointRows::VisitSegment.
StatusOr<RowDifference> FindDifference(CheckpointRows* first, CheckpointRows* second,
                                       std::string_view table);

}  // namespace embank

#endif  // EMBANK_STORE_INSPECT_REPLICATED_ROWS_H_
