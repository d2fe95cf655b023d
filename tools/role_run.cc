#include "tools/role_run.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "train/model_text.h"
#include "train/rank_start.h"
#include "train/ranks/gathered_texts.h"
#include "train/roles/long_work.h"

namespace embank {
namespace {

// Three numbers with commas between them.
StatusOr<RolePlan> ParseRoles(const std::string& text) {
  RolePlan plan;
  std::string_view rest = text;
  uint32_t read = 0;
  for (uint32_t* const count : {&plan.loaders, &plan.embedding_workers, &plan.nn_workers}) {
    const std::string_view word = rest.substr(0, rest.find(','));
    const char* const end = word.data() + word.size();
    const std::from_chars_result result = std::from_chars(word.data(), end, *count);
    if (result.ec != std::errc() || result.ptr != end) break;
    ++read;
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
  }
  if (read == 3 && std::ranges::count(text, ',') == 2) return plan;
  return InvalidArgumentError(
      StrCat("--roles is ", text,
             "; it must be the numbers of loaders, embedding workers and NN workers, as 1,2,2"));
}

// Options that do not go with roles.
Status CheckOthers(const TrainCommand& command) {
  const TrainerOptions& trainer = command.trainer;
  const struct {
    bool is_given;
    const char* option;
    const char* reason;
  } refused[] = {
      {!trainer.ranks.replicated.empty(), "--replicate", "one store has all rows"},
      {!trainer.ranks.pooled.empty(), "--pool-at-owner", "embedding workers pool all bags"},
      {trainer.ranks.wire != ValueType::kF32, "--wire-type", "vectors travel as they are"},
      {trainer.micro_batches > 1, "--micro-batches", "a message has one slice of a batch"},
      {command.micro_batch_kib > 0, "--micro-batch-kib", "a message has one slice of a batch"},
      {trainer.packs.groups > 1, "--groups", "a step is no graph of operations"},
      {command.group_kib > 0, "--group-kib", "a step is no graph of operations"},
      {!command.trace.empty(), "--trace", "a step is no graph of operations"},
      {trainer.hybrid.staleness > 0, "--staleness",
       "each step has the rows of the step before it; a checkpoint that has staleness goes on with "
       "--staleness 0"},
      {trainer.hybrid.drop_updates > 0.0, "--drop-updates",
       "gradients are lost with their messages; a checkpoint that has it goes on with "
       "--drop-updates 0"},
      {!command.emulate.empty(), "--emulate", "a step is no graph of operations"},
      {trainer.ranks.sums_after_backward, "--sums-after-backward",
       "NN workers add their sums at the end of a step"},
      {command.checkpoint_every > 0, "--checkpoint-every",
       "batches are under way at all times; there is one checkpoint, at the end"},
      {command.eval_every > 0, "--eval-every",
       "batches are under way at all times; there is one evaluation, at the end"},
      {command.ablation, "--ablation", "its switches are of a step of one process"},
      {command.copies_up_to.has_value(), "--copies-up-to", "it trains in one process"},
      {!command.write_log.empty(), "--write-log", "it trains nothing"}};
  for (const auto& [is_given, option, reason] : refused) {
    if (is_given)
      return InvalidArgumentError(StrCat("--roles goes without ", option, ": ", reason));
  }
  return OkStatus();
}

// Roles that are ranks: only the rank with the store has a model.
Status CheckRoleRanks(const TrainCommand& command, const RolePlan& plan) {
  if (command.role_ranks == 1) return OkStatus();
  const uint32_t needed = RoundTransport::RanksOf(plan);
  if (command.role_ranks != needed) {
    return InvalidArgumentError(StrCat("--roles is ", command.roles, ", which needs ", needed,
                                       " ranks, one for each role; there are ",
                                       command.role_ranks));
  }
  if (plan.embedding_workers > 1) {
    return InvalidArgumentError(StrCat(
        "--roles: there are ", plan.embedding_workers,
        " embedding workers; as ranks there may be one, since all of them need the store that has "
        "the rows. Without --ranks and mpirun all roles are in one process, and share it"));
  }
  const bool evaluates = !command.eval.empty() || command.eval_samples > 0;
  if (evaluates) {
    return InvalidArgumentError(
        "--roles: an evaluation goes in one process; evaluate the model of --path afterwards");
  }
  return OkStatus();
}

// The counts of the roles of a rank.
struct RankCounts {
  Loader::Counts loaders;
  WorkerCounts embedding_workers;
  WorkerCounts nn_workers;
  MessageCounts messages;
  uint64_t samples_buffered;
};
static_assert(std::is_trivially_copyable_v<RankCounts>);

// Returns the report of a rank with the counts of all ranks, and the first failure of the data.
StatusOr<RoleReport> ReportOfAll(RoleReport report, Exchange* exchange) {
  const RankCounts own = {report.loaders, report.embedding_workers, report.nn_workers,
                          report.messages, report.samples_buffered};
  EMBANK_ASSIGN_OR_RETURN(
      const std::vector<std::string> counts,
      GatherTexts(exchange, {reinterpret_cast<const char*>(&own), sizeof(own)}));
  report.loaders = {};
  report.embedding_workers = report.nn_workers = {};
  report.messages = {};
  report.samples_buffered = 0;
  for (const std::string& text : counts) {
    RankCounts of_rank;
    EMBANK_CHECK(text.size() == sizeof(of_rank));
    std::memcpy(&of_rank, text.data(), sizeof(of_rank));
    report.loaders += of_rank.loaders;
    report.embedding_workers += of_rank.embedding_workers;
    report.nn_workers += of_rank.nn_workers;
    report.messages += of_rank.messages;
    report.samples_buffered += of_rank.samples_buffered;
  }
  report.failure_of_data = Agree(exchange, report.failure_of_data);
  return report;
}

// The samples that were sent and have no part in the model.
uint64_t LostOf(const RoleReport& report) {
  return report.loaders.sent - report.embedding_workers.done;
}

double MegabytesOf(uint64_t bytes) { return static_cast<double>(bytes) * 1e-6; }

}  // namespace

Status TakeRoles(TrainCommand* command) {
  if (command->roles.empty()) {
    if (!command->buffer_samples) return OkStatus();
    return InvalidArgumentError("--buffer-samples needs --roles");
  }
  EMBANK_ASSIGN_OR_RETURN(RolePlan plan, ParseRoles(command->roles));
  if (command->rank_seconds == 0 || command->rank_seconds > kRankSecondsMax) {
    return InvalidArgumentError(
        StrCat("--rank-seconds is ", command->rank_seconds, "; it must be 1 to ", kRankSecondsMax));
  }
  EMBANK_RETURN_IF_ERROR(CheckOthers(*command));
  plan.slices = command->trainer.slices;
  plan.batch = command->trainer.batch;
  // A trainer names a batch of 0 samples.
  plan.buffer_samples =
      command->buffer_samples.value_or(RolePlan::kBufferedBatches * uint64_t{plan.batch});
  plan.expiry_ns = 2 * command->rank_seconds * 1'000'000'000;
  if (plan.batch > 0 && plan.slices > 0) EMBANK_RETURN_IF_ERROR(Validate(plan));
  EMBANK_RETURN_IF_ERROR(CheckRoleRanks(*command, plan));
  command->role_plan = plan;
  return OkStatus();
}

StatusOr<RoleReport> RunRoles(const TrainCommand& command, const RoleWork& work,
                              Exchange* exchange) {
  RoleTraining training = {.plan = *command.role_plan,
                           .options = command.trainer,
                           .columns = work.source->columns(),
                           .trainer = work.trainer,
                           .source = work.source,
                           .wants_end = work.wants_end,
                           .on_step = work.on_step,
                           .time_limit_ns = command.rank_seconds * 1'000'000'000};
  if (command.steps) {
    training.batches_max = *command.steps - std::min(*command.steps, work.steps_before);
  }
  if (exchange == nullptr) return TrainByRoles(training);
  EMBANK_ASSIGN_OR_RETURN(RoleReport report, TrainByRoleRanks(training, exchange));
  return ReportOfAll(std::move(report), exchange);
}

Status WithAllRanks(const TrainCommand& command, Exchange* exchange, FunctionRef<Status()> work) {
  if (exchange == nullptr) return work();
  const uint64_t limit_ns = command.rank_seconds * 1'000'000'000;
  return RunLongWork(exchange, TrainerRank(*command.role_plan), limit_ns / 4, work);
}

StatusOr<RoleStart> OpenOfRoles(const TrainCommand& command, const ClickColumns& columns,
                                const std::string& settings, Exchange* exchange,
                                std::unique_ptr<Trainer>* trainer) {
  const StatusOr<LayerGraph> graph = MakeModel(command.trainer, columns);
  EMBANK_RETURN_IF_ERROR(Agree(exchange, graph.status()));
  EMBANK_RETURN_IF_ERROR(CompareSettings(
      exchange, StrCat(settings, "--roles ", command.roles, "\n--buffer-samples ",
                       command.role_plan->buffer_samples, "\n",
                       WriteModelText(DescribeModel(command.trainer, columns, *graph)))));
  const uint32_t trainer_rank = TrainerRank(*command.role_plan);
  RoleStart start;
  EMBANK_RETURN_IF_ERROR(WithAllRanks(command, exchange, [&]() -> Status {
    EMBANK_ASSIGN_OR_RETURN(*trainer, Trainer::Open(command.trainer, columns));
    start = {.steps = (*trainer)->steps(), .position = (*trainer)->position()};
    return OkStatus();
  }));
  EMBANK_ASSIGN_OR_RETURN(
      const std::vector<std::string> starts,
      GatherTexts(exchange, {reinterpret_cast<const char*>(&start), sizeof(start)}));
  EMBANK_CHECK(starts[trainer_rank].size() == sizeof(start));
  std::memcpy(&start, starts[trainer_rank].data(), sizeof(start));
  return start;
}

std::string TextOf(const RoleReport& report, const RolePlan& plan) {
  char text[600];
  const WorkerCounts& rows = report.embedding_workers;
  std::snprintf(
      text, sizeof(text),
      "  roles          loaders %u, embedding workers %u, NN workers %u; %llu samples lost, %llu "
      "messages dropped\n"
      "  buffers        at most %llu samples of %llu; %llu batches waited for space\n"
      "  messages       %llu, %.1f MB: vectors %.1f (their rows: %.1f), gradients %.1f; %.1f "
      "copied "
      "into them\n",
      plan.loaders, plan.embedding_workers, plan.nn_workers,
      static_cast<unsigned long long>(LostOf(report)),
      static_cast<unsigned long long>(rows.dropped_messages + report.loaders.dropped_messages +
                                      report.nn_workers.dropped_messages),
      static_cast<unsigned long long>(rows.samples_most),
      static_cast<unsigned long long>(plan.buffer_samples),
      static_cast<unsigned long long>(report.loaders.delays),
      static_cast<unsigned long long>(report.messages.all_messages()),
      MegabytesOf(report.messages.all_bytes()),
      MegabytesOf(report.messages.bytes_of(MessageKind::kVectors)), MegabytesOf(rows.row_bytes),
      MegabytesOf(report.messages.bytes_of(MessageKind::kGradients)),
      MegabytesOf(report.messages.copied_bytes));
  return text;
}

std::string JsonOf(const RoleReport& report, const RolePlan& plan) {
  const WorkerCounts& rows = report.embedding_workers;
  return StrCat("{\"loaders\": ", plan.loaders, ", \"embedding_workers\": ", plan.embedding_workers,
                ", \"nn_workers\": ", plan.nn_workers, ", \"samples_sent\": ", report.loaders.sent,
                ", \"samples_applied\": ", rows.done, ", \"samples_lost\": ", LostOf(report),
                ", \"samples_refused\": ", rows.refused + report.nn_workers.refused,
                ", \"samples_buffered_most\": ", rows.samples_most,
                ", \"messages\": ", report.messages.all_messages(),
                ", \"message_bytes\": ", report.messages.all_bytes(),
                ", \"vector_bytes\": ", report.messages.bytes_of(MessageKind::kVectors),
                ", \"unpooled_row_bytes\": ", rows.row_bytes,
                ", \"gradient_bytes\": ", report.messages.bytes_of(MessageKind::kGradients),
                ", \"copied_bytes\": ", report.messages.copied_bytes, "}");
}

}  // namespace embank
