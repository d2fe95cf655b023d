// An open segment of the log, which takes records of one stream and row class.
#ifndef EMBANK_TIERS_LOG_OPEN_SEGMENT_H_
#define EMBANK_TIERS_LOG_OPEN_SEGMENT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "tiers/log/log_buffer.h"
#include "tiers/segment/log_record.h"
#include "tiers/segment/log_segment.h"

namespace embank {

struct OpenSegment {
  OpenSegment(LogStream of, uint32_t its_class) : stream(of), row_class(its_class) {}
  const LogStream stream;
  const uint32_t row_class;
  uint64_t written_bytes = 0;           // of records, in all its segments
  std::shared_ptr<LogSegment> segment;  // nullptr: the next record begins a segment
  LogBuffer* buffer = nullptr;          // the slot of the next record
  LogBuffer* next = nullptr;            // taken for the record that continues in it
  bool wants_next = false;              // a thread waits for that buffer
  // Without a buffer: the bytes of the block in which the last record ends, if that block may be
  // written again.
  uint64_t tail_bytes = 0;
  std::array<std::byte, kBlockBytes> tail;
};

}  // namespace embank

#endif  // EMBANK_TIERS_LOG_OPEN_SEGMENT_H_
