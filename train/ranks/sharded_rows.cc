#include "train/ranks/sharded_rows.h"

#include <utility>

#include "base/check.h"
#include "train/pipeline/row_steps.h"

namespace embank {

ShardedRows::ShardedRows(std::vector<EmbeddingFeature> features, SliceRange slices,
                         const RowExchanges& exchanges, ValueType wire)
    : features_(std::move(features)), slices_(slices), exchanges_(exchanges) {
  for (size_t i = 0; i < features_.size() * slices.size(); ++i) {
    micro_batches_.push_back({.exchange = PackExchange(features_, exchanges, wire)});
  }
}

void ShardedRows::Begin(std::span<const uint64_t> ids_max) {
  EMBANK_CHECK(ids_max.size() == features_.size());
  for (MicroBatch& micro_batch : micro_batches_) micro_batch.is_in_batch = false;
}

Status ShardedRows::ShuffleIds(const Pack& pack, SliceRange micro_batch, BatchIds* ids) {
  MicroBatch& of_pack = Of(pack, micro_batch.begin);
  of_pack.is_in_batch = true;
  return of_pack.exchange.SendIds(pack, micro_batch, ids);
}

Status ShardedRows::Gather(const Pack& pack, SliceRange micro_batch, MissingRule rule,
                           BatchIds* /*ids*/) {
  return Of(pack, micro_batch.begin).exchange.Gather(pack, rule);
}

Status ShardedRows::ShuffleRows(const Pack& pack, SliceRange micro_batch) {
  return Of(pack, micro_batch.begin).exchange.SendRows(pack);
}

Status ShardedRows::ShuffleSums(const Pack& pack, SliceRange micro_batch) {
  return Of(pack, micro_batch.begin).exchange.SendSums(pack);
}

// The slices of a rank come before those of the next one.
Status ShardedRows::Update(const Pack& pack, const RowUpdate& update) {
  RowUpdate of_pack = update;
  std::vector<SumRun> runs;
  for (size_t i = 0; i < pack.features.size(); ++i) {
    for (uint32_t rank = 0; rank < exchange()->ranks(); ++rank) {
      for (uint32_t slice = slices_.begin; slice < slices_.end; ++slice) {
        MicroBatch& micro_batch = Of(pack, slice);
        if (!micro_batch.is_in_batch) continue;
        const SumRun run = micro_batch.exchange.RunOf(pack, i, rank);
        if (run.ids.empty()) continue;
        runs.push_back(run);
        // These sums are made here, after the vote.
        if (pack.is_pooled) {
          of_pack.are_sums_finite &= AreFinite({run.sums, run.ids.size() * pack.dim});
        }
      }
    }
  }
  IdsLeftOut left_out;
  Status status = StepRows(features_, std::move(runs), of_pack, &left_out);
  // All ranks leave the same replicated ids out: the first one counts them.
  if (pack.is_replicated && exchange()->rank() > 0) left_out = {};
  left_out_.fetch_add(left_out.not_finite, std::memory_order_relaxed);
  if (update.lost != nullptr) update.lost->Count(left_out.lost);
  return status;
}

}  // namespace embank
