#include "store/write.h"

#include <array>
#include <cstring>

#include "base/status_macros.h"
#include "store/batch.h"
#include "store/new_rows.h"
#include "tiers/row_update.h"

namespace embank {
namespace {

void UpsertGroup(const Batch& batch, const ShardGroup& group, const UpdateRule& rule,
                 ConstRowSpan rows) {
  Table& table = batch.table();
  const RowLayout& layout = table.layout();
  MutexLock lock(&group.shard->mutex);
  NewRows new_rows(&table, group.shard, group.positions.size());
  for (const uint32_t position : group.positions) {
    const RowId id = batch.IdAt(position);
    const Location location = table.parts().index->Find(*group.shard, id);
    const bool found = location != kNoLocation;
    std::byte* const row = found ? table.parts().tier->Row(location) : new_rows.Add(id, 0);
    if (row == nullptr) {
      batch.Answer(group, position, Outcome::kRefused);
      continue;
    }
    std::memcpy(layout.Vector(row), rows.Row(position), layout.vector_bytes);
    ResetState(layout, rule, row);
    batch.Answer(group, position, found ? Outcome::kFound : Outcome::kCreated);
  }
}

void EraseGroup(const Batch& batch, const ShardGroup& group) {
  Table& table = batch.table();
  const StoreParts& parts = table.parts();
  // The tier takes its lock once per so many slots.
  std::array<Location, 64> freed;
  size_t freed_count = 0;
  MutexLock lock(&group.shard->mutex);
  for (const uint32_t position : group.positions) {
    const Location location = parts.index->Erase(group.shard, batch.IdAt(position));
    if (location == kNoLocation) {
      batch.Answer(group, position, Outcome::kAbsent);
      continue;
    }
    freed[freed_count++] = location;
    if (freed_count == freed.size()) {
      parts.tier->Free(table.slot_class(), freed);
      freed_count = 0;
    }
    batch.Answer(group, position, Outcome::kFound);
  }
  parts.tier->Free(table.slot_class(), std::span(freed).first(freed_count));
}

}  // namespace

absl::Status Upsert(Table* table, KeySpan keys, ConstRowSpan rows, OutcomeSpan outcomes) {
  EMBANK_RETURN_IF_ERROR(table->CheckAlive());
  const uint64_t begin_ns = table->parts().clock->NowNs();
  const UpdateRule rule = table->rule();
  Batch batch(table, keys, outcomes);
  EMBANK_RETURN_IF_ERROR(batch.Plan());
  batch.ForEachShard([&](const ShardGroup& group) { UpsertGroup(batch, group, rule, rows); });
  batch.Publish(TableVerb::kUpsert, begin_ns);
  return batch.RefusedStatus();
}

absl::Status Erase(Table* table, KeySpan keys, OutcomeSpan outcomes) {
  EMBANK_RETURN_IF_ERROR(table->CheckAlive());
  const uint64_t begin_ns = table->parts().clock->NowNs();
  Batch batch(table, keys, outcomes);
  EMBANK_RETURN_IF_ERROR(batch.Plan());
  batch.ForEachShard([&](const ShardGroup& group) { EraseGroup(batch, group); });
  batch.Publish(TableVerb::kErase, begin_ns);
  table->AddRows(-static_cast<int64_t>(batch.count(Outcome::kFound)));
  return absl::OkStatus();
}

}  // namespace embank
