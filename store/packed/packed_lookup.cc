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
#include "store/packed/call_status.h"
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

// A batch of so many keys needs no allocation (store/batch).
constexpr uint64_t kKeysWithoutMemory = 64;

// The vectors of a chunk. Large tables are looked up one after the other, and share them.
using ChunkVectors = Scratch<float, 4>;

// The features of one table.
class TableLookup {
 public:
  TableLookup(const TableGroup& group, std::span<const LookupFeature> features, MissingRule rule)
      : group_(group),
        features_(features),
        rule_(rule),
        chunk_keys_(ChunkKeys(group)),
        total_(group.table, {}, {}) {}

  // The number of floats that the vectors of its chunks take.
  uint64_t ChunkFloats() const {
    uint64_t pooled = 0;
    for (const size_t i : group_.features) {
      if (features_[i].pooling == Pooling::kNone) continue;
      pooled = std::max<uint64_t>(pooled, std::min(features_[i].keys.size(), chunk_keys_));
    }
    return (pooled * group_.table->layout().vector_bytes + 3) / sizeof(float);
  }

  // Allocates all that Run needs but the vectors of chunks. kResourceExhausted.
  Status Allocate() {
    uint64_t without_outcomes = 0;
    for (const size_t i : group_.features) {
      const LookupFeature& feature = features_[i];
      if (feature.pooling == Pooling::kNone || !feature.outcomes.empty()) continue;
      without_outcomes =
          std::max<uint64_t>(without_outcomes, std::min(feature.keys.size(), chunk_keys_));
    }
    return outcomes_.Allocate(without_outcomes);
  }

  // `vectors`: ChunkFloats of them.
  void Run(std::span<float> vectors) {
    for (const size_t i : group_.features) KeepGraver(&call_status_, LookUp(i, vectors));
  }

  // Counts the lookup, which took so long. Returns the status.
  Status Finish(std::vector<KeySpan>* keys, uint64_t nanoseconds) {
    keys->clear();
    for (const size_t i : group_.features) keys->push_back(features_[i].keys);
    CountLookup(&total_, *keys, nanoseconds);
    return call_status_;
  }

 private:
  Status LookUp(size_t number, std::span<float> vectors) {
    const LookupFeature& feature = features_[number];
    OutcomeTally tally;
    Status status = feature.pooling == Pooling::kNone
                        ? Answer(feature.keys, feature.outcomes, rule_, feature.rows, 0, &tally)
                        : LookUpBags(feature, vectors, &tally);
    total_.Add(tally);
    if (!status.ok() || !feature.outcomes.empty()) return OfFeature(number, status);
    Batch silent(group_.table, feature.keys, {});
    silent.Add(tally);
    return OfFeature(number, silent.RefusedStatus());
  }

  Status LookUpBags(const LookupFeature& feature, std::span<float> vectors, OutcomeTally* tally) {
    const BagSums sums(feature);
    sums.Begin();
    Status status;
    for (uint64_t begin = 0; begin < feature.keys.size(); begin += chunk_keys_) {
      const uint64_t count = std::min<uint64_t>(chunk_keys_, feature.keys.size() - begin);
      status.Update(LookUpChunk(feature, sums, begin, count, vectors, tally));
    }
    sums.End();
    return status;
  }

  // A key whose row stays away adds zeros.
  Status LookUpChunk(const LookupFeature& feature, const BagSums& sums, uint64_t begin,
                     uint64_t count, std::span<float> vectors, OutcomeTally* tally) {
    const uint64_t vector_bytes = group_.table->layout().vector_bytes;
    auto* const first = reinterpret_cast<std::byte*>(vectors.data());
    const OutcomeSpan outcomes = feature.outcomes.empty()
                                     ? OutcomeSpan(outcomes_.values()).first(count)
                                     : feature.outcomes.subspan(begin, count);
    const MissingRule rule = rule_ == MissingRule::kSkip ? MissingRule::kZero : rule_;
    const uint64_t unread_before = tally->unread();
    Status status = Answer(feature.keys.subspan(begin, count), outcomes, rule,
                           {first, vector_bytes}, begin, tally);
    if (tally->unread() > unread_before) {
      for (uint64_t i = 0; i < count; ++i) {
        if (!IsUnread(static_cast<Outcome>(outcomes[i]))) continue;
        std::memset(first + i * vector_bytes, 0, vector_bytes);
      }
    }
    if (status.ok()) sums.Add(begin, count, first, group_.is_large);
    return status;
  }

  // Answers keys of a feature, from position `begin` on. If there is no memory for their scratch,
  // nothing was done of them, but maybe of others: so they are answered a few at a time.
  Status Answer(KeySpan keys, OutcomeSpan outcomes, MissingRule rule, RowSpan rows, uint64_t begin,
                OutcomeTally* tally) {
    OutcomeTally answered;
    Status status = AnswerAtOnce(keys, outcomes, rule, rows, &answered);
    tally->Add(answered, begin);
    const bool is_untouched = answered.counts == OutcomeTally().counts;
    if (!IsResourceExhausted(status) || !is_untouched) return status;
    status = OkStatus();
    for (uint64_t i = 0; i < keys.size(); i += kKeysWithoutMemory) {
      const uint64_t count = std::min<uint64_t>(kKeysWithoutMemory, keys.size() - i);
      OutcomeTally piece;
      const OutcomeSpan to = outcomes.empty() ? outcomes : outcomes.subspan(i, count);
      status.Update(
          AnswerAtOnce(keys.subspan(i, count), to, rule, {rows.Row(i), rows.stride_bytes}, &piece));
      tally->Add(piece, begin + i);
    }
    return status;
  }

  Status AnswerAtOnce(KeySpan keys, OutcomeSpan outcomes, MissingRule rule, RowSpan rows,
                      OutcomeTally* tally) {
    Batch batch(group_.table, keys, outcomes);
    WriteScope scope(batch);
    const Status answered = AnswerLookup(&batch, &scope, rule, rows);
    *tally = batch.tally();
    const Status settled = scope.Settle();
    return answered.ok() ? settled : answered;
  }

  const TableGroup& group_;
  const std::span<const LookupFeature> features_;
  const MissingRule rule_;
  const uint64_t chunk_keys_;
  Batch total_;  // of no keys: it sums the tallies
  Status call_status_;
  Scratch<uint8_t, 16> outcomes_;
};

}  // namespace

Status LookupPacked(std::span<const LookupFeature> features, MissingRule rule) {
  if (features.empty()) return OkStatus();
  const Clock& clock = *features[0].table->parts().clock;
  const uint64_t begin_ns = clock.NowNs();
  const std::vector<TableGroup> groups = GroupByTable(features);
  std::deque<TableLookup> lookups;
  std::deque<ChunkVectors> small_vectors;
  uint64_t shared_floats = 0;
  for (const TableGroup& group : groups) {
    EMBANK_RETURN_IF_ERROR(group.table->CheckAlive());
    const TableLookup& lookup = lookups.emplace_back(group, features, rule);
    EMBANK_RETURN_IF_ERROR(lookups.back().Allocate());
    const uint64_t floats = lookup.ChunkFloats();
    if (group.is_large) shared_floats = std::max(shared_floats, floats);
    EMBANK_RETURN_IF_ERROR(small_vectors.emplace_back().Allocate(group.is_large ? 0 : floats));
  }
  ChunkVectors shared_vectors;
  EMBANK_RETURN_IF_ERROR(shared_vectors.Allocate(shared_floats));
  std::vector<KeySpan> keys;
  keys.reserve(features.size());
  ForEachTable(groups, [&](size_t i) {
    lookups[i].Run((groups[i].is_large ? shared_vectors : small_vectors[i]).values());
  });
  const uint64_t call_ns = clock.NowNs() - begin_ns;
  Status status;
  for (size_t i = 0; i < groups.size(); ++i) {
    KeepGraver(&status, lookups[i].Finish(&keys, ShareNs(call_ns, groups[i], groups)));
  }
  return status;
}

}  // namespace embank
