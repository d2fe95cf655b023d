// The top-k flush: chooses the HBM rows anew while batches go on. PICASSO (Zhang et al., ICDE
// 2022), section III-D, algorithm 1: after a warm-up, and then every flush_iters iterations, the
// hottest rows by count become those in device memory. Here a row that leaves is written back, and
// counts age (docs/arithmetic.md, heat). After the warm-up, the pace (store/payload/topk_pace.h)
// says when a flush is due.
#ifndef EMBANK_STORE_PAYLOAD_TOPK_FLUSH_H_
#define EMBANK_STORE_PAYLOAD_TOPK_FLUSH_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "base/threads/background_task.h"
#include "base/threads/executor.h"
#include "base/threads/mutex.h"
#include "base/types.h"
#include "store/payload/payload_mover.h"
#include "store/payload/payload_rows.h"
#include "store/payload/topk_pace.h"
#include "store/payload/unique_hits.h"
#include "store/placement/heat_clock.h"
#include "store/table/table.h"

namespace embank {

struct TopkFlushOptions {
  // Iterations are lookup batches of the table that is the busiest since the last look.
  uint32_t warmup_iters = 100;  // before the first flush
  uint32_t flush_iters = 100;   // between flushes of steady traffic; kNever: only FlushNow flushes
  bool hysteresis = true;

  static constexpr uint32_t kNever = 0xFFFFFFFF;
};

struct TopkFlushReport {
  uint64_t flushes = 0;
  uint64_t last_plan_ns = 0;
  uint64_t last_flush_ns = 0;
  uint64_t all_flushes_ns = 0;  // of all flushes together
  uint64_t candidate_rows = 0;
  uint64_t early_epochs = 0;  // epochs of heat that the pace has ended
  bool fits_all = false;
};

// Thread-safe. Callers hold no lock and no guard.
class TopkFlush {
 public:
  // The payloads outlive it.
  TopkFlush(PayloadRows* payloads, const TopkFlushOptions& options);
  TopkFlush(const TopkFlush&) = delete;
  TopkFlush& operator=(const TopkFlush&) = delete;

  // Counts a lookup batch of a table, after it, and the positions that it found or created. Where a
  // drift shows, ends epochs of heat before it returns. Wakes the task when a flush is due.
  void CountLookup(Table* table, uint64_t positions);
  UniqueHits& unique_hits() { return unique_hits_; }
  const UniqueHits& unique_hits() const { return unique_hits_; }
  // Tells of keys of which a batch has created some. When HBM holds all rows, theirs go up.
  void RaiseCreated(const Table& table, KeySpan keys);

  // Flushes now, and returns when it is done. kResourceExhausted: no memory for the plan; no row
  // was moved. kUnavailable: the device is lost.
  Status FlushNow();

  // Figures of the last flush, and sums of all; all zeros before the first.
  TopkFlushReport Report() const;

  // No row moves to device memory or from it while one lives. nullptr: there is no flush.
  class Pause {
   public:
    explicit Pause(TopkFlush* flush) : flush_(flush) {
      if (flush_ != nullptr) flush_->mutex_.Lock();
    }
    ~Pause() {
      if (flush_ != nullptr) flush_->mutex_.Unlock();
    }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    TopkFlush* const flush_;
  };

 private:
  void Look(Table* table);
  bool Step();
  Status Flush() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void VisitRows(TopkVisit visit) const;

  PayloadRows& payloads_;
  const TopkFlushOptions options_;
  std::atomic<uint64_t> positions_{0};  // of all lookups
  std::atomic<uint64_t> next_look_;     // iterations since the last look; UINT64_MAX: none
  std::atomic<uint64_t> early_epochs_{0};
  UniqueHits unique_hits_;
  std::atomic<bool> is_due_{false};
  std::atomic<bool> fits_all_{false};
  Mutex pace_mutex_;  // taken before locks of shards
  bool is_warm_ EMBANK_GUARDED_BY(pace_mutex_) = false;
  TopkPace pace_ EMBANK_GUARDED_BY(pace_mutex_);
  HitFigures looked_at_ EMBANK_GUARDED_BY(pace_mutex_){};  // all until the last look
  mutable Mutex mutex_;  // one flush at a time; taken before the payload gate
  PayloadMover mover_ EMBANK_GUARDED_BY(mutex_);
  mutable Mutex report_mutex_;
  TopkFlushReport report_ EMBANK_GUARDED_BY(report_mutex_);
  // Last: its step uses all of the above until it ends.
  std::unique_ptr<BackgroundTask> task_;
};

}  // namespace embank

#endif  // EMBANK_STORE_PAYLOAD_TOPK_FLUSH_H_
