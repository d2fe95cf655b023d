// What a store will need, before it is opened.
#ifndef EMBANK_STORE_ESTIMATE_H_
#define EMBANK_STORE_ESTIMATE_H_

#include <cstdint>
#include <span>

#include "store/options.h"
#include "tiers/location.h"
#include "tiers/row_log.h"

namespace embank {

struct TableRows {
  TableOptions options;
  uint64_t rows = 0;
};

// Rows that a store can have: its addresses, in rows of the smallest size, are fewer by half.
inline constexpr uint64_t kRowsMax = uint64_t{1} << kLocationBits;

// Bytes of DRAM. `dram_bytes` is enough as a budget to hold the rows and to grow to them.
struct Estimate {
  uint64_t fixed_bytes = 0;
  uint64_t index_bytes = 0;
  uint64_t slab_bytes = 0;
  uint64_t dram_bytes = 0;
  bool fits = false;  // in the budget; without one, in the addresses that a store reserves
};

// Options are valid, the rows at most kRowsMax in all.
Estimate EstimateMemory(const StoreOptions& options, std::span<const TableRows> tables);

// Charged for a table's object, name and registration.
inline constexpr uint64_t kTableFixedBytes = 2048;
// Charged for the store's objects and its threads' bookkeeping.
inline constexpr uint64_t kStoreFixedBytes = uint64_t{128} << 10;

// Addresses to reserve for the rows of a store.
uint64_t RowAddressBytes(const StoreOptions& options);

// Buffers and lists of a log that suit dram_bytes: a sixteenth of it for each, as far as that goes;
// segments of which ssd_bytes holds many.
RowLogOptions LogSizes(const StoreOptions& options);

// Threads of the pool.
uint32_t WorkerThreads(const StoreOptions& options);

}  // namespace embank

#endif  // EMBANK_STORE_ESTIMATE_H_
