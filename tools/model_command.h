// The commands of embank-train that use a trained model: predict, evaluate and describe.
#ifndef EMBANK_TOOLS_MODEL_COMMAND_H_
#define EMBANK_TOOLS_MODEL_COMMAND_H_

#include <string>

#include "base/status.h"
#include "tools/train_command.h"

namespace embank {

struct ModelCommand {
  TrainCommand log;  // the store, and the data with their columns
  std::string out;   // of predict
};

// Each adds a command to a parser, which writes its options to *command.
CLI::App* AddPredict(CLI::App* app, ModelCommand* command);
CLI::App* AddEvaluate(CLI::App* app, ModelCommand* command);
CLI::App* AddDescribe(CLI::App* app, ModelCommand* command);

// Writes a score for each line of the log.
// INVALID_ARGUMENT: an option, or a column of the data. UNAVAILABLE: the store is open to be
// changed, or the scores cannot be written. The statuses of ReadTrainedModel, OpenLog,
// ClickReader::Next, Trainer::Open and Trainer::Predict.
Status RunPredict(const ModelCommand& command);
// Prints logloss and AUC of the log. DATA_LOSS: it has no sample. Statuses like RunPredict.
Status RunEvaluate(const ModelCommand& command);
// Prints the model as JSON. Statuses of ReadTrainedModel.
Status RunDescribe(const ModelCommand& command);

}  // namespace embank

#endif  // EMBANK_TOOLS_MODEL_COMMAND_H_
