// The number of segments that a log has.
#ifndef EMBANK_TESTS_SUPPORT_SEGMENT_COUNT_H_
#define EMBANK_TESTS_SUPPORT_SEGMENT_COUNT_H_

#include <cstddef>
#include <cstdint>

#include "base/threads/mutex.h"
#include "tiers/log/log_segments.h"

namespace embank::test {

// Counts the segments that have living records or that checkpoints keep.
inline uint64_t SegmentCount(const LogSegments& segments) {
  ReaderMutexLock lock(segments.mutex());
  uint64_t count = 0;
  for (const auto& segment : segments.all()) count += segment == nullptr ? 0 : 1;
  return count;
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_SEGMENT_COUNT_H_
