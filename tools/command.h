// The common parts of the commands of `embank`. Each command is a file, and main.cc lists them all.
#ifndef EMBANK_TOOLS_COMMAND_H_
#define EMBANK_TOOLS_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace embank {

enum class ExitCode : int {
  kClean = 0,
  kDamaged = 1,
  kUnusable = 2,  // no store, or one that cannot be looked at; or a wrong command line
  kAbsent = 3,    // of get: a key has no row
};

// The options of a command that inspects a store.
struct LookOptions {
  std::string directory;
  std::string pmem_path;  // of verify; empty: where the manifests say
  bool json = false;
};

// The options of the command that makes a new store of all rows of another that can be read.
struct RepairCommand {
  std::string directory;
  std::string pmem_path;  // empty: where the manifest says
  std::string target;
  bool previous = false;
  bool json = false;
};

// The options of the command that makes a checkpoint for another number of ranks.
struct ReshardCommand {
  std::vector<std::string> sources;  // the directory of a job, or those of its ranks
  uint32_t ranks = 0;                // 1 to 256
  std::string target;                // becomes the directory of a job
  bool any_ranks = false;            // also those with which the training cannot go on
  bool progress = false;             // told also where stderr is no terminal
  bool json = false;
};

// Whether a path, which need not exist, is a directory or within it: a new name there would be a
// change of it.
bool IsWithin(const std::string& path, const std::string& directory);

// Says on stderr why a command has failed, and returns its exit code.
ExitCode Fail(const Status& status);

// Each command prints its results to stdout.
ExitCode RunVerify(const LookOptions& options);
ExitCode RunInfo(const LookOptions& options);
ExitCode RunStat(const LookOptions& options);
// kDamaged: something was lost. kUnusable: no store was made.
ExitCode RunRepair(const RepairCommand& command);
// kDamaged: a record of a source cannot be read, and nothing was made; or heat was lost.
// kUnusable: nothing was made.
ExitCode RunReshard(const ReshardCommand& command);

}  // namespace embank

#endif  // EMBANK_TOOLS_COMMAND_H_
