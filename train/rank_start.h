// The beginning of a job of several ranks: they compare what they would train, and find the newest
// step of which all of them have a checkpoint.
#ifndef EMBANK_TRAIN_RANK_START_H_
#define EMBANK_TRAIN_RANK_START_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/status_or.h"
#include "train/model_text.h"
#include "train/ranks/exchange.h"

namespace embank {

// Checks that a number of ranks suits the slices of a batch. The sums of slices are added as a
// tree: ranks that have whole branches of it add to the same bits. INVALID_ARGUMENT says the rule.
Status CheckRanks(uint32_t slices, uint32_t ranks);

// Compares texts of all ranks line by line with that of the first. All ranks call it, and get the
// same status. FAILED_PRECONDITION has the first line that differs. The statuses of Exchange::Run.
Status CompareSettings(Exchange* exchange, const std::string& own);

struct RankStart {
  bool previous = false;  // goes on at the last checkpoint but one of this rank
  uint64_t job = 0;       // of the checkpoint, or new
  uint64_t start = 0;     // a new number, which all ranks have
};

// Compares the model, the settings and the build of all ranks, and what their stores have. `text`
// is that of the trainer; `how` has further settings that must
// be equal, line by line. `path` is that of the store; empty: it has none. All ranks call it, and
// all get the same status. FAILED_PRECONDITION: settings or data differ, and the message has the
// first difference; the checkpoint is of another number of ranks, another rank or another job, or
// of other replicated tables; or ranks have no step in common. The statuses of files of a rank, and
// of Exchange::Run.
StatusOr<RankStart> AgreeOnStart(Exchange* exchange, const ModelText& text, const std::string& how,
                                 const std::string& path);

}  // namespace embank

#endif  // EMBANK_TRAIN_RANK_START_H_
