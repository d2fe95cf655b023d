#include "store/lookup.h"

#include <cstring>

#include "base/status_macros.h"
#include "store/batch.h"
#include "store/new_rows.h"
#include "tiers/row_update.h"

namespace embank {
namespace {

// Answers a position whose row is there.
void CopyFound(const Table& table, std::byte* row, std::byte* out) {
  const RowLayout& layout = table.layout();
  TouchHeat(layout.Header(row), table.heat_epoch(), 1);
  std::memcpy(out, layout.Vector(row), layout.vector_bytes);
}

void AnswerMissing(const Table& table, Key key, MissingRule rule, std::byte* out) {
  switch (rule) {
    case MissingRule::kCreate:  // refused: answers what it would have been
    case MissingRule::kDefault:
      return table.InitializeVectorOf(key, out);
    case MissingRule::kZero:
      std::memset(out, 0, table.layout().vector_bytes);
      return;
    case MissingRule::kSkip:
      return;
  }
}

// Writes a created row and answers with it.
void FillCreated(const Table& table, Key key, std::byte* row, std::byte* out) {
  const RowLayout& layout = table.layout();
  table.InitializeVectorOf(key, layout.Vector(row));
  ResetState(layout, table.rule(), row);
  std::memcpy(out, layout.Vector(row), layout.vector_bytes);
}

void CreateGroup(const Batch& batch, const ShardGroup& group, RowSpan rows) {
  Table& table = batch.table();
  MutexLock lock(&group.shard->mutex);
  NewRows new_rows(&table, group.shard, group.positions.size());
  for (const uint32_t position : group.positions) {
    const RowId id = batch.IdAt(position);
    const Location location = table.parts().index->Find(*group.shard, id);
    if (location != kNoLocation) {
      CopyFound(table, table.parts().tier->Row(location), rows.Row(position));
      batch.Answer(group, position, Outcome::kFound);
      continue;
    }
    std::byte* const row = new_rows.Add(id, 1);
    if (row != nullptr) {
      FillCreated(table, id.key, row, rows.Row(position));
      batch.Answer(group, position, Outcome::kCreated);
    } else {
      AnswerMissing(table, id.key, MissingRule::kCreate, rows.Row(position));
      batch.Answer(group, position, Outcome::kRefused);
    }
  }
}

}  // namespace

absl::Status Lookup(Table* table, KeySpan keys, MissingRule rule, RowSpan rows,
                    OutcomeSpan outcomes) {
  EMBANK_RETURN_IF_ERROR(table->CheckAlive());
  const uint64_t begin_ns = table->parts().clock->NowNs();
  Batch batch(table, keys, outcomes);
  EMBANK_RETURN_IF_ERROR(batch.Plan());
  if (rule == MissingRule::kCreate) {
    batch.ForEachShard([&](const ShardGroup& group) { CreateGroup(batch, group, rows); });
  } else {
    batch.ReadRows([&](uint32_t position, std::byte* row) {
      if (row != nullptr) {
        CopyFound(*table, row, rows.Row(position));
      } else {
        AnswerMissing(*table, keys[position], rule, rows.Row(position));
      }
    });
  }
  batch.Publish(TableVerb::kLookup, begin_ns);
  table->CountHeat(batch.count(Outcome::kFound) + batch.count(Outcome::kCreated));
  return batch.RefusedStatus();
}

absl::Status Contains(Table* table, KeySpan keys, OutcomeSpan outcomes) {
  EMBANK_RETURN_IF_ERROR(table->CheckAlive());
  Batch batch(table, keys, outcomes);
  EMBANK_RETURN_IF_ERROR(batch.Plan());
  batch.ReadRows([](uint32_t, std::byte*) {});
  return absl::OkStatus();
}

absl::Status GetHeat(Table* table, KeySpan keys, std::span<uint32_t> heat, OutcomeSpan outcomes) {
  EMBANK_RETURN_IF_ERROR(table->CheckAlive());
  Batch batch(table, keys, outcomes);
  EMBANK_RETURN_IF_ERROR(batch.Plan());
  batch.ReadRows([&](uint32_t position, std::byte* row) {
    heat[position] =
        row == nullptr ? 0 : ReadHeat(table->layout().Header(row), table->heat_epoch());
  });
  return absl::OkStatus();
}

}  // namespace embank
