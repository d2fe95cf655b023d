// Chooses the segment whose rows compaction moves or forgets next, and lists its living records.
#ifndef EMBANK_TIERS_LOG_COMPACTION_CANDIDATES_H_
#define EMBANK_TIERS_LOG_COMPACTION_CANDIDATES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "base/threads/mutex.h"
#include "tiers/log/dead_segments.h"
#include "tiers/log/log_report.h"
#include "tiers/log/log_segments.h"
#include "tiers/log/log_writer.h"

namespace embank {

// For one thread at a time; pace is thread-safe. Its functions take the log's lock.
class CompactionCandidates {
 public:
  // All of them outlive it.
  CompactionCandidates(LogSegments& segments, DeadSegments& dead, LogWriter& writer)
      : segments_(segments), dead_(dead), writer_(writer) {}

  // Whether a checkpoint should move rows for kSize: the log takes much more space than its rows,
  // or has few places for segments left.
  bool HasWaste() const {
    ReaderMutexLock lock(segments_.mutex());
    return segments_.accounts().pace().HasWaste(/*is_begun=*/false) || segments_.HasFewPlaces();
  }
  // The rows to move for each CompactionPace::kChangedRows rows that change. Thread-safe; no lock.
  uint32_t pace() const { return segments_.figures().pace(); }

  // Returns the finished segment out of which rows are best moved, by benefit over cost (Rosenblum
  // and Ousterhout, LFS, section 3.5): (1 - u) * age / (1 + u), where u is the living part;
  // nullptr: none is worth it. The segment stays until Release.
  //   kPace: as the pace demands.
  //   kSpace: whatever the pace, among segments that no checkpoint has.
  //   kLaterSpace: among all, if space is short; what is else left to compaction may be used.
  //   kSize: the one of which the least part lives, while the log is larger than it should be; then
  //     one of the smallest, while few places are left. Throws std::bad_alloc.
  //   kForget: the oldest one with rows of a class that forgets.
  //   kDemote: the oldest one with rows.
  //   kEvacuate: one with rows that are not durable, finished or not.
  std::shared_ptr<LogSegment> PickVictim(CompactionAim aim);
  // Lists the living records of a segment from slot *slot on; returns how many, and sets *slot
  // behind them. Fewer than fit: these are the last.
  size_t LiveOf(const LogSegment& segment, uint32_t* slot, std::span<Location> live) const;
  // Excludes the victim: for good if records of it are damaged. If the device does not read them,
  // until the next checkpoint that is kept; for kForget and kDemote, until the hand comes round
  // again. In a lost log only kEvacuate excludes segments.
  void Exclude(LogSegment* segment, bool is_damaged);
  // Ends the work on a victim. is_done: all of it was looked at; rows that were not forgotten wait
  // for the other segments' turn.
  void Release(std::shared_ptr<LogSegment> victim, bool is_done);

  // For clang, which does not see that the parts of a log share one lock.
  void AssertReaderHeld() const EMBANK_ASSERT_SHARED_LOCK(segments_.mutex()) {
    segments_.mutex()->AssertReaderHeld();
  }
  // Whether compaction frees space before the next checkpoint, so that it may use space that is
  // reserved for it.
  bool BringsSpace() const EMBANK_SHARED_LOCKS_REQUIRED(segments_.mutex());

 private:
  std::shared_ptr<LogSegment> BestToMove(CompactionAim aim) const
      EMBANK_SHARED_LOCKS_REQUIRED(segments_.mutex());
  std::shared_ptr<LogSegment> SmallestToJoin() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  void FindSmallest() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  bool IsSmall(const LogSegment& segment) const EMBANK_SHARED_LOCKS_REQUIRED(segments_.mutex());
  std::shared_ptr<LogSegment> OldestToLeave(CompactionAim aim)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  std::shared_ptr<LogSegment> AnyNotDurable() const EMBANK_SHARED_LOCKS_REQUIRED(segments_.mutex());

  LogSegments& segments_;
  DeadSegments& dead_;
  LogWriter& writer_;
  const LogSegment* victim_ EMBANK_GUARDED_BY(segments_.mutex()) = nullptr;
  CompactionAim victim_aim_ EMBANK_GUARDED_BY(segments_.mutex()) = CompactionAim::kPace;
  // The smallest segments by their bytes, until they are joined.
  std::multimap<uint64_t, std::weak_ptr<LogSegment>> smallest_ EMBANK_GUARDED_BY(segments_.mutex());
  // The last segment that was finished.
  uint64_t forget_hand_ EMBANK_GUARDED_BY(segments_.mutex()) = 0;
  // 0: the hand has passed no unread segment.
  uint64_t turns_since_unread_ EMBANK_GUARDED_BY(segments_.mutex()) = 0;
};

}  // namespace embank

#endif  // EMBANK_TIERS_LOG_COMPACTION_CANDIDATES_H_
