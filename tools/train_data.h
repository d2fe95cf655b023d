// The log that embank-train reads, and a text that tells it from other data.
#ifndef EMBANK_TOOLS_TRAIN_DATA_H_
#define EMBANK_TOOLS_TRAIN_DATA_H_

#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "base/status_or.h"
#include "tools/train_command.h"
#include "train/data/click_reader.h"
#include "train/generator/click_generator.h"
#include "train/samples/data_name.h"

namespace embank {

// Reads the file of --columns, which may be a pipe, once for all epochs and evaluations. Without
// one nothing changes. INVALID_ARGUMENT: it cannot be read.
Status TakeColumns(TrainCommand* command);

// Replaces --data and --eval, whose words are files, directories, patterns or "-", by their files,
// once for all epochs and evaluations. INVALID_ARGUMENT: --broken-share. The statuses of FilesOf
// name the option.
Status TakeFiles(TrainCommand* command);

// Opens the files of a log in TrainCommand::format. `option` is that of the files.
// INVALID_ARGUMENT: the column file is wrong. The statuses of ClickReader::Open, as of OfData.
StatusOr<std::unique_ptr<ClickReader>> OpenLog(const TrainCommand& command, const char* option,
                                               std::span<const std::string> files,
                                               bool has_labels = true);

// Returns the status of an option as one of data: wrong data are no wrong option.
Status OfData(const Status& status);

// Returns whether one of the files can be read once alone.
bool AreReadOnce(std::span<const std::string> files);
// Returns a file of --eval that is also one of --data; empty: there is none.
std::string FileOfBoth(const TrainCommand& command);
// Opens the data that --generate names: the first `samples` of them.
StatusOr<std::unique_ptr<ClickGenerator>> OpenGenerator(const TrainCommand& command,
                                                        uint64_t samples);

// Names the first broken line of each kind on stderr, if there are any.
void PrintBroken(const BrokenLines& broken);

// DATA_LOSS: the data of an option, which `words` name, have no sample for a training or an
// evaluation.
Status NoSample(const char* option, std::span<const std::string> words, const char* of);

// Returns a phrase for one file or more.
std::string TextOfFiles(std::span<const std::string> files);

// Returns what tells the data from others: the schema of generated ones, or the beginning of each
// file of a log, or the header of hot and cold batches. `log` has read nothing; without it the data
// are no log.
StatusOr<DataName> NameOfData(const TrainCommand& command, ClickReader* log);
// Returns ClickColumns::format of the data.
StatusOr<std::string> FormatOfData(const TrainCommand& command, bool has_labels = true);
// INVALID_ARGUMENT: the data are those of the checkpoint, in another order: their position there
// says nothing of this one.
Status CheckOrder(const TrainCommand& command, const DataName& data);

// Names the first feature by which a log differs from a model: "have the id feature \"tags\" where
// the model has \"user\"". Features of one name differ where the model would get other values from
// the same text: text against numbers, another transform, vocabulary or form of a bag; numbers may
// be decimal in one and hexadecimal in the other. Empty: all are the same.
std::string DifferenceOf(const ClickColumns& of_log, const ClickColumns& of_model);

}  // namespace embank

#endif  // EMBANK_TOOLS_TRAIN_DATA_H_
