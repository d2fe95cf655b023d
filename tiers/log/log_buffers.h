// The buffers of a log: free, being filled, queued, or being written. Bookkeeping only, without a
// file; the caller guards it.
//
//   free -> filling -> queued -> writing -> free
//                         ^---------'  could not be written
#ifndef EMBANK_TIERS_LOG_LOG_BUFFERS_H_
#define EMBANK_TIERS_LOG_LOG_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/memory/memory.h"
#include "base/status.h"
#include "tiers/log/log_buffer.h"

namespace embank {

class LogBuffers {
 public:
  // Each buffer writes up to so many bytes at a time: whole blocks.
  explicit LogBuffers(uint64_t buffer_bytes) : buffer_bytes_(buffer_bytes) {}
  // Makes so many buffers, once. kResourceExhausted.
  Status Init(MemorySource* source, MemoryBudget* budget, uint32_t buffers);

  // Returns a free buffer, which is being filled from now on; nullptr: there is none.
  LogBuffer* TakeFree();
  // Queues the buffer to be written up to its end, or frees it if it is empty.
  void Queue(LogBuffer* buffer);
  // Returns the queued buffer that has waited longest; nullptr: none may be written now.
  LogBuffer* Next() const;
  // The file offset up to which a buffer is written: whole blocks.
  uint64_t WrittenEnd(const LogBuffer& buffer) const;
  // Frees a buffer that was written: its records are in the file.
  void Free(LogBuffer* buffer);

  // Returns the place of a record in a buffer; nullptr: it is in the file.
  const std::byte* Find(const LogSegment* segment, uint64_t offset, uint32_t bytes) const;
  // Whether a buffer has a part of the segment.
  bool HasPartOf(const LogSegment* segment) const;
  bool IsAnyWriting() const;
  bool IsHalfFree() const;

  // Counts queued buffers and calls of NextTurn.
  uint64_t turn() const { return next_turn_; }
  void NextTurn() { ++next_turn_; }
  // Whether a buffer that was queued before a turn is not written yet.
  bool IsAnyQueuedBefore(uint64_t turn) const;

 private:
  bool MayWrite(const LogBuffer& buffer) const;

  const uint64_t buffer_bytes_;
  std::vector<std::unique_ptr<LogBuffer>> buffers_;
  uint64_t next_turn_ = 1;
};

}  // namespace embank

#endif  // EMBANK_TIERS_LOG_LOG_BUFFERS_H_
