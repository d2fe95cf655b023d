// Memory that a log reserves for itself, so that dirty rows can always be written, however full
// dram_bytes is:
//
//   owners of slots   10 bytes for each slot of a segment, while it is written. One segment of each
//                     row class is reserved for, and one of the largest class for compaction.
//   a footer          while it is written. The largest one is reserved.
//   bits of slots     2 bits for each slot of a segment, while it is there. They are reserved for
//                     the segments that the rows which are dirty now will need.
//
// Other free memory is used first. The caller guards it.
#ifndef EMBANK_TIERS_SPACE_LOG_MEMORY_H_
#define EMBANK_TIERS_SPACE_LOG_MEMORY_H_

#include <cstdint>

#include "base/memory/aligned_buffer.h"
#include "base/memory/charged_words.h"
#include "base/memory/memory.h"
#include "base/status.h"
#include "base/status_or.h"
#include "tiers/segment/log_record.h"
#include "tiers/segment/segment_format.h"

namespace embank {

class LogMemory {
 public:
  // Charged for the objects of a segment besides its bits.
  static constexpr uint64_t kSegmentFixedBytes = 512;
  // Segments before one of 64 MiB, where their sizes follow what is written: 4 of 256 KiB, and 2 of
  // each size up to 64 MiB (tiers/space/segment_size.h).
  static constexpr uint64_t kSmallSegmentsMax = 4 + 2 * 8;

  // source and budget outlive it. A budget without a limit needs no reservation.
  LogMemory(MemorySource* source, MemoryBudget* budget) : source_(source), budget_(budget) {}
  ~LogMemory();
  LogMemory(const LogMemory&) = delete;
  LogMemory& operator=(const LogMemory&) = delete;

  // Bytes for the owners of a segment's slots; for its bits, and its objects.
  static uint64_t OwnerBytes(const SegmentGeometry& geometry);
  static uint64_t BitWords(const SegmentGeometry& geometry);
  static uint64_t BitBytes(const SegmentGeometry& geometry) {
    return BitWords(geometry) * sizeof(uint64_t) + kSegmentFixedBytes;
  }

  // Reserves memory for the segments of one more row class. kResourceExhausted: nothing was
  // changed.
  Status AddClass(const SegmentGeometry& geometry);
  // The bytes that AddClass charges for a class of this geometry beside smaller ones.
  static uint64_t ClassBytesMax(const SegmentGeometry& geometry);
  // The bytes that ReserveBits may charge for so many more dirty rows of one class.
  static uint64_t BitBytesMax(const SegmentGeometry& geometry, uint64_t rows) {
    return (rows / geometry.slots + 2) * BitBytes(geometry) +
           kSmallSegmentsMax * kSegmentFixedBytes + kBitsStepBytes;
  }

  // kResourceExhausted.
  StatusOr<AlignedBuffer> Owners(LogStream stream, const SegmentGeometry& geometry);
  StatusOr<AlignedBuffer> Footer(const SegmentGeometry& geometry);
  StatusOr<ChargedWords> Bits(LogStream stream, const SegmentGeometry& geometry);

  // Reserves so many bytes for bits, instead of the former reservation. False: that is more, and
  // there is no memory; nothing was changed.
  bool ReserveBits(uint64_t bytes);

  uint64_t reserved_bit_bytes() const { return bits_bytes_; }
  uint64_t largest_footer_bytes() const { return largest_footer_bytes_; }

 private:
  // Bits are reserved in steps of so many bytes, because all threads share the budget.
  static constexpr uint64_t kBitsStepBytes = uint64_t{16} << 10;

  StatusOr<AlignedBuffer> Allocate(MemoryBudget* first, MemoryBudget* then, uint64_t bytes);

  MemorySource* const source_;
  MemoryBudget* const budget_;
  // Parts of the budget.
  MemoryBudget user_owners_;
  MemoryBudget compaction_owners_;
  MemoryBudget footer_;
  uint64_t largest_owner_bytes_ = 0;
  uint64_t largest_footer_bytes_ = 0;
  uint64_t bits_bytes_ = 0;  // reserved
};

}  // namespace embank

#endif  // EMBANK_TIERS_SPACE_LOG_MEMORY_H_
