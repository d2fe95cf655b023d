// Sums of dense gradients over ranks: a reduce-scatter and an all-gather, each an exchange.
//
//   rank 0   a0 b0 ─┐             ┌─▶ a0 + a1  (rank 0 adds) ─┐           ┌─▶ a b   rank 0
//   rank 1   a1 b1 ─┴─ exchange ──┴─▶ b0 + b1  (rank 1 adds) ─┴─ exchange ┴─▶ a b   rank 1
//
// Ranks are added as a tree in their order: with slices that are cut into equal runs, by powers of
// two, that is the rest of the tree of one process (train/dense/slices.h).
#ifndef EMBANK_TRAIN_RANKS_DENSE_SUMS_H_
#define EMBANK_TRAIN_RANKS_DENSE_SUMS_H_

#include <cstdint>
#include <span>

#include "base/status.h"
#include "train/ranks/exchange.h"
#include "train/ranks/part_buffer.h"

namespace embank {

// One thread at a time. It keeps its memory.
class DenseSums {
 public:
  // The exchange outlives it.
  explicit DenseSums(Exchange* exchange) : exchange_(exchange) {}

  // Replaces the sums of this rank by those of all ranks. All ranks have equal numbers of them. The
  // memory is aligned to kExchangeUnitBytes, and padded with zeros to a multiple of it, which stay.
  // The statuses of Exchange::Run.
  Status Run(std::span<float> sums);

  // The bytes that this rank has sent to others.
  uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  Exchange* const exchange_;
  PartBuffer received_;
  uint64_t bytes_sent_ = 0;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_RANKS_DENSE_SUMS_H_
