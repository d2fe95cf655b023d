// Loss and AUC of the samples of a source that a trainer predicts.
#ifndef EMBANK_TRAIN_EVALUATION_H_
#define EMBANK_TRAIN_EVALUATION_H_

#include <cstdint>

#include "base/function_ref.h"
#include "base/status_or.h"
#include "train/samples/click_source.h"
#include "train/scores.h"
#include "train/trainer.h"

namespace embank {

// Predicts all samples that are left, in batches of at most `batch` samples, which the trainer
// takes. The next batch is read meanwhile. CANCELLED: `goes_on`, which is asked before each batch,
// returned false; it gets the part of the data that was read, and the samples that were predicted.
// The statuses of ClickSource::Next and Trainer::Predict.
StatusOr<Scores> EvaluateAll(ClickSource* source, Trainer* trainer, uint32_t batch,
                             FunctionRef<bool(double fraction, uint64_t samples)> goes_on);

}  // namespace embank

#endif  // EMBANK_TRAIN_EVALUATION_H_
