#include "train/evaluation.h"

#include <vector>

#include "base/status_macros.h"
#include "train/batch_ahead.h"

namespace embank {

StatusOr<Scores> EvaluateAll(ClickSource* source, Trainer* trainer, uint32_t batch,
                             FunctionRef<bool(double fraction, uint64_t samples)> goes_on) {
  Scores scores;
  std::vector<float> logits;
  BatchAhead batches(source, trainer, batch);
  for (;;) {
    EMBANK_ASSIGN_OR_RETURN(const ClickBatch* const next, batches.Next());
    if (next == nullptr) return scores;
    if (!goes_on(batches.FractionRead(), scores.samples()))
      return CancelledError("the evaluation was stopped");
    EMBANK_RETURN_IF_ERROR(trainer->Predict(*next, &logits));
    scores.Add(logits, next->labels);
  }
}

}  // namespace embank
