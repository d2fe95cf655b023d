// The roles of a process, with the rows, models and data that they work on; and a training by all
// roles in this process.
#ifndef EMBANK_TRAIN_HYBRID_ROLE_SET_H_
#define EMBANK_TRAIN_HYBRID_ROLE_SET_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/status_or.h"
#include "base/threads/clock.h"
#include "base/threads/executor.h"
#include "train/hybrid/batch_supply.h"
#include "train/hybrid/dense_model.h"
#include "train/hybrid/embedding_worker.h"
#include "train/hybrid/loader.h"
#include "train/hybrid/local_slice_rows.h"
#include "train/hybrid/nn_worker.h"
#include "train/hybrid/trainer_role.h"
#include "train/hybrid/worker_counts.h"
#include "train/ranks/exchange.h"
#include "train/roles/role.h"
#include "train/roles/role_plan.h"
#include "train/samples/click_source.h"
#include "train/trainer.h"

namespace embank {

struct RoleTraining {
  RolePlan plan;
  TrainerOptions options;
  ClickColumns columns;
  Trainer* trainer = nullptr;     // where embedding workers and the trainer are
  ClickSource* source = nullptr;  // where loaders are; it is at the first batch
  uint64_t batches_max = UINT64_MAX;
  std::function<bool()> wants_end = nullptr;
  TrainerRole::OnStep on_step;  // on the thread of the trainer; where that is, it is not empty
  uint64_t time_limit_ns = 60'000'000'000;
  const Clock* clock = SteadyClock();
  Executor* executor = nullptr;  // of the threads of roles; nullptr: one of its own
};

// The work of all roles.
struct RoleReport {
  Loader::Counts loaders;
  WorkerCounts embedding_workers;
  WorkerCounts nn_workers;
  MessageCounts messages;
  uint64_t samples_buffered = 0;  // in all buffers
  uint64_t left_out_rows = 0;     // steps of rows, because their sums were not finite
  uint64_t left_out_steps = 0;    // of the dense parameters, for the same reason
  EndOfData end;                  // where the trainer is
  Status failure_of_data;         // where loaders are: the statuses of ClickSource::Next
};

class RoleSet {
 public:
  // The training and the transport outlive it. The statuses of MakeModel, and INVALID_ARGUMENT as
  // Validate(RolePlan).
  static StatusOr<std::unique_ptr<RoleSet>> Make(const RoleTraining& training,
                                                 std::span<const RoleAddress> roles,
                                                 Transport* transport);

  std::span<const std::unique_ptr<Role>> roles() const { return roles_; }
  // After all roles have ended. `transport` has the messages.
  RoleReport Report(const Transport& transport) const;

 private:
  explicit RoleSet(const RoleTraining& training) : training_(training) {}
  Status Add(RoleAddress address, Transport* transport);
  Status AddNnWorker(uint16_t number, Transport* transport);
  void AddTrainer(Transport* transport);

  const RoleTraining& training_;
  bool keeps_skipped_ = false;  // batches for other loaders of the set
  std::unique_ptr<BatchSupply> supply_;
  std::unique_ptr<LocalSliceRows> rows_;
  std::vector<std::unique_ptr<DenseModel>> models_;
  std::vector<std::unique_ptr<Role>> roles_;
  std::vector<const Loader*> loaders_;
  std::vector<const EmbeddingWorker*> embedding_workers_;
  std::vector<const NnWorker*> nn_workers_;
  const TrainerRole* trainer_ = nullptr;
};

// Trains all batches of the source with a thread for each role. Afterwards rows, weights and the
// number of steps of the trainer are those of the last batch, also where a read of the data has
// failed (RoleReport::failure_of_data). The statuses of RoleSet::Make; the first failure of a role,
// with its name: then weights are those of the beginning, and the trainer is of no more use.
// UNAVAILABLE: the system refuses a thread.
StatusOr<RoleReport> TrainByRoles(const RoleTraining& training);
// The same where each role is a rank (train/roles/round_transport.h). All ranks call it, with equal
// plans, one embedding worker, and what their own roles need. The report has the roles of the rank.
// The statuses of RoundTransport::Run, too.
StatusOr<RoleReport> TrainByRoleRanks(const RoleTraining& training, Exchange* exchange);

}  // namespace embank

#endif  // EMBANK_TRAIN_HYBRID_ROLE_SET_H_
