#include "train/ranks/owned_bags.h"

#include <algorithm>

#include "base/check.h"
#include "base/simd_clones.h"

namespace embank {
namespace {

EMBANK_SIMD_CLONES void AddTimes(float weight, const float* __restrict from, uint32_t dim,
                                 float* __restrict sum) {
  for (uint32_t i = 0; i < dim; ++i) sum[i] += weight * from[i];
}

// Calls add(id, bag, weight) for each occurrence.
template <typename Add>
void ForEachOccurrence(const OwnedBags& bags, Add add) {
  size_t next = 0;
  for (size_t id = 0; id < bags.touches.size(); ++id) {
    for (uint32_t i = 0; i < bags.touches[id]; ++i, ++next) {
      EMBANK_CHECK(next < bags.bags.size() && bags.bags[next] < bags.count);
      add(id, bags.bags[next], bags.weights.empty() ? 1.0f : bags.weights[next]);
    }
  }
  EMBANK_CHECK(next == bags.bags.size());
}

}  // namespace

void SumRowsOfBags(const OwnedBags& bags, const float* rows, float* sums) {
  std::fill_n(sums, uint64_t{bags.count} * bags.dim, 0.0f);
  ForEachOccurrence(bags, [&](uint64_t id, uint64_t bag, float weight) {
    AddTimes(weight, rows + id * bags.dim, bags.dim, sums + bag * bags.dim);
  });
}

void SumGradientsOfIds(const OwnedBags& bags, const float* gradients, float* sums) {
  std::fill_n(sums, bags.touches.size() * bags.dim, 0.0f);
  ForEachOccurrence(bags, [&](uint64_t id, uint64_t bag, float weight) {
    AddTimes(weight, gradients + bag * bags.dim, bags.dim, sums + id * bags.dim);
  });
}

}  // namespace embank
