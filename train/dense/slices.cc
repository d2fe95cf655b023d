#include "train/dense/slices.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/seeded_bug.h"

namespace embank {
namespace {

// 64 KiB of each array are worth a thread.
constexpr uint64_t kPartFloats = 16384;
// 2 KiB of each array are added at once. A tree of 1,024 arrays has ten such sums on the stack.
constexpr uint64_t kBlockFloats = 512;

// Writes the sums of `count` floats of so many arrays, which are `stride` floats apart. `sum` may
// be the first array.
void AddTree(const float* arrays, uint64_t stride, uint32_t slices, uint64_t count, float* sum) {
  if (slices == 1) {
    if (sum != arrays) std::memcpy(sum, arrays, count * sizeof(float));
    return;
  }
  if (slices == 2) {
    for (uint64_t i = 0; i < count; ++i) sum[i] = arrays[i] + arrays[stride + i];
    return;
  }
  const uint32_t left = std::bit_floor(slices - 1);
  float right[kBlockFloats];
  AddTree(arrays, stride, left, count, sum);
  AddTree(arrays + left * stride, stride, slices - left, count, right);
  for (uint64_t i = 0; i < count; ++i) sum[i] += right[i];
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

void SumSlices(Executor* executor, uint32_t slices, std::span<float> arrays) {
  EMBANK_CHECK(slices > 0 && arrays.size() % slices == 0);
  const uint64_t size = arrays.size() / slices;
  const uint64_t parts = (size + kPartFloats - 1) / kPartFloats;
  EMBANK_CHECK(parts <= UINT32_MAX);
  executor->ParallelFor(static_cast<uint32_t>(parts), [&](uint32_t part) {
    const uint64_t begin = part * kPartFloats;
    const uint64_t end = std::min(size, begin + kPartFloats);
    for (uint64_t i = begin; i < end; i += kBlockFloats) {
      float* const first = arrays.data() + i;
      AddTree(first, size, slices, std::min(kBlockFloats, end - i), first);
    }
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
