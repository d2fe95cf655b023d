// The one table that every engine of a benchmark holds.
#ifndef EMBANK_BENCH_TABLE_OPTIONS_H_
#define EMBANK_BENCH_TABLE_OPTIONS_H_

#include "bench/options.h"
#include "bindings/c/embank.h"

namespace embank {

inline constexpr char kTableName[] = "rows";

// Defaults of embank.h apart from the shape; rows begin uniform in [-0.05, 0.05), accumulators at
// 0.1.
embank_table_options MakeTableOptions(const TableShape& shape);

}  // namespace embank

#endif  // EMBANK_BENCH_TABLE_OPTIONS_H_
