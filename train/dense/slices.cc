#include "train/dense/slices.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "base/simd_clones.h"
#include "tiers/row/row_update.h"

namespace embank {
namespace {

// 16 KiB of each array: eight of them are in a cache while they are added.
constexpr uint64_t kPartFloats = 4096;

EMBANK_SIMD_CLONES void AddPart(uint64_t count, const float* __restrict other,
                                float* __restrict sum) {
  for (uint64_t i = 0; i < count; ++i) sum[i] += other[i];
}

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

bool SumSlices(Executor* executor, uint32_t slices, std::span<float> arrays) {
  EMBANK_CHECK(slices > 0 && arrays.size() % slices == 0);
  const uint64_t size = arrays.size() / slices;
  const uint64_t parts = (size + kPartFloats - 1) / kPartFloats;
  EMBANK_CHECK(parts <= UINT32_MAX);
  std::atomic<bool> are_finite = true;
  executor->ParallelFor(static_cast<uint32_t>(parts), [&](uint32_t part) {
    const uint64_t begin = part * kPartFloats;
    const uint64_t count = std::min(size - begin, kPartFloats);
    float* const first = arrays.data() + begin;
    ForEachNode(slices, [&](uint64_t to, uint64_t from) {
      AddPart(count, first + from * size, first + to * size);
    });
    if (AllFinite(reinterpret_cast<const std::byte*>(first), static_cast<uint32_t>(count))) return;
    are_finite.store(false, std::memory_order_relaxed);
  });
  return are_finite.load(std::memory_order_relaxed);
}

void SumSlices(uint32_t slices, uint64_t begin, uint64_t count, std::span<float> arrays) {
  EMBANK_CHECK(slices > 0 && arrays.size() % slices == 0);
  const uint64_t size = arrays.size() / slices;
  EMBANK_CHECK(begin + count <= size);
  for (const uint64_t end = begin + count; begin < end; begin += kPartFloats) {
    float* const first = arrays.data() + begin;
    ForEachNode(slices, [&](uint64_t to, uint64_t from) {
      AddPart(std::min(end - begin, kPartFloats), first + from * size, first + to * size);
    });
  }
}

void SumSlices(uint32_t slices, std::span<float> arrays) {
  SumSlices(slices, 0, arrays.size() / slices, arrays);
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
