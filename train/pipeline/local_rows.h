// Rows in the store of this process: Gather writes them where Stitch wants them.
#ifndef EMBANK_TRAIN_PIPELINE_LOCAL_ROWS_H_
#define EMBANK_TRAIN_PIPELINE_LOCAL_ROWS_H_

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "train/pipeline/joined_ids.h"
#include "train/pipeline/sparse_rows.h"

namespace embank {

class LocalRows : public SparseRows {
 public:
  // All tables are of one store. `slices` are those of the pass.
  LocalRows(std::vector<EmbeddingFeature> features, SliceRange slices);

  uint32_t OwnersOf(size_t /*feature*/) const override { return 1; }
  void Begin(std::span<const uint64_t> ids_max) override { ids_.Begin(ids_max); }
  Status Gather(const Pack& pack, SliceRange micro_batch, MissingRule rule, BatchIds* ids) override;
  Status Update(const Pack& pack, const RowUpdate& update) override;
  uint64_t left_out() const override { return left_out_.load(std::memory_order_relaxed); }

 private:
  const std::vector<EmbeddingFeature> features_;
  JoinedIds ids_;
  std::atomic<uint64_t> left_out_{0};
};

}  // namespace embank

#endif  // EMBANK_TRAIN_PIPELINE_LOCAL_ROWS_H_
