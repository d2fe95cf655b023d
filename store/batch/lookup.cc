#include "store/batch/lookup.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/late_object.h"
#include "base/memory/scratch.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "store/batch/batch.h"
#include "store/batch/logged_rows.h"
#include "store/batch/new_rows.h"
#include "store/batch/row_for_update.h"
#include "store/batch/row_group.h"
#include "store/batch/touches.h"
#include "store/batch/unique_keys.h"
#include "store/batch/write_scope.h"
#include "store/payload/payload_list.h"
#include "store/payload/topk_flush.h"
#include "store/placement/row_mover.h"
#include "tiers/row/row_copy.h"
#include "tiers/row/row_update.h"

namespace embank {
namespace {

// The rows of a batch that are not in DRAM.
struct RowsElsewhere {
  // kResourceExhausted.
  Status Allocate(const Batch& batch) {
    EMBANK_RETURN_IF_ERROR(logged.Allocate(batch));
    return payloads.Allocate(batch.table().store().payloads, batch.keys().size());
  }

  LoggedRows logged;
  PayloadList payloads;
};

// Copies the vectors of rows in device memory to their positions. `keys` are those of
// CountPayloads.
Status ReadPayloads(const Batch& batch, KeySpan keys, PayloadList* payloads, RowSpan rows) {
  const uint32_t bytes = batch.table().layout().vector_bytes;
  const auto copy = [&](const PayloadPosition& at, const std::byte* vector) {
    std::memcpy(rows.Row(at.number), vector, bytes);
  };
  CountPayloads(&batch.table(), keys, payloads);
  return payloads->size() == 0 ? OkStatus() : payloads->Read(kVectorInPayload, bytes, copy);
}

// Copies the rows of [begin, end) that exist, and calls missing(position) for the others, whose
// answers may be overwritten before; kept under kSkip. Notes those in device memory. Inside the
// payload gate. Returns whether the positions without a row come in order: none was looked for in a
// log.
template <typename OnMissing>
bool ReadPart(Batch* batch, LoggedRows* logged_rows, PayloadList* payload_list, MissingRule rule,
              RowSpan rows, uint32_t begin, uint32_t end, OnMissing missing) {
  const Table& table = batch->table();
  const RowLayout& layout = table.layout();
  OutcomeTally tally;
  HeatTouches touches(*batch);
  LateObject<RecentUses> made_uses;
  if (SlotOrders* const orders = table.mover()->OrdersToTouch())
    made_uses.Make(*batch, begin, orders);
  RecentUses* const uses = made_uses.get();
  LoggedRows::Part logged(logged_rows, *batch, begin);
  PayloadList::Part payloads(payload_list, begin);
  const auto found = [&](uint32_t position, const RowWatches& seen) {
    touches.Add(position, seen);
    if (uses != nullptr) uses->Add(position, seen.size());
    tally.NoteFound(Tier::kDram, seen.size());
    batch->AnswerFound(position, seen.size(), &tally);
  };
  const auto other = [&](uint32_t position, const RowSeen& row, const Match& match) {
    if (row.header != nullptr) {
      touches.Add(position, row);
      if (match.location().HasDevicePayload()) {
        payloads.Add(position, match.location());
      } else if (uses != nullptr) {
        uses->Add(position, 1);
      }
      tally.NoteFound(match.location().tier());
      return batch->AnswerFound(position, 1, &tally);
    }
    if (match.any()) return logged.Add(position, match.location());
    missing(position, &tally);
  };
  {
    // An output row that must be kept is not overwritten by a row that turns out to be gone: to be
    // skipped, or to have a record that cannot be read.
    LateObject<RowCopyBuffer> buffer;
    const bool may_keep = rule == MissingRule::kSkip || !table.mover()->logs().empty();
    if (may_keep && layout.vector_bytes > kHeldBytesMax) {
      buffer.Make(table.store().row_memory, layout);
    }
    std::byte* const image = buffer.get() == nullptr ? nullptr : buffer.get()->bytes();
    const EpochTable::Guard guard(table.store().epochs);
    CopyRows(table, batch->keys(), begin, end, rows, image, found, other);
    touches.Flush();
  }
  // Before rows are promoted from a log, which evicts others.
  if (uses != nullptr) uses->Touch();
  logged.Read({.touches = 1, .promoted = PromotedRows::kHot},
              [&](uint32_t position, const LoggedRow& row) {
                if (row.outcome == Outcome::kAbsent) return missing(position, &tally);
                if (row.outcome == Outcome::kFound) {
                  CopyFromRow(layout.Vector(row.row), layout.vector_bytes, rows.Row(position));
                  tally.NoteFound(row.tier);
                }
                batch->Answer(position, row.outcome, &tally);
              });
  batch->Add(tally);
  return logged.empty();
}

// Copies a row's vector out and counts its use, under the lock of its shard.
void CopyFound(const Table& table, const KeyIndex::Shard* shard, uint32_t touches,
               RowForUpdate* row, std::byte* out) {
  const RowLayout& layout = table.layout();
  CopyFromRow(layout.Vector(row->row()), layout.vector_bytes, out);
  RowHeader* const header = layout.Header(row->row());
  TouchHeat(header, LoadMark(header), table.store().heat_clock->now(), touches);
  if (!row->location().IsInLog()) table.mover()->TouchOrder(shard, row->location());
}

// Answers positions of one shard, most of which have no row, and creates those rows, under the
// shard's lock.
class CreationStep {
 public:
  CreationStep(Batch* batch, const ShardGroup& group, const UpdateRule& rule, RowSpan rows,
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
  ~CreationStep() { tally_.without_place += new_rows_.without_place(); }
  CreationStep(const CreationStep&) = delete;
  CreationStep& operator=(const CreationStep&) = delete;

  void operator()(uint32_t position, const RowId& id, const FoundRow& found) {
    group_.shard->mutex.AssertHeld();
    const Table& table = batch_.table();
    const RowLayout& layout = table.layout();
    if (found.HasDevicePayload()) return NotePayload(position, found.match.location());
    std::byte* const out = rows_.Row(position);
    RowForUpdate row(table, group_.shard, id, found, &memory_);
    if (row.outcome() == Outcome::kFound) {
      CopyFound(table, group_.shard, batch_.TouchesOf(position), &row, out);
      tally_.NoteFound(found.match.location().tier());
    }
    if (row.outcome() != Outcome::kAbsent) return batch_.Answer(position, row.outcome(), &tally_);
    table.InitializeVectorOf(id.key, out);
    const bool created = new_rows_.Add(id, batch_.TouchesOf(position), [&](std::byte* image) {
      std::memcpy(layout.Vector(image), out, layout.vector_bytes);
      ResetState(layout, rule_, image);
    });
    batch_.Answer(position, created ? Outcome::kCreated : Outcome::kRefused, &tally_);
  }

 private:
  void NotePayload(uint32_t position, Location location) {
    const StoreContext& store = batch_.table().store();
    auto* const header = reinterpret_cast<RowHeader*>(store.tier->Row(location));
    TouchHeat(header, LoadMark(header), store.heat_clock->now(), batch_.TouchesOf(position));
    payloads_.Add(position, location);
    tally_.NoteFound(location.tier());
    batch_.Answer(position, Outcome::kFound, &tally_);
  }

  Batch& batch_;
  const ShardGroup& group_;
  const UpdateRule& rule_;
  const RowSpan rows_;
  PayloadList::Part& payloads_;
  OutcomeTally& tally_;
  BorrowedRowMemory memory_;
  NewRows new_rows_;
};

}  // namespace

void AnswerMissing(const Table& table, Key key, MissingRule rule, std::byte* out) {
  switch (rule) {
    case MissingRule::kCreate:
    case MissingRule::kDefault:
      return table.InitializeVectorOf(key, out);
    case MissingRule::kZero:
      std::memset(out, 0, table.layout().vector_bytes);
      return;
    case MissingRule::kSkip:
      return;
  }
}

void CreateGroup(Batch* batch, const ShardGroup& group, const UpdateRule& rule, RowSpan rows,
                 const BatchKeys& batch_keys, PayloadList* payloads) {
  OutcomeTally tally;
  PayloadList::Part part(payloads, group.begin);
  ForEachRow(*batch, group, [&](size_t rows_max) {
    return CreationStep(batch, group, rule, rows, batch_keys, rows_max, &part, &tally);
  });
  batch->Add(tally);
}

// A row that was written and has no answer is answered again. It must be kept then under kSkip, if
// the row has been erased meanwhile, and where a record of a log cannot be read.
bool MayReadLeading(const Table& table, MissingRule rule) {
  return rule != MissingRule::kSkip && table.mover()->logs().empty() &&
         table.store().payloads == nullptr && table.mover()->OrdersToTouch() == nullptr;
}

void ReadLeading(std::span<const LeadingBatch> batches, std::span<const TableKeys> keys) {
  EMBANK_CHECK(batches.size() == keys.size());
  if (batches.empty()) return;
  HeatTouches touches(*batches[0].batch);
  const auto use = [&](size_t number, size_t begin, const KeyGroup& group, NextRows next) {
    const LeadingBatch& of = batches[number];
    // A batch stops leading at its first row that was not read.
    if (of.batch->answered() != begin) return next.PrefetchFrom(0);
    const Table& table = of.batch->table();
    const Key* const group_keys = of.batch->keys().data() + begin;
    LocatedRows located(table.id(), group, group_keys, next);
    const auto copy = [&](size_t i, const RowWatches& rows) {
      const RowSpan to = {of.rows.Row(begin + i), of.rows.stride_bytes};
      const uint32_t stood = CopyVectors(rows, table.layout().vector_bytes, to, nullptr);
      return static_cast<size_t>(std::countr_one(stood));
    };
    const size_t read = ReadLeadingRows(table, group_keys, group, &located, copy);
    touches.Use(*of.batch);
    touches.Add(static_cast<uint32_t>(begin), located.all().Subspan(0, read));
    of.batch->AnswerLeading(read);
  };
  const EpochTable::Guard guard(batches[0].batch->table().store().epochs);
  ForEachGroupOf(keys, use);
  touches.Flush();
}

void ReadExisting(Batch* batch, LoggedRows* logged, PayloadList* payloads, MissingRule rule,
                  RowSpan rows, Missing missing) {
  batch->ForEachPart([&](uint32_t begin, uint32_t end) {
    ReadPart(batch, logged, payloads, rule, rows, begin, end, missing);
  });
}

namespace {

// The creation of the rows that a lookup does not find.
class Creation {
 public:
  Creation(Batch* batch, WriteScope* scope, RowSpan rows)
      : batch_(*batch), scope_(*scope), rows_(rows) {}

  // kResourceExhausted. Batches of at most kInlineKeys keys need no memory.
  Status Allocate() {
    const Table& table = batch_.table();
    EMBANK_RETURN_IF_ERROR(scope_.Allocate());
    EMBANK_RETURN_IF_ERROR(payloads_.Allocate(table.store().payloads, scope_.PieceKeysMax()));
    return batch_keys_.Allocate(table, batch_.keys());
  }

  // Reads or makes the rows of positions in their order, under their shards' locks.
  void Run(WriteScope::Positions positions) {
    // All rows of a table that fills are answered here.
    const KeySpan keys = positions.has_value() ? KeySpan() : batch_.keys();
    rule_ = batch_.table().rule();
    batch_keys_.Collect();
    scope_.Change(
        positions,
        [&](const ShardGroup& group) {
          CreateGroup(&batch_, group, rule_, rows_, batch_keys_, &payloads_);
        },
        [&] {
          Status read = ReadPayloads(batch_, keys, &payloads_, rows_);
          if (scope_.IsInPieces()) payloads_.Clear();
          return read;
        });
  }

 private:
  Batch& batch_;
  WriteScope& scope_;
  const RowSpan rows_;
  UpdateRule rule_;
  BatchKeys batch_keys_;
  PayloadList payloads_;
};

// Reads and makes rows in order of positions, all under their shards' locks.
Status CreateAll(Batch* batch, WriteScope* scope, RowSpan rows) {
  EMBANK_CHECK(batch->answered() == 0);
  Creation creation(batch, scope, rows);
  EMBANK_RETURN_IF_ERROR(creation.Allocate());
  creation.Run(WriteScope::kAll);
  return OkStatus();
}

// Reads existing rows without a lock, then creates the missing ones, in order of positions.
Status ReadThenCreate(Batch* batch, WriteScope* scope, RowSpan rows) {
  Scratch<uint32_t, kInlineKeys> missing_memory;
  RowsElsewhere elsewhere;
  LateObject<Creation> creation;
  EMBANK_RETURN_IF_ERROR(elsewhere.Allocate(*batch));
  EMBANK_RETURN_IF_ERROR(missing_memory.Allocate(batch->keys().size()));
  // A call that finds no memory must have done nothing, so a large batch allocates before it reads.
  // A batch that needs no memory makes its creation only when a row is missing.
  if (batch->keys().size() > kInlineKeys) {
    creation.Make(batch, scope, rows);
    EMBANK_RETURN_IF_ERROR(creation.get()->Allocate());
  }
  // Each part notes its missing positions from its own begin on; unused places stay kNone.
  constexpr uint32_t kNone = 0xFFFFFFFF;
  const std::span<uint32_t> missing = missing_memory.values();
  const auto read_part = [&](uint32_t begin, uint32_t end) {
    uint32_t next = begin;
    const bool in_order =
        ReadPart(batch, &elsewhere.logged, &elsewhere.payloads, MissingRule::kCreate, rows, begin,
                 end, [&](uint32_t position, OutcomeTally*) { missing[next++] = position; });
    if (!in_order) std::sort(missing.begin() + begin, missing.begin() + next);
    std::fill(missing.begin() + next, missing.begin() + end, kNone);
  };
  {
    const PayloadGuard payload_guard(batch->table().store().payloads);
    batch->ForEachPart(read_part);
    EMBANK_RETURN_IF_ERROR(ReadPayloads(*batch, batch->keys(), &elsewhere.payloads, rows));
  }
  if (batch->count(Outcome::kFound) == batch->keys().size()) return OkStatus();
  const auto missing_begin = missing.begin() + batch->answered();
  const auto missing_end = std::remove(missing_begin, missing.end(), kNone);
  if (missing_end == missing_begin) return OkStatus();
  if (creation.get() == nullptr) {
    creation.Make(batch, scope, rows);
    EMBANK_RETURN_IF_ERROR(creation.get()->Allocate());
  }
  creation.get()->Run(std::span(missing_begin, missing_end));
  return OkStatus();
}

// Fewer keys tell little about the next call, and take no locks for a guess.
constexpr size_t kFillKeysMin = 1024;

// While a table fills, looking for rows first would be looking twice.
Status LookupOrCreate(Batch* batch, WriteScope* scope, RowSpan rows) {
  if (batch->keys().size() < kFillKeysMin) return ReadThenCreate(batch, scope, rows);
  Table* const table = &batch->table();
  // Under locks rows in the log would be read one by one: so would those of former pieces. LRU has
  // all rows that are found before those that are made, whether the table fills or not.
  const bool fills = table->fills() && table->rows_in_log() == 0 &&
                     table->mover()->OrdersToTouch() == nullptr && !scope->MayBeInPieces();
  EMBANK_RETURN_IF_ERROR(fills ? CreateAll(batch, scope, rows)
                               : ReadThenCreate(batch, scope, rows));
  table->SetFills(batch->count(Outcome::kCreated) > batch->keys().size() / 2);
  return OkStatus();
}

// Calls seen(position, heat) for all rows, with 0 without a row, and sets their outcomes.
template <typename Seen>
Status VisitRows(Batch* batch, bool tells_heat, Seen seen) {
  const Table& table = batch->table();
  EMBANK_RETURN_IF_ERROR(table.CheckAlive());
  LoggedRows logged_rows;
  EMBANK_RETURN_IF_ERROR(logged_rows.Allocate(*batch));
  // While two rows change places, no look finds them.
  const PayloadGuard payload_guard(table.store().payloads);
  batch->ForEachPart([&](uint32_t begin, uint32_t end) {
    OutcomeTally tally;
    LoggedRows::Part logged(&logged_rows, *batch, begin);
    {
      const EpochTable::Guard guard(table.store().epochs);
      ReadRows(
          table, RowLayout::kVectorOffsetBytes, batch->keys(), begin, end,
          [](uint32_t, const RowWatch& watch) { return watch.IsCurrent(); },
          [&](uint32_t position, const RowSeen& row, const Match& match) {
            if (row.header == nullptr && match.any()) {
              return logged.Add(position, match.location());
            }
            const bool found = row.header != nullptr;
            seen(position, found ? HeatOf(row.mark.usage, table.store().heat_clock->now()) : 0);
            batch->Answer(position, found ? Outcome::kFound : Outcome::kAbsent, &tally);
          });
    }
    logged.Read({.touches = 0, .promoted = PromotedRows::kNone, .tells_heat = tells_heat},
                [&](uint32_t position, const LoggedRow& row) {
                  seen(position, row.heat);
                  batch->Answer(position, row.outcome, &tally);
                });
    batch->Add(tally);
  });
  return batch->UnreadStatus();
}

}  // namespace

void CountPayloads(Table* table, KeySpan keys, PayloadList* payloads) {
  TopkFlush* const flush = table->store().topk_flush;
  if (flush == nullptr) return;
  if (!keys.empty()) flush->unique_hits().Count(keys, payloads);
  const size_t positions = payloads->size();
  if (positions == 0) return;
  table->counters().payload_lookups.fetch_add(positions, std::memory_order_relaxed);
  table->store().payloads->counters().answered.fetch_add(positions, std::memory_order_relaxed);
}

void CountLookup(Batch* batch, std::span<const KeySpan> keys, uint64_t more_touches,
                 uint64_t nanoseconds) {
  Table* const table = &batch->table();
  const uint64_t created = batch->count(Outcome::kCreated);
  const uint64_t answered = batch->count(Outcome::kFound) + created;
  batch->CountVerb(TableVerb::kLookup, nanoseconds);
  table->pins().EndBatch();
  table->store().heat_clock->Count(answered + more_touches);
  TopkFlush* const flush = table->store().topk_flush;
  if (flush == nullptr) return;
  if (created > 0) {
    for (const KeySpan some : keys) flush->RaiseCreated(*table, some);
  }
  flush->CountLookup(table, answered);
}

Status FinishLookup(Batch* batch, WriteScope* scope, uint64_t begin_ns) {
  const KeySpan keys = batch->keys();
  CountLookup(batch, {&keys, 1}, 0, batch->NsSince(begin_ns));
  EMBANK_RETURN_IF_ERROR(scope->Settle());
  return batch->RefusedStatus();
}

namespace {

// Whether to look each key up once for all of its positions. Finding the distinct keys costs about
// a quarter of a lookup for each position (decision 0062). Rows are moved about in the caller's
// memory, threads do not share the search, and a table that forgets may lose a row in between.
bool AreLookedUpOnce(const Batch& batch, MissingRule rule) {
  constexpr size_t kKeysMin = Batch::kSharedKeys / 2;
  const Table& table = batch.table();
  const size_t keys = batch.keys().size();
  if (keys < kKeysMin || keys > NumberedKeys::kKeysMax || batch.has_touches() ||
      batch.IsShared(keys) || !MayReadLeading(table, rule) || table.forgetter() != nullptr) {
    return false;
  }
  // The larger the batch, the more of its keys are repeated beyond the sample.
  return DistinctPart(table, batch.keys()) < (keys < Batch::kSharedKeys ? 0.5 : 0.85);
}

// Gives the outcomes of all positions by those of the distinct keys.
void AnswerByNumbers(Batch* batch, const Batch& distinct, NumberedKeys* keys) {
  const std::span<const uint32_t> numbers = keys->numbers();
  OutcomeTally tally;
  tally.without_place = distinct.tally().without_place;
  if (distinct.count(Outcome::kFound) == distinct.keys().size()) {
    batch->AnswerFound(0, numbers.size(), &tally);
  } else {
    uint32_t next = 0;  // the first positions of keys come in the order of their numbers
    for (uint32_t i = 0; i < numbers.size(); ++i) {
      const bool is_first = numbers[i] == next;
      if (is_first) ++next;
      const auto outcome = static_cast<Outcome>(keys->outcomes()[numbers[i]]);
      const bool was_made = outcome == Outcome::kCreated && !is_first;
      batch->Answer(i, was_made ? Outcome::kFound : outcome, &tally);
    }
  }
  tally.NoteFound(Tier::kDram, tally.count(Outcome::kFound));
  batch->Add(tally);
}

// Copies the row at each position's number to the position. From the last one on, since no number
// is above its position: a row at the front is overwritten after all copies of it have been made.
void CopyToPositions(std::span<const uint32_t> numbers, size_t row_bytes, RowSpan rows) {
  constexpr size_t kBlockBytes = 64;
  const size_t blocks_end = row_bytes / kBlockBytes * kBlockBytes;
  for (size_t i = numbers.size(); i-- > 0;) {
    if (numbers[i] == i) continue;
    std::byte* const to = rows.Row(i);
    const std::byte* const from = rows.Row(numbers[i]);
    for (size_t at = 0; at < blocks_end; at += kBlockBytes) {
      std::memcpy(to + at, from + at, kBlockBytes);
    }
    if (blocks_end < row_bytes)
      std::memcpy(to + blocks_end, from + blocks_end, row_bytes - blocks_end);
  }
}

// Looks up each key once, for `rows` from the first on, and copies the rows to all positions.
Status LookUpOnce(Batch* batch, MissingRule rule, RowSpan rows, NumberedKeys* keys) {
  EMBANK_CHECK(batch->answered() == 0);
  const Table& table = batch->table();
  keys->Find(table, batch->keys());
  Batch distinct(&batch->table(), keys->keys(), keys->outcomes());
  distinct.set_touches(keys->touches());
  WriteScope scope(distinct);
  EMBANK_RETURN_IF_ERROR(AnswerLookup(&distinct, &scope, rule, rows));
  CopyToPositions(keys->numbers(), table.layout().vector_bytes, rows);
  AnswerByNumbers(batch, distinct, keys);
  return scope.Settle(WriteScope::Debts::kChanges);
}

}  // namespace

Status AnswerLookup(Batch* batch, WriteScope* scope, MissingRule rule, RowSpan rows) {
  const Table& table = batch->table();
  if (AreLookedUpOnce(*batch, rule)) {
    NumberedKeys keys;
    if (keys.Allocate(batch->keys().size()).ok()) return LookUpOnce(batch, rule, rows, &keys);
  }
  if (rule == MissingRule::kCreate && !table.store().options->read_only) {
    return LookupOrCreate(batch, scope, rows);
  }
  if (rule == MissingRule::kCreate) rule = MissingRule::kDefault;
  const KeySpan keys = batch->keys();
  RowsElsewhere elsewhere;
  EMBANK_RETURN_IF_ERROR(elsewhere.Allocate(*batch));
  const PayloadGuard payload_guard(table.store().payloads);
  batch->ForEachPart([&](uint32_t begin, uint32_t end) {
    ReadPart(batch, &elsewhere.logged, &elsewhere.payloads, rule, rows, begin, end,
             [&](uint32_t position, OutcomeTally* tally) {
               AnswerMissing(table, keys[position], rule, rows.Row(position));
               batch->Answer(position, Outcome::kAbsent, tally);
             });
  });
  return ReadPayloads(*batch, keys, &elsewhere.payloads, rows);
}

Status Lookup(Table* table, KeySpan keys, MissingRule rule, RowSpan rows, OutcomeSpan outcomes) {
  EMBANK_RETURN_IF_ERROR(table->CheckAlive());
  const uint64_t begin_ns = table->store().clock->NowNs();
  Batch batch(table, keys, outcomes);
  WriteScope scope(batch);
  if (keys.size() <= kInlineKeys && MayReadLeading(*table, rule)) {
    const LeadingBatch leading = {&batch, rows};
    const TableKeys all(*table, keys, table->layout().vector_end_bytes());
    ReadLeading({&leading, 1}, {&all, 1});
  }
  if (batch.answered() < keys.size()) {
    EMBANK_RETURN_IF_ERROR(AnswerLookup(&batch, &scope, rule, rows));
  }
  return FinishLookup(&batch, &scope, begin_ns);
}

Status Contains(Table* table, KeySpan keys, OutcomeSpan outcomes) {
  Batch batch(table, keys, outcomes);
  return VisitRows(&batch, false, [](uint32_t, uint32_t) {});
}

Status GetHeat(Table* table, KeySpan keys, std::span<uint32_t> heat, OutcomeSpan outcomes) {
  Batch batch(table, keys, outcomes);
  return VisitRows(&batch, true, [&](uint32_t position, uint32_t seen) { heat[position] = seen; });
}

}  // namespace embank
