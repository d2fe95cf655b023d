#include "train/pipeline/joined_ids.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/memory/grown_array.h"

namespace embank {

JoinedIds::JoinedIds(std::vector<uint32_t> dims, SliceRange slices)
    : dims_(std::move(dims)), slices_(slices), memory_(dims_.size()) {}

void JoinedIds::Begin(std::span<const uint64_t> ids_max) {
  EMBANK_CHECK(ids_max.size() == dims_.size());
  for (size_t i = 0; i < dims_.size(); ++i) {
    Grow(ids_max[i], &memory_[i].ids);
    Grow(ids_max[i], &memory_[i].touches);
    Grow(ids_max[i] * dims_[i], &memory_[i].rows);
    Grow(ids_max[i] * dims_[i], &memory_[i].sums);
    memory_[i].places.assign(slices_.size(), {});
  }
}

// They begin where the first slice's have their place.
JoinedIds::Run JoinedIds::Join(size_t feature, SliceRange micro_batch, BatchIds* ids) {
  FeatureMemory& memory = memory_[feature];
  const uint32_t dim = dims_[feature];
  const uint64_t begin = ids->Of(feature, micro_batch.begin).ids_before;
  uint64_t end = begin;
  for (uint32_t slice = micro_batch.begin; slice < micro_batch.end; ++slice) {
    SliceIds& of_slice = ids->Of(feature, slice);
    of_slice.rows[0] = memory.rows.data() + end * dim;
    of_slice.sums[0] = memory.sums.data() + end * dim;
    std::ranges::copy(of_slice.ids, memory.ids.begin() + static_cast<int64_t>(end));
    std::ranges::copy(of_slice.touches, memory.touches.begin() + static_cast<int64_t>(end));
    end += of_slice.ids.size();
  }
  const uint64_t count = end - begin;
  memory.places[micro_batch.begin - slices_.begin] = {begin, count};
  return {.ids = KeySpan(memory.ids).subspan(begin, count),
          .touches = std::span(memory.touches).subspan(begin, count),
          .rows = memory.rows.data() + begin * dim};
}

void JoinedIds::AddSums(uint32_t feature, std::vector<SumRun>* runs) {
  FeatureMemory& memory = memory_[feature];
  for (const Place& place : memory.places) {
    if (place.count == 0) continue;
    runs->push_back({.feature = feature,
                     .ids = std::span(memory.ids).subspan(place.begin, place.count),
                     .sums = memory.sums.data() + place.begin * dims_[feature]});
  }
}

}  // namespace embank
