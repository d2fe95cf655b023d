// The ids of micro-batches in the memory of one process: those of a micro-batch stand one behind
// the other, with memory for their rows and for the sums of their gradients.
#ifndef EMBANK_TRAIN_PIPELINE_JOINED_IDS_H_
#define EMBANK_TRAIN_PIPELINE_JOINED_IDS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "train/pipeline/row_steps.h"
#include "train/pipeline/sparse_rows.h"

namespace embank {

// Calls may run at once where the features or the micro-batches differ. It keeps its memory.
class JoinedIds {
 public:
  // `dims` are those of the features, `slices` those of the pass.
  JoinedIds(std::vector<uint32_t> dims, SliceRange slices);

  // Begins a batch (SparseRows::Begin).
  void Begin(std::span<const uint64_t> ids_max);

  // The ids of a micro-batch, and memory for their rows.
  struct Run {
    KeySpan ids;
    std::span<const uint16_t> touches;
    float* rows = nullptr;
  };
  // Copies the ids of a micro-batch, and gives its slices places for their rows and sums.
  Run Join(size_t feature, SliceRange micro_batch, BatchIds* ids);

  // The ids of all micro-batches of a feature, some of which may have none.
  const Key* ids(size_t feature) const { return memory_[feature].ids.data(); }

  // Adds the ids and sums of a feature's micro-batches, in the order of their slices.
  void AddSums(uint32_t feature, std::vector<SumRun>* runs);

 private:
  struct Place {
    uint64_t begin = 0;
    uint64_t count = 0;
  };
  struct FeatureMemory {
    std::vector<Key> ids;
    std::vector<uint16_t> touches;
    std::vector<float> rows;
    std::vector<float> sums;
    std::vector<Place> places;  // of each slice, at which a micro-batch begins
  };

  const std::vector<uint32_t> dims_;
  const SliceRange slices_;
  std::vector<FeatureMemory> memory_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_PIPELINE_JOINED_IDS_H_
