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
#include "tools/table_command.h"
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

CLI::App* AddTable(CLI::App* app, const char* name, const char* what, TableCommand* table) {
  CLI::App* const command = app->add_subcommand(name, what);
  command->add_option("DIR", table->directory, "Directory of the store")->required();
  command->add_option("TABLE", table->table, "Name of the table")->required();
  AddPmem(command, &table->pmem_path);
  return command;
}

CLI::App* AddGet(CLI::App* app, TableCommand* table) {
  CLI::App* const command = AddTable(app, "get", "Print the rows of some keys", table);
  command->add_option("KEY", table->keys, "Keys, in decimal digits or in hexadecimal ones after 0x")
      ->required();
  command->add_flag("--json", table->json, "Print JSON");
  return command;
}

CLI::App* AddDump(CLI::App* app, TableCommand* table) {
  CLI::App* const command = AddTable(app, "dump", "Print all rows of a table as CSV", table);
  command->add_option("--limit", table->limit, "Most rows to print")->check(CLI::NonNegativeNumber);
  command->add_flag("--state", table->state, "Print the states of the optimizer, too");
  command->add_flag("--heat", table->heat, "Print the heats, too");
  command->add_flag("--json", table->json, "Print a line of JSON for each row");
  command->add_option("--out", table->out, "File to write, in place of the standard output");
  command->add_flag("--progress", table->progress, "Tell the progress");
  return command;
}

// The options that write-table and read-table have in common.
CLI::App* AddFiles(CLI::App* app, const char* name, const char* what, TableCommand* table) {
  CLI::App* const command = AddTable(app, name, what, table);
  command->add_option("--format", table->format, "safetensors (default) or npy")
      ->check(CLI::IsMember({"safetensors", "npy"}));
  command->add_flag("--no-state", table->no_state, "Leave the states of the optimizer out");
  command->add_flag("--no-heat", table->no_heat, "Leave the heats out");
  command->add_flag("--progress", table->progress, "Tell the progress, also without a terminal");
  command->add_flag("--json", table->json, "Print JSON");
  return command;
}

CLI::App* AddWriteTable(CLI::App* app, TableCommand* table) {
  CLI::App* const command =
      AddFiles(app, "write-table", "Write a table to safetensors or npy files", table);
  command->add_option("--out", table->out, "NAME.safetensors, or NAME of NAME.keys.npy")
      ->required();
  command->add_option("--shard-bytes", table->shard_bytes,
                      "Most bytes of one safetensors file, 4GiB by default");
  command->add_flag("--overwrite", table->overwrite, "Replace the files of an earlier table");
  return command;
}

CLI::App* AddReadTable(CLI::App* app, TableCommand* table) {
  CLI::App* const command =
      AddFiles(app, "read-table", "Write the rows of files into a table", table);
  command
      ->add_option("--in", table->in,
                   "Files, or the index, or the name that all shards have; NAME of NAME.keys.npy")
      ->required();
  command->add_option("--optimizer", table->optimizer, "Optimizer of a new table");
  command->add_option("--learning-rate", table->learning_rate, "Learning rate of a new table");
  command->add_option("--dram-bytes", table->dram_bytes, "Most memory of the store, as in 8GiB");
  return command;
}

int Run(int argc, char** argv) {
  CLI::App app(
      "Looks at stores on disk, saves what can be read of damaged ones, makes checkpoints\n"
      "for other numbers of ranks, and moves tables to files and back.\n"
      "Exit status: 0, 1: damaged, 2: unusable, 3: a key has no row.");
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
  TableCommand table;
  const std::pair<const CLI::App*, ExitCode (*)(const TableCommand&)> of_tables[] = {
      {AddGet(&app, &table), RunGet},
      {AddDump(&app, &table), RunDump},
      {AddWriteTable(&app, &table), RunWriteTable},
      {AddReadTable(&app, &table), RunReadTable}};
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
  for (const auto& [command, run] : of_tables) {
    if (command->parsed()) return static_cast<int>(run(table));
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
