// The space that the file of a segment takes ahead of its records:
//
//   | header | records | taken ahead | hole ........... | footer |
//   0                                space_end
//
// A write that finds no space would stop the log; so space is taken before a record is accepted,
// and that of the footer with the first step. Where the file system cannot do that, it is taken as
// bytes are written.
#ifndef EMBANK_TIERS_SEGMENT_SEGMENT_SPACE_H_
#define EMBANK_TIERS_SEGMENT_SEGMENT_SPACE_H_

#include <cstdint>

#include "base/status.h"
#include "tiers/segment/log_segment.h"

namespace embank {

// Both return the statuses of files, and then nothing but the file's space has changed.

// Takes the first step of a new file: `step_bytes` for records; or its whole space, if that is less
// or `is_whole`. In PMem only whole: it is mapped as long as it is, and a store to a page
// without space would be SIGBUS.
Status TakeFirstSpace(LogSegment* segment, uint64_t step_bytes, bool is_whole);

// Makes sure that there is space for the next record, by a step of `step_bytes` if there is none.
Status TakeSpaceForNext(LogSegment* segment, uint64_t step_bytes);

}  // namespace embank

#endif  // EMBANK_TIERS_SEGMENT_SEGMENT_SPACE_H_
