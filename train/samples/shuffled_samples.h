// The samples of a source in another order: those of a window of the source are given at random.
//
//   source:  | 1 2 3 4 | 5 6 7 8 | 9        windows of four samples
//   given:     3 1 4 2   6 8 5 7   9
#ifndef EMBANK_TRAIN_SAMPLES_SHUFFLED_SAMPLES_H_
#define EMBANK_TRAIN_SAMPLES_SHUFFLED_SAMPLES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "base/random.h"
#include "train/samples/click_source.h"

namespace embank {

// The order follows from the seed and the samples' numbers alone. The samples of one window are in
// memory, twice where a batch has all of them. A position is a number of samples. One thread at a
// time.
class ShuffledSamples final : public ClickSource {
 public:
  // `window` is a number of samples, at least 1.
  ShuffledSamples(std::unique_ptr<ClickSource> source, uint32_t window, uint64_t seed);

  const ClickColumns& columns() const override { return source_->columns(); }
  // A batch may have samples of several windows. After an error it gives nothing more.
  StatusOr<uint32_t> Next(uint32_t samples_max, ClickBatch* batch) override;
  uint64_t position() const override { return position_; }
  Status SkipTo(uint64_t position) override;
  double FractionRead() const override;

 private:
  // Reads the next window, if none of the present one is left. False: there is none.
  StatusOr<bool> HasSample();

  const std::unique_ptr<ClickSource> source_;
  const uint32_t window_samples_;
  const CounterRandom random_;
  ClickBatch window_;
  std::vector<uint32_t> order_;  // of the window's samples
  uint32_t next_ = 0;            // in the order
  uint64_t position_ = 0;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_SAMPLES_SHUFFLED_SAMPLES_H_
