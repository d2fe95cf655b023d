// A loader: it sends the ids of its samples to embedding workers, and their labels and dense
// features, with the sample ids that it gets back, to NN workers.
#ifndef EMBANK_TRAIN_HYBRID_LOADER_H_
#define EMBANK_TRAIN_HYBRID_LOADER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/status.h"
#include "base/threads/clock.h"
#include "train/hybrid/batch_supply.h"
#include "train/roles/message.h"
#include "train/roles/role.h"

namespace embank {

// A batch is sent when all workers have space for it: they tell how many batches they have done.
class Loader final : public Role {
 public:
  struct Counts {
    uint64_t sent = 0;              // samples
    uint64_t unanswered = 0;        // samples that got no id
    uint64_t delays = 0;            // batches that waited for space
    uint64_t dropped_messages = 0;  // that came again, or too late

    Counts& operator+=(const Counts& other) {
      sent += other.sent;
      unanswered += other.unanswered;
      delays += other.delays;
      dropped_messages += other.dropped_messages;
      return *this;
    }
  };

  // Supply, transport and clock outlive it.
  Loader(uint16_t number, const RolePlan& plan, BatchSupply* supply, Transport* transport,
         const Clock* clock = SteadyClock());

  Status Start() override;
  Status Receive(Message message) override;
  // Asks workers for their progress where it has waited for space for RolePlan::retry_ns, and gives
  // up samples without an answer.
  Status Tick() override;
  bool is_done() const override { return has_ended_ && open_.empty(); }

  const Counts& counts() const { return counts_; }

 private:
  struct OpenBatch {
    ClickBatch samples;
    uint64_t since_ns = 0;
    std::vector<bool> is_answered;  // of each slice
    uint32_t unanswered = 0;        // slices
  };

  void SendBatches();
  void SendEnd();
  void SendIds(uint64_t number, const ClickBatch& batch);
  void SendSamples(const Message& sample_ids);
  std::vector<RoleAddress> Workers() const;

  const RolePlan plan_;
  BatchSupply* const supply_;
  const Clock* const clock_;
  uint64_t next_;                             // batch
  std::map<RoleAddress, uint64_t> progress_;  // the batches that each worker has done
  std::map<uint64_t, OpenBatch> open_;
  uint64_t blocked_ns_ = 0;
  bool is_blocked_ = false;
  std::optional<uint64_t> batches_;  // of the data, when another loader has told them
  bool has_ended_ = false;
  Counts counts_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_HYBRID_LOADER_H_
