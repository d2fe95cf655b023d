#include "tools/rank_job.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <exception>
#include <filesystem>
#include <new>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "tools/rank_output.h"
#include "tools/role_run.h"
#include "tools/train_data.h"
#include "tools/trained_model.h"
#include "train/ranks/gathered_texts.h"
#include "train/ranks/local_exchange.h"
#include "train/ranks/mpi_module.h"

namespace embank {
namespace {

Status CheckOptions(const TrainCommand& command, uint32_t ranks) {
  if (ranks == 0 || ranks > kOwnersMax) {
    return InvalidArgumentError(StrCat("--ranks is ", ranks, "; it must be 1 to ", kOwnersMax));
  }
  if (ranks == 1) return OkStatus();
  if (command.rank_seconds == 0 || command.rank_seconds > kRankSecondsMax) {
    return InvalidArgumentError(
        StrCat("--rank-seconds is ", command.rank_seconds, "; it must be 1 to ", kRankSecondsMax));
  }
  if (command.ablation || command.copies_up_to || !command.write_log.empty()) {
    return InvalidArgumentError(
        "--ranks: --ablation, --copies-up-to and --write-log go on one rank alone");
  }
  if (AreReadOnce(command.data) || AreReadOnce(command.eval)) {
    return InvalidArgumentError(
        "--ranks: a pipe or standard input gives its lines once, and each rank reads all of them; "
        "give a file");
  }
  return OkStatus();
}

// The number of ranks of a job of mpirun on this machine; 1 where it does not say.
uint32_t RanksOnMachine(const char* const* environment) {
  // Slurm's is a list: that of the first machine is before the first "(" or ",".
  constexpr std::string_view kNames[] = {"OMPI_COMM_WORLD_LOCAL_SIZE=", "SLURM_TASKS_PER_NODE="};
  for (; *environment != nullptr; ++environment) {
    const std::string_view text = *environment;
    for (const std::string_view name : kNames) {
      if (!text.starts_with(name)) continue;
      uint32_t ranks = 1;
      std::from_chars(text.data() + name.size(), text.data() + text.size(), ranks);
      return std::max(1u, ranks);
    }
  }
  return 1;
}

// The first failure that is not an echo of another rank's.
Status FirstCause(const std::vector<Status>& statuses) {
  Status first;
  for (const Status& status : statuses) {
    if (!status.ok() && !IsCancelled(status) && status.code() != StatusCode::kInternal) {
      return status;
    }
    first.Update(status);
  }
  return first;
}

// Runs a rank. An exception would end the process without a word of it.
Status Caught(FunctionRef<Status()> run) {
  try {
    return run();
  } catch (const std::bad_alloc&) {
    return ResourceExhaustedError("no memory");
  } catch (const std::exception& error) {
    return UnavailableError(error.what());
  }
}

// Returns what all ranks return. A rank that failed while the others make other calls ends the job,
// since they wait for it.
Status Ended(const Status& status, Exchange* exchange) {
  const Status met = exchange->Barrier();
  if (met.ok()) return Agree(exchange, status);
  if (status.ok()) return met;
  // The rank that has the cause is about to tell it, and MPI ends all processes at once.
  const bool is_echo = status.code() == StatusCode::kInternal || IsCancelled(status);
  if (is_echo) std::this_thread::sleep_for(std::chrono::seconds(1));
  exchange->Abort(status.message());
  return status;
}

uint32_t TellingRank(const TrainCommand& command) {
  return command.role_plan ? TrainerRank(*command.role_plan) : 0;
}

// Makes a directory above those of ranks.
Status MakeDirectory(const char* option, const std::string& path) {
  std::error_code error;
  if (path.empty() || std::filesystem::is_directory(path, error)) return OkStatus();
  std::filesystem::create_directory(path, error);
  if (!error || std::filesystem::is_directory(path)) return OkStatus();
  return UnavailableError(StrCat(option, ": create directory ", path, ": ", error.message()));
}

Status MakeDirectories(const StoreOptions& store) {
  if (!store.path.empty() && ReadTrainedModel(store.path).ok()) {
    return FailedPreconditionError(
        StrCat("--path: ", store.path,
               " has the model of one rank: give it to several ones with embank "
               "reshard ",
               store.path, " --to N --out NEW"));
  }
  EMBANK_RETURN_IF_ERROR(MakeDirectory("--path", store.path));
  return MakeDirectory("--pmem", store.pmem_path);
}

}  // namespace

std::string PathOfRank(const std::string& path, uint32_t rank, uint32_t ranks) {
  return path.empty() || ranks == 1 ? path : StrCat(path, "/rank-", rank);
}

StatusOr<RankJob> RankJob::Join(const TrainCommand& command, const char* const* environment) {
  if (!IsUnderMpi(environment)) {
    EMBANK_RETURN_IF_ERROR(CheckOptions(command, command.ranks));
    RankJob job(command.ranks, nullptr);
    job.ranks_on_machine_ = command.ranks;
    return job;
  }
  if (command.ranks > 1) {
    return InvalidArgumentError("--ranks: mpirun says how many there are; leave it out");
  }
  EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<Exchange> mpi,
                          OpenMpiExchange({.time_limit_ns = command.rank_seconds * 1'000'000'000}));
  EMBANK_RETURN_IF_ERROR(CheckOptions(command, mpi->ranks()));
  const uint32_t ranks = mpi->ranks();
  RankJob job(ranks, std::move(mpi));
  job.ranks_on_machine_ = RanksOnMachine(environment);
  return job;
}

std::string RankJob::FirstPath(const TrainCommand& command) const {
  if (!command.roles.empty()) return command.trainer.store.path;
  return PathOfRank(command.trainer.store.path, mpi_ == nullptr ? 0 : mpi_->rank(), ranks_);
}

Status RankJob::AgreeOn(const Status& status) const {
  return mpi_ == nullptr || ranks_ == 1 ? status : Agree(mpi_.get(), status);
}

// One rank tells, and writes files. Ranks of one machine share its cores. Roles have one store.
TrainCommand RankJob::OfRank(const TrainCommand& command, uint32_t rank) const {
  TrainCommand of_rank = command;
  if (!command.role_plan) {
    of_rank.trainer.store.path = PathOfRank(command.trainer.store.path, rank, ranks_);
    of_rank.trainer.store.pmem_path = PathOfRank(command.trainer.store.pmem_path, rank, ranks_);
    of_rank.job_path = command.trainer.store.path;
    of_rank.job_pmem_path = command.trainer.store.pmem_path;
  }
  if (rank != TellingRank(command)) of_rank.json = of_rank.weights = of_rank.trace = "";
  of_rank.takes_signals = mpi_ != nullptr || rank == 0;
  if (command.trainer.threads == 0 && ranks_on_machine_ > 1) {
    const uint32_t cores = std::max(1u, std::thread::hardware_concurrency());
    of_rank.trainer.threads = std::max(1u, cores / ranks_on_machine_);
    of_rank.trainer.store.worker_threads = of_rank.trainer.threads;
  }
  return of_rank;
}

Status RankJob::Execute(const TrainCommand& command, RunRank run) const {
  if (ranks_ == 1) return run(command, nullptr);
  if (!command.role_plan) EMBANK_RETURN_IF_ERROR(AgreeOn(MakeDirectories(command.trainer.store)));
  if (mpi_ == nullptr) return ExecuteLocal(command, run);
  SetSilent(mpi_->rank() != TellingRank(command));
  const TrainCommand of_rank = OfRank(command, mpi_->rank());
  return Ended(Caught([&] { return run(of_rank, mpi_.get()); }), mpi_.get());
}

Status RankJob::ExecuteLocal(const TrainCommand& command, RunRank run) const {
  const std::vector<std::unique_ptr<Exchange>> exchanges =
      MakeLocalExchanges(ranks_, {.time_limit_ns = command.rank_seconds * 1'000'000'000});
  std::vector<Status> statuses(ranks_);
  const auto run_rank = [&](uint32_t rank) {
    SetSilent(rank != TellingRank(command));
    Exchange* const exchange = exchanges[rank].get();
    const Status status = Caught([&] { return run(OfRank(command, rank), exchange); });
    statuses[rank] = Caught([&] { return Ended(status, exchange); });
  };
  std::vector<std::thread> threads;
  for (uint32_t rank = 1; rank < ranks_; ++rank) threads.emplace_back(run_rank, rank);
  run_rank(0);
  for (std::thread& thread : threads) thread.join();
  return FirstCause(statuses);
}

}  // namespace embank
