// The log that embank-train reads, and a text that tells it from other data.
#ifndef EMBANK_TOOLS_TRAIN_DATA_H_
#define EMBANK_TOOLS_TRAIN_DATA_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/status_or.h"
#include "tools/train_command.h"
#include "train/data/click_reader.h"

namespace embank {

// Opens a log: Criteo's format, or that of --columns or of the checkpoint. Each word is a file, a
// directory, a pattern or "-" (FilesOf); `option` names them. INVALID_ARGUMENT: the column file is
// wrong. The statuses of FilesOf and of ClickReader::Open.
StatusOr<std::unique_ptr<ClickReader>> OpenLog(const TrainCommand& command, const char* option,
                                               std::span<const std::string> words,
                                               bool has_labels = true);

// Returns whether one of the files is no regular one, so that it can be read once alone.
bool IsPipe(std::span<const std::string> words);

// Returns the lines of ClickColumns::data (train/model_text.h): the schema of generated data, or
// the begin of the first file of a log, which a pipe does not give twice, and its format.
StatusOr<std::string> NameOfData(const TrainCommand& command);
// Returns the --shuffle of such a name.
uint32_t ShuffleOf(std::string_view data_name);
// INVALID_ARGUMENT: the data are those of the checkpoint, in another order: their position there
// says nothing of this one.
Status CheckOrder(const TrainCommand& command, std::string_view data_name);

}  // namespace embank

#endif  // EMBANK_TOOLS_TRAIN_DATA_H_
