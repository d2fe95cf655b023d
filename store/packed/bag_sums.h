// Pools the rows of bags, chunk by chunk. docs/arithmetic.md, "Pooling".
#ifndef EMBANK_STORE_PACKED_BAG_SUMS_H_
#define EMBANK_STORE_PACKED_BAG_SUMS_H_

#include <cstddef>
#include <cstdint>

#include "store/packed/feature.h"

namespace embank {

// The sum of the weights of a bag, of a feature that has weights.
float SumOfWeights(const Feature& feature, uint64_t bag);
// The divisor of a bag of n keys, at least one: 1, n, the square root of n, or, of a mean with
// weights, their sum. If that is 0, the bag gives zeros.
float PoolingDivisor(const Feature& feature, uint64_t bag);

class BagSums {
 public:
  explicit BagSums(const LookupFeature& feature) : feature_(feature) {}

  // Sets all sums to zero.
  void Begin() const;
  // Adds the vectors of the keys [begin, begin + count), which are packed and aligned, each to the
  // sum of its bag. Chunks come in order. `shared`: on the threads of the store.
  void Add(uint64_t begin, uint64_t count, const std::byte* vectors, bool shared) const;
  // Divides the sums as the pooling says.
  void End() const;

 private:
  void AddToBag(uint64_t bag, uint64_t begin, uint64_t end, const std::byte* vectors) const;
  // Adds `count` values of each vector, from `first` on.
  void AddSlice(uint64_t bag, uint64_t begin, uint64_t end, const std::byte* vectors,
                uint32_t first, uint32_t count) const;

  void Divide(uint64_t bag, float divisor) const;

  const LookupFeature& feature_;
};

}  // namespace embank

#endif  // EMBANK_STORE_PACKED_BAG_SUMS_H_
