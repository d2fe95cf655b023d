// The checkpoints of a store: makes them beside batches of changes, keeps the last ones, and
// exports them.
//
//   gate closed for a moment  ->  flush pass (store/checkpoint/flush_pass.h)  ->  log durable
//     ->  manifest durable  ->  files of older checkpoints are removed
#ifndef EMBANK_STORE_CHECKPOINT_CHECKPOINTS_H_
#define EMBANK_STORE_CHECKPOINT_CHECKPOINTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/files/file_system.h"
#include "base/function_ref.h"
#include "base/memory/memory.h"
#include "base/status_or.h"
#include "base/threads/clock.h"
#include "base/threads/mutex.h"
#include "store/catalog/catalog.h"
#include "store/checkpoint/checkpoint_directory.h"
#include "store/checkpoint/checkpoint_space.h"
#include "store/checkpoint/export.h"
#include "store/checkpoint/flush_pass.h"
#include "store/checkpoint/kept_heat.h"
#include "store/checkpoint/manifest.h"
#include "store/checkpoint/opened_manifests.h"
#include "store/checkpoint/pmem_directory.h"
#include "store/gate/flush_pace.h"

namespace embank {

// The parts that checkpoints use; all of them outlive the checkpoints.
struct CheckpointParts {
  const StoreContext* store;
  FileSystem* files;
  MemorySource* memory;
  const WallClock* wall_clock;
  Catalog* catalog;
  CheckpointDirectory* directory;
  PmemDirectory* pmem;  // nullptr: the store has no PMem
  // The size of segments where it does not follow from the options.
  std::optional<uint64_t> segment_bytes;
};

// The number of checkpoints and the work of their flush passes, since the store was opened, and the
// times of the last one.
struct CheckpointReport {
  uint64_t checkpoints = 0;    // that were made
  uint64_t visited_slots = 0;  // as FlushPassReport
  uint64_t flushed_rows = 0;
  uint64_t last_ns = 0;
  uint64_t last_barrier_ns = 0;  // the part of it without a batch: its barrier
  uint64_t last_rest_ns = 0;     // the part of it in which its flush pass let batches go first
  uint64_t rows_lost = 0;        // rows that it lacks, since nobody could read them
};

// The last checkpoint, which was made or opened.
struct CheckpointFacts {
  uint32_t checkpoint = 0;  // 0: there is none
  int64_t unix_ns = 0;      // 0: unknown
  uint64_t bytes = 0;       // of its records, heat and blob
  uint64_t blob_bytes = 0;
  uint64_t rows = 0;
};

// Thread-safe. Its lock comes before that of the catalog.
class Checkpoints {
 public:
  // Continues behind the opened checkpoint, which was recovered. Removes files that no kept
  // checkpoint has, unless the store is read-only. Throws std::bad_alloc.
  Checkpoints(const CheckpointParts& parts, const OpenedManifests& manifests);
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  // Makes the store durable as it is at some moment of the call, between batches of changes: all
  // tables and rows, and the caller's blob. Batches go on meanwhile. Returns the checkpoint's
  // number. One checkpoint is made at a time; other callers wait.
  // kFailedPrecondition: the store is read-only, or a table is dropped in part.
  // kInvalidArgument: the blob is too large.
  // kResourceExhausted: there is no memory, or the log has no space.
  // The statuses of files: after an error with the manifest's name it is unknown which checkpoint
  // is the last, and no further one is made.
  //
  // Calls after_barrier once that moment is over, on the same thread: `blob` is not read any more
  // then. When the call fails before that moment, after_barrier is not called.
  StatusOr<uint32_t> Make(
      std::span<const std::byte> blob, FunctionRef<void()> after_barrier = [] {});

  // Returns the blob of the last checkpoint. kNotFound: there is no checkpoint.
  StatusOr<std::vector<std::byte>> Blob() const;

  // Makes an independent store out of the last checkpoint, durably, in a directory that does not
  // exist or is empty. Batches and checkpoints go on meanwhile; the segments of the exported
  // checkpoint stay until the end. kFailedPrecondition: there is no checkpoint. The statuses of
  // ExportCheckpoint.
  Status Export(const std::string& directory, ExportProgress progress);

  // Reports how long the last checkpoint took.
  CheckpointReport Report() const;
  // Describes the last checkpoint. Does not wait for one that is under way. kNotFound: there is no
  // checkpoint.
  StatusOr<CheckpointFacts> Facts() const;

  // Returns the space that is reserved for checkpoints; its callers hold the lock of the catalog.
  CheckpointSpace* space() { return &space_; }

  // No checkpoint is made while one lives, and its thread makes none.
  class Pause {
   public:
    // Waits for a checkpoint that is under way. nullptr: the store has no checkpoints.
    explicit Pause(Checkpoints* checkpoints) {
      if (checkpoints != nullptr) lock_.emplace(&checkpoints->mutex_, checkpoints->pace());
    }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    std::optional<HurriedLock> lock_;
  };

 private:
  FlushPace* pace() const { return parts_.store->gate->pace(); }
  void RemoveOrphans(const OpenedManifests& manifests);
  Status CheckPmem() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasLostPmem() const;
  void TellLost(uint64_t lost_rows) const EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status ReserveForBlob(uint64_t bytes);
  StatusOr<uint32_t> MakeLocked(std::span<const std::byte> blob, FunctionRef<void()> after_barrier)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DescribeSegments(Manifest* manifest) const EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status CheckWhole(std::span<Table* const> tables) const;
  StatusOr<Manifest> RunBarrier(std::span<const std::byte> blob, uint64_t* barrier_ns)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status KeepFrozen(Manifest* manifest, bool* in_doubt) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseOthers() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<Manifest> BeginExport();
  void EndExport(uint32_t checkpoint);

  const CheckpointParts parts_;
  CheckpointSpace space_;
  mutable Mutex mutex_;  // taken before the catalog's; guards parts_.directory too
  KeptHeat heat_ EMBANK_GUARDED_BY(mutex_);
  Manifest last_ EMBANK_GUARDED_BY(mutex_);                     // without rows, which are in
                                                                // segments
  const uint64_t rows_lost_before_;                             // by the checkpoint that was opened
  std::multiset<uint32_t> exported_ EMBANK_GUARDED_BY(mutex_);  // of checkpoints that are exported
                                                                // now
  mutable Mutex report_mutex_;
  CheckpointReport report_ EMBANK_GUARDED_BY(report_mutex_);
  CheckpointFacts facts_ EMBANK_GUARDED_BY(report_mutex_);
};

}  // namespace embank

#endif  // EMBANK_STORE_CHECKPOINT_CHECKPOINTS_H_
