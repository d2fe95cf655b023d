// Sizes of a log of which little data fills and outlives many segments, of 256 KiB.
#ifndef EMBANK_TESTS_SUPPORT_SMALL_LOG_H_
#define EMBANK_TESTS_SUPPORT_SMALL_LOG_H_

#include "base/files/file_system.h"
#include "tiers/log/row_log_options.h"

namespace embank::test {

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
