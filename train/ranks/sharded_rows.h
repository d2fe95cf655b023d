// Rows in the stores of all ranks, each row in that of its owner (OwnerOf in base/hash.h), and
// replicated rows in each of them.
#ifndef EMBANK_TRAIN_RANKS_SHARDED_ROWS_H_
#define EMBANK_TRAIN_RANKS_SHARDED_ROWS_H_

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "train/pipeline/sparse_rows.h"
#include "train/ranks/exchange.h"
#include "train/ranks/pack_exchange.h"

namespace embank {

// Its link operations have one order on all ranks, and go one at a time.
class ShardedRows : public SparseRows {
 public:
  // All tables are of the store of this rank. `slices` are those of the pass. Rows and sums travel
  // as `wire` (float_exchange.h). The exchanges outlive it.
  ShardedRows(std::vector<EmbeddingFeature> features, SliceRange slices,
              const RowExchanges& exchanges, ValueType wire = ValueType::kF32);

  uint32_t OwnersOf(size_t feature) const override {
    return features_[feature].is_replicated ? 1 : exchange()->ranks();
  }
  bool has_link() const override { return true; }
  bool IsPooled(size_t feature) const override { return features_[feature].is_pooled; }
  void Begin(std::span<const uint64_t> ids_max) override;
  Status ShuffleIds(const Pack& pack, SliceRange micro_batch, BatchIds* ids) override;
  Status Gather(const Pack& pack, SliceRange micro_batch, MissingRule rule, BatchIds* ids) override;
  Status ShuffleRows(const Pack& pack, SliceRange micro_batch) override;
  Status ShuffleSums(const Pack& pack, SliceRange micro_batch) override;
  Status Update(const Pack& pack, const RowUpdate& update) override;
  uint64_t left_out() const override { return left_out_.load(std::memory_order_relaxed); }

 private:
  const Exchange* exchange() const { return exchanges_.lookups; }
  // A pack by its first feature, a micro-batch by its first slice.
  struct MicroBatch {
    PackExchange exchange;
    bool is_in_batch = false;
  };
  MicroBatch& Of(const Pack& pack, uint32_t first_slice) {
    return micro_batches_[pack.features[0] * slices_.size() + first_slice - slices_.begin];
  }

  const std::vector<EmbeddingFeature> features_;
  const SliceRange slices_;
  const RowExchanges exchanges_;
  std::vector<MicroBatch> micro_batches_;
  std::atomic<uint64_t> left_out_{0};
};

}  // namespace embank

#endif  // EMBANK_TRAIN_RANKS_SHARDED_ROWS_H_
