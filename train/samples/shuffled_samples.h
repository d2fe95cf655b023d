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
// memory, twice where a batch has all of them. A place is a number of samples. Samples that are
// appended to data at whose end a source was begin a window of their own: those that were there
// keep their order. One thread at a time.
class ShuffledSamples final : public ClickSource {
 public:
  // `window` is a number of samples, at least 1.
  ShuffledSamples(std::unique_ptr<ClickSource> source, uint32_t window, uint64_t seed);

  const ClickColumns& columns() const override { return source_->columns(); }
  // A batch may have samples of several windows. After an error it gives nothing more.
  StatusOr<uint32_t> Next(uint32_t samples_max, ClickBatch* batch) override;
  DataPosition position() const override;
  Status SkipTo(DataPosition position) override;
  double FractionRead() const override;

 private:
  // Reads the next window, if none of the present one is left. False: there is none.
  StatusOr<bool> HasSample();
  // Reads a window behind the present one.
  Status ReadWindow(uint32_t samples_max);
  // OUT_OF_RANGE: the data end before `place`, to which this goes.
  Status ReadWholeWindow(uint32_t samples, uint64_t place);
  uint64_t window_end() const { return window_begin_ + order_.size(); }

  const std::unique_ptr<ClickSource> source_;
  const uint32_t window_samples_;
  const CounterRandom random_;
  ClickBatch window_;
  std::vector<uint32_t> order_;  // of the window's samples
  uint32_t next_ = 0;            // in the order
  uint64_t window_begin_ = 0;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_SAMPLES_SHUFFLED_SAMPLES_H_
