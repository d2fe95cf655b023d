// A buffer of the log: a part of a segment on its way to the file.
#ifndef EMBANK_TIERS_LOG_LOG_BUFFER_H_
#define EMBANK_TIERS_LOG_LOG_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/memory/aligned_buffer.h"
#include "tiers/segment/log_record.h"
#include "tiers/segment/log_segment.h"

namespace embank {

// Before and behind the bytes that a buffer writes, there is space for a record that lies across
// its ends.
inline constexpr uint64_t kBufferOverhangBytes = RoundUp(kRecordBytesMax, kBlockBytes);

//   memory:  | overhang | what is written, from file offset `begin` on | overhang |
//
// The first overhang holds the begin of a record that the former buffer has written in part, the
// second the end of one that the next will write: every record is whole in a buffer.
struct LogBuffer {
  enum class State { kFree, kFilling, kQueued, kWriting };
  AlignedBuffer memory;
  State state = State::kFree;
  uint64_t turn = 0;  // of queued buffers: the least is written first
  std::shared_ptr<LogSegment> segment;
  uint64_t begin = 0;
  uint64_t first = 0;  // offset of the first byte in the buffer; at most `begin`
  uint64_t end = 0;    // offset behind the last byte

  std::byte* At(uint64_t offset) const {
    return memory.data() + kBufferOverhangBytes + (static_cast<int64_t>(offset - begin));
  }
  void Begin(std::shared_ptr<LogSegment> of, uint64_t offset) {
    segment = std::move(of);
    begin = first = end = offset;
  }
};

}  // namespace embank

#endif  // EMBANK_TIERS_LOG_LOG_BUFFER_H_
