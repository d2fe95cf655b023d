// Pools the rows of bags, chunk by chunk. docs/arithmetic.md, "Pooling".
#ifndef EMBANK_STORE_PACKED_BAG_SUMS_H_
#define EMBANK_STORE_PACKED_BAG_SUMS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "store/batch/batch.h"
#include "store/packed/feature.h"

namespace embank {

// The sum of the weights of a bag, of a feature that has weights.
float SumOfWeights(const Feature& feature, uint64_t bag);
// The divisor of a bag of n keys, at least one: 1, n, the square root of n, or, of a mean with
// weights, their sum. If that is 0, the bag gives zeros.
inline float PoolingDivisor(const Feature& feature, uint64_t bag) {
  const uint64_t keys = feature.bag_size(bag);
  EMBANK_CHECK(keys > 0);
  if (feature.pooling == Pooling::kSum) return 1.0f;
  const auto n = static_cast<float>(keys);
  if (feature.pooling == Pooling::kSqrtN) return std::sqrt(n);
  return feature.weights == nullptr ? n : SumOfWeights(feature, bag);
}

class BagSums {
 public:
  explicit BagSums(const LookupFeature& feature) : feature_(feature) {}

  // Sets all sums to zero.
  void Begin() const { Clear(0, feature_.bags()); }
  void Clear(uint64_t begin, uint64_t count) const;
  // Adds the vectors of the keys [begin, begin + count), which are packed and aligned, each to the
  // sum of its bag. Chunks come in order. `shared`: on the threads of the store.
  void Add(uint64_t begin, uint64_t count, const std::byte* vectors, bool shared) const;
  // Whether AddFromSlots can be used: rows of floats, of a whole number of lines, of a table that
  // neither forgets rows nor keeps them in the order of their last use, in a store without device
  // memory.
  bool CanAddFromSlots() const;
  // Does the work of a lookup and of Add for the leading keys of a batch of the feature's keys from
  // `begin` on, as long as their rows are in DRAM: their vectors are added while they are read.
  // Batch::answered tells how many. Takes no lock; inside no EpochTable::Guard.
  void AddFromSlots(Batch* batch, uint64_t begin) const;
  // Divides the sums as the pooling says.
  void End() const;

  // Whether each bag has one f32 row without a weight. Then the caller may write the rows of the
  // keys where their sums are to be and call AddZero for them; it needs none of the functions
  // above.
  bool AreRows() const;
  void AddZero(uint64_t begin, uint64_t count) const;

 private:
  // The bag of a key: the last one that begins at or before it.
  uint64_t BagOf(uint64_t key) const;
  void AddToBag(uint64_t bag, uint64_t begin, uint64_t end, const std::byte* vectors) const;
  // Adds `count` values of each vector, from `first` on.
  void AddSlice(uint64_t bag, uint64_t begin, uint64_t end, const std::byte* vectors,
                uint32_t first, uint32_t count) const;

  void Divide(uint64_t bag, uint32_t dim, float divisor) const;

  const LookupFeature& feature_;
};

}  // namespace embank

#endif  // EMBANK_STORE_PACKED_BAG_SUMS_H_
