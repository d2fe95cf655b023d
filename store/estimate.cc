#include "store/estimate.h"

#include <algorithm>
#include <map>
#include <thread>

#include "store/key_index.h"
#include "store/new_rows.h"
#include "store/row_forgetter.h"
#include "tiers/dram_tier.h"
#include "tiers/row_layout.h"
#include "tiers/slot_notes.h"

namespace embank {

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

uint32_t WorkerThreads(const StoreOptions& options) {
  if (options.worker_threads != 0) return options.worker_threads;
  return std::clamp(std::thread::hardware_concurrency(), 1u, kWorkerThreadsMax);
}

Estimate EstimateMemory(const StoreOptions& options, std::span<const TableRows> tables) {
  std::map<RowClass, uint64_t> rows_by_class;
  uint64_t rows = 0;
  for (const TableRows& table : tables) {
    rows_by_class[RowClassOf(table.options)] += table.rows;
    rows += table.rows;
  }
  const uint64_t threads = WorkerThreads(options);
  Estimate estimate;
  uint64_t forgetters = 0;
  for (const auto& [row_class, class_rows] : rows_by_class) {
    // With a path nothing more than all tables take there.
    const bool forgets = row_class.on_full == OnFull::kForget && options.path.empty();
    forgetters += forgets ? 1 : 0;
    const uint64_t slots =
        DramTier::SlotsPerPage(row_class.slot_bytes, !options.path.empty() || forgets);
    // Each thread may hold a few slots that it does not use in the end.
    const uint64_t taken = class_rows + threads * NewRows::kSlotsAtOnce;
    estimate.slab_bytes += (taken + slots - 1) / slots * DramTier::kPageBytes;
  }
  estimate.index_bytes = KeyIndex::EstimateBytes(rows);
  // Page records depend on the budget, which is what is asked for: 32 bytes for 2 MiB.
  const uint64_t rows_and_index = estimate.slab_bytes + estimate.index_bytes;
  estimate.fixed_bytes =
      kStoreFixedBytes + tables.size() * kTableFixedBytes + forgetters * RowForgetter::kFixedBytes +
      (forgetters > 0 ? sizeof(TableDirectory) : 0) +
      DramTier::FixedBytes(std::max({RowAddressBytes(options), kDramBytesMin, 2 * rows_and_index}));
  estimate.dram_bytes = std::max(kDramBytesMin, estimate.fixed_bytes + rows_and_index);
  // With a path a fifth stays free of rows, about an eighth is the log's (LogSizes), and a 32nd the
  // heat sketch's.
  if (!options.path.empty()) {
    estimate.dram_bytes = estimate.dram_bytes / 5 * 8;
    estimate.fixed_bytes += estimate.dram_bytes - estimate.dram_bytes / 8 * 5;
  }
  estimate.fits = estimate.dram_bytes <= RowAddressBytes(options);
  return estimate;
}

RowLogOptions LogSizes(const StoreOptions& options) {
  constexpr uint64_t kSegmentBytesMin = uint64_t{1} << 20;
  // Room is kept and had back by segments (tiers/log_room.h).
  constexpr uint64_t kSegmentsOfBudgetMin = 64;
  RowLogOptions log;
  while (options.ssd_bytes != 0 && log.segment_bytes > kSegmentBytesMin &&
         log.segment_bytes * kSegmentsOfBudgetMin > options.ssd_bytes) {
    log.segment_bytes /= 2;
  }
  if (options.dram_bytes == 0) return log;
  const uint64_t part = options.dram_bytes / 16;
  // Of an open segment its keys and tables are in memory, 10 bytes for each of its records, and as
  // much again while its footer is written: a third of it for the smallest rows.
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

}  // namespace embank
