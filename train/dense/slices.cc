#include "train/dense/slices.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/seeded_bug.h"

namespace embank {
namespace {

// 16 KiB of each array: eight of them are in a cache while they are added.
constexpr uint64_t kPartFloats = 4096;

// Calls add(i, j) for each node of the tree, from the leaves on.
template <typename Add>
void ForEachNode(uint32_t slices, Add add) {
  for (uint64_t distance = 1; distance < slices; distance *= 2) {
    for (uint64_t i = 0; i + distance < slices; i += 2 * distance) add(i, i + distance);
  }
}

}  // namespace

SampleRange SliceOf(uint32_t samples, uint32_t slices, uint32_t slice) {
  EMBANK_CHECK(slice < slices);
  return {static_cast<uint32_t>(uint64_t{samples} * slice / slices),
          static_cast<uint32_t>(uint64_t{samples} * (slice + 1) / slices)};
}

void SumSlices(Executor* executor, uint32_t slices, std::span<float> arrays) {
  EMBANK_CHECK(slices > 0 && arrays.size() % slices == 0);
  const uint64_t size = arrays.size() / slices;
  const uint64_t parts = (size + kPartFloats - 1) / kPartFloats;
  EMBANK_CHECK(parts <= UINT32_MAX);
  executor->ParallelFor(static_cast<uint32_t>(parts), [&](uint32_t part) {
    const uint64_t begin = part * kPartFloats;
    const uint64_t end = std::min(size, begin + kPartFloats);
    ForEachNode(slices, [&](uint64_t to, uint64_t from) {
      float* __restrict const sum = arrays.data() + to * size;
      const float* __restrict const other = arrays.data() + from * size;
      for (uint64_t i = begin; i < end; ++i) sum[i] += other[i];
    });
  });
}

double SumSlices(std::span<const double> values) {
  EMBANK_CHECK(!values.empty());
  std::vector<double> sums(values.begin(), values.end());
  if (Seeded(SeededBug::kSliceSummedTwice)) sums[0] += sums.back();
  ForEachNode(static_cast<uint32_t>(sums.size()),
              [&](uint64_t to, uint64_t from) { sums[to] += sums[from]; });
  return sums[0];
}

}  // namespace embank
