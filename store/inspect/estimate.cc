#include "store/inspect/estimate.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/str_cat.h"
#include "store/batch/new_rows.h"
#include "store/index/index_sizes.h"
#include "store/inspect/cache_size.h"
#include "store/payload/payload_memory.h"
#include "store/placement/memory_plan.h"
#include "store/placement/row_mover.h"
#include "tiers/dram/dram_tier.h"
#include "tiers/dram/slot_notes.h"
#include "tiers/row/row_layout.h"
#include "tiers/space/log_memory.h"

namespace embank {

namespace {

uint64_t DivideUp(uint64_t dividend, uint64_t divisor) {
  return (dividend + divisor - 1) / divisor;
}

using RowsByClass = std::map<RowClass, uint64_t>;

Estimate EstimateInMemory(const StoreOptions& options, const RowsByClass& rows_by_class,
                          uint64_t rows, uint64_t tables) {
  const uint64_t threads = WorkerThreads(options);
  Estimate estimate;
  uint64_t forgetters = 0;
  for (const auto& [row_class, class_rows] : rows_by_class) {
    const bool forgets = row_class.on_full == OnFull::kForget;
    forgetters += forgets ? 1 : 0;
    const uint64_t slots = DramTier::SlotsPerPage(row_class.slot_bytes, forgets);
    // Each thread may hold a few slots that it does not use in the end.
    const uint64_t taken = class_rows + threads * NewRows::kSlotsAtOnce;
    estimate.slab_bytes += DivideUp(taken, slots) * DramTier::kPageBytes;
  }
  estimate.index_bytes = IndexBytesMax(rows);
  // The records of pages depend on the budget, which is the result: 32 bytes for 2 MiB.
  const uint64_t rows_and_index = estimate.slab_bytes + estimate.index_bytes;
  estimate.fixed_bytes =
      kStoreFixedBytes + tables * kTableFixedBytes + forgetters * ClassRows::kFixedBytes +
      DramTier::FixedBytes(std::max({RowAddressBytes(options), kDramBytesMin, 2 * rows_and_index}));
  estimate.dram_bytes = std::max(kDramBytesMin, estimate.fixed_bytes + rows_and_index);
  estimate.rows_in_dram = rows;
  return estimate;
}

// The bytes that a log charges for the block of headers, its buffers and its lists of reads.
uint64_t LogBufferBytes(const RowLogOptions& log) {
  return AlignedBuffer::ChargedBytes(kBlockBytes) +
         log.buffers * AlignedBuffer::ChargedBytes(log.buffer_bytes + 2 * kBufferOverhangBytes) +
         log.read_lists * AlignedBuffer::ChargedBytes(log.read_bytes);
}

// Buffers and reservations of a log, and the bits of segments of as many rows.
uint64_t LogBytes(const RowLogOptions& log, const RowsByClass& rows_by_class) {
  // Checkpoints keep, and compaction leaves, records that are dead.
  constexpr double kSegmentsPerLive = 1.5;
  uint64_t bytes = LogBufferBytes(log);
  double bits_bytes = 0;
  uint64_t owner_bytes_max = 0;
  uint64_t footer_bytes_max = 0;
  for (const auto& [row_class, rows] : rows_by_class) {
    const SegmentGeometry geometry =
        SegmentGeometry::Of(RecordBytesOf(row_class.slot_bytes), log.segment_bytes);
    const uint64_t owner_bytes = AlignedBuffer::ChargedBytes(LogMemory::OwnerBytes(geometry));
    bytes += owner_bytes;
    owner_bytes_max = std::max(owner_bytes_max, owner_bytes);
    footer_bytes_max =
        std::max(footer_bytes_max, AlignedBuffer::ChargedBytes(geometry.footer_bytes));
    double segments = static_cast<double>(rows) / geometry.slots * kSegmentsPerLive + 2;
    if (log.ssd_bytes != 0) {
      const uint64_t segments_max = log.ssd_bytes / log.segment_bytes;
      segments = std::min(segments, static_cast<double>(segments_max));
    }
    bits_bytes += segments * static_cast<double>(LogMemory::BitBytes(geometry));
  }
  // Compaction has owners in reserve, and a segment that waits for its footer still has its own.
  return bytes + 2 * owner_bytes_max + footer_bytes_max + static_cast<uint64_t>(bits_bytes);
}

// All that a store with so much DRAM takes but the index and rows: its objects, the log's buffers
// and reservations, segments of as many rows, and what the index leaves to them.
uint64_t FixedBytesWithLog(const StoreOptions& options, const RowsByClass& rows_by_class,
                           uint64_t tables) {
  uint64_t bytes =
      kStoreFixedBytes + tables * kTableFixedBytes + rows_by_class.size() * RowMover::kFixedBytes +
      DramTier::FixedBytes(RowAddressBytes(options)) +
      AlignedBuffer::ChargedBytes(HeatSketchBytes(options.dram_bytes, options.ssd_bytes)) +
      LogBytes(LogSizes(options), rows_by_class);
  if (!options.pmem_path.empty()) {
    // Rows may be in either log; segments of as many take no more than those on the SSD.
    bytes += LogBytes(PmemLogSizes(options, std::nullopt), rows_by_class);
  }
  return bytes + IndexLeavesBytes(options.dram_bytes);
}

// The fixed part grows with dram_bytes, by a quarter of it. So the sum is repeated with its own
// result until that is enough.
Estimate EstimateWithLog(StoreOptions options, const RowsByClass& rows_by_class, uint64_t rows,
                         uint64_t tables, uint64_t rows_in_dram) {
  Estimate estimate;
  estimate.index_bytes = IndexBytesMin(rows);
  estimate.rows_in_dram = std::min(rows, rows_in_dram);
  uint64_t row_bytes = 0;
  for (const auto& [row_class, class_rows] : rows_by_class) {
    const double part = rows == 0 ? 0 : static_cast<double>(class_rows) / static_cast<double>(rows);
    const auto in_dram =
        static_cast<uint64_t>(std::llround(part * static_cast<double>(estimate.rows_in_dram)));
    const uint64_t slots = DramTier::SlotsPerPage(row_class.slot_bytes, true);
    row_bytes += DivideUp(in_dram, slots) * DramTier::kPageBytes;
  }
  options.dram_bytes = kDramBytesMin;
  for (;;) {
    estimate.fixed_bytes = FixedBytesWithLog(options, rows_by_class, tables);
    estimate.slab_bytes = std::max(row_bytes, RowBytesMin(options.dram_bytes));
    estimate.dram_bytes =
        std::max(kDramBytesMin, estimate.fixed_bytes + estimate.index_bytes + estimate.slab_bytes);
    if (estimate.dram_bytes <= options.dram_bytes) break;
    options.dram_bytes = estimate.dram_bytes;
  }
  estimate.dram_bytes = options.dram_bytes;
  return estimate;
}

// The host memory that rows in device memory take: buffers, records of pages, and headers.
uint64_t PayloadHostBytes(const StoreOptions& options, std::span<const TableRows> tables) {
  if (options.hbm_bytes == 0) return 0;
  uint64_t hbm_rows = 0;
  for (const TableRows& table : tables) {
    const TableOptions& t = table.options;
    const RowLayout layout = MakeRowLayout(t.dim, t.value_type, t.optimizer);
    hbm_rows += std::min(table.rows, options.hbm_bytes / layout.payload_bytes());
  }
  const uint64_t headers = DramTier::SlotsPerPage(DramTier::kHeaderSlotBytes, true);
  return PayloadMemory::HostBytesMax(options.hbm_bytes) +
         (DivideUp(hbm_rows, headers) + 1) * DramTier::kPageBytes;
}

}  // namespace

Estimate EstimateMemory(const StoreOptions& options, std::span<const TableRows> tables,
                        uint64_t rows_in_dram) {
  RowsByClass rows_by_class;
  uint64_t rows = 0;
  for (const TableRows& table : tables) {
    rows_by_class[RowClassOf(table.options)] += table.rows;
    rows += table.rows;
  }
  Estimate estimate =
      options.path.empty()
          ? EstimateInMemory(options, rows_by_class, rows, tables.size())
          : EstimateWithLog(options, rows_by_class, rows, tables.size(), rows_in_dram);
  const uint64_t payload_host_bytes = PayloadHostBytes(options, tables);
  estimate.fixed_bytes += payload_host_bytes;
  estimate.dram_bytes += payload_host_bytes;
  estimate.fits = estimate.dram_bytes <= RowAddressBytes(options);
  return estimate;
}

StatusOr<Estimate> EstimateForHitRatio(const StoreOptions& options,
                                       std::span<const TableRows> tables, double zipf_exponent,
                                       double hit_ratio) {
  constexpr double kZipfExponentMax = 4;
  if (options.path.empty()) {
    return InvalidArgumentError("path: there is none in options; without one all rows are in DRAM");
  }
  // NaN is out of every range.
  if (!(zipf_exponent >= 0 && zipf_exponent <= kZipfExponentMax)) {
    return InvalidArgumentError(
        StrCat("zipf_exponent: ", zipf_exponent, "; 0 to ", kZipfExponentMax));
  }
  if (!(hit_ratio >= 0 && hit_ratio <= 1)) {
    return InvalidArgumentError(StrCat("hit_ratio: ", hit_ratio, "; 0 to 1"));
  }
  uint64_t rows = 0;
  for (const TableRows& table : tables) rows += table.rows;
  return EstimateMemory(options, tables,
                        hit_ratio == 1 ? rows : RowsForHitRatio(rows, zipf_exponent, hit_ratio));
}

}  // namespace embank
