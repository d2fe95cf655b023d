// The batch that comes next, read while the present one is trained, with its rows in memory.
#ifndef EMBANK_TRAIN_BATCH_AHEAD_H_
#define EMBANK_TRAIN_BATCH_AHEAD_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status_or.h"
#include "base/threads/background_task.h"
#include "base/threads/executor.h"
#include "base/threads/mutex.h"
#include "train/samples/click_batch.h"
#include "train/samples/click_source.h"
#include "train/trainer.h"

namespace embank {

// One thread; another one reads ahead.
class BatchAhead {
 public:
  // Begins to read batches of so many samples. Both outlive it. nullptr: no rows are prefetched.
  // The batches of the last `kept` calls of Next are valid, at least one.
  BatchAhead(ClickSource* source, const Trainer* trainer, uint32_t samples, uint32_t kept = 1);
  BatchAhead(const BatchAhead&) = delete;
  BatchAhead& operator=(const BatchAhead&) = delete;

  // Returns the next batch, and begins to read the one behind it, unless the batch ends a phase:
  // then the next call does. nullptr: the data have ended. The statuses of ClickSource::Next.
  StatusOr<const ClickBatch*> Next();

  // The position of the data behind the last batch that Next returned.
  DataPosition position() const { return present().position; }
  // The part of the data that has been read up to there, 0 to 1.
  double FractionRead() const { return present().fraction; }

 private:
  struct Read {
    Status status;
    DataPosition position;
    double fraction = 0.0;
    ClickBatch batch;
  };

  const Read& present() const { return kept_[calls_ % kept_.size()]; }
  void ReadNext() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ClickSource* const source_;
  const Trainer* const trainer_;
  const uint32_t samples_;
  std::vector<Read> kept_;
  uint64_t calls_ = 0;  // of Next that returned a batch
  Mutex mutex_;         // whoever reads has it
  Read next_ EMBANK_GUARDED_BY(mutex_);
  bool is_read_ EMBANK_GUARDED_BY(mutex_) = false;
  // The batch behind the present one depends on a loss, which the caller gives the source
  // meanwhile.
  bool awaits_loss_ EMBANK_GUARDED_BY(mutex_) = false;
  // Last: the task uses all of the above until it ends.
  const std::unique_ptr<Executor> executor_;
  std::unique_ptr<BackgroundTask> task_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_BATCH_AHEAD_H_
