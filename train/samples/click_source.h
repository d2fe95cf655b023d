// A stream of samples, from a file or a generator.
#ifndef EMBANK_TRAIN_SAMPLES_CLICK_SOURCE_H_
#define EMBANK_TRAIN_SAMPLES_CLICK_SOURCE_H_

#include <cstdint>

#include "base/status.h"
#include "base/status_or.h"
#include "train/samples/click_batch.h"
#include "train/samples/data_position.h"

namespace embank {

// One thread at a time.
class ClickSource {
 public:
  virtual ~ClickSource() = default;

  // Returns the features of each sample.
  virtual const ClickColumns& columns() const = 0;

  // Replaces the contents of `batch` by the next samples, at most `samples_max`, and returns their
  // number: 0 at the end alone. Blocks on reads. The statuses are those of the source.
  virtual StatusOr<uint32_t> Next(uint32_t samples_max, ClickBatch* batch) = 0;

  // Returns the place behind the last sample of the last batch. A new source of the same data that
  // skips to it gives the samples that follow.
  virtual DataPosition position() const = 0;

  // Goes on to a position of the same data, which is not before the present one. They may have got
  // more samples since at their end.
  // OUT_OF_RANGE: the data end before it.
  virtual Status SkipTo(DataPosition position) = 0;

  // Returns the part of the data that was read, 0 to 1, for progress; 0 where that is not known.
  virtual double FractionRead() const = 0;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_SAMPLES_CLICK_SOURCE_H_
