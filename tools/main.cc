// embank: the command line. A command is a file beside this one and a line in command.h.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "bindings/c/embank.h"
#include "tools/command.h"
#include "tools/wrong_words.h"

namespace embank {
namespace {

CLI::App* AddLook(CLI::App* app, const char* name, const char* what, LookOptions* options) {
  CLI::App* const command = app->add_subcommand(name, what);
  command->add_option("DIR", options->directory, "Directory of the store")->required();
  command->add_flag("--json", options->json, "Print JSON");
  return command;
}

// As CommandProblem of wrong_words.h, of the parser's commands.
std::string ProblemOf(const CLI::App& app, int argc, char** argv) {
  std::vector<std::pair<std::string, std::string>> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands.emplace_back(command->get_name(), command->get_description());
  }
  return CommandProblem("embank", {argv + std::min(argc, 1), argv + argc}, commands);
}

void AddPmem(CLI::App* command, std::string* pmem_path) {
  command->add_option("--pmem", *pmem_path, "Directory of its PMem, if that has been moved");
}

CLI::App* AddRepair(CLI::App* app, RepairCommand* repair) {
  CLI::App* const command =
      app->add_subcommand("repair", "Make a new store of what can be read of a damaged one");
  command->add_option("DIR", repair->directory, "Directory of the store, which is not changed")
      ->required();
  command->add_option("--to", repair->target, "Directory of the new store, new or empty")
      ->required();
  AddPmem(command, &repair->pmem_path);
  command->add_flag("--previous", repair->previous, "Save the last checkpoint but one");
  command->add_flag("--json", repair->json, "Print JSON");
  return command;
}

CLI::App* AddReshard(CLI::App* app, ReshardCommand* reshard) {
  CLI::App* const command = app->add_subcommand(
      "reshard", "Make a checkpoint of a training into one for another number of ranks");
  command
      ->add_option("SOURCE", reshard->sources,
                   "Directory of a training, or those of all its ranks, which are not changed")
      ->required();
  command->add_option("--to", reshard->ranks, "Number of ranks, 1 to 256")
      ->required()
      ->check(CLI::Range(uint32_t{1}, kOwnersMax));
  command->add_option("--out", reshard->target, "Directory to make, new or empty")->required();
  command->add_flag("--any-ranks", reshard->any_ranks,
                    "Accept a number of ranks with which the training cannot go on");
  command->add_flag("--progress", reshard->progress, "Tell the progress, also without a terminal");
  command->add_flag("--json", reshard->json, "Print JSON");
  return command;
}

int Run(int argc, char** argv) {
  CLI::App app(
      "Looks at stores on disk, saves what can be read of damaged ones, and makes checkpoints\n"
      "for other numbers of ranks.\n"
      "Exit status: 0, 1: damaged, 2: unusable.");
  app.set_version_flag("--version", embank_version());
  app.require_subcommand(1);
  LookOptions options;
  CLI::App* const verify =
      AddLook(&app, "verify", "Read all that a store has, and name what is damaged", &options);
  AddPmem(verify, &options.pmem_path);
  const CLI::App* const info =
      AddLook(&app, "info", "Show whose a store is, its checkpoints and tables", &options);
  AddLook(&app, "stat", "Show rows by table, live and dead bytes by class of rows", &options);
  RepairCommand repair_options;
  const CLI::App* const repair = AddRepair(&app, &repair_options);
  ReshardCommand reshard_options;
  const CLI::App* const reshard = AddReshard(&app, &reshard_options);
  const std::string problem = ProblemOf(app, argc, argv);
  if (!problem.empty()) {
    std::fputs(problem.c_str(), stderr);
    return static_cast<int>(ExitCode::kUnusable);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::kUnusable);
  }
  if (verify->parsed()) return static_cast<int>(RunVerify(options));
  if (repair->parsed()) return static_cast<int>(RunRepair(repair_options));
  if (reshard->parsed()) return static_cast<int>(RunReshard(reshard_options));
  if (info->parsed()) return static_cast<int>(RunInfo(options));
  return static_cast<int>(RunStat(options));
}

}  // namespace
}  // namespace embank

int main(int argc, char** argv) {
  try {
    const int code = embank::Run(argc, argv);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    std::fprintf(stderr, "embank: the output could not be written\n");
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "embank: out of memory\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "embank: %s\n", error.what());
  }
  return static_cast<int>(embank::ExitCode::kUnusable);
}
