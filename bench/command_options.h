// The commands of embank-bench and their options, as the parser of the command line takes them.
#ifndef EMBANK_BENCH_COMMAND_OPTIONS_H_
#define EMBANK_BENCH_COMMAND_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "bench/options.h"

namespace embank {

// Options that are words, before they are parsed: at first those of the defaults.
struct Words {
  std::vector<std::string> phases;
  std::vector<std::string> evictions;
  std::string value_type;
  std::string optimizer;
  std::string distribution;
  std::string id_mode;
  std::string trace_format;
};

// Commands have the same words; only kv has id_mode.
template <typename Options>
Words WordsOf(const Options& options) {
  Words words;
  for (const auto phase : options.phases) words.phases.emplace_back(PhaseName(phase));
  words.value_type = ValueTypeName(options.shape.value_type);
  words.optimizer = OptimizerName(options.shape.optimizer);
  words.distribution = DistributionName(options.distribution);
  words.id_mode = IdModeName(KvOptions().id_mode);
  return words;
}

// Each adds a command to the program, and returns it. `options` have the defaults, and get what the
// command line says; `words` do, too, where a command has them.
CLI::App* AddKv(CLI::App* program, KvOptions* options, Words* words);
CLI::App* AddSsd(CLI::App* program, SsdOptions* options, Words* words);
CLI::App* AddReplay(CLI::App* program, ReplayOptions* options, Words* words);
CLI::App* AddSurvive(CLI::App* program, SurviveOptions* options, Words* words);
CLI::App* AddTiers(CLI::App* program, TiersOptions* options, Words* words);
CLI::App* AddTraining(CLI::App* program, TrainingPageOptions* options);
CLI::App* AddLimits(CLI::App* program, LimitsOptions* options);
CLI::App* AddTraces(CLI::App* program, TracesOptions* options);
CLI::App* AddHot(CLI::App* program, HotOptions* options, Words* words,
                 std::vector<std::string>* curve);
CLI::App* AddPacked(CLI::App* program, PackedOptions* options);
CLI::App* AddDevice(CLI::App* program, DeviceOptions* options);

}  // namespace embank

#endif  // EMBANK_BENCH_COMMAND_OPTIONS_H_
