// What a store will need, before it is opened.
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

// Rows that a store can have: its addresses, in rows of the smallest size, are fewer by half.
inline constexpr uint64_t kRowsMax = uint64_t{1} << kLocationBits;

// Bytes of DRAM. `dram_bytes` is enough as a budget. Without a path: to hold the rows and to grow
// to them. With one: to name the rows in the index, of which those of rows_in_dram are in memory.
struct Estimate {
  uint64_t fixed_bytes = 0;  // whatever the rows: objects, buffers, what is reserved and kept free
  uint64_t index_bytes = 0;
  uint64_t slab_bytes = 0;
  uint64_t dram_bytes = 0;
  uint64_t rows_in_dram = 0;
  bool fits = false;  // in the budget; without one, in the addresses that a store reserves
};

// With a path, the least that the rows take with at least `rows_in_dram` of them in memory, of all
// tables alike. Options are valid, the rows at most kRowsMax in all.
Estimate EstimateMemory(const StoreOptions& options, std::span<const TableRows> tables,
                        uint64_t rows_in_dram = 0);

// As EstimateMemory of a store with a path, with as many rows in memory as a hit ratio takes
// (store/inspect/cache_size.h). kInvalidArgument: no path; an exponent or a ratio out of its range.
StatusOr<Estimate> EstimateForHitRatio(const StoreOptions& options,
                                       std::span<const TableRows> tables, double zipf_exponent,
                                       double hit_ratio);

}  // namespace embank

#endif  // EMBANK_STORE_INSPECT_ESTIMATE_H_
