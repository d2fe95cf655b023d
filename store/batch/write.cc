#include "store/batch/write.h"

#include <cstring>

#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/batch/batch.h"
#include "store/batch/new_rows.h"
#include "store/batch/row_for_update.h"
#include "store/batch/row_group.h"
#include "store/batch/state.h"
#include "store/batch/write_scope.h"
#include "store/payload/payload_list.h"
#include "store/payload/topk_flush.h"
#include "store/placement/compaction.h"
#include "store/placement/heat_clock.h"
#include "tiers/row/row_update.h"
#include "tiers/row/row_write.h"

namespace embank {
namespace {

Status CheckHeats(KeySpan keys, const uint32_t* heats) {
  for (size_t i = 0; heats != nullptr && i < keys.size(); ++i) {
    if (heats[i] <= kHeatMax) continue;
    return InvalidArgumentError(StrCat("heat: that of key ", keys[i], " at position ", i, " is ",
                                       heats[i], "; it must be at most ", kHeatMax));
  }
  return OkStatus();
}

// Writes vector and state of a position to an image of its row.
void FillImage(const RowLayout& layout, const UpdateRule& rule, const RowsToWrite& rows,
               uint64_t position, std::byte* image) {
  std::memcpy(layout.Vector(image), rows.vectors.Row(position), layout.vector_bytes);
  if (rows.states.data == nullptr) return ResetState(layout, rule, image);
  std::memcpy(layout.State(image), rows.states.Row(position), layout.state_bytes());
}

// Upserts rows of one shard group, under the shard's lock.
class UpsertStep {
 public:
  UpsertStep(Batch* batch, const ShardGroup& group, const UpdateRule& rule, const RowsToWrite& rows,
             const BatchKeys& batch_keys, size_t rows_max, PayloadList::Part* payloads,
             OutcomeTally* tally)
      : batch_(*batch),
        group_(group),
        rule_(rule),
        rows_(rows),
        payloads_(*payloads),
        tally_(*tally),
        memory_(batch->table().store().row_memory),
        new_rows_(&batch->table(), group.shard, rows_max, &batch_keys) {}
  ~UpsertStep() { tally_.without_place += new_rows_.without_place(); }
  UpsertStep(const UpsertStep&) = delete;
  UpsertStep& operator=(const UpsertStep&) = delete;

  void operator()(uint32_t position, const RowId& id, const FoundRow& found) {
    group_.shard->mutex.AssertHeld();
    if (found.HasDevicePayload()) return NoteDevicePayload(position, found.match.location());
    const RowLayout& layout = batch_.table().layout();
    FaultIn(rows_.vectors.Row(position), layout.vector_bytes);
    if (rows_.states.data != nullptr) FaultIn(rows_.states.Row(position), layout.state_bytes());
    const uint32_t* const heat = rows_.heats == nullptr ? nullptr : &rows_.heats[position];
    const auto fill = [&](std::byte* image) { FillImage(layout, rule_, rows_, position, image); };
    const auto change = [&](std::byte* bytes) {
      ChangeRow(layout, id.table, bytes, [&](std::byte* image) {
        fill(image);
        if (heat != nullptr) SetHeatOf(bytes, *heat);
      });
      return Outcome::kFound;
    };
    RowForUpdate row(batch_.table(), group_.shard, id, found, &memory_);
    Outcome outcome = row.outcome();
    if (outcome == Outcome::kFound) {
      outcome = row.Change(change, heat);
    } else if (IsUnread(outcome)) {
      outcome = row.Replace(fill, heat == nullptr ? 0 : *heat);
    } else if (outcome == Outcome::kAbsent) {
      const bool is_added = new_rows_.Add(id, heat == nullptr ? 0 : *heat, fill);
      outcome = is_added ? Outcome::kCreated : Outcome::kRefused;
    }
    // The sketch may know more heat, of a row that was in the log or was erased.
    if (heat != nullptr && outcome != Outcome::kRefused && !IsUnread(outcome)) {
      batch_.table().mover()->log_rows().DropHeat(id.hash);
    }
    batch_.Answer(position, outcome, &tally_);
  }

 private:
  // The payload is written at the end of the batch, and the header has the heat.
  void NoteDevicePayload(uint32_t position, Location location) {
    const Table& table = batch_.table();
    const Outcome outcome = NotePayload(table, position, location, &payloads_);
    if (rows_.heats != nullptr && outcome == Outcome::kFound) {
      SetHeatOf(table.store().tier->Row(location), rows_.heats[position]);
    }
    batch_.Answer(position, outcome, &tally_);
  }
  void SetHeatOf(std::byte* row, uint32_t heat) const {
    const Table& table = batch_.table();
    SetHeat(table.layout().Header(row), table.store().heat_clock->now(), heat);
  }

  Batch& batch_;
  const ShardGroup& group_;
  const UpdateRule& rule_;
  const RowsToWrite& rows_;
  PayloadList::Part& payloads_;
  OutcomeTally& tally_;
  BorrowedRowMemory memory_;
  NewRows new_rows_;
};

}  // namespace

Status UpsertPayloads(const Table& table, const UpdateRule& rule, const RowsToWrite& rows,
                      PayloadList* payloads) {
  const RowLayout& layout = table.layout();
  return payloads->Write(kVectorInPayload, PayloadBytesOf(table),
                         [&](const PayloadPosition& at, std::byte* payload) {
                           std::memset(payload, 0, PayloadBytesOf(table));
                           FillImage(layout, rule, rows, at.number, payload - sizeof(RowHeader));
                         });
}

void UpsertGroup(Batch* batch, const ShardGroup& group, const UpdateRule& rule,
                 const RowsToWrite& rows, const BatchKeys& batch_keys, PayloadList* payloads) {
  OutcomeTally tally;
  PayloadList::Part part(payloads, group.begin);
  ForEachRow(*batch, group, [&](size_t rows_max) {
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
      table.store().index->Erase(group.shard, id.hash, found.match);
      freed.Add(group.shard, found.match.location());
    }
    batch->Answer(position, is_there ? Outcome::kFound : found.outcome, &tally);
  };
  ForEachRow(
      *batch, group, [&](size_t) -> const auto& { return erase; });
  batch->Add(tally);
}

void EraseAllInMemory(Table* table) {
  const StoreContext& store = table->store();
  const RowLayout& layout = table->layout();
  for (uint32_t i = 0; i < KeyIndex::kShardCount; ++i) {
    KeyIndex::Shard* const shard = store.index->shard(i);
    FreedRows freed(table);
    MutexLock lock(&shard->mutex);
    store.index->EraseRows(shard, [&](Location location) {
      shard->mutex.AssertHeld();
      if (location.IsInLog()) return false;
      const RowHeader* const header = layout.Header(store.tier->Row(location));
      if (TableOf(LoadIdentity(header)) != table->id()) return false;
      if (!location.IsInDram() && Seeded(SeededBug::kPayloadOutlivesTable)) return false;
      freed.Add(shard, location);
      return true;
    });
  }
}

// Rows of other tables may be moved by batches meanwhile.
Status EraseAllInLog(Table* table) {
  KeyIndex* const index = table->store().index;
  // Rows of this table that compaction moves meanwhile might be missed.
  const Compaction::Pause pause(table->store().compactions);
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
  batch->CountVerb(TableVerb::kUpsert, batch->NsSince(begin_ns));
  EMBANK_RETURN_IF_ERROR(scope->Settle());
  if (TopkFlush* const flush = table.store().topk_flush; flush != nullptr) {
    if (batch->count(Outcome::kCreated) > 0) flush->RaiseCreated(table, batch->keys());
  }
  return batch->RefusedStatus();
}

Status Upsert(Table* table, KeySpan keys, const RowsToWrite& rows, OutcomeSpan outcomes) {
  EMBANK_RETURN_IF_ERROR(table->CheckMayChange());
  if (rows.states.data != nullptr) {
    EMBANK_RETURN_IF_ERROR(CheckStates(*table, keys, rows.states));
  }
  EMBANK_RETURN_IF_ERROR(CheckHeats(keys, rows.heats));
  const uint64_t begin_ns = table->store().clock->NowNs();
  const UpdateRule rule = table->rule();
  Batch batch(table, keys, outcomes);
  WriteScope scope(batch);
  BatchKeys batch_keys;
  EMBANK_RETURN_IF_ERROR(scope.Allocate());
  EMBANK_RETURN_IF_ERROR(batch_keys.Allocate(batch.table(), batch.keys()));
  PayloadList payloads;
  EMBANK_RETURN_IF_ERROR(payloads.Allocate(table->store().payloads, scope.PieceKeysMax()));
  scope.PromoteAll();
  batch_keys.Collect();
  scope.Change(
      WriteScope::kAll,
      [&](const ShardGroup& group) {
        UpsertGroup(&batch, group, rule, rows, batch_keys, &payloads);
      },
      [&] {
        Status written = UpsertPayloads(*table, rule, rows, &payloads);
        if (scope.IsInPieces()) payloads.Clear();
        return written;
      });
  return FinishUpsert(&batch, &scope, begin_ns);
}

Status Erase(Table* table, KeySpan keys, OutcomeSpan outcomes) {
  EMBANK_RETURN_IF_ERROR(table->CheckMayChange());
  const uint64_t begin_ns = table->store().clock->NowNs();
  Batch batch(table, keys, outcomes);
  WriteScope scope(batch, WriteScope::Need::kNone);
  EMBANK_RETURN_IF_ERROR(scope.Allocate());
  scope.PromoteAll();
  scope.Change(WriteScope::kAll, [&](const ShardGroup& group) { EraseGroup(&batch, group); });
  batch.CountVerb(TableVerb::kErase, batch.NsSince(begin_ns));
  EMBANK_RETURN_IF_ERROR(scope.Settle());
  table->store().index->capacity()->ShrinkAfterErasing(batch.count(Outcome::kFound));
  return batch.UnreadStatus();
}

Status EraseAll(Table* table) {
  EraseAllInMemory(table);
  Status visited;
  if (table->rows_in_log() > 0) visited = EraseAllInLog(table);
  // Segments that cannot be read may be those of other tables.
  return table->rows_in_log() == 0 ? OkStatus() : visited;
}

}  // namespace embank
