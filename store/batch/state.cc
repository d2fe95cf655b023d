#include "store/batch/state.h"

#include <cstring>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/batch/batch.h"
#include "store/batch/logged_rows.h"
#include "store/batch/row_for_update.h"
#include "store/batch/row_group.h"
#include "store/batch/write_scope.h"
#include "store/payload/payload_list.h"
#include "tiers/row/row_copy.h"
#include "tiers/row/row_write.h"

namespace embank {
namespace {

constexpr float kAdamStepsMax = 0x1p24f;  // where a float stops counting

Status CheckAdamSteps(const Table& table, KeySpan keys, ConstRowSpan state) {
  if (table.layout().optimizer != Optimizer::kAdam) return OkStatus();
  const uint64_t step_offset_bytes = uint64_t{2} * table.layout().dim * sizeof(float);
  for (size_t i = 0; i < keys.size(); ++i) {
    float step = 0;
    std::memcpy(&step, state.Row(i) + step_offset_bytes, sizeof step);
    if (step >= 0.0f && step <= kAdamStepsMax) continue;
    return InvalidArgumentError(StrCat("state: the step count (the last float) of key ", keys[i],
                                       " at position ", i, " is ", step,
                                       "; it must be 0 to 16777216"));
  }
  return OkStatus();
}

void SetGroup(Batch* batch, const ShardGroup& group, ConstRowSpan state, PayloadList* payloads) {
  const Table& table = batch->table();
  PayloadList::Part payload_part(payloads, group.begin);
  const RowLayout& layout = table.layout();
  OutcomeTally tally;
  BorrowedRowMemory memory(table.store().row_memory);
  const auto set = [&](uint32_t position, const RowId& id, const FoundRow& found) {
    group.shard->mutex.AssertHeld();
    if (found.HasDevicePayload()) {
      const Outcome outcome = NotePayload(table, position, found.match.location(), &payload_part);
      return batch->Answer(position, outcome, &tally);
    }
    RowForUpdate row(table, group.shard, id, found, &memory);
    Outcome outcome = row.outcome();
    if (outcome == Outcome::kFound) {
      const std::byte* const new_state = state.Row(position);
      FaultIn(new_state, layout.state_bytes());
      outcome = row.Change([&](std::byte* bytes) {
        ChangeRow(layout, id.table, bytes, [&](std::byte* image) {
          std::memcpy(layout.State(image), new_state, layout.state_bytes());
        });
        return Outcome::kFound;
      });
    }
    batch->Answer(position, outcome, &tally);
  };
  ForEachRow(
      *batch, group, [&](size_t) -> const auto& { return set; });
  batch->Add(tally);
}

}  // namespace

Status CheckHasState(const Table& table) {
  EMBANK_RETURN_IF_ERROR(table.CheckAlive());
  if (table.layout().state_floats > 0) return OkStatus();
  return FailedPreconditionError(
      StrCat("table \"", table.name(), "\" has no optimizer state (none and SGD keep none)"));
}

Status CheckStates(const Table& table, KeySpan keys, ConstRowSpan state) {
  EMBANK_RETURN_IF_ERROR(CheckHasState(table));
  return CheckAdamSteps(table, keys, state);
}

Status GetState(Table* table, KeySpan keys, RowSpan state, OutcomeSpan outcomes) {
  EMBANK_RETURN_IF_ERROR(CheckHasState(*table));
  const RowLayout& layout = table->layout();
  Batch batch(table, keys, outcomes);
  LoggedRows logged_rows;
  PayloadList payloads;
  EMBANK_RETURN_IF_ERROR(logged_rows.Allocate(batch));
  EMBANK_RETURN_IF_ERROR(payloads.Allocate(table->store().payloads, batch.keys().size()));
  const PayloadGuard payload_guard(table->store().payloads);
  batch.ForEachPart([&](uint32_t begin, uint32_t end) {
    OutcomeTally tally;
    LoggedRows::Part logged(&logged_rows, batch, begin);
    PayloadList::Part payload_part(&payloads, begin);
    {
      RowCopyBuffer copy_buffer(table->store().row_memory, layout);
      std::byte* const image = copy_buffer.bytes();
      const auto copy = [&](uint32_t, const RowWatch& watch) {
        const auto* const row = reinterpret_cast<const std::byte*>(watch.header);
        CopyFromRow(layout.Vector(row), layout.payload_bytes(), layout.Vector(image));
        return watch.IsCurrent();
      };
      const EpochTable::Guard guard(table->store().epochs);
      ReadRows(*table, layout.row_bytes, keys, begin, end, copy,
               [&](uint32_t position, const RowSeen& seen, const Match& match) {
                 if (seen.header == nullptr && match.any()) {
                   return logged.Add(position, match.location());
                 }
                 const bool found = seen.header != nullptr;
                 if (found && match.location().HasDevicePayload()) {
                   payload_part.Add(position, match.location());
                 } else if (found) {
                   std::memcpy(state.Row(position), layout.State(image), layout.state_bytes());
                 }
                 batch.Answer(position, found ? Outcome::kFound : Outcome::kAbsent, &tally);
               });
    }
    logged.Read({.touches = 0, .promoted = PromotedRows::kNone}, [&](uint32_t position,
                                                                     const LoggedRow& row) {
      if (row.outcome == Outcome::kFound) {
        CopyFromRow(row.row + layout.state_offset_bytes, layout.state_bytes(), state.Row(position));
      }
      batch.Answer(position, row.outcome, &tally);
    });
    batch.Add(tally);
  });
  EMBANK_RETURN_IF_ERROR(payloads.Read(StateInPayload(layout), layout.state_bytes(),
                                       [&](const PayloadPosition& at, const std::byte* bytes) {
                                         std::memcpy(state.Row(at.number), bytes,
                                                     layout.state_bytes());
                                       }));
  return batch.AbsentStatus();
}

Status SetState(Table* table, KeySpan keys, ConstRowSpan state, OutcomeSpan outcomes) {
  EMBANK_RETURN_IF_ERROR(table->CheckMayChange());
  EMBANK_RETURN_IF_ERROR(CheckStates(*table, keys, state));
  Batch batch(table, keys, outcomes);
  WriteScope scope(batch, WriteScope::Need::kSpace);
  EMBANK_RETURN_IF_ERROR(scope.Allocate());
  PayloadList payloads;
  EMBANK_RETURN_IF_ERROR(payloads.Allocate(table->store().payloads, scope.PieceKeysMax()));
  scope.PromoteAll();
  const RowLayout& layout = table->layout();
  const auto fill = [&](const PayloadPosition& at, std::byte* bytes) {
    std::memcpy(bytes, state.Row(at.number), layout.state_bytes());
  };
  scope.Change(
      WriteScope::kAll, [&](const ShardGroup& group) { SetGroup(&batch, group, state, &payloads); },
      [&] {
        Status written = payloads.Write(StateInPayload(layout), layout.state_bytes(), fill);
        if (scope.IsInPieces()) payloads.Clear();
        return written;
      });
  EMBANK_RETURN_IF_ERROR(scope.Settle());
  return batch.AbsentStatus();
}

}  // namespace embank
