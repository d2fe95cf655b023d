// The dense part of a model for one NN worker.
#ifndef EMBANK_TRAIN_HYBRID_DENSE_MODEL_H_
#define EMBANK_TRAIN_HYBRID_DENSE_MODEL_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status_or.h"
#include "base/threads/executor.h"
#include "train/dense_pass.h"
#include "train/hybrid/dense_work.h"
#include "train/models/layer_graph.h"
#include "train/samples/click_batch.h"
#include "train/trainer_options.h"

namespace embank {

class DenseModel final : public DenseWork {
 public:
  // Makes the model for a worker with `slices` slices of each batch. The statuses of MakeModel.
  static StatusOr<std::unique_ptr<DenseModel>> Create(const TrainerOptions& options,
                                                      const ClickColumns& columns, uint32_t slices);

  double RunSlice(const DenseSlice& slice) override { return pass_.RunSlice(slice, 0); }
  std::span<float> SumSlices() override;
  bool Step(uint64_t step) override;
  std::array<std::span<float>, 2> parameters() override {
    return {pass_.weights(), pass_.optimizer_state()};
  }

 private:
  DenseModel(const TrainerOptions& options, std::unique_ptr<LayerGraph> graph, DensePass pass)
      : options_(options),
        graph_(std::move(graph)),
        executor_(MakeThreadPool(1)),
        pass_(std::move(pass)) {}

  const TrainerOptions options_;
  const std::unique_ptr<LayerGraph> graph_;
  const std::unique_ptr<Executor> executor_;
  DensePass pass_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_HYBRID_DENSE_MODEL_H_
