// An embedding worker: it numbers samples and keeps their feature ids, answers with pooled vectors,
// and brings the gradients of the vectors back to the rows (Lian et al. 2022, 4.1 and 4.2.1).
//
//   loader ──ids──▶ ┌─────────────────┐ ◀──pull────── NN worker
//          ◀─ξ───── │ ξ -> ids        │ ──vectors──▶
//                   └─────────────────┘ ◀──gradients─
//                        │     ▲
//                        ▼     │
//                       rows of slices
#ifndef EMBANK_TRAIN_HYBRID_EMBEDDING_WORKER_H_
#define EMBANK_TRAIN_HYBRID_EMBEDDING_WORKER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "base/threads/clock.h"
#include "train/hybrid/sample_buffer.h"
#include "train/hybrid/sample_id.h"
#include "train/hybrid/slice_rows.h"
#include "train/hybrid/slice_window.h"
#include "train/hybrid/worker_counts.h"
#include "train/roles/message.h"
#include "train/roles/role.h"

namespace embank {

// A sample is taken once, and then done or lost once: its entry in the buffer is removed by whoever
// applies its gradient or gives it up.
class EmbeddingWorker final : public Role {
 public:
  // Rows, transport and clock outlive it.
  EmbeddingWorker(uint16_t number, const RolePlan& plan, SliceRows* rows, Transport* transport,
                  const Clock* clock = SteadyClock());

  Status Receive(Message message) override;
  // Gives up the samples whose next message has not come for RolePlan::expiry_ns since the batch
  // before was stepped.
  Status Tick() override;
  bool is_done() const override;

  // Gives a sample up: no gradient of it is applied.
  void Lose(SampleId id);

  const WorkerCounts& counts() const { return counts_; }
  uint64_t samples_buffered() const { return buffer_.samples(); }

 private:
  struct Slice {
    uint64_t since_ns = 0;  // its last message came
    Message ids;            // of the features of its samples; none: they have not come yet
    SampleId first = 0;
    uint32_t samples = 0;
    Message pull;                   // waits until the rows of the batch before are stepped
    std::vector<uint32_t> numbers;  // of its samples among the pooled ones
    bool is_pooled = false;
    bool has_ended = false;
  };

  void TakeIds(Message message);
  Status TakePull(Message message);
  Status Answer(SliceKey key, Slice* slice);
  Status TakeGradients(const Message& message);
  std::vector<KeptSample> TakeKept(const Message& message, const Slice& slice);
  Status EndSlice(SliceKey key, Slice* slice, std::span<const KeptSample> kept,
                  std::span<const ConstMatrix> gradients);
  void CloseBatches();
  Status NoteSteps();
  std::vector<uint32_t> FindPlaces(SliceKey key, std::span<const SampleId> ids) const;

  const RolePlan plan_;
  SliceRows* const rows_;
  const Clock* const clock_;
  SampleIds sample_ids_;
  SampleBuffer buffer_;
  SliceWindow<Slice> window_;
  std::optional<uint64_t> batches_;  // of the data, when a loader has told them
  uint64_t stepped_ = 0;             // batches, as this worker knows
  uint64_t stepped_ns_ = 0;          // when it got to know
  WorkerCounts counts_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_HYBRID_EMBEDDING_WORKER_H_
