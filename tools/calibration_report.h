// A calibration, and the file of hot and cold batches that it leaves, for people and programs.
#ifndef EMBANK_TOOLS_CALIBRATION_REPORT_H_
#define EMBANK_TOOLS_CALIBRATION_REPORT_H_

#include <string>

#include "train/fae/calibrator.h"
#include "train/fae/fae_file.h"

namespace embank {

// Returns the choice of hot rows, and the tables with the most bytes. `seconds` is the time of the
// whole estimate.
std::string EstimateText(const Calibration& calibration, double seconds);

// Returns members of a JSON object, without its braces.
std::string EstimateJson(const Calibration& calibration, double seconds);

// Returns what a file says of itself: text, or members of a JSON object.
std::string FaeFileText(const FaeFile& file);
std::string FaeFileJson(const FaeFile& file);

}  // namespace embank

#endif  // EMBANK_TOOLS_CALIBRATION_REPORT_H_
