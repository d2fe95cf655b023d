// What a store's manifests and footers tell of it; no row is read.
#ifndef EMBANK_STORE_INSPECT_SURVEY_H_
#define EMBANK_STORE_INSPECT_SURVEY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/files/file_system.h"
#include "base/status_or.h"
#include "store/checkpoint/manifest.h"

namespace embank {

// Segments of the newest checkpoint whose rows have one size.
struct SurveyedClass {
  uint32_t row_bytes = 0;  // in memory
  uint32_t record_bytes = 0;
  uint64_t segments = 0;
  uint64_t segment_bytes = 0;  // of all of them
  uint64_t live_rows = 0;
  uint64_t dead_rows = 0;  // records, or slots that were left out

  uint64_t live_bytes() const { return live_rows * record_bytes; }
  uint64_t dead_bytes() const { return dead_rows * record_bytes; }
  // How much of the segments' bytes are rows of the checkpoint, of 1.
  double utilisation() const {
    return segments == 0 ? 0.0
                         : static_cast<double>(live_bytes()) / static_cast<double>(segment_bytes);
  }
};

struct SurveyedTable {
  ManifestTable table;
  uint32_t row_class = 0;  // place in Survey::classes
  uint64_t rows = 0;
};

struct SurveyedCheckpoint {
  uint32_t checkpoint;
  std::string unreadable = {};  // why, if its manifest cannot be read
  uint64_t segments = 0;
  uint64_t rows = 0;
};

struct Survey {
  std::string directory;
  uint64_t store_id = 0;
  uint64_t seed = 0;
  uint64_t blob_bytes = 0;
  std::vector<SurveyedCheckpoint> checkpoints = {};  // the newest first
  // Of the newest:
  std::vector<SurveyedTable> tables = {};
  std::vector<SurveyedClass> classes = {};
  // Rows in segments that do not say whose they are.
  uint64_t unknown_rows = 0;
  // Of segments of both.
  uint64_t segments = 0;
  uint64_t segment_bytes = 0;
};

// Of the last checkpoint, also while the store is open and is changed. Writes nothing, and locks
// nothing: where a further checkpoint comes meanwhile it begins again. kNotFound: there is no
// store; kUnavailable: checkpoints come all the time, or the device fails; kDataLoss: the newest
// checkpoint's manifest is damaged, or there is none; kFailedPrecondition: it is of a newer format;
// statuses of files; kResourceExhausted. std::bad_alloc leaves it.
StatusOr<Survey> SurveyStore(FileSystem* files, const std::string& path);

}  // namespace embank

#endif  // EMBANK_STORE_INSPECT_SURVEY_H_
