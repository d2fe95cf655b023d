// The size of a segment that begins, and of the steps in which it takes space ahead of its records,
// where a log follows what is written.
//
//   header | records | taken ahead | hole ................ | footer, taken at the begin |
//
// A session, from an opening to its end, may end at any time, and leaves the rest of its open
// segments to the next one. So both sizes are a part of what it has written; and of what the class
// has, because a segment dies as a whole. A large one takes few steps for each segment.
#ifndef EMBANK_TIERS_SPACE_SEGMENT_SIZE_H_
#define EMBANK_TIERS_SPACE_SEGMENT_SIZE_H_

#include <cstdint>

namespace embank {

// The limits of the segments of one log, in bytes: whole blocks.
struct SegmentLimits {
  uint64_t least_bytes;
  uint64_t most_bytes;
};

// Returns the size of the next segment, whole blocks between the limits: half of what was written
// to segments like it since the log was opened, at most a quarter of its class's rows and at least
// a 256th of them, also for the first one of a session. So sessions to which rows are only added
// leave a number of full segments that grows with the logarithm of the rows.
uint64_t SegmentBytesFor(const SegmentLimits& limits, uint32_t record_bytes, uint64_t written_bytes,
                         uint64_t class_bytes);

// Returns how much space a segment takes ahead at once, whole blocks: an eighth of what was written
// to segments like it, at most a quarter of the segment.
uint64_t StepBytesFor(uint64_t segment_bytes, uint64_t written_bytes);

}  // namespace embank

#endif  // EMBANK_TIERS_SPACE_SEGMENT_SIZE_H_
