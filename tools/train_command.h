// The options of embank-train.
#ifndef EMBANK_TOOLS_TRAIN_COMMAND_H_
#define EMBANK_TOOLS_TRAIN_COMMAND_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/status_or.h"
#include "train/data/click_reader.h"
#include "train/data/log_rules.h"
#include "train/fae/fae_file.h"
#include "train/generator/click_schema.h"
#include "train/roles/role_plan.h"
#include "train/samples/data_name.h"
#include "train/trainer_options.h"

namespace embank {

inline constexpr uint64_t kRankSecondsMax = 7 * 24 * 3600;  // a week

struct TrainCommand {
  std::vector<std::string> words;  // as typed, the program first
  TrainerOptions trainer;
  std::string model = "dlrm";
  std::vector<std::string> data;  // words for FilesOf, and then the files (TakeFiles)
  std::string generate;           // a schema, in place of a file
  std::string columns;            // a column file
  std::string format;             // of a checkpoint (train/model_text.h), or the text of `columns`
  LogRules rules = kNewestRules;  // of the lines of a log
  DataName trained_data;          // of a checkpoint
  std::vector<std::string> eval;  // as `data`
  std::string json;
  std::string weights;    // file for the dense parameters
  std::string write_log;  // file for the generated log
  SchemaScale scale;      // of `generate`
  uint64_t samples = 1'000'000;
  double broken_share = ClickReader::kBrokenShareMax;  // of the lines of a log; more stop the run
  uint64_t eval_samples = 0;
  uint64_t eval_every = 0;  // steps; 0: at the end alone
  uint64_t patience = 0;    // evaluations that are no better than the best; 0: any number
  uint32_t epochs = 1;
  uint32_t shuffle = 0;           // samples of a window whose order is random; 0: none is
  std::optional<uint64_t> steps;  // the last one; without: all data
  uint64_t untimed_steps = 0;
  uint64_t checkpoint_every = 0;
  uint64_t dram_mib = 0;
  uint64_t ssd_mib = 0;
  uint64_t hbm_mib = 0;
  uint64_t pmem_mib = 0;
  uint64_t micro_batch_kib = 0;
  uint64_t group_kib = 0;
  std::string pack_rule = "mean";
  std::string row_optimizer = "adagrad";
  std::string dense_optimizer = "adagrad";
  std::string schedule = "constant";
  std::string wire_type = "f32";
  std::string trace;
  std::string emulate;         // waits before operations (tools/emulated_waits.h)
  uint32_t ranks = 1;          // threads of this process; under mpirun it says how many
  uint64_t rank_seconds = 60;  // that a rank waits for another one
  std::string roles;           // the numbers of loaders, embedding workers and NN workers
  std::optional<uint64_t> buffer_samples;  // of a worker; without: four batches
  std::optional<RolePlan> role_plan;       // of `roles`; nothing: there are none
  uint32_t role_ranks = 1;                 // 1: all roles are in this process
  std::string job_path;       // the directory above those of all ranks; empty: there is one rank
  std::string job_pmem_path;  // the same of PMem
  std::shared_ptr<const FaeFile> hot_cold;  // of `data`; nullptr: they are a log
  std::string emulate_link;                 // of the device: GB/s and microseconds
  bool no_bag = false;                      // hot batches use the store, too
  bool hot_only = false;                    // cold batches are left out
  bool takes_signals = true;                // of the ranks of a process one does
  bool forget = false;
  bool resume = false;
  bool no_packing = false;
  bool ablation = false;
  std::optional<uint32_t> copies_up_to;  // the most copies of each id feature; a run for each
};

// Adds the options to a parser, which writes them to *command.
void AddOptions(CLI::App* app, TrainCommand* command);

// Replaces all options of the model, and the settings, by those of the checkpoint in `path`;
// without a checkpoint nothing changes, and a line says so. Parse the command line again then:
// options that were given stay. Statuses but NOT_FOUND: see ReadTrainedModel.
Status TakeTrainedModel(const std::string& path, TrainCommand* command);

// Checks that options go together and completes those of the trainer. INVALID_ARGUMENT names the
// option.
Status Complete(TrainCommand* command);

// Lets all options that are numbers name what was given in their place.
void CheckNumbers(CLI::App* app);

// Returns the optimizer of a word of --row-optimizer. INVALID_ARGUMENT lists the words.
StatusOr<Optimizer> RowOptimizerOf(const std::string& word);

// Adds --broken-share.
void AddBrokenShare(CLI::App* app, TrainCommand* command);

// Returns --dram-mib in bytes. INVALID_ARGUMENT: it is too large.
StatusOr<uint64_t> DramBytes(const TrainCommand& command);

// Takes the dims of a schema whose id features have different ones. NOT_FOUND, INVALID_ARGUMENT:
// see MakeClickSchema.
Status TakeDims(TrainCommand* command);

}  // namespace embank

#endif  // EMBANK_TOOLS_TRAIN_COMMAND_H_
