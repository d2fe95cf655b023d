// The few lines of the text of a training's checkpoint (train/model_text.h) that depend on the
// number of its ranks. The other lines are left as they are.
#ifndef EMBANK_TOOLS_JOB_TEXT_H_
#define EMBANK_TOOLS_JOB_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/status_or.h"

namespace embank {

struct JobText {
  uint64_t steps = 0;
  uint32_t slices = 0;
  uint32_t rank = 0;
  uint32_t ranks = 1;
  uint64_t job = 0;                          // 0: there is one rank
  uint64_t start = 0;                        // of the job, which has another one each time
  std::vector<std::string> replicated = {};  // features whose tables all ranks have
  std::string text;                          // without the lines of the rank
  size_t rank_offset = 0;                    // of their place in it
};

// Reads the blob of a checkpoint.
// kFailedPrecondition: it is of no training, or of one by an older or a newer program.
// kDataLoss: it lacks a line, which the message names.
StatusOr<JobText> ReadJobText(std::string_view blob);

// Returns the blob of another rank of the same training; of a single rank, `job` does not count.
// The first start of a job has its number.
std::string BlobOfRank(const JobText& text, uint32_t rank, uint32_t ranks, uint64_t job);

// kFailedPrecondition: the texts of two ranks differ in more than their rank and in the words for
// their data, which may be paths of a machine. The message has the first line that does.
Status CheckSameTraining(const JobText& one, const JobText& other);

// kInvalidArgument: a training with so many slices cannot go on with `ranks`: another order of sums
// would give other bits.
Status CheckSlices(uint32_t slices, uint32_t ranks);

}  // namespace embank

#endif  // EMBANK_TOOLS_JOB_TEXT_H_
