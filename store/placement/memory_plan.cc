#include "store/placement/memory_plan.h"

#include <algorithm>

#include "store/placement/heat_sketch.h"
#include "tiers/dram/dram_tier.h"
#include "tiers/dram/slot_notes.h"
#include "tiers/row/row_layout.h"
#include "tiers/segment/log_record.h"

namespace embank {

uint64_t HeatSketchBytes(uint64_t dram_bytes, uint64_t ssd_bytes) {
  uint64_t bytes = dram_bytes / 32;
  if (ssd_bytes != 0) bytes = std::min(bytes, ssd_bytes / 256);
  bytes = RoundDown(bytes, HeatSketch::kGrainBytes);
  return std::clamp(bytes, HeatSketch::kGrainBytes, HeatSketch::kBytesMax);
}

uint64_t HeatSketchBytesOfLog(uint64_t dram_bytes, uint64_t ssd_bytes, uint64_t saved_bytes) {
  if (dram_bytes != 0 || !HeatSketch::IsSize(saved_bytes)) {
    return HeatSketchBytes(dram_bytes, ssd_bytes);
  }
  return std::min(saved_bytes, HeatSketchBytes(PhysicalMemoryBytes(), ssd_bytes));
}

uint64_t KeptSketchBytes(const StoreOptions& options, uint64_t sketch_bytes, uint64_t rows) {
  if (options.dram_bytes != 0) return sketch_bytes;
  const uint64_t most = std::max(HeatSketchBytes(UINT64_MAX, options.ssd_bytes), sketch_bytes);
  uint64_t bytes = sketch_bytes;
  const uint64_t blocks = rows / HeatSketch::kRowsOfBlock;
  while (2 * bytes <= most && blocks > bytes / sizeof(HeatBlock)) bytes *= 2;
  return bytes;
}

uint64_t RowAddressBytes(const StoreOptions& options) {
  // Without a limit, twice the machine's memory: more cannot be filled.
  const uint64_t bytes = options.dram_bytes != 0 ? options.dram_bytes : 2 * PhysicalMemoryBytes();
  if (options.path.empty() || options.dram_bytes != 0) {
    return std::min(bytes, DramTier::kAddressBytesMax);
  }
  // Beyond what the notes of the smallest slots reach to, rows are in the log.
  const RowLayout smallest = MakeRowLayout(1, ValueType::kF16, Optimizer::kNone);
  return std::min(bytes, SlotNotes::AddressBytesMax(smallest.row_bytes));
}

RowLogOptions LogSizes(const StoreOptions& options) {
  constexpr uint64_t kSegmentBytesMin = uint64_t{1} << 20;
  // Space is reserved and released by segments (tiers/space/space_accounts.h).
  constexpr uint64_t kSegmentsOfBudgetMin = 64;
  RowLogOptions log;
  while (options.ssd_bytes != 0 && log.segment_bytes > kSegmentBytesMin &&
         log.segment_bytes * kSegmentsOfBudgetMin > options.ssd_bytes) {
    log.segment_bytes /= 2;
  }
  if (options.dram_bytes == 0) return log;
  const uint64_t part = options.dram_bytes / 16;
  // The keys and tables of an open segment are in memory, 10 bytes for each of its records, and as
  // much again while its footer is written: a third of the segment for the smallest rows.
  while (log.segment_bytes > kSegmentBytesMin && log.segment_bytes / 3 > part) {
    log.segment_bytes /= 2;
  }
  while (log.buffers > 4 && log.buffers * log.buffer_bytes > part) log.buffers /= 2;
  while (log.buffer_bytes > uint64_t{kRecordBytesMax} * 4 &&
         log.buffers * log.buffer_bytes > part) {
    log.buffer_bytes /= 2;
  }
  while (log.read_lists > 2 && log.read_lists * log.read_bytes > part) log.read_lists /= 2;
  while (log.read_bytes > uint64_t{kRecordBytesMax} * 8 && log.read_lists * log.read_bytes > part) {
    log.read_bytes /= 2;
  }
  return log;
}

RowLogOptions PmemLogSizes(const StoreOptions& options, const std::optional<RowLogOptions>& sizes) {
  StoreOptions as_if = options;
  as_if.ssd_bytes = options.pmem_bytes;
  RowLogOptions log = sizes.value_or(LogSizes(as_if));
  log.tier = Tier::kPmem;
  // A test may ask for less than people may.
  const bool has_bytes = sizes.has_value() && sizes->ssd_bytes != 0;
  const uint64_t bytes = has_bytes ? sizes->ssd_bytes : options.pmem_bytes;
  log.ssd_bytes = options.read_only ? 0 : bytes;
  log.read_only = options.read_only;
  log.has_reservations = false;
  // The other quarter is for former versions of rows and for compaction. Two kept checkpoints may
  // have more former versions than that: rows then go to the SSD, and each checkpoint empties the
  // segments with the fewest rows.
  if (log.rows_bytes_max == 0) log.rows_bytes_max = bytes - bytes / 4;
  // Records that are in files are read where they are; a list has memory for those in buffers.
  log.read_bytes = std::min<uint64_t>(log.read_bytes, uint64_t{1} << 20);
  if (options.dram_bytes == 0 || sizes.has_value()) return log;
  // The log of the SSD has as much again.
  if (log.buffers > 4) log.buffers /= 2;
  return log;
}

}  // namespace embank
