// A pack's micro-batch on its way between the ranks: ids go to the owners of their rows, rows come
// back, and sums of gradients go the way of the ids.
//
//   ids    [owner 0: feature a, slice 0 1 .. | feature b, ..][owner 1: ..]  + touches, padding
//   rows   [owner 0: feature a, slice 0 1 .. | feature b, ..][owner 1: ..]  + padding
//
// Rows are received where they are used, and looked up where they are sent from: between an owner's
// slot and the embedding pass there are one copy and the wire (Shuffle&Stitch of PICASSO, Zhang et
// al. 2022, section III-B). The owner has the sums of ranks in the order of their slices.
//
// Where a pack is pooled, the bags of each id go with it. Then the sums of the owner's bags come
// back in place of rows, and the gradients of bags go out (train/pipeline/bag_map.h).
#ifndef EMBANK_TRAIN_RANKS_PACK_EXCHANGE_H_
#define EMBANK_TRAIN_RANKS_PACK_EXCHANGE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "train/pipeline/pack_plan.h"
#include "train/pipeline/row_steps.h"
#include "train/pipeline/sparse_rows.h"
#include "train/ranks/exchange.h"
#include "train/ranks/float_exchange.h"
#include "train/ranks/owned_bags.h"
#include "train/ranks/part_buffer.h"

namespace embank {

// The exchanges of rows: one and the same, or two, so that the ids and rows of a batch may travel
// beside the sums of another one.
struct RowExchanges {
  Exchange* lookups = nullptr;
  Exchange* sums = nullptr;
};

// One thread at a time. It keeps its memory from batch to batch.
class PackExchange {
 public:
  // Features of a table have equal numbers in `features` on all ranks. Rows and sums travel as
  // `wire`, kF32 or kF16. Features and exchanges outlive it.
  PackExchange(std::span<const EmbeddingFeature> features, const RowExchanges& exchanges,
               ValueType wire)
      : features_(features), exchanges_(exchanges), floats_(wire) {}

  // The calls go in this order, and those of all ranks in the same one. SendIds gives the slices
  // places for their rows and sums; SendRows fills those of rows. Of a replicated pack, ids and
  // sums go to all ranks, and rows have their places after Gather. The statuses of Exchange::Run,
  // and of Gather those of LookupPacked.
  Status SendIds(const Pack& pack, SliceRange micro_batch, BatchIds* ids);
  Status Gather(const Pack& pack, MissingRule rule);
  Status SendRows(const Pack& pack);
  Status SendSums(const Pack& pack);

  // The ids and sums of a rank and a feature, by its number in the pack, after SendSums.
  SumRun RunOf(const Pack& pack, size_t number, uint32_t rank);

 private:
  // A rank tells an owner these numbers of a feature before its ids.
  struct Counts {
    uint32_t ids = 0;
    uint32_t bags = 0;         // of a pooled pack
    uint32_t occurrences = 0;  // in these
    uint32_t weights = 0;      // of the occurrences: all or none

    void Add(const Counts& other);
  };
  // A rank's ids of a feature, in a buffer of ids and in one of rows, by bytes.
  struct Place {
    Counts counts;
    uint64_t ids_begin = 0;
    uint64_t weights_begin = 0;
    uint64_t touches_begin = 0;
    uint64_t bags_begin = 0;
    uint64_t rows_begin = 0;
    uint64_t gathered_begin = 0;  // of a pooled pack: the rows of its ids, in `gathered_`
  };
  // The places of one side, by rank and then feature.
  struct Side {
    PartBuffer counts;
    PartBuffer ids;
    PartBuffer rows;
    std::vector<Place> places;
  };

  uint32_t ranks() const { return exchanges_.lookups->ranks(); }
  uint32_t rank() const { return exchanges_.lookups->rank(); }
  // Whether ids, rows and sums of this rank that it owns itself stay where they are. Rows of a
  // replicated pack have another place than their sums, and halves round all floats alike.
  bool KeepsOwn(const Pack& pack) const { return !pack.is_replicated && !floats_.rounds(); }
  // The side that has the ids of a rank which this one owns.
  Side* OwnedSide(const Pack& pack, uint32_t rank) {
    return KeepsOwn(pack) && rank == this->rank() ? &own_ : &owned_;
  }
  uint64_t RowBytes(const Pack& pack) const { return pack.dim * sizeof(float); }
  Place& PlaceOf(Side* side, uint32_t rank, size_t number) {
    return side->places[rank * features_in_pack_ + number];
  }
  void CountIds(const Pack& pack, SliceRange micro_batch, const BatchIds& ids);
  Status ExchangeCounts(const Pack& pack);
  void KeepOwn();
  uint64_t PlanParts(const Pack& pack, bool is_one_part, Side* side);
  void WriteIds(const Pack& pack, SliceRange micro_batch, const BatchIds& ids);
  void GivePlaces(const Pack& pack, SliceRange micro_batch, BatchIds* ids);
  OwnedBags BagsOf(const Pack& pack, size_t number, uint32_t rank);
  float* RowsOf(const Pack& pack, size_t number, uint32_t rank);

  const std::span<const EmbeddingFeature> features_;
  const RowExchanges exchanges_;
  FloatExchange floats_;
  size_t features_in_pack_ = 0;
  Side own_;    // the ids of this rank, by owner
  Side owned_;  // the ids of all ranks that this one owns, by rank
  // A pooled pack has the rows of owned ids here, and then the sums of their gradients.
  std::vector<float> gathered_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_RANKS_PACK_EXCHANGE_H_
