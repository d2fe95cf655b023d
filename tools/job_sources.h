// The stores of all ranks of a training, at the newest step of which all of them have a checkpoint.
#ifndef EMBANK_TOOLS_JOB_SOURCES_H_
#define EMBANK_TOOLS_JOB_SOURCES_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files/file_system.h"
#include "base/status_or.h"
#include "store/inspect/checkpoint_rows.h"
#include "tools/job_text.h"

namespace embank {

struct JobSources {
  // By rank; their checkpoints are chosen.
  std::vector<std::unique_ptr<CheckpointRows>> ranks;
  uint64_t job = 0;  // a number for the training, also if it has had one rank
  JobText text;      // of rank 0
  // Why newer checkpoints could not be looked at.
  std::vector<std::string> warnings;
};

// The name of a rank's directory in that of its job: "rank-3".
std::string RankName(uint32_t rank);

// Lists the directories of a job's stores: those of the ranks in the one directory that is given,
// or those that are given. The statuses of files.
StatusOr<std::vector<std::string>> RankDirectories(FileSystem* files,
                                                   std::span<const std::string> given);

// Opens the stores in these directories, in any order, and locks them for readers. `files` outlives
// the result. Throws std::bad_alloc.
// kFailedPrecondition: a store is of no training, of another one or of another number of ranks; a
// rank is missing or there twice; there is no common step.
// kNotFound: a directory is no store, or has no checkpoint.
// The statuses of CheckpointRows.
StatusOr<JobSources> OpenJob(FileSystem* files, std::span<const std::string> directories);

}  // namespace embank

#endif  // EMBANK_TOOLS_JOB_SOURCES_H_
