// Rows in the store of this process: Gather writes them where Stitch wants them.
#ifndef EMBANK_TRAIN_PIPELINE_LOCAL_ROWS_H_
#define EMBANK_TRAIN_PIPELINE_LOCAL_ROWS_H_

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "train/pipeline/sparse_rows.h"

namespace embank {

class LocalRows : public SparseRows {
 public:
  // All tables are of one store. `slices` are those of the pass.
  LocalRows(std::vector<EmbeddingFeature> features, SliceRange slices);

  uint32_t OwnersOf(size_t /*feature*/) const override { return 1; }
  void Begin(std::span<const uint64_t> ids_max) override;
  Status Gather(const Pack& pack, SliceRange micro_batch, MissingRule rule, BatchIds* ids) override;
  Status Update(const Pack& pack, const RowUpdate& update) override;
  uint64_t left_out() const override { return left_out_.load(std::memory_order_relaxed); }

 private:
  // The ids of a micro-batch, one behind the other.
  struct Run {
    uint64_t begin = 0;
    uint64_t count = 0;
  };
  struct FeatureMemory {
    std::vector<Key> ids;
    std::vector<uint16_t> touches;
    std::vector<float> rows;
    std::vector<float> sums;
    std::vector<Run> runs;  // of each slice, at which a micro-batch begins
  };

  Run Join(size_t feature, SliceRange micro_batch, BatchIds* ids);

  const std::vector<EmbeddingFeature> features_;
  const SliceRange slices_;
  std::vector<FeatureMemory> memory_;
  std::atomic<uint64_t> left_out_{0};
};

}  // namespace embank

#endif  // EMBANK_TRAIN_PIPELINE_LOCAL_ROWS_H_
