#include "train/pipeline/local_rows.h"

#include <utility>

#include "store/packed/packed_lookup.h"
#include "train/pipeline/row_steps.h"

namespace embank {

LocalRows::LocalRows(std::vector<EmbeddingFeature> features, SliceRange slices)
    : features_(std::move(features)), ids_(DimsOf(features_), slices) {}

Status LocalRows::Gather(const Pack& pack, SliceRange micro_batch, MissingRule rule,
                         BatchIds* ids) {
  std::vector<LookupFeature> features;
  for (const uint32_t i : pack.features) {
    const JoinedIds::Run run = ids_.Join(i, micro_batch, ids);
    LookupFeature& feature = features.emplace_back();
    feature.table = features_[i].table;
    feature.keys = run.ids;
    feature.touches = run.touches;
    feature.rows = {reinterpret_cast<std::byte*>(run.rows), features_[i].dim * sizeof(float)};
  }
  return LookupPacked(features, rule);
}

Status LocalRows::Update(const Pack& pack, const RowUpdate& update) {
  std::vector<SumRun> runs;
  for (const uint32_t i : pack.features) ids_.AddSums(i, &runs);
  IdsLeftOut left_out;
  Status status = StepRows(features_, std::move(runs), update, &left_out);
  left_out_.fetch_add(left_out.not_finite, std::memory_order_relaxed);
  if (update.lost != nullptr) update.lost->Count(left_out.lost);
  return status;
}

}  // namespace embank
