// Estimates the memory of a store before it is opened.
#ifndef EMBANK_STORE_INSPECT_ESTIMATE_H_
#define EMBANK_STORE_INSPECT_ESTIMATE_H_

#include <cstdint>
#include <span>

#include "base/status_or.h"
#include "store/table/options.h"
#include "tiers/row/location.h"

namespace embank {

struct TableRows {
  TableOptions options;
  uint64_t rows = 0;
};

// The most rows that a store can have: its addresses hold half as many rows of the smallest size.
inline constexpr uint64_t kRowsMax = uint64_t{1} << kLocationBits;

// Bytes of DRAM. `dram_bytes` is enough as a budget. Without a path it holds all rows, and the
// index while it grows to them. With a path it holds an index of all rows, and rows_in_dram rows.
struct Estimate {
  uint64_t fixed_bytes = 0;  // for any number of rows: objects, buffers, memory that is reserved or
                             // kept free
  uint64_t index_bytes = 0;
  uint64_t slab_bytes = 0;
  uint64_t dram_bytes = 0;
  uint64_t rows_in_dram = 0;
  bool fits = false;  // in the budget; without a budget, in the addresses that a store reserves
};

// Estimates the memory of a store. With a path, the least for these rows with at least
// `rows_in_dram` of them in memory, of all tables alike. Options are valid; the rows are at most
// kRowsMax in all.
Estimate EstimateMemory(const StoreOptions& options, std::span<const TableRows> tables,
                        uint64_t rows_in_dram = 0);

// Like EstimateMemory, for a store with a path, with as many rows in memory as a hit ratio needs
// (store/inspect/cache_size.h). kInvalidArgument: there is no path; an exponent or a ratio is out
// of range.
StatusOr<Estimate> EstimateForHitRatio(const StoreOptions& options,
                                       std::span<const TableRows> tables, double zipf_exponent,
                                       double hit_ratio);

}  // namespace embank

#endif  // EMBANK_STORE_INSPECT_ESTIMATE_H_
