// An NN worker: it keeps the dense features and labels of samples until their vectors come, trains
// its slices of each batch, and sends the gradients of the vectors back. The dense parameters make
// a step with each batch, the same on all NN workers.
#ifndef EMBANK_TRAIN_HYBRID_NN_WORKER_H_
#define EMBANK_TRAIN_HYBRID_NN_WORKER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "base/threads/clock.h"
#include "train/hybrid/dense_work.h"
#include "train/hybrid/nn_sums.h"
#include "train/hybrid/sample_buffer.h"
#include "train/hybrid/slice_rows.h"
#include "train/hybrid/slice_window.h"
#include "train/hybrid/worker_counts.h"
#include "train/roles/message.h"
#include "train/roles/role.h"

namespace embank {

class NnWorker final : public Role {
 public:
  // Work, transport and clock outlive it.
  NnWorker(uint16_t number, const RolePlan& plan, std::vector<PooledFeature> features,
           DenseWork* work, Transport* transport, const Clock* clock = SteadyClock());

  // OUT_OF_RANGE: the loss of a batch is not finite; no row and no weight was changed with it.
  Status Receive(Message message) override;
  // Gives up the slices of the batch under way whose next message has not come for
  // RolePlan::expiry_ns.
  Status Tick() override;
  bool is_done() const override { return is_done_; }

  // Gives a sample up: it is not trained.
  void Lose(SampleId id);

  const WorkerCounts& counts() const { return counts_; }
  uint64_t samples_buffered() const { return buffer_.samples(); }

 private:
  struct Slice {
    uint64_t since_ns = 0;  // its last message came
    Message samples;        // ids, labels and dense features; none: they have not come yet
    Message vectors;
    Message gradients;
    std::vector<float> labels;  // of the samples that were trained
    std::vector<float> logits;
    bool has_ended = false;
  };
  struct Trained;

  void TakeSamples(Message message);
  void TakeVectors(Message message);
  void TakeParameters(const Message& message);
  Status Advance();
  void Train(SliceKey key, Slice* slice);
  void RunSlice(SliceKey key, Slice* slice, const Trained& samples);
  void LoseSlice(SliceKey key, Slice* slice);
  Status StepBatch();
  void SendResults();
  void SendParameters();

  const RolePlan plan_;
  const std::vector<PooledFeature> features_;
  DenseWork* const work_;
  const Clock* const clock_;
  SampleBuffer buffer_;
  SliceWindow<Slice> window_;
  NnSums sums_;
  std::vector<double> losses_;  // of all slices of the batch under way
  uint32_t batch_samples_ = 0;  // of it
  std::optional<uint64_t> batches_;
  uint64_t batch_ns_ = 0;    // when the batch before was done
  uint64_t first_step_ = 0;  // of the first batch
  uint64_t left_out_steps_ = 0;
  bool has_parameters_ = false;
  bool is_done_ = false;
  WorkerCounts counts_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_HYBRID_NN_WORKER_H_
