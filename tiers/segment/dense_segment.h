// A finished segment of the records that a checkpoint has in a segment that still takes some:
//
//   source:  header | row | dead | row | dead | row | ... free ... | (footer)
//   target:  header | row | row | row | footer
//
// The target has the source's number, so its records are sealed anew for their slots. A damaged
// record stays damaged.
#ifndef EMBANK_TIERS_SEGMENT_DENSE_SEGMENT_H_
#define EMBANK_TIERS_SEGMENT_DENSE_SEGMENT_H_

#include <cstdint>
#include <span>

#include "base/files/file_system.h"
#include "base/function_ref.h"
#include "base/memory/aligned_buffer.h"
#include "base/memory/memory.h"
#include "base/status.h"
#include "tiers/segment/log_segment.h"

namespace embank {

// One thread at a time.
class DenseSegment {
 public:
  // Notes `bytes` more bytes of the target; an error ends the copy.
  using CountDone = FunctionRef<Status(uint64_t bytes)>;

  // The source is described with its keys, and has a row; it outlives this object.
  explicit DenseSegment(const SegmentRows& source);

  // The bytes of the target's file.
  uint64_t file_bytes() const { return header_.segment_bytes; }
  // Describes the target for a manifest, on the SSD.
  SegmentRows Describe() const;
  // Copies the records from the source's file into an empty file. Needs 2 MiB, and then twice the
  // bytes of the footer, of memory that is in no budget. Nothing is synced. kResourceExhausted, the
  // statuses of files and of `done`; kOutOfRange: the source is cut off.
  Status Copy(File* source, MemorySource* memory, File* target, CountDone done);

 private:
  Status CopyPiece(File* source, uint32_t begin_slot, uint32_t end_slot);
  bool Lives(uint32_t slot) const { return (source_.bits[slot / 64] >> (slot % 64) & 1) != 0; }
  void Add(uint32_t slot, std::span<const std::byte> record);
  Status WriteFooter(MemorySource* memory, File* target);
  Status Write(File* target, uint64_t bytes, CountDone done);

  const SegmentRows& source_;
  SegmentHeader header_;
  SegmentGeometry geometry_;
  MemoryBudget budget_{0};
  AlignedBuffer piece_;   // of the source
  AlignedBuffer buffer_;  // of the target
  uint64_t begin_ = 0;    // the offset of the buffer in the target
  uint64_t end_ = 0;      // the end of what is in it
  uint32_t rows_ = 0;     // that were copied
};

}  // namespace embank

#endif  // EMBANK_TIERS_SEGMENT_DENSE_SEGMENT_H_
