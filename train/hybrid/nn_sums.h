// Sums of dense gradients over NN workers: a reduce-scatter and an all-gather by messages. Each
// worker adds one part, in the order of workers, as DenseSums does (train/ranks/dense_sums.h).
#ifndef EMBANK_TRAIN_HYBRID_NN_SUMS_H_
#define EMBANK_TRAIN_HYBRID_NN_SUMS_H_

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "train/roles/message.h"
#include "train/roles/role.h"

namespace embank {

// One thread. Messages may come before their batch begins here.
class NnSums {
 public:
  // The transport outlives it.
  NnSums(RoleAddress own, const RolePlan& plan, Transport* transport)
      : own_(own), plan_(plan), transport_(transport) {}

  // Begins with the batch after the last one: sends the parts of the sums to their workers, with
  // the losses of the worker's slices. Both outlive the batch; `losses` has those of all slices.
  void Begin(uint32_t batch_samples, std::span<float> sums, std::span<double> losses);
  // Takes kDenseParts or kDenseSums. False: it came before.
  bool Receive(Message message);

  bool has_begun() const { return has_begun_; }
  // Whether the sums and losses of all workers are there. Ends the batch then.
  bool End();
  // The samples of the batch, as any of the workers knows; 0: nobody has one of them.
  uint32_t batch_samples() const { return batch_samples_; }

 private:
  struct Meeting {
    std::vector<Message> parts;  // of each worker
    std::vector<Message> sums;
  };

  Meeting* MeetingOf(uint64_t batch);
  uint64_t PartBegin(uint32_t worker) const;
  std::span<float> PartOf(uint32_t worker);
  bool HasAll(const std::vector<Message>& messages) const;
  void AddParts(const Meeting& meeting);
  MessageHeader Header(MessageKind kind, uint32_t worker) const;

  const RoleAddress own_;
  const RolePlan plan_;
  Transport* const transport_;
  uint64_t batch_ = 0;
  bool has_begun_ = false;
  bool has_added_ = false;
  uint32_t batch_samples_ = 0;
  std::span<float> sums_;
  std::span<double> losses_;
  std::map<uint64_t, Meeting> meetings_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_HYBRID_NN_SUMS_H_
