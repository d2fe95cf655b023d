#include "store/batch/write.h"

#include <cstring>

#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "store/batch/batch.h"
#include "store/batch/deferred_rows.h"
#include "store/batch/logged_rows.h"
#include "store/batch/new_rows.h"
#include "store/batch/row_for_update.h"
#include "store/batch/row_group.h"
#include "store/batch/write_scope.h"
#include "store/hot/hot_flush.h"
#include "store/hot/hot_list.h"
#include "store/placement/compaction.h"
#include "tiers/row/row_update.h"
#include "tiers/row/row_write.h"

namespace embank {
namespace {

// Upserts rows of one shard group, under the shard's lock.
class UpsertStep {
 public:
  UpsertStep(Batch* batch, const ShardGroup& group, const UpdateRule& rule, ConstRowSpan rows,
             const BatchKeys& batch_keys, size_t rows_max, HotList::Part* hot, OutcomeTally* tally)
      : batch_(*batch),
        group_(group),
        rule_(rule),
        rows_(rows),
        hot_(*hot),
        tally_(*tally),
        memory_(batch->table().parts().row_memory),
        new_rows_(&batch->table(), group.shard, rows_max, &batch_keys) {}
  ~UpsertStep() { tally_.without_place += new_rows_.without_place(); }
  UpsertStep(const UpsertStep&) = delete;
  UpsertStep& operator=(const UpsertStep&) = delete;

  void operator()(uint32_t position, const RowId& id, const FoundRow& found) {
    group_.shard->mutex.AssertHeld();
    if (found.IsInDeviceMemory()) {
      const Outcome outcome = NoteHot(batch_.table(), position, found.match.location(), &hot_);
      return batch_.Answer(position, outcome, &tally_);
    }
    const RowLayout& layout = batch_.table().layout();
    const std::byte* const vector = rows_.Row(position);
    FaultIn(vector, layout.vector_bytes);
    const auto fill = [&](std::byte* image) {
      std::memcpy(layout.Vector(image), vector, layout.vector_bytes);
      ResetState(layout, rule_, image);
    };
    RowForUpdate row(batch_.table(), group_.shard, id, found, &memory_);
    Outcome outcome = row.outcome();
    if (outcome == Outcome::kFound) {
      outcome = row.Change([&](std::byte* bytes) {
        ChangeRow(layout, id.table, bytes, fill);
        return Outcome::kFound;
      });
    } else if (outcome == Outcome::kDataLoss) {
      outcome = row.Replace(fill);
    } else if (outcome == Outcome::kAbsent) {
      outcome = new_rows_.Add(id, 0, fill) ? Outcome::kCreated : Outcome::kRefused;
    }
    batch_.Answer(position, outcome, &tally_);
  }

 private:
  Batch& batch_;
  const ShardGroup& group_;
  const UpdateRule& rule_;
  const ConstRowSpan rows_;
  HotList::Part& hot_;
  OutcomeTally& tally_;
  BorrowedRowMemory memory_;
  NewRows new_rows_;
};

}  // namespace

Status UpsertHot(const Table& table, const UpdateRule& rule, ConstRowSpan rows, HotList* hot) {
  const RowLayout& layout = table.layout();
  return hot->Write(kVectorInPayload, PayloadBytesOf(table),
                    [&](const HotPosition& at, std::byte* payload) {
                      std::byte* const image = payload - sizeof(RowHeader);
                      std::memset(payload, 0, PayloadBytesOf(table));
                      std::memcpy(layout.Vector(image), rows.Row(at.number), layout.vector_bytes);
                      ResetState(layout, rule, image);
                    });
}

void UpsertGroup(Batch* batch, const ShardGroup& group, const UpdateRule& rule, ConstRowSpan rows,
                 const BatchKeys& batch_keys, HotList* hot) {
  OutcomeTally tally;
  HotList::Part part(hot, group.begin);
  ForEachRow<IndexUse::kChange>(*batch, group, [&](size_t rows_max) {
    return UpsertStep(batch, group, rule, rows, batch_keys, rows_max, &part, &tally);
  });
  batch->Add(tally);
}

namespace {

void EraseGroup(Batch* batch, const ShardGroup& group) {
  Table& table = batch->table();
  OutcomeTally tally;
  FreedRows freed(&table);
  const auto erase = [&](uint32_t position, const RowId& id, const FoundRow& found) {
    group.shard->mutex.AssertHeld();
    // A row that cannot be read can be erased.
    const bool is_there = found.outcome != Outcome::kAbsent && found.match.any();
    if (is_there) {
      table.parts().index->Erase(group.shard, id.hash, found.match);
      freed.Add(group.shard, found.match.location());
    }
    batch->Answer(position, is_there ? Outcome::kFound : found.outcome, &tally);
  };
  ForEachRow<IndexUse::kChange>(
      *batch, group, [&](size_t) -> const auto& { return erase; });
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
      if (location.IsInLog()) return false;
      const RowHeader* const header = layout.Header(parts.tier->Row(location));
      if (TableOf(LoadIdentity(header)) != table->id()) return false;
      if (!location.IsInDram() && Seeded(SeededBug::kHotRowOutlivesTable)) return false;
      freed.Add(shard, location);
      return true;
    });
  }
}

// Rows of other tables may be moved by batches meanwhile.
Status EraseAllInLog(Table* table) {
  KeyIndex* const index = table->parts().index;
  // Rows of this table that compaction moves meanwhile might be missed.
  const Compaction::Pause pause(table->parts().compactions);
  return table->mover()->logs().VisitOwners(
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

Status FinishUpsert(Batch* batch, WriteScope* scope, uint64_t begin_ns) {
  const Table& table = batch->table();
  batch->CountVerb(TableVerb::kUpsert, begin_ns);
  EMBANK_RETURN_IF_ERROR(scope->Settle());
  if (HotFlush* const flush = table.parts().hot_flush; flush != nullptr) {
    if (batch->count(Outcome::kCreated) > 0) flush->RaiseCreated(table, batch->keys());
  }
  return batch->RefusedStatus();
}

Status Upsert(Table* table, KeySpan keys, ConstRowSpan rows, OutcomeSpan outcomes) {
  EMBANK_RETURN_IF_ERROR(table->CheckMayChange());
  const uint64_t begin_ns = table->parts().clock->NowNs();
  const UpdateRule rule = table->options().rule;
  Batch batch(table, keys, outcomes);
  WriteScope scope(batch);
  BatchKeys batch_keys;
  EMBANK_RETURN_IF_ERROR(scope.Allocate());
  EMBANK_RETURN_IF_ERROR(batch_keys.Allocate(batch.table(), batch.keys()));
  PromoteRows(batch);
  HotList hot;
  EMBANK_RETURN_IF_ERROR(hot.Allocate(table->parts().hot, batch.keys().size()));
  batch_keys.Collect();
  scope.ChangeAll(
      [&](const ShardGroup& group) { UpsertGroup(&batch, group, rule, rows, batch_keys, &hot); },
      [&] { return UpsertHot(*table, rule, rows, &hot); });
  return FinishUpsert(&batch, &scope, begin_ns);
}

Status Erase(Table* table, KeySpan keys, OutcomeSpan outcomes) {
  EMBANK_RETURN_IF_ERROR(table->CheckMayChange());
  const uint64_t begin_ns = table->parts().clock->NowNs();
  Batch batch(table, keys, outcomes);
  WriteScope scope(batch, WriteScope::Need::kNone);
  EMBANK_RETURN_IF_ERROR(scope.Allocate());
  PromoteRows(batch);
  scope.ChangeAll([&](const ShardGroup& group) { EraseGroup(&batch, group); });
  batch.CountVerb(TableVerb::kErase, begin_ns);
  EMBANK_RETURN_IF_ERROR(scope.Settle());
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
