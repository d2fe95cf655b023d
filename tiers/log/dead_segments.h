// The dead segments of a log, until their files are removed: they are not needed, but take space.
#ifndef EMBANK_TIERS_LOG_DEAD_SEGMENTS_H_
#define EMBANK_TIERS_LOG_DEAD_SEGMENTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/threads/mutex.h"
#include "tiers/log/log_report.h"
#include "tiers/log/log_segments.h"

namespace embank {

// All functions are called under the log's lock.
class DeadSegments {
 public:
  // All of them outlive it.
  DeadSegments(LogSegments& segments, Directory* directory, RowLogCounters& counters)
      : segments_(segments), directory_(directory), counters_(counters) {}

  // For clang, which does not see that the parts of a log share one lock.
  void AssertHeld() const EMBANK_ASSERT_EXCLUSIVE_LOCK(segments_.mutex()) {
    segments_.mutex()->AssertHeld();
  }

  // Makes sure that Collect does not fail while the log has so many places. Throws std::bad_alloc.
  void ReserveLists(size_t places) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex()) {
    dead_.reserve(dead_.size() + places);
  }
  // Takes all dead segments out of their places, except those that are being read.
  void Collect() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  // Removes the file of a dead segment, and releases the lock meanwhile. False: there is none.
  bool RemoveOne() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  // Like RemoveOne; if there is none, waits for a file that another thread is removing. False:
  // there is none either.
  bool RemoveOneOrWait() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());

 private:
  LogSegments& segments_;
  Directory* const directory_;
  RowLogCounters& counters_;
  ConditionVariable removed_;
  std::vector<std::shared_ptr<LogSegment>> dead_ EMBANK_GUARDED_BY(segments_.mutex());
  uint64_t removals_under_way_ EMBANK_GUARDED_BY(segments_.mutex()) = 0;
};

}  // namespace embank

#endif  // EMBANK_TIERS_LOG_DEAD_SEGMENTS_H_
