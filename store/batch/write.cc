#include "store/batch/write.h"

#include <cstring>

#include "base/status_macros.h"
#include "store/batch/batch.h"
#include "store/batch/held_row.h"
#include "store/batch/logged_rows.h"
#include "store/batch/new_rows.h"
#include "store/batch/row_group.h"
#include "store/batch/shard_plan.h"
#include "store/placement/compaction.h"
#include "tiers/row/row_update.h"
#include "tiers/row/row_write.h"

namespace embank {
namespace {

void UpsertGroup(Batch* batch, const ShardGroup& group, const UpdateRule& rule, ConstRowSpan rows,
                 const BatchKeys& batch_keys) {
  Table& table = batch->table();
  const RowLayout& layout = table.layout();
  OutcomeTally tally;
  MutexLock lock(&group.shard->mutex);
  BorrowedRowMemory memory(table.parts().row_memory);
  NewRows new_rows(&table, group.shard, group.size(), &batch_keys);
  ForEachMatch<IndexUse::kChange>(
      table, *batch, group, [&](uint32_t position, const RowId& id, const Match& match) {
        const std::byte* const vector = rows.Row(position);
        FaultIn(vector, layout.vector_bytes);
        const auto fill = [&](std::byte* image) {
          std::memcpy(layout.Vector(image), vector, layout.vector_bytes);
          ResetState(layout, rule, image);
        };
        group.shard->mutex.AssertHeld();
        HeldRow held(table, group.shard, id, match, &memory);
        Outcome outcome = held.outcome();
        if (outcome == Outcome::kFound) {
          outcome = held.Change([&](std::byte* row) { ChangeRow(layout, id.table, row, fill); });
        } else if (outcome == Outcome::kDataLoss) {
          outcome = held.Replace(fill);
        } else if (outcome == Outcome::kAbsent) {
          outcome = new_rows.Add(id, 0, fill) ? Outcome::kCreated : Outcome::kRefused;
        }
        batch->Answer(position, outcome, &tally);
      });
  tally.without_place += new_rows.without_place();
  batch->Add(tally);
}

void EraseGroup(Batch* batch, const ShardGroup& group) {
  Table& table = batch->table();
  const StoreParts& parts = table.parts();
  OutcomeTally tally;
  FreedRows freed(&table);
  MutexLock lock(&group.shard->mutex);
  BorrowedRowMemory memory(parts.row_memory);
  ForEachMatch<IndexUse::kChange>(
      table, *batch, group, [&](uint32_t position, const RowId& id, const Match& match) {
        group.shard->mutex.AssertHeld();
        Match erased = match;
        Outcome outcome = match.any() ? Outcome::kFound : Outcome::kAbsent;
        const bool in_log = match.any() && match.location().tier() != Tier::kDram;
        if (in_log) {
          outcome = table.mover()->Find(group.shard, id, &memory.get()->record, &erased);
        }
        // What cannot be read can be erased.
        if (outcome == Outcome::kDataLoss && erased.any()) outcome = Outcome::kFound;
        if (outcome == Outcome::kFound) {
          parts.index->Erase(group.shard, id.hash, erased);
          freed.Add(group.shard, erased.location());
        }
        batch->Answer(position, outcome, &tally);
      });
  batch->Add(tally);
}

void EraseAllInMemory(Table* table) {
  const StoreParts& parts = table->parts();
  const RowLayout& layout = table->layout();
  for (uint32_t i = 0; i < KeyIndex::kShardCount; ++i) {
    KeyIndex::Shard* const shard = parts.index->shard(i);
    FreedRows freed(table);
    MutexLock lock(&shard->mutex);
    parts.index->EraseRows(shard, [&](Location location) {
      shard->mutex.AssertHeld();
      if (location.tier() != Tier::kDram) return false;
      const RowHeader* const header = layout.Header(parts.tier->Row(location));
      if (TableOf(LoadIdentity(header)) != table->id()) return false;
      freed.Add(shard, location);
      return true;
    });
  }
}

// Rows of other tables may be moved by batches meanwhile.
Status EraseAllInLog(Table* table) {
  KeyIndex* const index = table->parts().index;
  // Rows of this table that compaction moves meanwhile might be missed.
  const Compaction::Pause pause(table->parts().compaction);
  return table->mover()->log()->VisitOwners(
      table->slot_class(), [&](Location location, TableId owner, Key key) {
        if (owner != table->id()) return;
        const RowId id = table->IdOf(key, table->HashOf(key));
        KeyIndex::Shard* const shard = index->shard(KeyIndex::ShardOf(id.hash));
        FreedRows freed(table);
        MutexLock lock(&shard->mutex);
        index->VisitMatches(shard, id, [&](const Match& match) {
          shard->mutex.AssertHeld();
          if (!(match.location() == location)) return false;
          index->Erase(shard, id.hash, match);
          freed.Add(shard, location);
          return true;
        });
      });
}

}  // namespace

Status Upsert(Table* table, KeySpan keys, ConstRowSpan rows, OutcomeSpan outcomes) {
  EMBANK_RETURN_IF_ERROR(table->CheckMayChange());
  const uint64_t begin_ns = table->parts().clock->NowNs();
  const UpdateRule rule = table->rule();
  Batch batch(table, keys, outcomes);
  ShardPlan plan;
  BatchKeys batch_keys;
  EMBANK_RETURN_IF_ERROR(plan.Allocate(keys.size()));
  EMBANK_RETURN_IF_ERROR(batch_keys.Allocate(batch.table(), batch.keys()));
  BringUpRows(batch);
  batch_keys.Collect();
  plan.GroupAll(batch);
  plan.ForEachShard(
      batch, [&](const ShardGroup& group) { UpsertGroup(&batch, group, rule, rows, batch_keys); });
  batch.Publish(TableVerb::kUpsert, begin_ns);
  return batch.RefusedStatus();
}

Status Erase(Table* table, KeySpan keys, OutcomeSpan outcomes) {
  EMBANK_RETURN_IF_ERROR(table->CheckMayChange());
  const uint64_t begin_ns = table->parts().clock->NowNs();
  Batch batch(table, keys, outcomes);
  ShardPlan plan;
  EMBANK_RETURN_IF_ERROR(plan.Allocate(keys.size()));
  BringUpRows(batch);
  plan.GroupAll(batch);
  plan.ForEachShard(
      batch, [&](const ShardGroup& group) { EraseGroup(&batch, group); },
      ShardPlan::Use::kNeedsNoRoom);
  batch.Publish(TableVerb::kErase, begin_ns);
  return batch.LostStatus();
}

Status EraseAll(Table* table) {
  EraseAllInMemory(table);
  if (table->rows_in_log() == 0) return OkStatus();
  const Status visited = EraseAllInLog(table);
  // Segments that cannot be read may be those of other tables.
  return table->rows_in_log() == 0 ? OkStatus() : visited;
}

}  // namespace embank
