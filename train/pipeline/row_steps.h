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

// The ids that a step left out.
struct IdsLeftOut {
  uint64_t not_finite = 0;  // an id counts once for each run in which it is
  uint64_t lost = 0;        // an id of a table counts once
};

// Takes the ids of a pack that no step is made for out of its runs: those whose update is lost, and
// those with a sum that is not finite, in each run of their table. Moves others and their sums
// within their runs. Returns how many there were.
IdsLeftOut TakeLeftOut(std::span<const EmbeddingFeature> features, std::span<SumRun> runs,
                       const RowUpdate& update);

// Makes the steps that SparseRows::Update says, for the runs of a pack: feature by feature, and
// then in the order of slices. Where it leaves ids out, it moves others and their sums within their
// runs. Statuses are those of Update.
Status StepRows(std::span<const EmbeddingFeature> features, std::vector<SumRun> runs,
                const RowUpdate& update, IdsLeftOut* left_out);

}  // namespace embank

#endif  // EMBANK_TRAIN_PIPELINE_ROW_STEPS_H_
