// What the commands of `embank` have in common: each is a file, main.cc knows them all.
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

// Of a command that looks at a store.
struct LookOptions {
  std::string directory;
  bool json = false;
};

// Of the one that makes a store of what can be read of another.
struct RepairCommand {
  std::string directory;
  std::string target;
  bool previous = false;
  bool json = false;
};

// Says on stderr why a command has failed, and with what it exits.
ExitCode Fail(const Status& status);

// Each prints to stdout what it finds.
ExitCode RunVerify(const LookOptions& options);
ExitCode RunInfo(const LookOptions& options);
ExitCode RunStat(const LookOptions& options);
// kDamaged: something was lost. kUnusable: no store was made.
ExitCode RunRepair(const RepairCommand& command);

}  // namespace embank

#endif  // EMBANK_TOOLS_COMMAND_H_
