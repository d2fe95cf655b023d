// The batches of the data, by number, for loaders that take them in turn.
#ifndef EMBANK_TRAIN_HYBRID_BATCH_SUPPLY_H_
#define EMBANK_TRAIN_HYBRID_BATCH_SUPPLY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "base/status_or.h"
#include "base/threads/mutex.h"
#include "train/samples/click_batch.h"
#include "train/samples/click_source.h"

namespace embank {

// Thread-safe.
class BatchSupply {
 public:
  struct Options {
    uint32_t batch = 0;                         // samples, at most
    uint64_t batches_max = UINT64_MAX;          // the data end there at the latest
    bool keeps_skipped = true;                  // for other loaders of this process
    std::function<bool()> wants_end = nullptr;  // the data end before the next batch
  };
  // The source outlives it, and gives its batches from here on.
  BatchSupply(ClickSource* source, Options options)
      : source_(source), options_(std::move(options)) {}

  // Replaces the contents of `batch` by those of a number, each of which is taken once, rising for
  // each loader. False: the data end before it. Blocks on reads. The statuses of ClickSource::Next.
  StatusOr<bool> Take(uint64_t number, ClickBatch* batch);
  // The number of batches of the data, and the position behind them, after Take has returned false.
  uint64_t batches() const;
  DataPosition position() const;

 private:
  Status ReadNext(bool keeps) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ClickSource* const source_;
  const Options options_;
  mutable Mutex mutex_;                          // whoever reads has it
  uint64_t read_ EMBANK_GUARDED_BY(mutex_) = 0;  // batches
  bool has_ended_ EMBANK_GUARDED_BY(mutex_) = false;
  std::map<uint64_t, ClickBatch> kept_ EMBANK_GUARDED_BY(mutex_);
};

}  // namespace embank

#endif  // EMBANK_TRAIN_HYBRID_BATCH_SUPPLY_H_
