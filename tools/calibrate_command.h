// The commands of embank-train around hot and cold batches: calibrate makes a file of them, and
// info describes it.
#ifndef EMBANK_TOOLS_CALIBRATE_COMMAND_H_
#define EMBANK_TOOLS_CALIBRATE_COMMAND_H_

#include <string>
#include <vector>

#include "base/status.h"
#include "tools/train_command.h"
#include "train/popularity/sample.h"

namespace embank {

struct CalibrateCommand {
  TrainCommand log;                // its columns, and the model, dim and optimizer of its rows
  std::vector<std::string> files;  // words for FilesOf
  std::string out;
  std::string budget;  // as typed: "512MiB"
  double sampled_share = kSampledShareDefault;
  std::string picture;  // file for an SVG
  std::string json;
  bool reuse = false;  // a file that was made of the same is left as it is
};

struct FaeInfoCommand {
  std::string file;
  bool as_json = false;
};

// Each adds a command to a parser, which writes its options to *command.
CLI::App* AddCalibrate(CLI::App* app, CalibrateCommand* command);
CLI::App* AddFaeInfo(CLI::App* app, FaeInfoCommand* command);

// Sums and reads the log, chooses the hot rows, and reads the log again to write the file of hot
// and cold batches. Prints the choice and the file.
// INVALID_ARGUMENT: an option. DATA_LOSS: the log has no sample. FAILED_PRECONDITION: the log
// changes meanwhile, or the file that is to be reused was made of something else. CANCELLED: a
// signal has ended the writing. UNAVAILABLE: a file cannot be written. The statuses of OpenLog,
// ClickReader::Next and FaeWriter. After any of them the file is what it was.
Status RunCalibrate(const CalibrateCommand& command);
// Prints what a file says of itself. The statuses of FaeFile::Open.
Status RunFaeInfo(const FaeInfoCommand& command);

}  // namespace embank

#endif  // EMBANK_TOOLS_CALIBRATE_COMMAND_H_
