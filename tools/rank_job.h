// The ranks of a training: threads of this process (--ranks), or processes under mpirun.
#ifndef EMBANK_TOOLS_RANK_JOB_H_
#define EMBANK_TOOLS_RANK_JOB_H_

#include <cstdint>
#include <memory>
#include <string>

#include "base/function_ref.h"
#include "base/status.h"
#include "base/status_or.h"
#include "tools/train_command.h"
#include "train/ranks/exchange.h"

namespace embank {

// The directory of a rank below that of its job, or of its one rank.
std::string PathOfRank(const std::string& path, uint32_t rank, uint32_t ranks);

// One thread.
class RankJob {
 public:
  // Joins the job of mpirun, if this process is in one, and else has as many ranks as the command
  // says. `environment` is that of the process. INVALID_ARGUMENT: the command has options that do
  // not go with ranks. The statuses of OpenMpiExchange.
  static StatusOr<RankJob> Join(const TrainCommand& command, const char* const* environment);

  uint32_t ranks() const { return ranks_; }
  // The directory whose model the command line is completed with: that of this process' first rank.
  std::string FirstPath(const TrainCommand& command) const;
  // Whether this process tells the failures of all.
  bool tells() const { return mpi_ == nullptr || mpi_->rank() == 0; }

  // Returns what all processes return: OK where it is OK on each.
  Status AgreeOn(const Status& status) const;
  // Calls run(command of the rank, exchange) for each rank of this process, on a thread each. The
  // exchange is nullptr where there is one rank. Returns their status.
  using RunRank = FunctionRef<Status(const TrainCommand&, Exchange*)>;
  Status Execute(const TrainCommand& command, RunRank run) const;

 private:
  RankJob(uint32_t ranks, std::unique_ptr<Exchange> mpi) : ranks_(ranks), mpi_(std::move(mpi)) {}
  TrainCommand OfRank(const TrainCommand& command, uint32_t rank) const;
  Status ExecuteLocal(const TrainCommand& command, RunRank run) const;

  uint32_t ranks_;
  std::unique_ptr<Exchange> mpi_;  // nullptr: this process has all ranks
  uint32_t ranks_on_machine_ = 1;
};

}  // namespace embank

#endif  // EMBANK_TOOLS_RANK_JOB_H_
