// The log that embank-train reads, and a text that tells it from other data.
#ifndef EMBANK_TOOLS_TRAIN_DATA_H_
#define EMBANK_TOOLS_TRAIN_DATA_H_

#include <memory>
#include <string>

#include "base/status.h"
#include "base/status_or.h"
#include "tools/train_command.h"
#include "train/data/click_reader.h"

namespace embank {

// Opens a log: Criteo's format, or CSV with --columns or with the columns of the checkpoint.
// `option` names it. INVALID_ARGUMENT: it is no regular file, which cannot be read twice, or the
// column file is wrong. The statuses of ClickReader::OpenCriteo and OpenCsv.
StatusOr<std::unique_ptr<ClickReader>> OpenLog(const TrainCommand& command, const char* option,
                                               const std::string& path);

// Returns the lines of ClickColumns::data (train/model_text.h): the schema of generated data, or
// the begin of a log and its format.
StatusOr<std::string> NameOfData(const TrainCommand& command);

}  // namespace embank

#endif  // EMBANK_TOOLS_TRAIN_DATA_H_
