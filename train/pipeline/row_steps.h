// Steps of the optimizer with sums of gradients that were made slice by slice.
#ifndef EMBANK_TRAIN_PIPELINE_ROW_STEPS_H_
#define EMBANK_TRAIN_PIPELINE_ROW_STEPS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "train/pipeline/sparse_rows.h"

namespace embank {

// Distinct ids of slices of a feature, slice behind slice, and the sums of their gradients.
struct SumRun {
  uint32_t feature = 0;
  std::span<Key> ids;
  float* sums = nullptr;  // dim of each id
};

// Whether no number is infinite or NaN.
bool AreFinite(std::span<const float> numbers);

// Makes the steps that SparseRows::Update says, for the runs of a pack: feature by feature, and
// then in the order of slices. Where `are_finite` is false, a sum may not be: then ids and sums are
// moved within their runs. *left_out gets the number of those that were left out. Statuses are
// those of Update.
Status StepRows(std::span<const EmbeddingFeature> features, std::vector<SumRun> runs,
                bool are_finite, uint64_t* left_out);

}  // namespace embank

#endif  // EMBANK_TRAIN_PIPELINE_ROW_STEPS_H_
