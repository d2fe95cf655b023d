// The rows of slices: what embedding workers ask of whoever has the rows.
#ifndef EMBANK_TRAIN_HYBRID_SLICE_ROWS_H_
#define EMBANK_TRAIN_HYBRID_SLICE_ROWS_H_

#include <cstdint>
#include <span>

#include "base/status.h"
#include "train/dense/tensor.h"
#include "train/roles/role_plan.h"
#include "train/samples/click_batch.h"

namespace embank {

// The vectors of an id feature of the data.
struct PooledFeature {
  uint32_t column = 0;  // of the id features
  uint32_t dim = 0;
};

// A sample that has a gradient.
struct KeptSample {
  uint32_t sample = 0;  // among those of SliceRows::Pool
  uint32_t row = 0;     // of the gradients
};

// Thread-safe; the calls of a slice come one after the other.
class SliceRows {
 public:
  virtual ~SliceRows() = default;

  // The vectors of a sample.
  virtual std::span<const PooledFeature> features() const = 0;

  // Looks up the rows of the samples of a slice, at least one, and sums those of each bag:
  // `vectors` has a matrix for each feature, with a row for each sample, which is written. The rows
  // of all batches before were stepped. The statuses of LookupPacked.
  virtual Status Pool(SliceKey key, ClickBatch samples, std::span<const Matrix> vectors) = 0;

  // Ends a slice: with gradients of the samples that are kept, rising, or without any, also where
  // Pool was not called. When all slices of a batch have ended, and all batches before are stepped,
  // the rows get one step with the sums of the slices, in order. The statuses of
  // SparseRows::Update.
  virtual Status End(SliceKey key, std::span<const KeptSample> kept,
                     std::span<const ConstMatrix> gradients) = 0;

  // The number of batches whose rows were stepped.
  virtual uint64_t stepped() const = 0;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_HYBRID_SLICE_ROWS_H_
