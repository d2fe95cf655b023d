// The samples of a log, with the number of broken lines between them: each line of the log has its
// place, whether it is a sample or not.
#ifndef EMBANK_TOOLS_NUMBERED_SAMPLES_H_
#define EMBANK_TOOLS_NUMBERED_SAMPLES_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "base/threads/mutex.h"
#include "train/data/click_reader.h"
#include "train/samples/click_source.h"

namespace embank {

// The broken lines of a batch.
struct BrokenBeside {
  std::vector<uint64_t> before;  // each sample, behind the one before it
  uint64_t behind = 0;           // the last sample of the log; only of the batch without one
};

// One thread reads; another one may call TakeBroken.
class NumberedSamples final : public ClickSource {
 public:
  // The log outlives it.
  explicit NumberedSamples(ClickReader* log) : log_(log) {}

  const ClickColumns& columns() const override { return log_->columns(); }
  StatusOr<uint32_t> Next(uint32_t samples_max, ClickBatch* batch) override;
  DataPosition position() const override { return log_->position(); }
  Status SkipTo(DataPosition position) override { return log_->SkipTo(position); }
  double FractionRead() const override { return log_->FractionRead(); }

  // Returns those of the oldest batch for which it was not called yet. There is one: also the batch
  // without a sample, with which the log ends.
  BrokenBeside TakeBroken();

 private:
  ClickReader* const log_;
  uint64_t broken_ = 0;  // lines before the last sample
  Mutex mutex_;
  std::deque<BrokenBeside> batches_ EMBANK_GUARDED_BY(mutex_);
};

}  // namespace embank

#endif  // EMBANK_TOOLS_NUMBERED_SAMPLES_H_
