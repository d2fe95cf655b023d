#include "train/hybrid/dense_model.h"

#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "train/dense/gemm.h"
#include "train/rate_schedule.h"

namespace embank {

StatusOr<std::unique_ptr<DenseModel>> DenseModel::Create(const TrainerOptions& options,
                                                         const ClickColumns& columns,
                                                         uint32_t slices) {
  EMBANK_RETURN_IF_ERROR(PrepareGemm());
  EMBANK_ASSIGN_OR_RETURN(LayerGraph layers, MakeModel(options, columns));
  auto graph = std::make_unique<LayerGraph>(std::move(layers));
  EMBANK_ASSIGN_OR_RETURN(DensePass pass, DensePass::Create(options, graph.get(), slices, 1));
  return std::unique_ptr<DenseModel>(new DenseModel(options, std::move(graph), std::move(pass)));
}

// Its buckets are runs of one array.
std::span<float> DenseModel::SumSlices() {
  std::span<float> sums = pass_.SumBucket(0);
  for (uint32_t bucket = 1; bucket < pass_.buckets(); ++bucket) {
    const std::span<float> next = pass_.SumBucket(bucket);
    EMBANK_CHECK(next.data() == sums.data() + sums.size());
    sums = {sums.data(), sums.size() + next.size()};
  }
  return sums;
}

bool DenseModel::Step(uint64_t step) {
  if (!(options_.schedule == RateSchedule{})) {
    pass_.set_learning_rate(options_.dense.rule.learning_rate *
                            RateFactor(options_.schedule, step));
  }
  if (!pass_.AreSumsFinite(executor_.get())) return false;
  pass_.Step(executor_.get());
  return true;
}

}  // namespace embank
