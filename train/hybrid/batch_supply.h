// The batches of the data, by number, for loaders that take them in turn.
#ifndef EMBANK_TRAIN_HYBRID_BATCH_SUPPLY_H_
#define EMBANK_TRAIN_HYBRID_BATCH_SUPPLY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "base/status.h"
#include "base/threads/mutex.h"
#include "train/samples/click_batch.h"
#include "train/samples/click_source.h"
#include "train/samples/data_position.h"

namespace embank {

// How the data have ended.
struct EndOfData {
  DataPosition position;     // after the last batch
  uint64_t was_stopped = 0;  // 1: whoever wanted the end has stopped them
};

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
      : source_(source), options_(std::move(options)), end_{.position = source->position()} {}

  // Replaces the contents of `batch` by those of a number, each of which is taken once, rising for
  // each loader. False: the data end before it, also where a read has failed. Blocks on reads.
  bool Take(uint64_t number, ClickBatch* batch);

  // The number of batches of the data, after Take has returned false.
  uint64_t batches() const;
  EndOfData end() const;
  // Why the data have ended, if a read has failed: the statuses of ClickSource::Next.
  Status failure() const;

 private:
  void ReadNext(bool keeps) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ClickSource* const source_;
  const Options options_;
  mutable Mutex mutex_;                          // whoever reads has it
  uint64_t read_ EMBANK_GUARDED_BY(mutex_) = 0;  // batches
  bool has_ended_ EMBANK_GUARDED_BY(mutex_) = false;
  EndOfData end_ EMBANK_GUARDED_BY(mutex_);
  Status failure_ EMBANK_GUARDED_BY(mutex_);
  std::map<uint64_t, ClickBatch> kept_ EMBANK_GUARDED_BY(mutex_);
};

}  // namespace embank

#endif  // EMBANK_TRAIN_HYBRID_BATCH_SUPPLY_H_
