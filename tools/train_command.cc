#include "tools/train_command.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "tools/emulated_waits.h"
#include "tools/hot_cold_data.h"
#include "tools/role_run.h"
#include "tools/text_file.h"
#include "tools/train_data.h"
#include "tools/trained_model.h"
#include "train/data/id_reader.h"
#include "train/generator/click_schema.h"
#include "train/models/model_table.h"
#include "train/samples/epochs.h"

namespace embank {
namespace {

constexpr uint64_t kSamplesMax = uint64_t{1} << 40;
// All of them are in memory at once for the best AUC: about 1 GiB of criteo-kaggle.
constexpr uint64_t kEvalSamplesMax = uint64_t{1} << 22;
// The window is in memory: about 256 MiB of criteo-kaggle. Offsets of its bags have 32 bits.
constexpr uint32_t kShuffleMax = 1u << 20;
static_assert(kShuffleMax * kBagIdsMax <= UINT32_MAX);
// No machine has more, and sums of a few such sizes do not wrap.
constexpr uint64_t kBytesMax = uint64_t{1} << 60;
constexpr uint32_t kCopiesUpToMax = 16;

// Returns so many units of 2^shift bytes.
StatusOr<uint64_t> Bytes(const char* option, uint64_t units, uint32_t shift) {
  if (units <= kBytesMax >> shift) return units << shift;
  return InvalidArgumentError(
      StrCat(option, " is ", units, "; it must be at most ", kBytesMax >> shift));
}

// A table of runs has a store in memory for each, and no results of one run alone.
Status CheckCopiesUpTo(const TrainCommand& command) {
  if (!command.copies_up_to) return OkStatus();
  if (*command.copies_up_to == 0 || *command.copies_up_to > kCopiesUpToMax) {
    return InvalidArgumentError(
        StrCat("--copies-up-to is ", *command.copies_up_to, "; it must be 1 to ", kCopiesUpToMax));
  }
  if (command.generate.empty()) return InvalidArgumentError("--copies-up-to needs --generate");
  const bool is_for_one_run = command.ablation || command.scale.copies != 1 ||
                              !command.trainer.store.path.empty() || !command.trace.empty() ||
                              !command.weights.empty() || !command.write_log.empty() ||
                              !command.eval.empty() || command.eval_samples > 0;
  if (!is_for_one_run) return OkStatus();
  return InvalidArgumentError(
      "--copies-up-to makes a store for each of its runs, and takes no --ablation, --copies, "
      "--path, --trace, --weights, --write-log, --eval or --eval-samples");
}

Status CheckEvaluation(const TrainCommand& command) {
  const bool is_eval_size = command.eval_samples >= 2 && command.eval_samples <= kEvalSamplesMax;
  if (command.eval_samples > 0 && !is_eval_size) {
    return InvalidArgumentError(StrCat("--eval-samples is ", command.eval_samples,
                                       "; it must be 0, or 2 to ", kEvalSamplesMax));
  }
  if (!command.eval.empty() && command.eval_samples > 0) {
    return InvalidArgumentError("give either --eval FILE or --eval-samples N");
  }
  if (command.eval_samples > 0 && command.generate.empty()) {
    return InvalidArgumentError("--eval-samples needs --generate; a file has --eval FILE");
  }
  if (command.eval_every > 0 && command.eval.empty() && command.eval_samples == 0) {
    return InvalidArgumentError("--eval-every needs --eval FILE or --eval-samples N");
  }
  if (command.patience > 0 && command.eval_every == 0) {
    return InvalidArgumentError("--patience needs --eval-every N");
  }
  return OkStatus();
}

template <typename Value>
using Word = std::pair<const char*, Value>;
constexpr Word<Optimizer> kRowOptimizers[] = {{"sgd", Optimizer::kSgd},
                                              {"adagrad", Optimizer::kAdagrad},
                                              {"rowwise-adagrad", Optimizer::kRowwiseAdagrad},
                                              {"adam", Optimizer::kAdam},
                                              {"ftrl", Optimizer::kFtrl}};
constexpr Word<Optimizer> kDenseOptimizers[] = {
    {"sgd", Optimizer::kSgd}, {"adagrad", Optimizer::kAdagrad}, {"adam", Optimizer::kAdam}};
constexpr Word<ValueType> kWireTypes[] = {{"f32", ValueType::kF32}, {"f16", ValueType::kF16}};
constexpr Word<RateCurve> kSchedules[] = {
    {"constant", RateCurve::kConstant}, {"cosine", RateCurve::kCosine}, {"step", RateCurve::kStep}};

// The value of a word that an option has. INVALID_ARGUMENT lists the words.
template <typename Value, size_t count>
StatusOr<Value> ValueOf(const char* option, const std::string& word,
                        const Word<Value> (&values)[count]) {
  std::string words;
  for (const auto& [name, value] : values) {
    if (word == name) return value;
    StrAppend(&words, words.empty() ? "" : ", ", name);
  }
  return InvalidArgumentError(StrCat(option, " is ", word, "; it must be one of ", words));
}

template <typename Value, size_t count>
std::string WordOf(Value value, const Word<Value> (&values)[count]) {
  for (const auto& [name, of_name] : values) {
    if (value == of_name) return name;
  }
  return "";
}

Status TakeWords(TrainCommand* command) {
  TrainerOptions& trainer = command->trainer;
  EMBANK_ASSIGN_OR_RETURN(trainer.row.optimizer, RowOptimizerOf(command->row_optimizer));
  EMBANK_ASSIGN_OR_RETURN(trainer.dense.optimizer,
                          ValueOf("--dense-optimizer", command->dense_optimizer, kDenseOptimizers));
  EMBANK_ASSIGN_OR_RETURN(trainer.schedule.curve,
                          ValueOf("--schedule", command->schedule, kSchedules));
  EMBANK_ASSIGN_OR_RETURN(trainer.ranks.wire,
                          ValueOf("--wire-type", command->wire_type, kWireTypes));
  EMBANK_ASSIGN_OR_RETURN(trainer.experiments.before_operation, EmulatedWaits(command->emulate));
  EMBANK_ASSIGN_OR_RETURN(trainer.experiments.link, LinkOf(command->emulate_link));
  return OkStatus();
}

StatusOr<PackRule> PackRuleOf(const std::string& name) {
  if (name == "mean") return PackRule::kMean;
  if (name == "least") return PackRule::kLeast;
  return InvalidArgumentError(StrCat("--pack-rule is ", name, "; it must be mean or least"));
}

void AddDataOptions(CLI::App* app, TrainCommand* command) {
  AddBrokenShare(app, command);
  app->add_option("--data", command->data,
                  "click log: files, directories, patterns or -; plain, .gz or .zst; or a file of "
                  "hot and cold batches, as calibrate writes it");
  app->add_option("--columns", command->columns, "column file: --data is CSV, libsvm or libffm");
  CLI::Option* const generate =
      app->add_option("--generate", command->generate,
                      "schema of a generated log: criteo-kaggle, avazu, product-1, -2 or -3");
  app->add_option("--divisor", command->scale.divisor, "divides the cardinalities of --generate")
      ->needs(generate)
      ->capture_default_str();
  app->add_option("--field-divisor", command->scale.field_divisor,
                  "divides the number of id features of --generate")
      ->needs(generate)
      ->capture_default_str();
  app->add_option("--copies", command->scale.copies, "copies of each id feature of --generate")
      ->needs(generate)
      ->capture_default_str();
  app->add_option("--samples", command->samples, "of a generated log")
      ->needs(generate)
      ->capture_default_str();
  app->add_option("--eval", command->eval, "click log for the evaluation, named as --data");
  app->add_option("--eval-samples", command->eval_samples,
                  "generated samples for the evaluation, behind those of the training");
  app->add_option("--eval-every", command->eval_every,
                  "steps between evaluations; with --path, the best model is kept in PATH.best");
  app->add_option("--patience", command->patience,
                  "stop after this many evaluations that are no better than the best one");
  app->add_option("--epochs", command->epochs, "times that the data are trained")
      ->capture_default_str();
  app->add_flag("--no-bag", command->no_bag,
                "hot batches use the rows of the store, too, in place of a bag in device memory");
  app->add_flag("--hot-only", command->hot_only, "leave cold batches out, to see their worth");
  app->add_option("--shuffle", command->shuffle,
                  "samples of a window that are given in random order, by --seed");
}

void AddRuleOptions(CLI::App* app, TrainCommand* command) {
  TrainerOptions& trainer = command->trainer;
  app->add_option("--row-optimizer", command->row_optimizer,
                  "of rows: sgd, adagrad, rowwise-adagrad, adam or ftrl")
      ->capture_default_str();
  app->add_option("--row-rate", trainer.row.rule.learning_rate, "learning rate of rows")
      ->capture_default_str();
  app->add_option("--row-decay", trainer.row.rule.weight_decay, "weight decay of rows");
  app->add_option("--row-clip", trainer.row.rule.max_gradient_norm,
                  "norm to which the gradient of a row is scaled down; 0: any");
  app->add_option("--dense-optimizer", command->dense_optimizer,
                  "of dense parameters: sgd, adagrad or adam")
      ->capture_default_str();
  app->add_option("--dense-rate", trainer.dense.rule.learning_rate,
                  "learning rate of dense parameters")
      ->capture_default_str();
  app->add_option("--dense-decay", trainer.dense.rule.weight_decay,
                  "weight decay of dense parameters");
  app->add_option("--dense-clip", trainer.dense.rule.max_gradient_norm,
                  "norm to which the gradient of all dense parameters is scaled down; 0: any");
  app->add_option("--drop-updates", trainer.hybrid.drop_updates,
                  "share of the updates of rows that is lost, on purpose");
  RateSchedule& schedule = trainer.schedule;
  app->add_option("--schedule", command->schedule, "of both rates: constant, cosine or step")
      ->capture_default_str();
  app->add_option("--schedule-steps", schedule.steps,
                  "cosine: the step of the last rate; step: the steps between two falls");
  app->add_option("--schedule-factor", schedule.factor,
                  "cosine: the last rate by the first one; step: what a fall multiplies by");
  app->add_option("--rate-warmup", schedule.warmup_steps,
                  "steps over which the rates rise to their first ones");
}

void AddStoreOptions(CLI::App* app, TrainCommand* command) {
  TrainerOptions& trainer = command->trainer;
  app->add_option("--path", trainer.store.path, "directory of the store; without: memory only");
  app->add_option("--dram-mib", command->dram_mib, "memory of the store; 0: no limit");
  app->add_option("--ssd-mib", command->ssd_mib, "size of the files of --path; 0: no limit");
  app->add_flag("--forget", command->forget,
                "erase the coldest rows where there is no space for new ones");
  app->add_option("--hbm-mib", command->hbm_mib, "device memory for the hottest rows");
  app->add_option("--hot-warmup", trainer.store.warmup_iters,
                  "lookup batches before the first top-k flush; 0: 100");
  app->add_option("--hot-every", trainer.store.flush_iters,
                  "lookup batches between flushes; 0: 100");
  app->add_option("--cuda-device", trainer.store.cuda_device, "-1: the host twin of a device")
      ->capture_default_str();
  app->add_option("--pmem", trainer.store.pmem_path, "directory of the PMem tier");
  app->add_option("--pmem-mib", command->pmem_mib, "size of the PMem tier");
  app->add_option("--checkpoint-every", command->checkpoint_every, "steps between checkpoints");
  app->add_flag("--resume", command->resume,
                "go on at the last checkpoint of --path, with its model");
}

}  // namespace

StatusOr<Optimizer> RowOptimizerOf(const std::string& word) {
  return ValueOf("--row-optimizer", word, kRowOptimizers);
}

Status TakeTrainedModel(const std::string& path, TrainCommand* command) {
  TrainerOptions& trainer = command->trainer;
  const StatusOr<TrainedModel> trained = ReadTrainedModel(path);
  if (IsNotFound(trained.status())) return OkStatus();
  EMBANK_RETURN_IF_ERROR(trained.status());
  const TrainerOptions& known = trained->text.options;
  command->model = known.model.name;
  command->format = trained->text.columns.format;
  command->rules = RulesOf(command->format);
  command->trained_data = trained->text.columns.data;
  command->shuffle = command->trained_data.shuffle;
  trainer.dim = known.dim;
  trainer.dims = known.dims;
  trainer.row = known.row;
  trainer.dense = known.dense;
  trainer.schedule = known.schedule;
  command->row_optimizer = WordOf(known.row.optimizer, kRowOptimizers);
  command->dense_optimizer = WordOf(known.dense.optimizer, kDenseOptimizers);
  command->schedule = WordOf(known.schedule.curve, kSchedules);
  trainer.row_range = known.row_range;
  command->forget = known.on_full == OnFull::kForget;
  trainer.slices = known.slices;
  trainer.batch = known.batch;
  trainer.seed = known.seed;
  trainer.ranks = known.ranks;
  command->wire_type = WordOf(known.ranks.wire, kWireTypes);
  trainer.hybrid = known.hybrid;
  return OkStatus();
}

// A --dim that was given is compared with the dims of a checkpoint; a schema has its own.
Status TakeDims(TrainCommand* command) {
  if (command->trainer.dim > 0) command->trainer.dims.clear();
  if (command->generate.empty()) return OkStatus();
  EMBANK_ASSIGN_OR_RETURN(const ClickSchema schema,
                          MakeClickSchema(command->generate, command->scale));
  EMBANK_ASSIGN_OR_RETURN(const ClickSchema whole, MakeClickSchema(command->generate, {}));
  const bool differ = std::ranges::any_of(
      whole.fields, [&](const IdFieldSchema& field) { return field.dim != whole.fields[0].dim; });
  if (!differ) return OkStatus();
  command->trainer.dims.clear();
  for (const IdFieldSchema& field : schema.fields) command->trainer.dims.push_back(field.dim);
  return OkStatus();
}

void CheckNumbers(CLI::App* app) {
  // A negative whole number would become a large one.
  const CLI::Validator whole(
      [](const std::string& text) {
        const char* const digits = text.c_str() + (text.starts_with('+') ? 1 : 0);
        char* end = nullptr;
        std::strtoull(digits, &end, 0);
        const bool is_whole = *digits >= '0' && *digits <= '9' && *end == '\0';
        return is_whole ? "" : StrCat(text, " is no whole number of 0 or more");
      },
      "");
  const CLI::Validator any(
      [](const std::string& text) {
        char* end = nullptr;
        std::strtod(text.c_str(), &end);
        return !text.empty() && *end == '\0' ? "" : StrCat(text, " is no number");
      },
      "");
  for (CLI::Option* const option : app->get_options()) {
    if (option->get_type_name() == "UINT") option->check(whole);
    if (option->get_type_name() == "FLOAT") option->check(any);
  }
}

void AddBrokenShare(CLI::App* app, TrainCommand* command) {
  app->add_option("--broken-share", command->broken_share,
                  "the share of broken lines of a log that may be left out; more stop the run")
      ->capture_default_str();
}

StatusOr<uint64_t> DramBytes(const TrainCommand& command) {
  return Bytes("--dram-mib", command.dram_mib, 20);
}

Status Complete(TrainCommand* command) {
  if (command->data.empty() == command->generate.empty()) {
    return InvalidArgumentError("give either --data FILE or --generate SCHEMA");
  }
  if (command->samples == 0 || command->samples > kSamplesMax) {
    return InvalidArgumentError(
        StrCat("--samples is ", command->samples, "; it must be 1 to ", kSamplesMax));
  }
  if (command->epochs == 0 || command->epochs > Epochs::kEpochsMax) {
    return InvalidArgumentError(
        StrCat("--epochs is ", command->epochs, "; it must be 1 to ", Epochs::kEpochsMax));
  }
  if (command->shuffle > kShuffleMax) {
    return InvalidArgumentError(
        StrCat("--shuffle is ", command->shuffle, "; it must be at most ", kShuffleMax));
  }
  EMBANK_RETURN_IF_ERROR(CheckEvaluation(*command));
  if (!command->write_log.empty() && command->generate.empty()) {
    return InvalidArgumentError("--write-log needs --generate");
  }
  if (command->checkpoint_every > 0 && command->trainer.store.path.empty()) {
    return InvalidArgumentError("--checkpoint-every needs --path");
  }
  if (command->resume && command->trainer.store.path.empty()) {
    return InvalidArgumentError("--resume needs --path");
  }
  if (command->ablation && !command->trainer.store.path.empty()) {
    return InvalidArgumentError("--ablation makes eight stores, and takes no --path");
  }
  const bool is_for_one_run = !command->trace.empty() || !command->weights.empty() ||
                              !command->eval.empty() || command->eval_samples > 0;
  if (command->ablation && is_for_one_run) {
    return InvalidArgumentError(
        "--ablation makes eight runs, and takes no --trace, --weights, --eval or --eval-samples");
  }
  EMBANK_RETURN_IF_ERROR(CheckCopiesUpTo(*command));
  EMBANK_ASSIGN_OR_RETURN(command->trainer.model, FindModel(command->model));
  EMBANK_RETURN_IF_ERROR(TakeDims(command));
  EMBANK_RETURN_IF_ERROR(TakeWords(command));
  EMBANK_ASSIGN_OR_RETURN(command->trainer.packs.rule, PackRuleOf(command->pack_rule));
  if (command->no_packing) command->trainer.packs.rule = PackRule::kNone;
  EMBANK_ASSIGN_OR_RETURN(command->trainer.micro_batch_bytes,
                          Bytes("--micro-batch-kib", command->micro_batch_kib, 10));
  EMBANK_ASSIGN_OR_RETURN(command->trainer.packs.group_bytes,
                          Bytes("--group-kib", command->group_kib, 10));
  EMBANK_RETURN_IF_ERROR(TakeColumns(command));
  EMBANK_RETURN_IF_ERROR(TakeFiles(command));
  EMBANK_RETURN_IF_ERROR(CheckWritable("--json", command->json));
  EMBANK_RETURN_IF_ERROR(CheckWritable("--weights", command->weights));
  EMBANK_RETURN_IF_ERROR(CheckWritable("--trace", command->trace));
  StoreOptions& store = command->trainer.store;
  store.seed = command->trainer.seed;
  EMBANK_ASSIGN_OR_RETURN(store.dram_bytes, DramBytes(*command));
  EMBANK_ASSIGN_OR_RETURN(store.ssd_bytes, Bytes("--ssd-mib", command->ssd_mib, 20));
  EMBANK_ASSIGN_OR_RETURN(store.hbm_bytes, Bytes("--hbm-mib", command->hbm_mib, 20));
  EMBANK_ASSIGN_OR_RETURN(store.pmem_bytes, Bytes("--pmem-mib", command->pmem_mib, 20));
  store.worker_threads = command->trainer.threads;
  command->trainer.on_full = command->forget ? OnFull::kForget : OnFull::kRefuse;
  EMBANK_RETURN_IF_ERROR(TakeHotColdData(command));
  return TakeRoles(command);
}

// Those of ranks, and of steps that overlap.
void AddRankOptions(CLI::App* app, TrainCommand* command) {
  TrainerOptions& trainer = command->trainer;
  app->add_option("--ranks", command->ranks,
                  "trainers in this process, each with a part of the rows; or start the command "
                  "with mpirun")
      ->capture_default_str();
  app->add_option("--replicate", trainer.ranks.replicated,
                  "tables of which each rank has all rows, by the names of their id features");
  app->add_option("--pool-at-owner", trainer.ranks.pooled,
                  "tables whose bags are summed by the ranks that own the rows, by the names of "
                  "their id features");
  app->add_option("--wire-type", command->wire_type,
                  "of rows and their gradients between ranks: f32 or f16, which rounds them")
      ->capture_default_str();
  app->add_flag("--sums-after-backward", trainer.ranks.sums_after_backward,
                "dense sums travel after the backward pass, in place of beside it");
  app->add_option("--staleness", trainer.hybrid.staleness,
                  "steps whose updates of rows a lookup may miss: rows are looked up and updated "
                  "beside the dense part of other steps")
      ->capture_default_str();
  app->add_flag("--deterministic", trainer.hybrid.deterministic,
                "with --staleness N: each lookup misses the updates of just N steps, so that the "
                "same run gives the same bits again");
  app->add_option("--emulate", command->emulate,
                  "waits in milliseconds before operations, as slower disks and links have: "
                  "Gather=10,AllReduce=2.5");
  app->add_option("--emulate-link", command->emulate_link,
                  "GB/S,US: waits as a link to a device has that computes the dense part: for "
                  "vectors and gradients of each batch, and for hot rows at swaps");
  app->add_option("--rank-seconds", command->rank_seconds,
                  "that a rank waits for another one before it ends the job")
      ->capture_default_str();
}

void AddOptions(CLI::App* app, TrainCommand* command) {
  TrainerOptions& trainer = command->trainer;
  app->add_option("--model", command->model, ModelNames())->capture_default_str();
  AddDataOptions(app, command);
  app->add_option("--steps", command->steps, "the last step; without: all data");
  app->add_option("--untimed-steps", command->untimed_steps,
                  "first steps that the figures of speed leave out");
  app->add_option("--batch", trainer.batch, "samples of a step")->capture_default_str();
  app->add_option(
         "--dim", trainer.dim,
         StrCat("of the rows of id features; without: that of the model, or ", kDimDefault))
      ->check([](const std::string& dim) {
        return dim.find_first_not_of('0') == std::string::npos
                   ? StrCat("dim is 0; it must be 1 to ", kDimMax)
                   : std::string();
      });
  app->add_option("--slices", trainer.slices, "parts of a batch; they change the last bits")
      ->capture_default_str();
  AddRuleOptions(app, command);
  app->add_option("--threads", trainer.threads, "0: one per core")->capture_default_str();
  app->add_option("--seed", trainer.seed, "of first weights and generated data")
      ->capture_default_str();
  AddStoreOptions(app, command);
  app->add_flag("--no-packing", command->no_packing, "each id feature has operations of its own");
  app->add_option("--pack-rule", command->pack_rule,
                  "shards of a heavy pack: by the mean of all, or by the least one")
      ->capture_default_str();
  app->add_option("--micro-batches", trainer.micro_batches, "of a batch, 1 to 4")
      ->capture_default_str();
  app->add_option("--micro-batch-kib", command->micro_batch_kib,
                  "rows and vectors of a micro-batch; the number of them follows from it");
  app->add_option("--groups", trainer.packs.groups,
                  "of packs, which share no resource at one moment")
      ->capture_default_str();
  app->add_option("--group-kib", command->group_kib,
                  "rows of a group that a step fetches; the groups follow from it");
  app->add_option("--exclude", trainer.packs.excluded, "id features whose rows wait for no group");
  AddRankOptions(app, command);
  app->add_option("--roles", command->roles,
                  "L,E,N: loaders, embedding workers and NN workers that dispatch samples by id");
  app->add_option("--buffer-samples", command->buffer_samples,
                  "that a worker of --roles buffers at most; without: four batches");
  app->add_option("--warmup-steps", trainer.packs.warmup_steps,
                  "that count ids before packs are split")
      ->capture_default_str();
  app->add_flag("--ablation", command->ablation,
                "train with packing, interleaving and caching on and off: eight runs");
  app->add_option("--copies-up-to", command->copies_up_to,
                  "train with 1, 2, ... copies of each id feature, up to this many: one run each");
  app->add_option("--trace", command->trace, "file for a picture (SVG) of the operations of steps");
  app->add_option("--json", command->json, "file for the figures");
  app->add_option("--weights", command->weights,
                  "file for the dense parameters at the end: little-endian float32");
  app->add_option("--write-log", command->write_log,
                  "writes the log of --generate to this file, and trains nothing");
}

}  // namespace embank
