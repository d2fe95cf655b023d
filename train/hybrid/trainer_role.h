// The trainer among roles: it gives the dense parameters to NN workers, collects the results of
// their steps, and takes the parameters back at the end.
#ifndef EMBANK_TRAIN_HYBRID_TRAINER_ROLE_H_
#define EMBANK_TRAIN_HYBRID_TRAINER_ROLE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "train/hybrid/batch_supply.h"
#include "train/roles/message.h"
#include "train/roles/role.h"

namespace embank {

// The results of the samples of a batch that were trained, in their order.
struct RoleStep {
  double loss = 0.0;  // the mean over all samples of the batch
  std::vector<float> logits;
  std::vector<float> labels;
};

class TrainerRole final : public Role {
 public:
  using OnStep = std::function<void(const RoleStep& step)>;

  // Weights and optimizer state, and the number of steps before; they and the transport
  // outlive it. `on_step` is called for each batch, in order; it may wait, as for a terminal.
  TrainerRole(const RolePlan& plan, std::array<std::span<float>, 2> parameters,
              uint64_t steps_before, OnStep on_step, Transport* transport)
      : Role({RoleKind::kTrainer, 0}, transport),
        plan_(plan),
        parameters_(parameters),
        steps_before_(steps_before),
        on_step_(std::move(on_step)) {}

  Status Start() override;
  Status Receive(Message message) override;
  bool is_done() const override { return batches_ && steps_ == *batches_ && has_parameters_; }

  // The steps that were made, without those before.
  uint64_t steps() const { return steps_; }
  // Those among them that left the dense parameters as they were, when it is done.
  uint64_t left_out_steps() const { return left_out_steps_; }
  // The end of the data, when it is done.
  const EndOfData& end() const { return end_; }

 private:
  void TakeResults(Message message);
  void TakeParameters(const Message& message);

  const RolePlan plan_;
  const std::array<std::span<float>, 2> parameters_;
  const uint64_t steps_before_;
  const OnStep on_step_;
  std::map<uint64_t, std::vector<Message>> results_;  // of each NN worker, by batch
  uint64_t steps_ = 0;
  uint64_t left_out_steps_ = 0;
  std::optional<uint64_t> batches_;
  EndOfData end_;
  bool has_parameters_ = false;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_HYBRID_TRAINER_ROLE_H_
