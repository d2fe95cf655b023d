// The common parts of the commands of `embank`. Each command is a file, and main.cc lists them all.
#ifndef EMBANK_TOOLS_COMMAND_H_
#define EMBANK_TOOLS_COMMAND_H_

#include <string>

#include "base/status.h"

namespace embank {

enum class ExitCode : int {
  kClean = 0,
  kDamaged = 1,
  kUnusable = 2,  // no store, or one that cannot be looked at; or a wrong command line
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

// Says on stderr why a command has failed, and returns its exit code.
ExitCode Fail(const Status& status);

// Each command prints its results to stdout.
ExitCode RunVerify(const LookOptions& options);
ExitCode RunInfo(const LookOptions& options);
ExitCode RunStat(const LookOptions& options);
// kDamaged: something was lost. kUnusable: no store was made.
ExitCode RunRepair(const RepairCommand& command);

}  // namespace embank

#endif  // EMBANK_TOOLS_COMMAND_H_
