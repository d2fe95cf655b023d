// The embedding layer of a step: from the ids of a batch to a vector of each sample and feature,
// and from the gradients of these vectors to the rows.
//
//   ids ─Unique─▶ distinct ids ─Gather─▶ rows ─Stitch, SegmentReduction─▶ vectors
//                 distinct ids ◀───────── sums ◀───────SumGradients────── gradients
//                      └─Update─▶ rows
//
// Ids are made distinct slice by slice. The gradients of a row are first added within a slice, in
// the order of positions; its update adds the sums of the slices in order. So the bits do not
// depend on packs, micro-batches, threads or ranks.
#ifndef EMBANK_TRAIN_PIPELINE_EMBEDDING_PASS_H_
#define EMBANK_TRAIN_PIPELINE_EMBEDDING_PASS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "train/dense/slices.h"
#include "train/dense/tensor.h"
#include "train/pipeline/bag_map.h"
#include "train/pipeline/pack_plan.h"
#include "train/pipeline/sparse_rows.h"
#include "train/pipeline/unique_partition.h"
#include "train/samples/click_batch.h"

namespace embank {

// Its functions may run at once on several threads where the packs or the slices differ. Each pack
// goes through them in the order of their declaration. All slices are numbers among those of the
// batch.
class EmbeddingPass {
 public:
  // A batch has `slices`, and the pass does those of `own`. Features of one table are in one pack.
  // The rows are those of the same features and slices, and outlive the pass.
  EmbeddingPass(std::vector<EmbeddingFeature> features, uint32_t slices, SliceRange own,
                SparseRows* rows);

  // Begins a step, of the rows too. The batch outlives it.
  void Begin(const ClickBatch* batch);

  // Finds the distinct ids of a slice.
  void MakeUnique(const Pack& pack, uint32_t slice);
  // The distinct ids of slices, for the calls of SparseRows between this and StitchReduce.
  BatchIds* ids() { return &ids_; }
  // Writes the vectors of a slice: the sum of the rows of each bag, times their weights where it
  // has some; zeros for an empty one.
  void StitchReduce(const Pack& pack, uint32_t slice);

  // Adds the gradients of a slice's vectors by row, times the weight that the row has in each bag.
  void SumGradients(const Pack& pack, uint32_t slice);
  // Whether all sums of the batch are finite, after SumGradients of all packs and slices.
  bool AreSumsFinite() const;
  // The steps of rows of its tables that had this outcome; where ranks make the same ones, the
  // first one counts them. Passes of the same tables have the same steps.
  uint64_t StepsWith(Outcome outcome) const;

  // The vectors of a slice's samples, and their gradients, which the caller writes.
  ConstMatrix Vectors(size_t feature, uint32_t slice) const;
  Matrix Gradients(size_t feature, uint32_t slice);

  std::span<const EmbeddingFeature> features() const { return features_; }
  SliceRange slices() const { return own_; }
  // The positions of a feature in the slices of the pass.
  uint64_t Positions(size_t feature) const {
    const SampleRange positions = memory_[feature].positions;
    return positions.end - positions.begin;
  }

 private:
  // A feature's part of a step. Arrays begin with the first position or sample of the pass.
  struct FeatureMemory {
    uint64_t table_hash = 0;
    bool is_pooled = false;
    SampleRange positions = {0, 0};  // of the pass
    std::vector<Key> unique;
    std::vector<uint16_t> touches;
    std::vector<IdPlace> index;  // of each position; of a slice's places where it is pooled
    // BagMap writes these where it is pooled. The offsets of a slice begin with 0.
    std::vector<uint16_t> bags;
    std::vector<float> bag_weights;
    std::vector<uint32_t> bag_offsets;
    std::vector<float> vectors;  // of each sample
    std::vector<float> gradients;
  };

  const FeatureIds& Ids(size_t feature) const {
    return batch_->features[features_[feature].column];
  }
  SampleRange SamplesOf(uint32_t slice) const { return SliceOf(batch_->samples, slices_, slice); }
  struct SliceBags;

  SliceBags BagsOf(size_t feature, uint32_t slice) const;
  void MapBags(size_t feature, uint32_t slice, SliceIds* ids);
  // The place of a slice's offsets in FeatureMemory::bag_offsets.
  uint64_t FirstOffset(uint32_t slice) const;
  // The positions of samples.
  SampleRange PositionsOf(size_t feature, SampleRange samples) const;

  const std::vector<EmbeddingFeature> features_;
  const uint32_t slices_;
  const SliceRange own_;
  SparseRows* const rows_;
  BatchIds ids_;
  std::vector<FeatureMemory> memory_;
  const ClickBatch* batch_ = nullptr;
  SampleRange samples_ = {0, 0};  // of the pass
};

}  // namespace embank

#endif  // EMBANK_TRAIN_PIPELINE_EMBEDDING_PASS_H_
