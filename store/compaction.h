// Compaction of the log: rows that live in segments of which little lives are written anew, so that
// the segments die.
//
//   victim:  | dead | row | dead | dead | row | ...    the rows, and their homes in the index, go
//   to the compaction stream:                | row | row | ...
//
// A row that memory has too stays clean there. The victim's file is removed once no kept checkpoint
// has rows of it. Which segments are worth it the log says
// (RowLog::PickVictim). Whoever makes records dead pays, after each batch, when the log falls
// behind.
#ifndef EMBANK_STORE_COMPACTION_H_
#define EMBANK_STORE_COMPACTION_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/executor.h"
#include "base/mutex.h"
#include "store/batch_gate.h"
#include "store/key_index.h"
#include "store/row_mover.h"
#include "tiers/row_log.h"

namespace embank {

// What compaction works with; all of it outlives it.
struct CompactionParts {
  KeyIndex* index;
  RowLog* log;
  const TableDirectory* tables;
  BatchGate* gate;
  Executor* executor;
};

// Thread-safe.
class Compaction {
 public:
  explicit Compaction(const CompactionParts& parts);
  Compaction(const Compaction&) = delete;
  Compaction& operator=(const Compaction&) = delete;

  // After a batch, without locks: wakes the work aside where there is some. `changed_keys`: where
  // it falls behind, the batch does a part of it that grows with them.
  void Pay(uint64_t changed_keys);

  // Before a batch may make so many rows of a class dirty, without locks or a ticket: where the log
  // has no room for them, moves rows until it has, or until that brings none back.
  void MakeRoom(const RowMover& mover, uint64_t rows);

  // Before a checkpoint, as MakeRoom: where changes have run out of room, moves rows of which
  // checkpoints are kept; the next checkpoint but one brings that space back.
  void MakeRoomLater();

  // While one lives, no row is moved.
  class Pause {
   public:
    explicit Pause(Compaction* compaction) : lock_(&compaction->mutex_) {}

   private:
    MutexLock lock_;
  };

 private:
  // Reads at once: a list of neighbours, and few rows of memory.
  static constexpr size_t kRowsAtATime = 256;

  bool Step(CompactionAim aim) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MoveRow(Location from, std::span<const std::byte> record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const CompactionParts parts_;
  std::atomic<uint64_t> rows_to_pay_{0};
  Mutex mutex_;  // taken before locks of shards
  std::shared_ptr<LogSegment> victim_ ABSL_GUARDED_BY(mutex_);
  CompactionAim aim_ ABSL_GUARDED_BY(mutex_) = CompactionAim::kDebt;  // of the victim
  uint32_t next_slot_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stuck_ ABSL_GUARDED_BY(mutex_) = false;  // the log took no row
  std::array<Location, kRowsAtATime> rows_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<BackgroundTask> task_;  // last: its steps use the rest
};

}  // namespace embank

#endif  // EMBANK_STORE_COMPACTION_H_
