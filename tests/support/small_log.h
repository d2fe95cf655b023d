// A log of small segments, so that a test fills and outlives many of them.
#ifndef EMBANK_TESTS_SUPPORT_SMALL_LOG_H_
#define EMBANK_TESTS_SUPPORT_SMALL_LOG_H_

#include "tiers/row_log_options.h"

namespace embank::test {

// Segments of 256 KiB.
inline RowLogOptions SmallLog() {
  RowLogOptions log;
  log.segment_bytes = 64 * kBlockBytes;
  log.buffer_bytes = 16 * kBlockBytes;
  log.buffers = 3;
  log.read_bytes = 64 * kBlockBytes;
  log.read_lists = 2;
  return log;
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_SMALL_LOG_H_
