// A training by the roles of --roles: its options, and its part of the report.
#ifndef EMBANK_TOOLS_ROLE_RUN_H_
#define EMBANK_TOOLS_ROLE_RUN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/function_ref.h"
#include "base/status.h"
#include "base/status_or.h"
#include "tools/train_command.h"
#include "train/hybrid/role_set.h"
#include "train/roles/round_transport.h"

namespace embank {

// Sets the plan of the roles, where the command has --roles. INVALID_ARGUMENT: it has other options
// that do not go with them, whose reason the message has, or the statuses of Validate(RolePlan).
Status TakeRoles(TrainCommand* command);

// Where a training goes on.
struct RoleStart {
  uint64_t steps = 0;
  DataPosition position;
};

// The work of the roles of this process.
struct RoleWork {
  Trainer* trainer = nullptr;
  ClickSource* source = nullptr;
  uint64_t steps_before = 0;
  std::function<bool()> wants_end = nullptr;
  TrainerRole::OnStep on_step = [](const RoleStep&) {};
};

// Trains by all roles in this process, or by those of its rank. The report has the work of all
// roles. The statuses of TrainByRoles and TrainByRoleRanks.
StatusOr<RoleReport> RunRoles(const TrainCommand& command, const RoleWork& work,
                              Exchange* exchange);

// Compares the settings of all ranks, of which `settings` has those of the run, and opens the
// trainer where this rank has it; on the others *trainer stays as it is. Returns where it goes on.
// All ranks call it, and fail together. The statuses of CompareSettings and Trainer::Open.
StatusOr<RoleStart> OpenOfRoles(const TrainCommand& command, const ClickColumns& columns,
                                const std::string& settings, Exchange* exchange,
                                std::unique_ptr<Trainer>* trainer);

// Calls work of the rank with the trainer, while the others wait as long as it takes
// (RunLongWork). Where all roles are in this process (nullptr), it calls the work alone.
Status WithAllRanks(const TrainCommand& command, Exchange* exchange, FunctionRef<Status()> work);

// The rank that has the trainer, tells how far the training is and writes files.
inline uint32_t TrainerRank(const RolePlan& plan) {
  return RoundTransport::RankOf(plan, {RoleKind::kTrainer, 0});
}

// Return the work of roles, as lines of the report and as an object of JSON.
std::string TextOf(const RoleReport& report, const RolePlan& plan);
std::string JsonOf(const RoleReport& report, const RolePlan& plan);

}  // namespace embank

#endif  // EMBANK_TOOLS_ROLE_RUN_H_
