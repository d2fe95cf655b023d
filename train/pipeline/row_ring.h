// The order of lookups and updates of rows where batches are under way at once: rows of a batch may
// be looked up before the updates of those before it. Persia (Lian et al. 2022), section 3,
// Algorithm 1, whose staleness has a bound here (section 5, Assumption 1).
//
//   staleness 2   lookups   0  1  2  3  4  5      batch 3 is looked up before the updates of 1 and
//   2
//                 dense     .  .  0  1  2  3
//                 updates   .  .  .  0  1  2
#ifndef EMBANK_TRAIN_PIPELINE_ROW_RING_H_
#define EMBANK_TRAIN_PIPELINE_ROW_RING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/status.h"
#include "base/threads/background_task.h"
#include "base/threads/executor.h"
#include "base/threads/mutex.h"

namespace embank {

// Each batch under way has the memory of its rows, vectors and gradients, and its rows are pinned.
inline constexpr uint32_t kStalenessMax = 64;

struct RowRingOptions {
  // The most batches whose updates a lookup may miss, at most kStalenessMax.
  uint32_t staleness = 0;
  // Whether a lookup sees the updates that were begun before it and no other ones. Else it may also
  // see later ones.
  bool is_deterministic = false;
};

struct RowRingCounts {
  uint64_t lookups = 0;  // that have begun
  uint64_t updates = 0;  // that have ended
  // The sum and the maximum over lookups of the updates that were missing when they began.
  uint64_t staleness_sum = 0;
  uint32_t staleness_max = 0;
};

// Lookups run one at a time in the order of their batches, and so do updates; both run beside the
// caller, and beside each other where they may. One thread.
class RowRing {
 public:
  // Looks up or updates the rows of a batch; batches are numbered from 0 on. It must not throw.
  // When a lookup runs, the batch `staleness` + 1 before it has been updated.
  using Work = std::function<Status(uint64_t batch)>;

  // The executor outlives it.
  RowRing(const RowRingOptions& options, Executor* executor, Work lookup, Work update);
  RowRing(const RowRing&) = delete;
  RowRing& operator=(const RowRing&) = delete;
  // Waits for the lookups and updates that have been begun.
  ~RowRing();

  // Begins the lookup of the next batch; at most `staleness` + 1 batches are under way then.
  // Returns its number.
  uint64_t BeginLookup();
  // Waits for the lookup of the oldest batch under way. Returns its status, or the first one of an
  // update that failed: no update runs after that.
  Status WaitForLookup();
  // Begins the update of that batch, which is no longer under way.
  void BeginUpdate();
  // Waits for all updates that have been begun. Returns the first status that is not OK.
  Status WaitForUpdates();
  // Waits for all lookups and updates that have been begun, and ends all batches under way without
  // an update.
  void Drop();

  // The batches whose lookup has been begun, and not their update.
  uint32_t under_way() const;
  // The oldest one.
  uint64_t oldest() const;
  RowRingCounts counts() const;

 private:
  // A batch waits for these. Its place is free before 2 x (staleness + 1) more batches begin.
  struct Place {
    Status lookup;
    uint64_t updates_before = 0;  // that the lookup sees, if it sees no other ones
    uint64_t lookups_before = 0;  // which the update waits for
  };
  enum class Next { kNothing, kLookup, kUpdate };

  bool Step();
  void WaitUntil(const uint64_t* done, uint64_t count) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Next Claim(Next first, uint64_t* batch) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayLookUp() const EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayUpdate() const EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountLookup() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run(Next next, uint64_t batch) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Place& PlaceOf(uint64_t batch) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return places_[batch % places_.size()];
  }
  const Place& PlaceOf(uint64_t batch) const EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return places_[batch % places_.size()];
  }
  void Wake();

  const RowRingOptions options_;
  const Work lookup_;
  const Work update_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::vector<Place> places_ EMBANK_GUARDED_BY(mutex_);
  uint64_t lookups_begun_ EMBANK_GUARDED_BY(mutex_) = 0;
  uint64_t lookups_done_ EMBANK_GUARDED_BY(mutex_) = 0;
  uint64_t updates_begun_ EMBANK_GUARDED_BY(mutex_) = 0;
  uint64_t updates_done_ EMBANK_GUARDED_BY(mutex_) = 0;
  bool looks_up_ EMBANK_GUARDED_BY(mutex_) = false;
  bool updates_ EMBANK_GUARDED_BY(mutex_) = false;
  Status failure_ EMBANK_GUARDED_BY(mutex_);  // of an update
  RowRingCounts counts_ EMBANK_GUARDED_BY(mutex_);
  // Last: they use all of the above until they end. Each runs whatever may run.
  std::vector<std::unique_ptr<BackgroundTask>> tasks_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_PIPELINE_ROW_RING_H_
