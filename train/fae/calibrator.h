// Finds the hot rows of a click log, and parts its samples into hot and cold ones.
#ifndef EMBANK_TRAIN_FAE_CALIBRATOR_H_
#define EMBANK_TRAIN_FAE_CALIBRATOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"
#include "base/status_or.h"
#include "train/fae/calibration_picture.h"
#include "train/fae/fae_writer.h"
#include "train/popularity/hot_choice.h"
#include "train/popularity/id_places.h"
#include "train/popularity/sample.h"
#include "train/samples/click_source.h"

namespace embank {

struct CalibrationOptions {
  uint64_t budget_bytes = 0;  // of all hot rows
  double sampled_share = kSampledShareDefault;
  uint64_t seed = 1;
  // The bytes of a hot row with its states, and of the rows in other tables of that id feature, for
  // each id feature. Features that share a table have the same.
  std::vector<uint32_t> row_bytes = {};
  uint32_t threads = 1;
};

struct CalibratedTable {
  std::string name;
  bool is_small = false;
  uint32_t row_bytes = 0;
  uint64_t accesses = 0;  // of the sample, as all of these
  uint64_t rows_seen = 0;
  double rows = 0.0;      // of the whole log: counted for small tables, estimated for others
  uint64_t hot_rows = 0;  // for small tables those that memory is reserved for
};

struct Calibration {
  CalibrationOptions options;
  std::vector<uint32_t> table_of_column;  // of each id feature
  std::vector<CalibratedTable> tables;
  HotChoice choice;
  uint64_t samples = 0;          // of the log
  uint64_t ids = 0;              // so are these
  double counted_share = 0.0;    // 1: the log is small, and was counted as a whole
  double hot_input_share = 0.0;  // of the log, by the inputs that were kept
  std::vector<PopularityPoint> curve;
  double counting_seconds = 0.0;  // without reading
};

// A log with at most this number of ids is counted as a whole: that takes less than a second.
inline constexpr uint64_t kFullProfileIdsMax = 1'000'000;
// Inputs whose ids are kept, for the share that is all hot: its standard error is below 0.5 /
// sqrt(50,000) = 0.2 %. They are chosen from all inputs, and not only from those that are counted,
// whose ids are popular by having been counted.
inline constexpr uint32_t kKeptInputsMax = 100'000;

// Called while a log is read, with the part that was read, 0 to 1, and the number of samples. An
// error ends the reading and is returned.
using CalibrationProgress = FunctionRef<Status(double fraction, uint64_t samples)>;

// FAE's calibrator (Adnan et al. 2021, section 4.1): reads a log once from its beginning, counts
// the ids of a sample of its inputs, and chooses hot rows within the budget. Memory is that of the
// counts. All inputs are read, because a sample does not tell how many ids small tables have.
// Blocks on reads. The result depends on neither threads nor batches, apart from the time.
// INVALID_ARGUMENT: an option is out of its range, the log has no samples, or the budget is too
// small (ChooseHot). The statuses of the log and of `progress`.
StatusOr<Calibration> Calibrate(ClickSource* log, const CalibrationOptions& options,
                                CalibrationProgress progress);

struct ClassifiedLog {
  HotIds hot_ids;
  uint64_t hot_bytes = 0;  // of all hot rows, never above the budget
  uint64_t samples = 0;
  uint64_t hot_samples = 0;
};

// FAE's classifiers (Adnan et al. 2021, section 4.2): reads the log again from its beginning, and
// calls `add` for each sample, in the order of the log. The ids of small tables become hot where
// they first occur, so that no sample before was cold because of one of them: as many as were
// counted. Where the log has got more since, the later ones stay cold. Blocks on reads. The result
// does not depend on threads. FAILED_PRECONDITION: the log does not have the samples of the
// calibration. The statuses of the log, of `add` and of `progress`.
StatusOr<ClassifiedLog> ClassifyLog(
    ClickSource* log, const Calibration& calibration,
    FunctionRef<Status(const ClickBatch& samples, uint32_t sample, bool is_hot)> add,
    CalibrationProgress progress);

// Does it with the calls of `writer`, which the caller then finishes with the hot ids. The statuses
// of the writer, too.
StatusOr<ClassifiedLog> WriteBatches(ClickSource* log, const Calibration& calibration,
                                     FaeWriter* writer, CalibrationProgress progress);

}  // namespace embank

#endif  // EMBANK_TRAIN_FAE_CALIBRATOR_H_
