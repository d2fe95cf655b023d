// A file of hot and cold batches as the data of a training, in place of a log.
#ifndef EMBANK_TOOLS_HOT_COLD_DATA_H_
#define EMBANK_TOOLS_HOT_COLD_DATA_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/status_or.h"
#include "gpu/device_link.h"
#include "tools/train_command.h"
#include "train/samples/data_name.h"
#include "train/trainer_options.h"

namespace embank {

// Opens the file, if --data names one, and takes its columns, its dims where none were given, and
// its hot rows. INVALID_ARGUMENT names the option that does not go with it, or with a log.
// The statuses of FaeFile::Open.
Status TakeHotColdData(TrainCommand* command);

// INVALID_ARGUMENT: one of the files has hot and cold batches, which only a training reads.
Status CheckIsLog(const char* option, std::span<const std::string> files);

// Returns what tells the batches from other data.
DataName NameOfHotColdData(const TrainCommand& command);

// Returns the bytes of a hot row of each id feature: in all tables that the feature has.
std::vector<uint32_t> HotRowBytesOf(const TrainerOptions& options, const ClickColumns& columns);

// Returns the link that "12,10" means: 12 GB/s, and 10 microseconds for each transfer. Empty: none
// is emulated. INVALID_ARGUMENT: the text is another one.
StatusOr<DeviceLinkModel> LinkOf(const std::string& text);

}  // namespace embank

#endif  // EMBANK_TOOLS_HOT_COLD_DATA_H_
