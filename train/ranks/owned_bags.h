// Sums at the owner of rows: the rows of a bag on their way to a rank, and the gradients of bags on
// their way to rows.
#ifndef EMBANK_TRAIN_RANKS_OWNED_BAGS_H_
#define EMBANK_TRAIN_RANKS_OWNED_BAGS_H_

#include <cstdint>
#include <span>

namespace embank {

// The bags of a rank that have ids of this owner, as train/pipeline/bag_map.h maps them.
struct OwnedBags {
  std::span<const uint16_t> touches;  // of each distinct id
  std::span<const uint16_t> bags;     // of each occurrence, id by id
  std::span<const float> weights;     // of each occurrence; empty: all are 1
  uint32_t count = 0;                 // of bags
  uint32_t dim = 0;
};

// Writes the sum of the rows of each bag, id by id, times their weights. A row of each distinct id
// stands behind the other, and so do the sums.
void SumRowsOfBags(const OwnedBags& bags, const float* rows, float* sums);
// Writes the sum of the gradients of the bags of each distinct id, bag by bag, times its weights.
void SumGradientsOfIds(const OwnedBags& bags, const float* gradients, float* sums);

}  // namespace embank

#endif  // EMBANK_TRAIN_RANKS_OWNED_BAGS_H_
