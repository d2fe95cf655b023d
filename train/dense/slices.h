// Slices: the equal parts of a batch that make results independent of the number of threads. Each
// slice has sums of its own, and the sums of the slices are added in a fixed order.
#ifndef EMBANK_TRAIN_DENSE_SLICES_H_
#define EMBANK_TRAIN_DENSE_SLICES_H_

#include <cstdint>
#include <span>

#include "base/threads/executor.h"

namespace embank {

// A run that says nothing else has so many slices. The number is a part of "the same result".
inline constexpr uint32_t kSlicesDefault = 8;

struct SampleRange {
  uint32_t begin;
  uint32_t end;  // not included
};

// Returns slice number `slice` of `slices` (at least one). The sizes differ by one sample at most.
SampleRange SliceOf(uint32_t samples, uint32_t slices, uint32_t slice);

// Adds arrays of equal size, which stand one behind the other, into the first one, as a balanced
// tree: array i gets array i + 1 for even i, then array i + 2 for every fourth i, and so on. The
// others are left with sums of parts. The bits do not depend on the number of threads. Returns
// whether all sums are finite.
bool SumSlices(Executor* executor, uint32_t slices, std::span<float> arrays);

// Adds the same way, on this thread alone: all values, or `count` of each array from `begin` on.
void SumSlices(uint32_t slices, std::span<float> arrays);
void SumSlices(uint32_t slices, uint64_t begin, uint64_t count, std::span<float> arrays);

// Returns the sum of one value of each slice, by the same tree.
double SumSlices(std::span<const double> values);

}  // namespace embank

#endif  // EMBANK_TRAIN_DENSE_SLICES_H_
