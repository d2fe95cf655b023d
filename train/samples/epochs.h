// The same data several times, one epoch after the other.
#ifndef EMBANK_TRAIN_SAMPLES_EPOCHS_H_
#define EMBANK_TRAIN_SAMPLES_EPOCHS_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "base/function_ref.h"
#include "base/status_or.h"
#include "train/samples/click_source.h"

namespace embank {

// Each epoch is a source of its own, so that it may have an order of its own. No batch has samples
// of two epochs. A position has the epoch in its upper bits: that of the first epoch is the
// source's own, and more epochs can be given later. One thread at a time.
class Epochs final : public ClickSource {
 public:
  // Opens the source of an epoch; the first is 0. All of them have the same columns.
  using OpenEpoch = std::function<StatusOr<std::unique_ptr<ClickSource>>(uint32_t epoch)>;

  static constexpr uint32_t kEpochsMax = 1u << 16;

  // Opens the first epoch. `epochs` is 1 to kEpochsMax. The statuses of `open`.
  static StatusOr<std::unique_ptr<Epochs>> Open(OpenEpoch open, uint32_t epochs);

  const ClickColumns& columns() const override { return source_->columns(); }
  // The statuses of `open`, too.
  StatusOr<uint32_t> Next(uint32_t samples_max, ClickBatch* batch) override;
  DataPosition position() const override;
  // A position with an order is one of the source of its epoch, which goes there at once.
  // OUT_OF_RANGE: there are fewer epochs. The statuses of `open`, too.
  Status SkipTo(DataPosition position) override;
  // Does the same, which may take long, and calls `show` with the part of it that is done, 0 to 1,
  // and with the place in its epoch.
  Status SkipTo(DataPosition position, FunctionRef<void(double fraction, uint64_t place)> show);
  double FractionRead() const override;

  // Returns the position in the source of its epoch.
  static uint64_t InEpoch(const DataPosition& position);

  // The epoch of the last batch.
  uint32_t epoch() const { return epoch_; }

 private:
  Epochs(OpenEpoch open, uint32_t epochs, std::unique_ptr<ClickSource> first);
  Status Begin(uint32_t epoch);

  const OpenEpoch open_;
  const uint32_t epochs_;
  std::unique_ptr<ClickSource> source_;
  uint32_t epoch_ = 0;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_SAMPLES_EPOCHS_H_
