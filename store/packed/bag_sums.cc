#include "store/packed/bag_sums.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "base/seeded_bug.h"
#include "base/simd_clones.h"
#include "base/threads/executor.h"
#include "store/batch/key_group.h"
#include "store/batch/row_group.h"
#include "store/batch/touches.h"
#include "store/placement/row_mover.h"
#include "tiers/row/row_copy.h"

namespace embank {
namespace {

// Bags that one task pools, at least.
constexpr uint64_t kBagsPerTask = 16;

// Sums next to each other, which the compiler keeps in registers of any width.
using WideSums = float __attribute__((vector_size(64)));
using NarrowSums = float __attribute__((vector_size(16)));

// Rows of floats, `stride` floats apart.
struct FloatRows {
  const float* first;
  uint64_t count;
  uint64_t stride;
  const float* weights;  // one for each row, or nullptr: all are 1
};

// Adds `blocks` times as many floats of each row as Sums has to sum[at], ..., in the order of rows.
template <typename Sums, uint32_t blocks, bool is_weighted>
[[gnu::always_inline]] inline uint32_t AddBlocks(const FloatRows& rows, uint32_t at, float* sum) {
  Sums sums[blocks];
  std::memcpy(sums, sum + at, sizeof(sums));
  const float* row = rows.first + at;
  for (uint64_t i = 0; i < rows.count; ++i, row += rows.stride) {
    Sums values[blocks];
    std::memcpy(values, row, sizeof(values));
    for (uint32_t block = 0; block < blocks; ++block) {
      sums[block] += is_weighted ? rows.weights[i] * values[block] : values[block];
    }
  }
  std::memcpy(sum + at, sums, sizeof(sums));
  return at + blocks * static_cast<uint32_t>(sizeof(Sums) / sizeof(float));
}

// Adds `dim` floats of each row to `sum`: one call for all rows of a bag, so that sums stay in
// registers, and the instruction set is chosen once.
template <bool is_weighted>
[[gnu::always_inline]] inline void AddRowsOf(const FloatRows& rows, uint32_t dim, float* sum) {
  uint32_t at = 0;
  while (at + 64 <= dim) at = AddBlocks<WideSums, 4, is_weighted>(rows, at, sum);
  while (at + 16 <= dim) at = AddBlocks<WideSums, 1, is_weighted>(rows, at, sum);
  while (at + 4 <= dim) at = AddBlocks<NarrowSums, 1, is_weighted>(rows, at, sum);
  for (; at < dim; ++at) {
    for (uint64_t i = 0; i < rows.count; ++i) {
      const float value = rows.first[i * rows.stride + at];
      sum[at] += is_weighted ? rows.weights[i] * value : value;
    }
  }
}
EMBANK_SIMD_CLONES void AddRows(const FloatRows& rows, uint32_t dim, float* sum) {
  AddRowsOf<false>(rows, dim, sum);
}
EMBANK_SIMD_CLONES void AddWeightedRows(const FloatRows& rows, uint32_t dim, float* sum) {
  AddRowsOf<true>(rows, dim, sum);
}
void AddTo(float* sum, uint32_t dim, const FloatRows& rows) {
  rows.weights == nullptr ? AddRows(rows, dim, sum) : AddWeightedRows(rows, dim, sum);
}

// The row of a caller may be unaligned.
void AddZeroTo(std::byte* row, uint32_t dim) {
  for (uint32_t i = 0; i < dim; ++i, row += sizeof(float)) {
    float value;
    std::memcpy(&value, row, sizeof(value));
    value += 0.0f;
    std::memcpy(row, &value, sizeof(value));
  }
}

// A row of the caller's may be unaligned, so that sums are made in rows of ours; slices of 1 KiB,
// because a thread may have a small stack.
constexpr uint32_t kSliceFloats = 256;
using SliceFloats = std::array<float, kSliceFloats>;

// `count` values of a vector of 16 bits each, from `first` on, as floats.
void Widen(const std::byte* vector, ValueType type, uint32_t first, uint32_t count,
           float* widened) {
  const auto* const halves = reinterpret_cast<const uint16_t*>(vector) + first;
  for (uint32_t i = 0; i < count; ++i) {
    widened[i] = type == ValueType::kF16 ? F16ToFloat(halves[i]) : Bf16ToFloat(halves[i]);
  }
}

}  // namespace

float SumOfWeights(const Feature& feature, uint64_t bag) {
  float sum = 0.0f;
  for (uint64_t i = feature.offsets[bag]; i < feature.offsets[bag + 1]; ++i) {
    sum += feature.weights[i];
  }
  return sum;
}

bool BagSums::AreRows() const {
  const auto& offsets = feature_.offsets;
  if (feature_.bags() != feature_.keys.size() || feature_.weights != nullptr) return false;
  uint64_t others = 0;  // counted without a branch
  for (size_t i = 1; i < offsets.size(); ++i) others += offsets[i] - offsets[i - 1] != 1 ? 1 : 0;
  return others == 0 && feature_.table->layout().value_type == ValueType::kF32;
}

void BagSums::AddZero(uint64_t begin, uint64_t count) const {
  for (uint64_t bag = begin; bag < begin + count; ++bag) {
    AddZeroTo(feature_.rows.Row(bag), feature_.table->layout().dim);
  }
}

void BagSums::Clear(uint64_t begin, uint64_t count) const {
  const size_t bytes = feature_.table->layout().dim * sizeof(float);
  for (uint64_t bag = begin; bag < begin + count; ++bag) {
    std::memset(feature_.rows.Row(bag), 0, bytes);
  }
}

uint64_t BagSums::BagOf(uint64_t key) const {
  const auto& offsets = feature_.offsets;
  return static_cast<uint64_t>(std::ranges::upper_bound(offsets, offsets[0] + key) -
                               offsets.begin()) -
         1;
}

void BagSums::Add(uint64_t begin, uint64_t count, const std::byte* vectors, bool shared) const {
  EMBANK_CHECK(begin + count <= feature_.keys.size());
  const auto& offsets = feature_.offsets;
  begin += offsets[0];
  const uint64_t end = begin + count;
  const uint64_t first = BagOf(begin - offsets[0]);
  const uint64_t bags = BagOf(end - 1 - offsets[0]) + 1 - first;
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
  feature_.table->store().executor->ParallelFor(static_cast<uint32_t>(tasks), [&](uint32_t task) {
    add(first + bags * task / tasks, first + bags * (task + 1) / tasks);
  });
}

bool BagSums::CanAddFromSlots() const {
  const Table& table = *feature_.table;
  const RowLayout& layout = table.layout();
  return layout.value_type == ValueType::kF32 && layout.dim % kAddedFloats == 0 &&
         layout.vector_bytes <= kHeldBytesMax && table.store().payloads == nullptr &&
         table.forgetter() == nullptr && table.mover()->OrdersToTouch() == nullptr;
}

void BagSums::AddFromSlots(Batch* batch, uint64_t begin) const {
  EMBANK_CHECK(begin + batch->keys().size() <= feature_.keys.size() && batch->answered() == 0);
  EMBANK_CHECK(CanAddFromSlots() && !batch->keys().empty());
  const Table& table = batch->table();
  const TableKeys keys(table, batch->keys(), table.layout().vector_end_bytes());
  const float* const weights =
      feature_.weights == nullptr ? nullptr : feature_.weights + feature_.offsets[0] + begin;
  HeatTouches touches(*batch);
  uint64_t bag = BagOf(begin);
  bool goes_on = true;
  const auto hash = [&](size_t number, KeyGroup* group) {
    goes_on ? keys.Hash(number, group) : keys.Begin(group);
  };
  const auto add = [&](size_t number, const KeyGroup& group, NextRows next) {
    if (!goes_on) return next.PrefetchFrom(0);
    const auto first = static_cast<uint32_t>(keys.BeginOf(number));
    const Key* const group_keys = batch->keys().data() + first;
    LocatedRows located(table.id(), group, group_keys, next);
    const auto add_rows = [&](size_t i, const RowWatches& rows) {
      const bool skips = Seeded(SeededBug::kRowMissingInSum) && rows.headers[0] != nullptr;
      size_t added = skips && i == 0 ? 1 : 0;
      while (added < rows.size()) {
        const size_t at = first + i + added;
        const uint64_t key = feature_.offsets[0] + begin + at;
        while (key >= feature_.offsets[bag + 1]) ++bag;
        const size_t of_bag = std::min(rows.size() - added, feature_.offsets[bag + 1] - key);
        const size_t added_now =
            AddVectors(rows.Subspan(added, of_bag), table.layout().dim,
                       weights == nullptr ? nullptr : weights + at, feature_.rows.Row(bag));
        added += added_now;
        if (added_now < of_bag) break;
      }
      return added;
    };
    const size_t added = ReadLeadingRows(table, group_keys, group, &located, add_rows);
    touches.Add(first, located.all().Subspan(0, added));
    batch->AnswerLeading(added);
    goes_on = added == group.size();
  };
  table.counters().calls.AddIndexWalk();
  const EpochTable::Guard guard(table.store().epochs);
  RunGroups(*table.store().index, keys.group_count(), hash, add);
  touches.Flush();
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
  const float* const weights = feature_.weights == nullptr ? nullptr : feature_.weights + begin;
  SliceFloats sum;
  std::byte* const out = feature_.rows.Row(bag) + first * sizeof(float);
  std::memcpy(sum.data(), out, count * sizeof(float));
  if (layout.value_type == ValueType::kF32) {
    AddTo(sum.data(), count,
          {reinterpret_cast<const float*>(vectors) + first, end - begin, layout.dim, weights});
  } else {
    SliceFloats widened;
    for (uint64_t i = 0; i < end - begin; ++i, vectors += layout.vector_bytes) {
      Widen(vectors, layout.value_type, first, count, widened.data());
      AddTo(sum.data(), count, {widened.data(), 1, 0, weights == nullptr ? nullptr : weights + i});
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
