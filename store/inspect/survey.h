// Reads a store's manifests and footers, and no row.
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
  uint64_t segment_bytes = 0;  // lengths of all these segments
  uint64_t live_rows = 0;
  uint64_t dead_rows = 0;  // records, or slots that were left out

  uint64_t live_bytes() const { return live_rows * record_bytes; }
  uint64_t dead_bytes() const { return dead_rows * record_bytes; }
  // The part of the segments' bytes, 0 to 1, that are rows of the checkpoint.
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
  // Facts of the newest checkpoint:
  std::vector<SurveyedTable> tables = {};
  std::vector<SurveyedClass> classes = {};
  // Rows in segments that do not tell their owners.
  uint64_t unknown_rows = 0;
  uint64_t rows_lost = 0;  // as the manifest counts them
  // Sums over the segments of both checkpoints.
  uint64_t segments = 0;
  uint64_t segment_bytes = 0;
  uint64_t kept_bytes = 0;            // of records that one of the checkpoints has, or both
  ByTier<uint64_t> taken_bytes = {};  // of their files; one that is missing or not read takes none
  // The bytes of segments that an export of the newest one would copy; it links the others.
  uint64_t export_bytes = 0;
};

// Surveys the last checkpoint, also while the store is open and changes. Writes nothing and takes
// no lock. If a further checkpoint is made meanwhile, the survey begins again.
// kNotFound: there is no store.
// kUnavailable: checkpoints follow each other too fast, or the device fails.
// kDataLoss: the newest manifest is damaged, or there is none.
// kFailedPrecondition: the store has a newer format.
// kResourceExhausted, and the statuses of files. Throws std::bad_alloc.
StatusOr<Survey> SurveyStore(FileSystem* files, const std::string& path);

// Reads the manifest of the last checkpoint alone, in the same way: of a store that was never
// checkpointed, that of checkpoint 0. Statuses like SurveyStore.
StatusOr<Manifest> ReadNewestManifest(FileSystem* files, const std::string& path);

// Reads those of all checkpoints that the store keeps, the newest first, each with its status,
// which is OK for one of them. Statuses like SurveyStore.
StatusOr<std::vector<StatusOr<Manifest>>> ReadKeptManifests(FileSystem* files,
                                                            const std::string& path);

}  // namespace embank

#endif  // EMBANK_STORE_INSPECT_SURVEY_H_
