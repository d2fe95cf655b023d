// A checksum of all rows of some tables.
#ifndef EMBANK_TOOLS_ROW_CHECKSUM_H_
#define EMBANK_TOOLS_ROW_CHECKSUM_H_

#include <cstdint>
#include <span>

#include "base/status_or.h"
#include "store/table/table.h"

namespace embank {

// Returns a number that depends on the key, vector and optimizer state of each row, and on its
// table's place in `tables`. It depends neither on the tiers of the rows nor on the order in which
// a scan finds them. Nothing changes the tables meanwhile. The statuses of Scan::Next and GetState.
StatusOr<uint64_t> ChecksumOfRows(std::span<Table* const> tables);

}  // namespace embank

#endif  // EMBANK_TOOLS_ROW_CHECKSUM_H_
