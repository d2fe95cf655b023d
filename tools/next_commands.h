// The last words of a training: where its model is, and the commands that use it.
#ifndef EMBANK_TOOLS_NEXT_COMMANDS_H_
#define EMBANK_TOOLS_NEXT_COMMANDS_H_

#include <cstdint>
#include <string>

#include "tools/train_command.h"

namespace embank {

// Returns a word as a shell reads it: in quotation marks where it needs them.
std::string ShellWord(const std::string& word);

// Returns a paragraph about a training of several ranks that has ended behind this step, with its
// directory in command.job_path.
std::string NextCommandsOfRanks(const TrainCommand& command, uint32_t ranks, uint64_t steps,
                                const std::string& stopped_by);

// Returns a paragraph about a training that has ended behind this step. `stopped_by` names the
// signal that has stopped it, and is empty otherwise. The model of `best_step` is in `best_path`,
// unless that is empty.
std::string NextCommands(const TrainCommand& command, uint64_t steps, const std::string& stopped_by,
                         const std::string& best_path, uint64_t best_step);

}  // namespace embank

#endif  // EMBANK_TOOLS_NEXT_COMMANDS_H_
