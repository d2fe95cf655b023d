// The embedding layer of a step: from the ids of a batch to a vector of each sample and feature,
// and from the gradients of these vectors to the rows.
//
//   ids ─Unique─▶ distinct ids ─Gather─▶ rows ─Stitch, SegmentReduction─▶ vectors
//                 distinct ids ◀───────── sums ◀───────SumGradients────── gradients
//                      └─Update─▶ rows
//
// Ids are made distinct slice by slice. The gradients of a row are first added within a slice, in
// the order of positions; its update adds the sums of the slices in order. So the bits do not
// depend on packs, micro-batches or threads.
#ifndef EMBANK_TRAIN_PIPELINE_EMBEDDING_PASS_H_
#define EMBANK_TRAIN_PIPELINE_EMBEDDING_PASS_H_

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "store/table/table.h"
#include "train/dense/slices.h"
#include "train/dense/tensor.h"
#include "train/pipeline/pack_plan.h"
#include "train/samples/click_batch.h"

namespace embank {

struct EmbeddingFeature {
  Table* table = nullptr;
  uint32_t column = 0;  // of the id features of the data
  uint32_t dim = 0;
};

// Slices from `begin` up to `end`, which is not included: a micro-batch.
struct SliceRange {
  uint32_t begin;
  uint32_t end;
};

// Its functions may run at once on several threads where the packs or the slices differ. Each pack
// goes through them in the order of their declaration.
class EmbeddingPass {
 public:
  // All tables are of one store. Features of one table are in one pack.
  EmbeddingPass(std::vector<EmbeddingFeature> features, uint32_t slices);

  // Begins a step. The batch outlives it. Its micro-batches are the calls of Gather.
  void Begin(const ClickBatch* batch);

  // Finds the distinct ids of a slice.
  void MakeUnique(const Pack& pack, uint32_t slice);
  // Reads the rows of the distinct ids of a micro-batch: one packed lookup. The statuses of
  // LookupPacked.
  Status Gather(const Pack& pack, SliceRange micro_batch, MissingRule rule);
  // Writes the vectors of a slice: the sum of the rows of each bag, times their weights where it
  // has some; zeros for an empty one.
  void StitchReduce(const Pack& pack, uint32_t slice);

  // Adds the gradients of a slice's vectors by row, times the weight that the row has in each bag.
  void SumGradients(const Pack& pack, uint32_t slice);
  // Makes a step of the optimizer for each distinct id of a table in the batch: one packed call,
  // which adds the gradients of the features of a table in their order. Leaves out the ids whose
  // sum in a slice, or whose step, is not finite: their rows stay as they are. Also left out are
  // the rows that a table has forgotten since Gather. The statuses of ApplyGradientsPacked but
  // OUT_OF_RANGE and, of tables that forget, NOT_FOUND.
  Status Update(const Pack& pack);
  // The number of ids that were left out; an id counts once for each slice of a step in which it
  // is.
  uint64_t left_out() const;

  // The vectors of a slice's samples, and their gradients, which the caller writes.
  ConstMatrix Vectors(size_t feature, uint32_t slice) const;
  Matrix Gradients(size_t feature, uint32_t slice);

  std::span<const EmbeddingFeature> features() const { return features_; }
  // The positions of a feature in the batch.
  uint64_t Positions(size_t feature) const { return Ids(feature).ids.size(); }

 private:
  // A feature's part of a step. A slice's ids, rows and sums begin at the place of its first
  // position; Gather moves those of a micro-batch together.
  struct FeatureMemory {
    uint64_t table_hash = 0;
    std::vector<Key> unique;
    std::vector<uint32_t> index;  // of each position: the place of its id in its slice
    std::vector<float> rows;      // of the distinct ids
    std::vector<float> sums;      // of their gradients
    std::vector<float> vectors;   // of each sample
    std::vector<float> gradients;
    std::vector<uint32_t> unique_count;  // of each slice
    std::vector<uint64_t> unique_begin;  // of each slice, in `unique`
    std::vector<uint32_t> micro_batch;   // of each slice: the first slice of its micro-batch
    std::vector<uint8_t> is_finite;      // of each slice: its sums are
  };

  const FeatureIds& Ids(size_t feature) const {
    return batch_->features[features_[feature].column];
  }
  SampleRange SamplesOf(uint32_t slice) const { return SliceOf(batch_->samples, slices_, slice); }
  // The positions of samples.
  SampleRange PositionsOf(size_t feature, SampleRange samples) const;
  uint32_t JoinSlices(size_t feature, SliceRange micro_batch);
  bool IsFinite(size_t feature) const;
  void LeaveOutNotFinite(std::span<const uint32_t> features);

  const std::vector<EmbeddingFeature> features_;
  const uint32_t slices_;
  const bool forgets_;  // a table does
  std::vector<FeatureMemory> memory_;
  const ClickBatch* batch_ = nullptr;
  std::atomic<uint64_t> left_out_{0};  // because of their sums
};

}  // namespace embank

#endif  // EMBANK_TRAIN_PIPELINE_EMBEDDING_PASS_H_
