// The transport between roles that are ranks of one job: rounds of an exchange, each of which
// brings all messages that were sent since the last one.
#ifndef EMBANK_TRAIN_ROLES_ROUND_TRANSPORT_H_
#define EMBANK_TRAIN_ROLES_ROUND_TRANSPORT_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "train/ranks/exchange.h"
#include "train/ranks/part_buffer.h"
#include "train/roles/message.h"
#include "train/roles/message_memory.h"
#include "train/roles/role.h"
#include "train/roles/role_plan.h"

namespace embank {

// One thread.
class RoundTransport final : public Transport {
 public:
  // The job has as many ranks as RanksOf. The exchange outlives it.
  RoundTransport(const RolePlan& plan, Exchange* exchange);
  ~RoundTransport() override;

  // Loaders, embedding workers and NN workers have a rank each, in this order. The trainer is
  // beside the first embedding worker, which has the store.
  static uint32_t RanksOf(const RolePlan& plan);
  static uint32_t RankOf(const RolePlan& plan, RoleAddress role);
  static std::vector<RoleAddress> RolesOf(const RolePlan& plan, uint32_t rank);

  // Runs the roles of this rank until all roles of all ranks are done, or one has failed. All ranks
  // call it, and return the same status: the first failure of a role, with its name. The statuses
  // of Exchange::Run, with the roles of ranks.
  Status Run(std::span<const std::unique_ptr<Role>> roles);
  // Adds the roles of ranks to a failure, which names a rank.
  Status WithRoles(const Status& status) const;

 private:
  struct RoundHeader;

  void Deliver(Message message) override;
  static Status Start(std::span<const std::unique_ptr<Role>> roles);
  Status React(std::span<const std::unique_ptr<Role>> roles);
  // Sets whether the round is the last one.
  Status RunRound(const Status& own, bool is_done, bool* is_last);
  Status ExchangeMessages(std::span<const uint64_t> sent_bytes,
                          std::span<const uint64_t> received_bytes);

  const RolePlan plan_;
  Exchange* const exchange_;
  std::vector<std::vector<Message>> sent_;  // to each rank
  std::deque<Message> received_;
  // Under MPI other ranks may still read and write these after a failure.
  std::vector<RoundHeader> sent_headers_, received_headers_;
  PartBuffer sent_buffer_;
  std::shared_ptr<MessageMemory> received_memory_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_ROLES_ROUND_TRANSPORT_H_
