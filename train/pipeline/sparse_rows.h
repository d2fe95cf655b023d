// The rows of the distinct ids of a batch: between an embedding pass, which has samples, and
// whoever has the rows.
//
//   embedding pass    ids of slices ─▶│ Gather │─▶ rows of each slice
//                    sums of slices ─▶│ Update │
//
// LocalRows has them in the store of this process, ShardedRows in those of all ranks
// (train/ranks/sharded_rows.h), HotBag in an array of hot rows (train/hot/hot_bag.h). Batches that
// are under way at once have one each.
#ifndef EMBANK_TRAIN_PIPELINE_SPARSE_ROWS_H_
#define EMBANK_TRAIN_PIPELINE_SPARSE_ROWS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "store/table/table.h"
#include "train/pipeline/lost_updates.h"
#include "train/pipeline/pack_plan.h"

namespace embank {

struct EmbeddingFeature {
  Table* table = nullptr;
  uint32_t column = 0;  // of the id features of the data
  uint32_t dim = 0;
  bool is_replicated = false;  // each rank has all rows of the table
  bool is_pooled = false;      // owners sum the rows of its bags
};

// Slices from `begin` up to `end`, which is not included: a micro-batch, or those of a rank.
struct SliceRange {
  uint32_t begin;
  uint32_t end;

  uint32_t size() const { return end - begin; }
};

// The distinct ids of a feature in a slice, and their rows.
struct SliceIds {
  // As UniquePartition writes them, by owner, in the memory of the pass. Those of a feature that is
  // pooled are as BagMap leaves them.
  std::span<Key> ids;
  std::span<uint16_t> touches;   // of each
  std::vector<uint32_t> counts;  // of each owner
  // An upper bound of the feature's distinct ids in the slices of the pass before this one.
  uint64_t ids_before = 0;
  // A feature that is pooled has the bags of each occurrence of an id, their weights or none, and
  // the number of bags of each owner (bag_map.h).
  std::span<uint16_t> bags;
  std::span<float> bag_weights;
  std::vector<uint32_t> bag_counts;
  // Gather sets these for each owner: its rows, and memory for the sums of their gradients. The
  // first row is that of the owner's first id, and rows stand one behind the other. Where the
  // feature is pooled, they are those of the owner's bags.
  std::vector<const float*> rows;
  std::vector<float*> sums;
  bool are_sums_finite = true;  // the pass sets it

  // The number of rows of each owner.
  std::span<const uint32_t> row_counts() const { return bag_counts.empty() ? counts : bag_counts; }
};

// The ids of a batch, of each feature and slice of a pass.
class BatchIds {
 public:
  // Each feature has so many owners.
  BatchIds(std::span<const uint32_t> owners, SliceRange slices)
      : slices_(slices), ids_(owners.size() * slices.size()) {
    for (size_t i = 0; i < ids_.size(); ++i) {
      const uint32_t of_feature = owners[i / slices.size()];
      ids_[i].counts.resize(of_feature);
      ids_[i].rows.resize(of_feature);
      ids_[i].sums.resize(of_feature);
    }
  }

  SliceRange slices() const { return slices_; }
  SliceIds& Of(size_t feature, uint32_t slice) {
    return ids_[feature * slices_.size() + slice - slices_.begin];
  }
  const SliceIds& Of(size_t feature, uint32_t slice) const {
    return ids_[feature * slices_.size() + slice - slices_.begin];
  }

 private:
  SliceRange slices_;
  std::vector<SliceIds> ids_;
};

// Is told ids whose rows are about to be updated: copies of them are out of date then. Calls for
// different packs may run at once.
class UpdatedIds {
 public:
  virtual ~UpdatedIds() = default;
  // Takes ids of a feature.
  virtual void Note(uint32_t feature, KeySpan ids) = 0;
};

// The dims of features.
inline std::vector<uint32_t> DimsOf(std::span<const EmbeddingFeature> features) {
  std::vector<uint32_t> dims;
  for (const EmbeddingFeature& feature : features) dims.push_back(feature.dim);
  return dims;
}

// How a step updates rows.
struct RowUpdate {
  // False: a sum may not be finite, of this rank or of another one; it is equal on all ranks.
  bool are_sums_finite = true;
  uint64_t step = 0;              // the steps of the training before it
  LostUpdates* lost = nullptr;    // counts those of this process; nullptr: no update is lost
  UpdatedIds* updated = nullptr;  // gets the ids of this process; nullptr: nobody asks
};

// The calls of different packs may run at once, and those of different micro-batches of a pack. A
// pack goes through them in the order of their declaration. Each batch begins with Begin, which
// ends the use of all memory of the one before.
class SparseRows {
 public:
  virtual ~SparseRows() = default;

  // Among so many owners, at least 1, the ids of a feature are parted.
  virtual uint32_t OwnersOf(size_t feature) const = 0;
  // Whether rows are in other processes. Then the operations of the link are in one order on all
  // ranks and run one at a time; else they do nothing.
  virtual bool has_link() const { return false; }
  // Whether the owners of a feature's rows sum its bags: all features of a pack alike.
  virtual bool IsPooled(size_t /*feature*/) const { return false; }

  // Begins a batch with at most so many ids of each feature in the slices of the pass.
  virtual void Begin(std::span<const uint64_t> ids_max) = 0;
  // Sends the ids of a micro-batch to their owners. The ids outlive the batch. The statuses of
  // Exchange::Run.
  virtual Status ShuffleIds(const Pack& /*pack*/, SliceRange /*micro_batch*/, BatchIds* /*ids*/) {
    return OkStatus();
  }
  // Reads the rows of the ids of a micro-batch. The statuses of LookupPacked.
  virtual Status Gather(const Pack& pack, SliceRange micro_batch, MissingRule rule,
                        BatchIds* ids) = 0;
  // Sends rows to the ranks whose ids they have. The statuses of Exchange::Run.
  virtual Status ShuffleRows(const Pack& /*pack*/, SliceRange /*micro_batch*/) {
    return OkStatus();
  }
  // Sends the sums of a micro-batch to their owners. The statuses of Exchange::Run.
  virtual Status ShuffleSums(const Pack& /*pack*/, SliceRange /*micro_batch*/) {
    return OkStatus();
  }
  // Makes a step of the optimizer for each distinct id of a table in the batch, with the sums of
  // all slices in order, feature by feature. Leaves out the ids whose update is lost, or whose sum
  // in a slice, or whose step, is not finite: their rows stay as they are. Also left out are the
  // rows that a table has forgotten since Gather, unless a later lookup has made them anew. The
  // statuses of ApplyGradientsPacked but OUT_OF_RANGE and, of tables that forget, NOT_FOUND.
  virtual Status Update(const Pack& pack, const RowUpdate& update) = 0;

  // The number of ids that updates left out because a sum was not finite; an id counts once for
  // each slice in which it is. The counters of the tables have the steps that were not finite.
  // Thread-safe.
  virtual uint64_t left_out() const = 0;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_PIPELINE_SPARSE_ROWS_H_
