// The rows of slices in the store of this process. It keeps the distinct ids and sums of the slices
// of a batch until all of them have ended, and then steps the rows with all of them, in order: the
// bits are those of a batch that is trained as a whole (train/pipeline/README.md).
#ifndef EMBANK_TRAIN_HYBRID_LOCAL_SLICE_ROWS_H_
#define EMBANK_TRAIN_HYBRID_LOCAL_SLICE_ROWS_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/threads/mutex.h"
#include "store/table/table.h"
#include "train/hybrid/slice_rows.h"
#include "train/pipeline/pack_plan.h"
#include "train/pipeline/sparse_rows.h"
#include "train/trainer_options.h"

namespace embank {

class LocalSliceRows final : public SliceRows {
 public:
  // The tables are those of TablesOf, open; they outlive it. `steps` were made with them before.
  LocalSliceRows(const TrainerOptions& options, std::span<const FeatureTable> features,
                 std::span<Table* const> tables, uint64_t steps);
  ~LocalSliceRows() override;

  std::span<const PooledFeature> features() const override { return pooled_; }
  Status Pool(SliceKey key, ClickBatch samples, std::span<const Matrix> vectors) override;
  Status End(SliceKey key, std::span<const KeptSample> kept,
             std::span<const ConstMatrix> gradients) override;
  uint64_t stepped() const override { return stepped_.load(std::memory_order_acquire); }

  // The number of ids that steps left out because a sum was not finite.
  uint64_t left_out() const { return left_out_.load(std::memory_order_relaxed); }

 private:
  class SlicePass;
  struct Batch {
    std::vector<std::unique_ptr<SlicePass>> passes;  // of each slice; nullptr: it has none
    std::vector<bool> has_ended;
    uint32_t open = 0;  // slices
  };

  std::unique_ptr<SlicePass> TakeFree();
  Batch* BatchOf(uint64_t batch) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeEnded(Batch* batch);
  Status StepEnded();
  Status Step(uint64_t number, const Batch& batch);
  Status SetRates(uint64_t step);

  const TrainerOptions options_;
  const std::vector<Table*> tables_;
  const uint64_t steps_;
  std::vector<EmbeddingFeature> features_;
  std::vector<PooledFeature> pooled_;
  std::vector<Pack> packs_;
  std::atomic<uint64_t> stepped_{0};
  std::atomic<uint64_t> left_out_{0};
  Mutex mutex_;
  bool is_stepping_ EMBANK_GUARDED_BY(mutex_) = false;
  std::deque<Batch> batches_ EMBANK_GUARDED_BY(mutex_);  // that are not stepped
  std::vector<std::unique_ptr<SlicePass>> free_ EMBANK_GUARDED_BY(mutex_);
};

}  // namespace embank

#endif  // EMBANK_TRAIN_HYBRID_LOCAL_SLICE_ROWS_H_
