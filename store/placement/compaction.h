// Compaction of the log: the living rows of segments with few of them are written anew, so that the
// segments die.
//
//   victim:  | dead | row | dead | dead | row | ...    the rows, and their entries in the index, go
//   to the compaction stream:                | row | row | ...
//
// In tables that forget, the same steps forget the rows of the oldest segment, except warm rows,
// which are written anew.
//
// A row that is also in memory stays clean there. The victim's file is removed when no kept
// checkpoint has rows of it. The log chooses the segments, and the number of rows to move for those
// that change (CompactionCandidates). Batches of changes add to the compaction debt, and pay it
// themselves when the background task falls behind.
#ifndef EMBANK_STORE_PLACEMENT_COMPACTION_H_
#define EMBANK_STORE_PLACEMENT_COMPACTION_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/check.h"
#include "base/threads/executor.h"
#include "base/threads/mutex.h"
#include "store/gate/batch_gate.h"
#include "store/index/key_index.h"
#include "store/placement/row_mover.h"
#include "store/table/store_context.h"
#include "tiers/log/row_log.h"

namespace embank {

// Thread-safe.
class Compaction {
 public:
  // That of one log of the store. Both outlive it.
  Compaction(const StoreContext& store, RowLog* log);
  Compaction(const Compaction&) = delete;
  Compaction& operator=(const Compaction&) = delete;

  // Call it after a batch of so many changed keys, without locks. Moves at most as many rows as the
  // debt of these keys, rounded up to kRowsAtATime.
  void PayDebt(uint64_t changed_keys);

  // Call it before a batch that may make so many rows of a class dirty, and others of so many
  // bytes, without locks or a write guard. If the log reserves space and has none for them, moves
  // rows until it has, or until that frees none. Then, if it `waits`, waits for the end of a
  // checkpoint that is under way, once, unless this thread makes it; that may wait for all guards.
  void EnsureSpace(const RowMover& mover, uint64_t rows, uint64_t others_bytes, bool waits = true);
  // Call it after a batch of so many keys, some of which changed rows, without locks: what PayDebt
  // says, and Demote, or Forget if the class forgets.
  void Settle(RowMover* mover, uint64_t changed_keys, uint64_t keys);

  // Call it after a batch of so many keys of a class that forgets, without locks. While there are
  // too many rows, forgets some, of the class with the oldest records. Scans at most kLookedAtPart
  // times the bytes of the keys' records plus kLookedAtMin, and finishes its last step; later
  // batches do the rest. Rows of a higher tier are forgotten where this log has none. Does nothing
  // behind a log that has stopped: no checkpoint follows, and no space is freed.
  void Forget(RowMover* mover, uint64_t keys);
  // Call it before such a batch that lacks places in the index: forgets `rows` rows, if it can.
  void ForgetRows(RowMover* mover, uint64_t rows);
  // As Forget, of a log whose rows are demoted, after any batch.
  void Demote(const RowMover& mover, uint64_t keys);
  // Adds `rows` to those to forget, because a row was made or refused in a shard whose index cannot
  // grow.
  void NoteRowsToForget(uint64_t rows) {
    rows_to_forget_.fetch_add(rows, std::memory_order_relaxed);
  }

  // Call it before a checkpoint, like EnsureSpace. If a log that demotes has stopped, its rows that
  // are not known to be durable go to the lower log; of a lost log all that can be read. Does
  // nothing for the lowest log.
  void Evacuate();

  // The number of rows that were demoted so far.
  uint64_t demoted_rows() const { return demoted_rows_.load(std::memory_order_relaxed); }

  // Call it before a checkpoint, like EnsureSpace. If changes have run out of space, or the log
  // takes much more than its rows or has many segments, moves some rows of kept checkpoints. The
  // checkpoint after the next one frees their space. Does nothing if the log has stopped.
  void CompactBeforeCheckpoint();

  // While one lives, no row is moved.
  class Pause {
   public:
    // Those of the logs, the highest tier first.
    explicit Pause(std::span<Compaction* const> all) {
      EMBANK_CHECK(all.size() <= locks_.size());
      // A lower log takes the locks of higher ones.
      for (size_t i = all.size(); i-- > 0;) locks_[i].emplace(&all[i]->mutex_);
    }

   private:
    std::array<std::optional<MutexLock>, kTiers> locks_;
  };

 private:
  // The rows that are read at once: a list of neighbours, and little memory.
  static constexpr size_t kRowsAtATime = 256;
  // The debt from which on batches work themselves. Until then the background task has the time of
  // two or three batches.
  static constexpr uint64_t kDebtRowsMax = 16 * kRowsAtATime;
  // The limit before one checkpoint: some tenths of a second, while batches use the space that
  // comes free.
  static constexpr uint64_t kLaterRowsMax = uint64_t{1} << 17;
  // At least every other row that is in the log alone is forgotten: more than a batch makes.
  static constexpr uint64_t kLookedAtPart = 4;
  static constexpr uint64_t kLookedAtMin = uint64_t{1} << 20;

  // The result of a step: it is done, there is nothing to do, or it cannot be done now.
  enum class StepEnd { kDone, kNothing, kFailed };

  bool MustForget() const {
    return !log_->writer().has_stopped() && (log_->space().BytesToForget() > 0 ||
                                             rows_to_forget_.load(std::memory_order_relaxed) > 0);
  }
  size_t RowsToLeave() const EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StepEnd ForgetFor(Compaction* lower, uint64_t rows, RowMover** in_memory,
                    uint64_t* looked_at_bytes);
  void NoteStep(RowMover** in_memory, uint64_t* looked_at_bytes)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteForgotten() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountForgotten();
  void ClearIndexDebt();
  StepEnd LeaveLog(CompactionAim aim, RowMover** in_memory, uint64_t* looked_at_bytes);
  uint64_t ForgetInMemory(RowMover* mover, uint64_t rows);
  bool ReduceDebt(bool is_aside);
  void CompactFor(CompactionAim aim);
  bool Step(CompactionAim aim) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return TryStep(aim) == StepEnd::kDone;
  }
  StepEnd TryStep(CompactionAim aim) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Pick(CompactionAim aim) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(bool is_done) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MoveRow(Location from, std::span<const std::byte> record)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DemoteRow(RowMover* mover, KeyIndex::Shard* shard, const RowId& id, Location from,
                 std::span<const std::byte> record)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_, shard->mutex);
  void ForgetRow(RowMover* mover, KeyIndex::Shard* shard, const RowId& id, Location from,
                 std::span<const std::byte> record)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_, shard->mutex);

  // Rows that are too many go to the log of a lower tier.
  bool demotes() const { return log_ != &store_.logs->lowest(); }

  const StoreContext& store_;
  RowLog* const log_;
  std::atomic<uint64_t> debt_rows_{0};
  Mutex mutex_;  // taken before locks of shards
  std::shared_ptr<LogSegment> victim_ EMBANK_GUARDED_BY(mutex_);
  CompactionAim aim_ EMBANK_GUARDED_BY(mutex_) = CompactionAim::kPace;  // of the victim
  uint32_t next_slot_ EMBANK_GUARDED_BY(mutex_) = 0;
  bool stuck_ EMBANK_GUARDED_BY(mutex_) = false;    // the log took no row
  size_t step_rows_ EMBANK_GUARDED_BY(mutex_) = 0;  // of the last step
  uint64_t step_bytes_ EMBANK_GUARDED_BY(mutex_) = 0;
  // Results of the last step that forgets: the number of rows that are in memory, and their class.
  size_t step_in_memory_ EMBANK_GUARDED_BY(mutex_) = 0;
  RowMover* in_memory_ EMBANK_GUARDED_BY(mutex_) = nullptr;
  // The compaction of the lower log for which rows are forgotten here, and how many it wants.
  Compaction* lower_ EMBANK_GUARDED_BY(mutex_) = nullptr;
  uint64_t lower_rows_ EMBANK_GUARDED_BY(mutex_) = 0;
  // The place where forgetting continues when other work came between.
  struct Place {
    uint64_t segment = 0;
    uint32_t slot = 0;
  };
  Place forget_from_ EMBANK_GUARDED_BY(mutex_);
  std::array<Location, kRowsAtATime> rows_ EMBANK_GUARDED_BY(mutex_);
  std::atomic<uint64_t> rows_to_forget_{0};  // for want of places in the index
  std::atomic<uint64_t> demoted_rows_{0};
  std::atomic<uint32_t> next_shard_{0};   // in which a row of memory is forgotten
  std::unique_ptr<BackgroundTask> task_;  // last: its steps use the rest
};

}  // namespace embank

#endif  // EMBANK_STORE_PLACEMENT_COMPACTION_H_
