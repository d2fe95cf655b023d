// The one table that every engine of a benchmark holds.
#ifndef EMBANK_BENCH_TABLE_OPTIONS_H_
#define EMBANK_BENCH_TABLE_OPTIONS_H_

#include <bit>
#include <cstdint>

#include "bench/options.h"
#include "bindings/c/embank.h"

namespace embank {

// The option of embank_table_options for a number of rows; 0: it is not known.
constexpr uint32_t ExpectedRowsLog2(uint64_t rows) {
  return rows == 0 ? 0 : static_cast<uint32_t>(std::bit_width(rows - 1));
}

inline constexpr char kTableName[] = "rows";

// Defaults of embank.h apart from the shape; rows begin uniform in [-0.05, 0.05), accumulators at
// 0.1.
embank_table_options MakeTableOptions(const TableShape& shape);

}  // namespace embank

#endif  // EMBANK_BENCH_TABLE_OPTIONS_H_
