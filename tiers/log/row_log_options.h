// The place of a log of rows, and the sizes of its parts.
#ifndef EMBANK_TIERS_LOG_ROW_LOG_OPTIONS_H_
#define EMBANK_TIERS_LOG_ROW_LOG_OPTIONS_H_

#include <cstdint>

#include "base/files/file_system.h"
#include "tiers/row/location.h"
#include "tiers/segment/log_segment.h"

namespace embank {

struct RowLogOptions {
  Tier tier = Tier::kSsd;          // of the locations that the log gives
  Directory* directory = nullptr;  // outlives the log
  uint64_t store_id = 0;
  uint64_t first_segment_id = 1;  // no less than any number that the store has used
  uint64_t first_sequence = 1;
  uint64_t segment_bytes = uint64_t{64} << 20;  // whole blocks, at most kSegmentBytesMax
  // Where sizes follow what is written: the least, whole blocks; segment_bytes is the most.
  uint64_t segment_bytes_min = uint64_t{256} << 10;
  uint32_t segments_max = kSegmentsMax;       // at most kSegmentsMax
  uint64_t buffer_bytes = uint64_t{1} << 20;  // whole blocks, no less than a record
  uint32_t buffers = 16;                      // at least 2
  uint64_t read_bytes = uint64_t{4} << 20;    // of one list of reads
  uint32_t read_lists = 8;                    // threads that can read at once
  uint64_t ssd_bytes = 0;                     // all segments together; 0: no limit
  // Bytes of rows of classes that forget beyond which some are too many; 0: half of ssd_bytes.
  uint64_t rows_bytes_max = 0;
  // Whether dirty rows have reservations here. Otherwise rows are taken while segments are spare.
  bool has_reservations = true;
  bool read_only = false;  // as if it had stopped: no file is written, made or removed

  // Whether the sizes of segments, and of the whole log, follow what is written. Reservations are
  // whole segments of a limit.
  bool follows_rows() const { return ssd_bytes == 0 || !has_reservations; }
};

}  // namespace embank

#endif  // EMBANK_TIERS_LOG_ROW_LOG_OPTIONS_H_
