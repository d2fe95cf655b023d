#include "store/packed/bag_sums.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "base/seeded_bug.h"
#include "base/simd_clones.h"
#include "base/threads/executor.h"

namespace embank {
namespace {

// Bags that one task pools, at least.
constexpr uint64_t kBagsPerTask = 16;

EMBANK_SIMD_CLONES void AddRow(const float* __restrict row, uint32_t dim, float* __restrict sum) {
  for (uint32_t i = 0; i < dim; ++i) sum[i] += row[i];
}

EMBANK_SIMD_CLONES void AddScaled(const float* __restrict row, uint32_t dim, float scale,
                                  float* __restrict sum) {
  for (uint32_t i = 0; i < dim; ++i) sum[i] += scale * row[i];
}

// A row of the caller's may be unaligned, so that sums are made in rows of ours; slices of 1 KiB,
// because a thread may have a small stack.
constexpr uint32_t kSliceFloats = 256;
using SliceFloats = std::array<float, kSliceFloats>;

// `count` values of the vector from `first` on as floats: in place, or widened.
const float* AsFloats(const std::byte* vector, ValueType type, uint32_t first, uint32_t count,
                      float* widened) {
  if (type == ValueType::kF32) return reinterpret_cast<const float*>(vector) + first;
  const auto* const halves = reinterpret_cast<const uint16_t*>(vector) + first;
  for (uint32_t i = 0; i < count; ++i) {
    widened[i] = type == ValueType::kF16 ? F16ToFloat(halves[i]) : Bf16ToFloat(halves[i]);
  }
  return widened;
}

}  // namespace

float SumOfWeights(const Feature& feature, uint64_t bag) {
  float sum = 0.0f;
  for (uint64_t i = feature.offsets[bag]; i < feature.offsets[bag + 1]; ++i) {
    sum += feature.weights[i];
  }
  return sum;
}

void BagSums::Begin() const {
  const size_t bytes = feature_.table->layout().dim * sizeof(float);
  for (uint64_t bag = 0; bag < feature_.bags(); ++bag) {
    std::memset(feature_.rows.Row(bag), 0, bytes);
  }
}

void BagSums::Add(uint64_t begin, uint64_t count, const std::byte* vectors, bool shared) const {
  EMBANK_CHECK(begin + count <= feature_.keys.size());
  const auto& offsets = feature_.offsets;
  begin += offsets[0];
  const uint64_t end = begin + count;
  // The last bag that begins at or before the first key, and the one behind the last key's.
  const auto bag_of = [&](uint64_t key) {
    return static_cast<uint64_t>(std::ranges::upper_bound(offsets, key) - offsets.begin()) - 1;
  };
  const uint64_t first = bag_of(begin);
  const uint64_t bags = bag_of(end - 1) + 1 - first;
  const auto add = [&](uint64_t from, uint64_t to) {
    for (uint64_t bag = from; bag < to; ++bag) {
      const uint64_t bag_begin = std::max(offsets[bag], begin);
      const uint64_t bag_end = std::min(offsets[bag + 1], end);
      if (bag_begin >= bag_end) continue;
      AddToBag(bag, bag_begin, bag_end,
               vectors + (bag_begin - begin) * feature_.table->layout().vector_bytes);
    }
  };
  const uint64_t tasks = shared ? bags / kBagsPerTask : 0;
  if (tasks < 2) return add(first, first + bags);
  feature_.table->parts().executor->ParallelFor(static_cast<uint32_t>(tasks), [&](uint32_t task) {
    add(first + bags * task / tasks, first + bags * (task + 1) / tasks);
  });
}

void BagSums::AddToBag(uint64_t bag, uint64_t begin, uint64_t end, const std::byte* vectors) const {
  const uint32_t dim = feature_.table->layout().dim;
  for (uint32_t first = 0; first < dim; first += kSliceFloats) {
    AddSlice(bag, begin, end, vectors, first, std::min(kSliceFloats, dim - first));
  }
}

void BagSums::AddSlice(uint64_t bag, uint64_t begin, uint64_t end, const std::byte* vectors,
                       uint32_t first, uint32_t count) const {
  const RowLayout& layout = feature_.table->layout();
  SliceFloats sum;
  SliceFloats widened;
  std::byte* const out = feature_.rows.Row(bag) + first * sizeof(float);
  std::memcpy(sum.data(), out, count * sizeof(float));
  for (uint64_t i = begin; i < end; ++i, vectors += layout.vector_bytes) {
    const float* const values = AsFloats(vectors, layout.value_type, first, count, widened.data());
    if (feature_.weights == nullptr) {
      AddRow(values, count, sum.data());
    } else {
      AddScaled(values, count, feature_.weights[i], sum.data());
    }
  }
  std::memcpy(out, sum.data(), count * sizeof(float));
}

[[gnu::always_inline]] inline void BagSums::Divide(uint64_t bag, uint32_t dim,
                                                   float divisor) const {
  if (feature_.weights != nullptr && divisor == 0.0f) {
    std::memset(feature_.rows.Row(bag), 0, dim * sizeof(float));
    return;
  }
  SliceFloats slice;
  for (uint32_t first = 0; first < dim; first += kSliceFloats) {
    const uint32_t count = std::min(kSliceFloats, dim - first);
    std::byte* const out = feature_.rows.Row(bag) + first * sizeof(float);
    std::memcpy(slice.data(), out, count * sizeof(float));
    for (uint32_t i = 0; i < count; ++i) slice[i] /= divisor;
    std::memcpy(out, slice.data(), count * sizeof(float));
  }
}

void BagSums::End() const {
  if (feature_.pooling == Pooling::kSum) return;
  const uint32_t dim = feature_.table->layout().dim;
  const uint64_t size_min = feature_.weights == nullptr ? 2 : 1;  // of those that change
  for (uint64_t bag = 0; bag < feature_.bags(); ++bag) {
    const uint64_t keys = feature_.bag_size(bag);
    if (keys < size_min && !(keys == 0 && Seeded(SeededBug::kEmptyBagDivided))) continue;
    Divide(bag, dim, keys == 0 ? 0.0f : PoolingDivisor(feature_, bag));
  }
}

}  // namespace embank
