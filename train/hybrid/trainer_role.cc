#include "train/hybrid/trainer_role.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "train/dense/slices.h"
#include "train/hybrid/sample_messages.h"

namespace embank {
namespace {

void Append(std::span<const float> values, std::vector<float>* all) {
  all->insert(all->end(), values.begin(), values.end());
}

}  // namespace

Status TrainerRole::Start() {
  for (const RoleAddress worker : plan_.NnWorkers()) {
    MessageHeader header = Header(MessageKind::kParameters, worker);
    header.number = steps_before_;
    Message message =
        Message::Make(header, {parameters_[0].size_bytes(), parameters_[1].size_bytes()});
    for (uint32_t i = 0; i < parameters_.size(); ++i) {
      message.Place(i, std::span<const float>(parameters_[i]));
    }
    Send(std::move(message));
  }
  return OkStatus();
}

Status TrainerRole::Receive(Message message) {
  const MessageHeader& header = message.header();
  switch (header.kind) {
    case MessageKind::kResults:
      TakeResults(std::move(message));
      return OkStatus();
    case MessageKind::kParameters:
      TakeParameters(message);
      return OkStatus();
    case MessageKind::kEnd:
      batches_ = header.number;
      end_ = message.View<EndOfData>(0)[0];
      return OkStatus();
    default:
      return UnexpectedMessage(header);
  }
}

void TrainerRole::TakeParameters(const Message& message) {
  for (uint32_t i = 0; i < parameters_.size(); ++i) {
    const std::span<const float> given = message.View<float>(i);
    EMBANK_CHECK(given.size() == parameters_[i].size());
    std::ranges::copy(given, parameters_[i].begin());
  }
  left_out_steps_ = message.header().number;
  has_parameters_ = true;
}

// A batch has its step when the results of all NN workers are there.
void TrainerRole::TakeResults(Message message) {
  const SliceKey key = message.header().key;
  if (key.batch < steps_) return;
  std::vector<Message>& of_batch = results_[key.batch];
  of_batch.resize(plan_.nn_workers);
  of_batch[message.header().from.number] = std::move(message);
  const auto is_there = [](const Message& results) { return static_cast<bool>(results); };
  while (!results_.empty() && results_.begin()->first == steps_ &&
         std::ranges::all_of(results_.begin()->second, is_there)) {
    RoleStep step;
    std::vector<double> losses;
    for (const Message& results : results_.begin()->second) {
      const std::span<const double> of_slices = results.View<double>(0);
      losses.insert(losses.end(), of_slices.begin(), of_slices.end());
      Append(results.View<float>(1), &step.logits);
      Append(results.View<float>(2), &step.labels);
    }
    const uint32_t samples = results_.begin()->second[0].header().batch_samples;
    step.loss = SumSlices(losses) / std::max(1u, samples);
    results_.erase(results_.begin());
    ++steps_;
    RunOutside([&] { on_step_(step); });
  }
}

}  // namespace embank
