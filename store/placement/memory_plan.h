// How a store divides dram_bytes, in one place:
//
//   part                        bytes
//   objects                     kStoreFixedBytes, and kTableFixedBytes for each table
//   buffers of the log          at most a sixteenth
//   lists of reads of the log   at most a sixteenth
//   heat of rows on the SSD     HeatSketchBytes: a 32nd, at most a 256th of ssd_bytes
//   rows                        at least RowBytesMin: a sixteenth, however large the index is
//   index                       the rest but a sixteenth, for which rows leave when it grows
//   pinned rows                 at most PinBytes of the rows' part: a quarter
//
// Without a limit (dram_bytes 0) each part takes what it needs.
#ifndef EMBANK_STORE_PLACEMENT_MEMORY_PLAN_H_
#define EMBANK_STORE_PLACEMENT_MEMORY_PLAN_H_

#include <cstdint>
#include <optional>

#include "base/memory/memory.h"
#include "store/table/options.h"
#include "tiers/log/row_log_options.h"

namespace embank {

// The charge for the store's objects and its threads' bookkeeping.
inline constexpr uint64_t kStoreFixedBytes = uint64_t{128} << 10;
// The charge for a table's object, which is mostly counters, its name and its registration.
inline constexpr uint64_t kTableFixedBytes = 12288;

// The index of a store with a path leaves this part of dram_bytes to rows and to the log. The log's
// bits of a row take a 50th of the row's index bytes.
constexpr uint64_t IndexLeavesBytes(uint64_t dram_bytes) { return dram_bytes / 16; }

// A store with a path keeps so many bytes in pages of rows, at least a page, however many rows the
// index has.
constexpr uint64_t RowBytesMin(uint64_t dram_bytes) {
  constexpr uint64_t kPart = 16;
  return RoundUp(dram_bytes / kPart, kHugePageBytes);
}

// The limit of the bytes of pinned rows. 0: no limit.
constexpr uint64_t PinBytes(uint64_t dram_bytes) { return dram_bytes / 4; }

// The size of a heat sketch (store/placement/heat_sketch.h). A row and the index of the rows below
// it take 512 bytes; 16 of them, a 32nd, hold an entry for each row that leaves memory and returns.
// Files keep the sketch, so that it has at most a 256th of ssd_bytes. 0: no limit.
uint64_t HeatSketchBytes(uint64_t dram_bytes, uint64_t ssd_bytes);

// The size of the sketch of a store with a path, whose checkpoint has heat for a sketch of
// `saved_bytes`. Without a limit of memory rows do not leave; but all of them begin in the log,
// with saved heat.
uint64_t HeatSketchBytesOfLog(uint64_t dram_bytes, uint64_t ssd_bytes, uint64_t saved_bytes);

// The size of the sketch that a checkpoint keeps, of a store with `rows` rows and with a sketch of
// `sketch_bytes`: the same. Without a limit of memory there is hardly a sketch, and all rows may be
// in memory: the size is doubled, within the limits of a sketch, until at most kRowsOfBlock of them
// share a block. Each block of the store's sketch is one of the file, or is in several, which then
// have entries of each other's rows.
uint64_t KeptSketchBytes(const StoreOptions& options, uint64_t sketch_bytes, uint64_t rows);

// Addresses to reserve for the rows of a store.
uint64_t RowAddressBytes(const StoreOptions& options);

// Sizes of a log's buffers and lists for dram_bytes: a sixteenth of it for each, within limits; and
// of segments, so that ssd_bytes holds many.
RowLogOptions LogSizes(const StoreOptions& options);
// The sizes and limits of the log in PMem; `sizes` are taken in place of those that follow from
// pmem_bytes and dram_bytes.
RowLogOptions PmemLogSizes(const StoreOptions& options, const std::optional<RowLogOptions>& sizes);

}  // namespace embank

#endif  // EMBANK_STORE_PLACEMENT_MEMORY_PLAN_H_
