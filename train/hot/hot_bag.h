// The hot rows of a training in an array of each rank, for batches all of whose ids are hot: the
// embedding bags of FAE (Adnan et al. 2021, section 4.3). Such batches do not use the store.
//
//   cold batches   store <-> rows     the bag notes which of its rows go out of date
//   swap to hot    store --> bag      those rows, on all ranks
//   hot batches    bag <-> rows       sums of all ranks go to each, and no row crosses a link
//   swap to cold   bag --> store      the rows that changed, each by the rank that owns it
//
// The store keeps its copies meanwhile. The array is in the memory of the device's twin: the
// host's.
#ifndef EMBANK_TRAIN_HOT_HOT_BAG_H_
#define EMBANK_TRAIN_HOT_HOT_BAG_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "gpu/device_link.h"
#include "train/hot/hot_table.h"
#include "train/pipeline/joined_ids.h"
#include "train/pipeline/sparse_rows.h"
#include "train/popularity/id_places.h"
#include "train/ranks/exchange.h"
#include "train/ranks/pack_exchange.h"
#include "train/ranks/part_buffer.h"
#include "train/ranks/rank_team.h"

namespace embank {

// The rows and bytes that swaps have moved, on this rank. All hot rows would move at each of them
// without notes.
struct SwapCounts {
  uint64_t to_hot = 0;
  uint64_t to_cold = 0;
  uint64_t rows_to_hot = 0;
  uint64_t rows_to_cold = 0;  // those before checkpoints and predictions, too
  uint64_t bytes = 0;
  uint64_t bytes_of_all_rows = 0;  // that swaps without notes would have moved
};

// Takes packs from AsReplicated. SparseRows says which calls may run at once; all others are for
// one thread between batches, and all ranks make the same ones.
class HotBag final : public SparseRows, public UpdatedIds {
 public:
  // All tables are of the store of this rank. `ids` has the columns of the features. `slices` are
  // those of the pass. Sums travel as `wire`. All of them outlive it; a team of nullptr: there is
  // one rank.
  HotBag(std::vector<EmbeddingFeature> features, SliceRange slices,
         std::shared_ptr<const HotIds> ids, RankTeam* team, ValueType wire, DeviceLink* link);

  // Brings the rows up to date, unless they are. The statuses of Lookup, GetState and
  // Exchange::Run. With several ranks the failure of a store is kept for the next vote, and the
  // rows stay out of date.
  Status SwapToHot();
  // Brings the store up to date. Until the next swap to hot, its rows are the ones that change.
  // The statuses of Upsert: changed rows are in the bag still. With several ranks that is kept.
  Status SwapToCold();
  // Brings the store up to date, and goes on with hot batches. Statuses are those of SwapToCold.
  Status WriteBack();

  uint32_t OwnersOf(size_t /*feature*/) const override { return 1; }
  bool has_link() const override { return team_ != nullptr; }
  void Begin(std::span<const uint64_t> ids_max) override;
  Status ShuffleIds(const Pack& pack, SliceRange micro_batch, BatchIds* ids) override;
  // DATA_LOSS: an id is not hot.
  Status Gather(const Pack& pack, SliceRange micro_batch, MissingRule rule, BatchIds* ids) override;
  Status ShuffleSums(const Pack& pack, SliceRange micro_batch) override;
  Status Update(const Pack& pack, const RowUpdate& update) override;
  // Ids whose sum or step was not finite, on the first rank: all make the same steps.
  uint64_t left_out() const override { return left_out_.load(std::memory_order_relaxed); }

  // Notes rows of the store that a cold batch has updated.
  void Note(uint32_t feature, KeySpan ids) override;

  // All hot rows, and their bytes.
  uint64_t rows() const;
  uint64_t bytes() const;
  const SwapCounts& swaps() const { return swaps_; }
  // A checksum of all rows that were swapped in and all steps: equal on all ranks.
  uint32_t Crc32c() const;

 private:
  struct MicroBatch {
    PackExchange exchange;
    bool is_in_batch = false;
  };
  MicroBatch& Of(const Pack& pack, uint32_t first_slice) {
    return micro_batches_[pack.features[0] * slices_.size() + first_slice - slices_.begin];
  }
  HotTable* TableOf(uint32_t feature) { return table_of_feature_[feature]; }
  bool IsOwn(size_t table, Key id) const;
  std::vector<SumRun> RunsOf(const Pack& pack);
  const uint32_t* PlacesOf(const SumRun& run) const;
  StatusOr<bool> TakeOfRanks(const Status& read, const std::vector<HotTable::Rows>& own,
                             uint64_t* bytes);
  void LayOwn(const std::vector<HotTable::Rows>& rows, PartBuffer* sent) const;
  uint64_t TakeRows(size_t table, std::span<const uint32_t> places,
                    std::span<const std::byte> rows);
  Status Kept(const Status& status);

  const std::vector<EmbeddingFeature> features_;
  const SliceRange slices_;
  const std::shared_ptr<const HotIds> ids_;
  RankTeam* const team_;
  DeviceLink* const link_;
  std::deque<HotTable> tables_;
  std::vector<HotTable*> table_of_feature_;
  std::vector<uint8_t> is_replicated_;  // of each table: each rank has all rows in its store
  bool is_hot_ = false;
  SwapCounts swaps_;
  // One rank has its ids here, and the place of each; several have them in the others.
  JoinedIds joined_;
  std::vector<std::vector<uint32_t>> places_;  // of each feature
  std::vector<MicroBatch> micro_batches_;
  std::atomic<uint64_t> left_out_{0};
};

// The packs of hot batches: the ids and sums of each go to all ranks.
std::vector<Pack> AsReplicated(std::span<const Pack> packs);

}  // namespace embank

#endif  // EMBANK_TRAIN_HOT_HOT_BAG_H_
