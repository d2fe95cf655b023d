// The model that a directory has, as the checkpoint of its store describes it.
#ifndef EMBANK_TOOLS_TRAINED_MODEL_H_
#define EMBANK_TOOLS_TRAINED_MODEL_H_

#include <memory>
#include <string>

#include "base/status_or.h"
#include "tools/train_command.h"
#include "train/model_text.h"
#include "train/trainer.h"

namespace embank {

struct TrainedModel {
  ModelText text;         // with the functions of its model
  uint64_t store_id = 0;  // of the training: its exports have it, too
  std::string pmem_path;  // of the store; empty: it has no PMem
};

// Reads the newest checkpoint, also while the store is open, and writes nothing. Its options have
// the seed of the store.
// NOT_FOUND: there is no store, or it has no checkpoint.
// FAILED_PRECONDITION: it is of no trainer, of a newer one, or of a model that has no name for
// --model.
// DATA_LOSS: its manifest is damaged. The statuses of files.
StatusOr<TrainedModel> ReadTrainedModel(const std::string& path);

// Opens a trainer that predicts alone, with the threads, the memory and, if it is given, the PMem
// of a command. UNAVAILABLE: the store is open to be changed. The statuses of Trainer::Open.
// With several ranks all call it, each with the model of its directory.
StatusOr<std::unique_ptr<Trainer>> OpenToPredict(const TrainCommand& command, TrainedModel model,
                                                 Exchange* exchange = nullptr);

}  // namespace embank

#endif  // EMBANK_TOOLS_TRAINED_MODEL_H_
