#include "store/packed/packed_lookup.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "base/memory/scratch.h"
#include "base/status_macros.h"
#include "store/batch/batch.h"
#include "store/batch/lookup.h"
#include "store/batch/write_scope.h"
#include "store/packed/bag_sums.h"
#include "store/packed/table_groups.h"

namespace embank {
namespace {

// Vectors of a chunk stay in the second-level cache until they are pooled. A chunk that threads
// share has so many keys that they do (Batch::kSharedKeys), where rows are short.
constexpr uint64_t kChunkBytes = uint64_t{256} << 10;
constexpr uint64_t kSharedChunkBytes = uint64_t{4} << 20;

uint64_t ChunkKeys(const TableGroup& group) {
  const uint64_t vector_bytes = group.table->layout().vector_bytes;
  const uint64_t bytes = group.is_large ? kSharedChunkBytes : kChunkBytes;
  const uint64_t keys_max = group.is_large ? 2 * Batch::kSharedKeys : Batch::kSharedKeys / 2;
  return std::clamp<uint64_t>(bytes / vector_bytes, 1, keys_max);
}

// The features of one table.
class TableLookup {
 public:
  TableLookup(const TableGroup& group, std::span<const LookupFeature> features, MissingRule rule)
      : group_(group),
        features_(features),
        rule_(rule),
        begin_ns_(group.table->parts().clock->NowNs()),
        chunk_keys_(ChunkKeys(group)),
        total_(group.table, {}, {}) {}

  // kResourceExhausted.
  Status Allocate() {
    uint64_t pooled = 0;
    uint64_t without_outcomes = 0;
    for (const size_t i : group_.features) {
      const LookupFeature& feature = features_[i];
      const bool is_pooled = feature.pooling != Pooling::kNone;
      const uint64_t keys = feature.keys.size();
      if (is_pooled) pooled = std::max(pooled, std::min(keys, chunk_keys_));
      if (feature.outcomes.empty()) {
        without_outcomes = std::max(without_outcomes, is_pooled ? std::min(keys, chunk_keys_) : 0);
      }
    }
    const uint64_t vectors_bytes = pooled * group_.table->layout().vector_bytes;
    EMBANK_RETURN_IF_ERROR(vectors_.Allocate((vectors_bytes + 3) / sizeof(float)));
    return outcomes_.Allocate(without_outcomes);
  }

  void Run() {
    for (const size_t i : group_.features) {
      first_failure_.Update(LookUp(features_[i]));
    }
  }

  // Counts the lookup. Returns the status of the first feature that has one.
  Status Finish(std::vector<KeySpan>* keys) {
    keys->clear();
    for (const size_t i : group_.features) keys->push_back(features_[i].keys);
    CountLookup(&total_, *keys, begin_ns_);
    return first_failure_;
  }

 private:
  Status LookUp(const LookupFeature& feature) {
    if (feature.pooling == Pooling::kNone) {
      return LookUpKeys(feature.keys, rule_, feature.rows, feature.outcomes);
    }
    const BagSums sums(feature);
    sums.Begin();
    Status status;
    for (uint64_t begin = 0; begin < feature.keys.size(); begin += chunk_keys_) {
      const uint64_t count = std::min(chunk_keys_, feature.keys.size() - begin);
      status.Update(LookUpChunk(feature, sums, begin, count));
    }
    sums.End();
    return status;
  }

  // A key whose row stays away adds zeros.
  Status LookUpChunk(const LookupFeature& feature, const BagSums& sums, uint64_t begin,
                     uint64_t count) {
    const uint64_t vector_bytes = group_.table->layout().vector_bytes;
    auto* const vectors = reinterpret_cast<std::byte*>(vectors_.values().data());
    const bool has_outcomes = !feature.outcomes.empty();
    const OutcomeSpan outcomes = has_outcomes ? feature.outcomes.subspan(begin, count)
                                              : OutcomeSpan(outcomes_.values()).first(count);
    const MissingRule rule = rule_ == MissingRule::kSkip ? MissingRule::kZero : rule_;
    Batch batch(group_.table, feature.keys.subspan(begin, count), outcomes);
    Status status = Answer(&batch, rule, {vectors, vector_bytes});
    if (batch.count(Outcome::kDataLoss) > 0) {
      for (uint64_t i = 0; i < count; ++i) {
        if (outcomes[i] != static_cast<uint8_t>(Outcome::kDataLoss)) continue;
        std::memset(vectors + i * vector_bytes, 0, vector_bytes);
      }
    }
    if (!status.ok()) return status;
    sums.Add(begin, count, vectors, group_.is_large);
    if (has_outcomes) return OkStatus();
    // As of a batch without outcomes.
    Batch silent(group_.table, batch.keys(), {});
    silent.Add(batch.tally());
    return silent.RefusedStatus();
  }

  Status LookUpKeys(KeySpan keys, MissingRule rule, RowSpan rows, OutcomeSpan outcomes) {
    Batch batch(group_.table, keys, outcomes);
    EMBANK_RETURN_IF_ERROR(Answer(&batch, rule, rows));
    return batch.RefusedStatus();
  }

  Status Answer(Batch* batch, MissingRule rule, RowSpan rows) {
    WriteScope scope(*batch);
    const Status answered = AnswerLookup(batch, &scope, rule, rows);
    total_.Add(batch->tally());
    const Status settled = scope.Settle();
    return answered.ok() ? settled : answered;
  }

  const TableGroup& group_;
  const std::span<const LookupFeature> features_;
  const MissingRule rule_;
  const uint64_t begin_ns_;
  const uint64_t chunk_keys_;
  Batch total_;  // of no keys: it sums the tallies
  Status first_failure_;
  Scratch<float, 4> vectors_;
  Scratch<uint8_t, 16> outcomes_;
};

}  // namespace

Status LookupPacked(std::span<const LookupFeature> features, MissingRule rule) {
  const std::vector<TableGroup> groups = GroupByTable(features);
  std::deque<TableLookup> lookups;
  for (const TableGroup& group : groups) {
    EMBANK_RETURN_IF_ERROR(group.table->CheckAlive());
    EMBANK_RETURN_IF_ERROR(lookups.emplace_back(group, features, rule).Allocate());
  }
  std::vector<KeySpan> keys;
  keys.reserve(features.size());
  ForEachTable(groups, [&](size_t i) { lookups[i].Run(); });
  Status status;
  for (TableLookup& lookup : lookups) status.Update(lookup.Finish(&keys));
  return status;
}

}  // namespace embank
