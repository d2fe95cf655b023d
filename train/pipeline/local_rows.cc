#include "train/pipeline/local_rows.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "store/packed/packed_lookup.h"
#include "train/pipeline/grown_array.h"
#include "train/pipeline/row_steps.h"

namespace embank {

LocalRows::LocalRows(std::vector<EmbeddingFeature> features, SliceRange slices)
    : features_(std::move(features)), slices_(slices), memory_(features_.size()) {}

void LocalRows::Begin(std::span<const uint64_t> ids_max) {
  EMBANK_CHECK(ids_max.size() == features_.size());
  for (size_t i = 0; i < features_.size(); ++i) {
    Grow(ids_max[i], &memory_[i].ids);
    Grow(ids_max[i], &memory_[i].touches);
    Grow(ids_max[i] * features_[i].dim, &memory_[i].rows);
    Grow(ids_max[i] * features_[i].dim, &memory_[i].sums);
    memory_[i].runs.assign(slices_.size(), {});
  }
}

// Puts the ids of a micro-batch one behind the other, where the first slice's have their place.
LocalRows::Run LocalRows::Join(size_t feature, SliceRange micro_batch, BatchIds* ids) {
  FeatureMemory& memory = memory_[feature];
  const uint32_t dim = features_[feature].dim;
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
  return {begin, end - begin};
}

Status LocalRows::Gather(const Pack& pack, SliceRange micro_batch, MissingRule rule,
                         BatchIds* ids) {
  std::vector<LookupFeature> features;
  for (const uint32_t i : pack.features) {
    FeatureMemory& memory = memory_[i];
    const Run run = Join(i, micro_batch, ids);
    memory.runs[micro_batch.begin - slices_.begin] = run;
    const uint32_t dim = features_[i].dim;
    LookupFeature& feature = features.emplace_back();
    feature.table = features_[i].table;
    feature.keys = KeySpan(memory.ids).subspan(run.begin, run.count);
    feature.touches = std::span(memory.touches).subspan(run.begin, run.count);
    feature.rows = {reinterpret_cast<std::byte*>(memory.rows.data() + run.begin * dim),
                    dim * sizeof(float)};
  }
  return LookupPacked(features, rule);
}

Status LocalRows::Update(const Pack& pack, const RowUpdate& update) {
  std::vector<SumRun> runs;
  for (const uint32_t i : pack.features) {
    FeatureMemory& memory = memory_[i];
    for (const Run& run : memory.runs) {
      if (run.count == 0) continue;
      runs.push_back({.feature = i,
                      .ids = std::span(memory.ids).subspan(run.begin, run.count),
                      .sums = memory.sums.data() + run.begin * features_[i].dim});
    }
  }
  IdsLeftOut left_out;
  Status status = StepRows(features_, std::move(runs), update, &left_out);
  left_out_.fetch_add(left_out.not_finite, std::memory_order_relaxed);
  if (update.lost != nullptr) update.lost->Count(left_out.lost);
  return status;
}

}  // namespace embank
