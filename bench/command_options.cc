#include "bench/command_options.h"

#include <cstdint>

namespace embank {
namespace {

// The parser would wrap a negative number round to a large one.
std::string NotNegative(const std::string& word) {
  return word.rfind('-', 0) == 0 ? "must not be negative" : "";
}

template <typename Value>
void AddNumber(CLI::App* app, const char* name, Value* value, const char* description) {
  app->add_option(name, *value, description)->capture_default_str()->check(NotNegative);
}

void AddCudaDevice(CLI::App* app, int32_t* cuda_device) {
  app->add_option("--cuda-device", *cuda_device, "-1: the host twin of a device")
      ->capture_default_str();
}

// A list of numbers: "1,2".
template <typename Value>
void AddNumbers(CLI::App* app, const char* name, std::vector<Value>* values,
                const char* description) {
  app->add_option(name, *values, description)->delimiter(',')->check(NotNegative);
}

void AddShapeOptions(CLI::App* app, TableShape* shape, Words* words) {
  AddNumber(app, "--dim", &shape->dim, "values of a row, 1..4096");
  app->add_option("--type", words->value_type, "f32, f16 or bf16")->capture_default_str();
  app->add_option("--optimizer", words->optimizer,
                  "none, sgd, adagrad, rowwise-adagrad, adam or ftrl")
      ->capture_default_str();
  app->add_option("--trace-format", words->trace_format,
                  "be64, u32 or text (default: by the file's name)");
}

void AddReport(CLI::App* app, std::string* path) {
  app->add_option("--report", *path,
                  "page (HTML) to which pictures and figures of the run are added");
}

void AddStreamOptions(CLI::App* app, ReplayOptions* options, Words* words) {
  app->add_option("--trace", options->trace_path, "key trace (default: a generated stream)");
  AddShapeOptions(app, &options->shape, words);
  AddNumber(app, "--batch", &options->batch, "keys of a batch");
  AddNumber(app, "--threads", &options->threads, "of the store; 0: one per core");
  AddNumber(app, "--seed", &options->seed, "of the rows and of a generated stream");
  app->add_option("--json", options->json_path, "file for the figures");
  AddReport(app, &options->report_path);
}

}  // namespace

CLI::App* AddKv(CLI::App* program, KvOptions* options, Words* words) {
  CLI::App* const app =
      program->add_subcommand("kv", "the same batches through Embank and its peers");
  app->add_option("--engines", options->engines, "of embank,libcuckoo,absl")->delimiter(',');
  app->add_option("--phases", words->phases, "of fill,lookup,update,small")->delimiter(',');
  AddNumber(app, "--rows", &options->rows, "rows of the table (a trace has its own)");
  AddShapeOptions(app, &options->shape, words);
  app->add_option("--dist", words->distribution, "uniform, zipf:EXPONENT or trace:FILE")
      ->capture_default_str();
  app->add_option("--id-mode", words->id_mode, "permuted, first-appearance or hashed")
      ->capture_default_str();
  AddNumber(app, "--batch", &options->batch, "keys of a batch");
  AddNumbers(app, "--threads", &options->threads, "that call, in turns for a list as 1,2");
  AddNumber(app, "--seconds", &options->seconds, "of each phase but the fill");
  AddNumber(app, "--rounds", &options->rounds, "of all engines; figures are their medians");
  AddNumber(app, "--seed", &options->seed, "of keys and rows");
  app->add_flag("--reserve", options->reserve, "tell all engines the number of rows beforehand");
  AddNumber(app, "--dram-fraction", &options->dram_fraction,
            "memory of an engine / its data, where rows are forgotten; 0: no limit");
  AddNumber(app, "--dram-bytes", &options->dram_bytes, "the same in bytes; 0: see --dram-fraction");
  AddNumber(app, "--id-space", &options->id_space, "ids are below this number; 0: that of rows");
  app->add_option("--on-full", options->on_full, "forget, with such memory");
  app->add_option("--eviction", words->evictions, "of lru,clock,lfu, with such memory")
      ->delimiter(',');
  app->add_option("--json", options->json_path, "file for the figures");
  return app;
}

CLI::App* AddSsd(CLI::App* program, SsdOptions* options, Words* words) {
  CLI::App* const app =
      program->add_subcommand("ssd", "rows that memory does not hold, through Embank and a peer");
  app->add_option("--path", options->path, "directory on the SSD; nothing stays in it")->required();
  app->add_option("--engines", options->engines,
                  "of embank,embank-lfu,embank-memory,rocksdb,rocksdb-rows")
      ->delimiter(',');
  app->add_option("--phases", words->phases, "of fill,lookup,scan,overwrite,checkpoint,recover")
      ->delimiter(',');
  app->add_option("--pmem", options->pmem_path,
                  "directory of a PMem tier: adds the phase pmem; nothing stays in it");
  AddNumber(app, "--pmem-bytes", &options->pmem_bytes,
            "of that tier, from 4 MiB; 0: 1.5 times the rows");
  AddNumber(app, "--rows", &options->rows, "rows of the table (a trace has its own)");
  AddShapeOptions(app, &options->shape, words);
  AddNumber(app, "--dram-fraction", &options->dram_fraction, "memory of an engine / its data");
  AddNumber(app, "--utilisation", &options->utilisation,
            "living records / budget of Embank's log; 0: no budget");
  app->add_option("--dist", words->distribution, "uniform, zipf:EXPONENT or trace:FILE")
      ->capture_default_str();
  AddNumber(app, "--batch", &options->batch, "keys of a batch");
  AddNumber(app, "--threads", &options->threads, "that call Embank, and jobs of fio");
  AddNumbers(app, "--peer-threads", &options->peer_threads,
             "that look up in a peer, in turns for a list as 2,8,32");
  AddNumber(app, "--depth", &options->depth, "reads in flight of one job of fio");
  AddNumber(app, "--seconds", &options->seconds, "of each timed part");
  AddNumber(app, "--warmup", &options->warmup, "lookups of an engine before its first, in seconds");
  AddNumber(app, "--overwrites", &options->overwrites, "rows overwritten in a round / rows");
  AddNumber(app, "--changed", &options->changed, "rows that the trainer changes; 0: all of them");
  AddNumber(app, "--sync-us", &options->sync_us, "by which syncs of Embank's files are longer");
  AddNumber(app, "--rounds", &options->rounds, "of all engines; figures are their medians");
  AddNumber(app, "--seed", &options->seed, "of keys and rows");
  app->add_option("--json", options->json_path, "file for the figures");
  return app;
}

CLI::App* AddReplay(CLI::App* program, ReplayOptions* options, Words* words) {
  CLI::App* const app =
      program->add_subcommand("replay", "a key trace through the store, compared with the oracle");
  AddStreamOptions(app, options, words);
  return app;
}

CLI::App* AddSurvive(CLI::App* program, SurviveOptions* options, Words* words) {
  CLI::App* const app =
      program->add_subcommand("survive", "a store on disk, killed again and again, and the oracle");
  app->add_option("--path", options->path, "directory on the SSD; nothing stays in it")->required();
  AddStreamOptions(app, &options->replay, words);
  AddNumber(app, "--dram-fraction", &options->dram_fraction, "memory of the store / its rows");
  AddNumber(app, "--kills", &options->kills, "of the process, each with a recovery");
  return app;
}

CLI::App* AddTiers(CLI::App* program, TiersOptions* options, Words* words) {
  CLI::App* const app =
      program->add_subcommand("tiers", "a store with four tiers, compared with the oracle");
  app->add_option("--path", options->path, "directory on the SSD; nothing stays in it")->required();
  app->add_option("--pmem", options->pmem_path,
                  "directory of the PMem tier (default: that of --path); nothing stays in it");
  AddStreamOptions(app, &options->replay, words);
  AddNumber(app, "--hbm-share", &options->hbm_share, "device memory / all rows");
  AddNumber(app, "--dram-share", &options->dram_share, "memory of the store / all rows");
  AddNumber(app, "--pmem-share", &options->pmem_share, "rows in PMem / all rows");
  AddNumber(app, "--flush-iters", &options->flush_iters,
            "batches between two top-k flushes, and before the first");
  AddCudaDevice(app, &options->cuda_device);
  return app;
}

CLI::App* AddTraining(CLI::App* program, TrainingPageOptions* options) {
  CLI::App* const app =
      program->add_subcommand("training", "adds the figures of embank-train to a page");
  app->add_option("--json", options->json_path, "figures that embank-train --json has written")
      ->required();
  app->add_option("--command", options->command, "with which the training was started");
  app->add_option("--report", options->report_path, "page (HTML) to which the training is added")
      ->required();
  return app;
}

CLI::App* AddLimits(CLI::App* program, LimitsOptions* options) {
  CLI::App* const app = program->add_subcommand("limits", "what the machine's memory can do");
  AddNumbers(app, "--rows-bytes", &options->row_bytes, "sizes of vectors, as 64,128,256,512");
  AddNumbers(app, "--threads", &options->threads, "as 1,2 (default: powers of two, all cores)");
  AddNumber(app, "--seconds", &options->seconds, "of all probes together");
  AddNumber(app, "--memory-mib", &options->memory_mib, "of rows; 0: 3 GiB or a third of the free");
  app->add_option("--json", options->json_path, "file for the figures");
  return app;
}

CLI::App* AddTraces(CLI::App* program, TracesOptions* options) {
  CLI::App* const app =
      program->add_subcommand("traces", "hit ratios of eviction policies on key traces");
  app->add_option("--traces", options->directory, "directory of key traces")->required();
  AddNumbers(app, "--fractions", &options->fractions,
             "rows of the cache / distinct keys (default: 0.10,0.25)");
  app->add_option("--json", options->json_path, "file for the figures");
  return app;
}

CLI::App* AddHot(CLI::App* program, HotOptions* options, Words* words,
                 std::vector<std::string>* curve) {
  CLI::App* const app = program->add_subcommand("hot", "hit ratios of a hot set, simulated");
  AddNumber(app, "--rows", &options->rows, "rows (a trace has its own)");
  AddNumber(app, "--zipf", &options->skew, "exponent of the stream");
  app->add_option("--preset", options->preset, "avg, extreme or kaggle, in place of --zipf");
  app->add_option("--trace", options->trace_path, "key trace, in place of a generated stream");
  app->add_option("--trace-format", words->trace_format,
                  "be64, u32 or text (default: by the file's name)");
  AddNumber(app, "--batch", &options->batch, "lookups of an iteration");
  AddNumber(app, "--k", &options->k, "hot rows / rows");
  AddNumber(app, "--iters", &options->iters, "iterations, warm-up included");
  AddNumber(app, "--drift-at", &options->drift_at, "last iteration in front of a drift; 0: none");
  AddNumber(app, "--warmup-iters", &options->warmup_iters,
            "iterations in front of the first flush");
  AddNumber(app, "--flush-iters", &options->flush_iters, "iterations between two flushes");
  app->add_flag("--all", options->all, "five k, three exponents, and a drift");
  AddNumber(app, "--dim", &options->dim, "f32 values of a row, for the model of the link");
  app->add_option("--curve", *curve, "FILE.csv FILE.svg: hit ratios over sizes of HBM")
      ->expected(2);
  AddNumber(app, "--seed", &options->seed, "of the stream");
  app->add_option("--json", options->json_path, "file for the figures");
  return app;
}

CLI::App* AddPacked(CLI::App* program, PackedOptions* options) {
  CLI::App* const app = program->add_subcommand("packed", "lookups and gradients of many tables");
  AddNumber(app, "--tables", &options->tables, "of a call");
  AddNumber(app, "--rows", &options->rows, "of each table");
  AddNumbers(app, "--dims", &options->dims, "f32 values of a row, in turns for a list as 16,64");
  AddNumbers(app, "--batches", &options->batches, "samples of a call, in turns for a list");
  AddNumber(app, "--zipf", &options->skew, "exponent of the ids");
  AddNumber(app, "--threads", &options->threads, "of the store");
  AddNumber(app, "--seconds", &options->seconds, "of each round of a case");
  AddNumber(app, "--rounds", &options->rounds, "figures are their medians");
  AddNumber(app, "--seed", &options->seed, "of ids and rows");
  app->add_option("--save-ids", options->ids_directory,
                  "directory for the ids, tables.u32 and bags.u32");
  app->add_option("--json", options->json_path, "file for the figures");
  return app;
}

CLI::App* AddDevice(CLI::App* program, DeviceOptions* options) {
  CLI::App* const app = program->add_subcommand("device", "calls with rows in device memory");
  AddNumber(app, "--rows", &options->rows, "of the table");
  AddNumber(app, "--dim", &options->dim, "f32 values of a row");
  AddNumber(app, "--batch", &options->batch, "distinct keys of a call");
  AddNumber(app, "--hbm-share", &options->hbm_share, "rows in device memory / all rows");
  AddNumbers(app, "--hits", &options->hit_shares,
             "shares of a call's keys that are in device memory, in turns for a list");
  AddNumber(app, "--threads", &options->threads, "of the store");
  AddCudaDevice(app, &options->cuda_device);
  AddNumber(app, "--link-gbps", &options->link_gbps,
            "GB/s of a modelled link to the twin: times are those of the link alone; 0: no model");
  AddNumber(app, "--link-us", &options->link_us, "latency of that link for each call");
  AddNumber(app, "--seconds", &options->seconds, "of each kind of call in each round");
  AddNumber(app, "--rounds", &options->rounds, "figures are their medians");
  AddNumber(app, "--seed", &options->seed, "of keys and rows");
  app->add_option("--json", options->json_path, "file for the figures");
  return app;
}

}  // namespace embank
