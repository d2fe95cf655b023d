#include "tools/next_commands.h"

#include <string_view>

#include "base/str_cat.h"

namespace embank {
namespace {

// The same command line, which goes on.
std::string SameCommand(const TrainCommand& command) {
  std::string text;
  for (const std::string& word : command.words) {
    StrAppend(&text, text.empty() ? "" : " ", ShellWord(word));
  }
  return command.resume ? text : text + " --resume";
}

// The options of the tiers, which no checkpoint has.
std::string TierOptions(const TrainCommand& command) {
  std::string text;
  const auto add = [&](const char* option, uint64_t mib) {
    if (mib > 0) StrAppend(&text, " ", option, " ", mib);
  };
  add("--dram-mib", command.dram_mib);
  add("--ssd-mib", command.ssd_mib);
  add("--hbm-mib", command.hbm_mib);
  const std::string& pmem =
      command.job_path.empty() ? command.trainer.store.pmem_path : command.job_pmem_path;
  if (!pmem.empty()) StrAppend(&text, " --pmem ", ShellWord(pmem));
  add("--pmem-mib", command.pmem_mib);
  return text;
}

}  // namespace

std::string ShellWord(const std::string& word) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./,:=@%+";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char letter : word)
    quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return quoted + "'";
}

std::string NextCommandsOfRanks(const TrainCommand& command, uint32_t ranks, uint64_t steps,
                                const std::string& stopped_by) {
  if (command.job_path.empty()) {
    return "\nThe model was in memory, and is gone. Give --path DIR to keep one.\n";
  }
  const std::string path = ShellWord(command.job_path);
  const std::string program = command.words.empty() ? "embank-train" : ShellWord(command.words[0]);
  const std::string start = command.ranks > 1 ? program : StrCat("mpirun -n ", ranks, " ", program);
  const std::string ranks_option = command.ranks > 1 ? StrCat(" --ranks ", ranks) : std::string();
  std::string text;
  if (!stopped_by.empty()) StrAppend(&text, "\nstopped by ", stopped_by, " at step ", steps, "\n");
  return StrCat(text, "\nThe model is in ", path, ", a directory for each of ", ranks,
                " ranks, at step ", steps, ".\n  go on     ", start, ranks_option, " --path ", path,
                TierOptions(command), " --resume --data FILE\n  use it    embank reshard ", path,
                " --to 1 --out NEW: then evaluate and predict with --path NEW\n");
}

std::string NextCommands(const TrainCommand& command, uint64_t steps, const std::string& stopped_by,
                         const std::string& best_path, uint64_t best_step) {
  if (command.trainer.store.path.empty()) {
    return "\nThe model was in memory, and is gone. Give --path DIR to keep one.\n";
  }
  const std::string path = ShellWord(command.trainer.store.path);
  const std::string program = command.words.empty() ? "embank-train" : ShellWord(command.words[0]);
  std::string text;
  if (!stopped_by.empty()) {
    StrAppend(&text, "\nstopped by ", stopped_by, " at step ", steps, "; go on with\n  ",
              SameCommand(command), "\n");
  }
  StrAppend(&text, "\nThe model is in ", path, ", at step ", steps, ".");
  if (!best_path.empty()) {
    StrAppend(&text, " The best one is in ", ShellWord(best_path), ", at step ", best_step, ".");
  }
  std::string used = best_path.empty() ? path : ShellWord(best_path);
  // Without a limit, rows of SSD that are read stay in memory.
  if (command.dram_mib > 0) StrAppend(&used, " --dram-mib ", command.dram_mib);
  StrAppend(&text, "\n  go on     ", program, " --path ", path, TierOptions(command),
            " --resume --data FILE\n  evaluate  ", program, " evaluate --path ", used,
            " --data FILE\n  predict   ", program, " predict --path ", used,
            " --data FILE --out scores.csv\n");
  return text;
}

}  // namespace embank
