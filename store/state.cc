#include "store/state.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "store/batch.h"
#include "store/row_group.h"
#include "store/shard_plan.h"
#include "tiers/row_copy.h"
#include "tiers/row_write.h"

namespace embank {
namespace {

constexpr float kAdamStepsMax = 0x1p24f;  // where a float stops counting

absl::Status CheckHasState(const Table& table) {
  EMBANK_RETURN_IF_ERROR(table.CheckAlive());
  if (table.layout().state_floats > 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("table \"", table.name(), "\" has no optimizer state (none and SGD keep none)"));
}

absl::Status CheckAdamSteps(const Table& table, KeySpan keys, ConstRowSpan state) {
  if (table.layout().optimizer != Optimizer::kAdam) return absl::OkStatus();
  const uint64_t step_offset_bytes = uint64_t{2} * table.layout().dim * sizeof(float);
  for (size_t i = 0; i < keys.size(); ++i) {
    float step = 0;
    std::memcpy(&step, state.Row(i) + step_offset_bytes, sizeof step);
    if (step >= 0.0f && step <= kAdamStepsMax) continue;
    return absl::InvalidArgumentError(absl::StrCat("state: the step count (the last float) of key ",
                                                   keys[i], " at position ", i, " is ", step,
                                                   "; it must be 0 to 16777216"));
  }
  return absl::OkStatus();
}

void SetGroup(Batch* batch, const ShardGroup& group, ConstRowSpan state) {
  const Table& table = batch->table();
  const RowLayout& layout = table.layout();
  OutcomeTally tally;
  MutexLock lock(&group.shard->mutex);
  ForEachMatch<IndexUse::kRead>(
      table, *batch, group, [&](uint32_t position, const RowId& id, const Match& match) {
        if (match.any()) {
          std::byte* const row = table.parts().tier->Row(match.location());
          const std::byte* const new_state = state.Row(position);
          FaultIn(new_state, layout.state_bytes());
          ChangeRow(layout, id.table, row, [&](std::byte* image) {
            std::memcpy(layout.State(image), new_state, layout.state_bytes());
          });
        }
        batch->Answer(position, match.any() ? Outcome::kFound : Outcome::kAbsent, &tally);
      });
  batch->Add(tally);
}

}  // namespace

absl::Status GetState(Table* table, KeySpan keys, RowSpan state, OutcomeSpan outcomes) {
  EMBANK_RETURN_IF_ERROR(CheckHasState(*table));
  const RowLayout& layout = table->layout();
  Batch batch(table, keys, outcomes);
  batch.ForEachPart([&](uint32_t begin, uint32_t end) {
    OutcomeTally tally;
    RowImage image;
    const auto copy = [&](uint32_t, const std::byte* row) {
      CopyFromRow(layout.Vector(row), layout.payload_bytes(), layout.Vector(image.bytes));
    };
    {
      const EpochTable::Guard guard(table->parts().epochs);
      ReadRows(*table, layout.row_bytes, keys, begin, end, copy,
               [&](uint32_t position, const RowSeen& seen) {
                 const bool found = seen.header != nullptr;
                 if (found) {
                   std::memcpy(state.Row(position), layout.State(image.bytes),
                               layout.state_bytes());
                 }
                 batch.Answer(position, found ? Outcome::kFound : Outcome::kAbsent, &tally);
               });
    }
    batch.Add(tally);
  });
  return batch.AbsentStatus();
}

absl::Status SetState(Table* table, KeySpan keys, ConstRowSpan state, OutcomeSpan outcomes) {
  EMBANK_RETURN_IF_ERROR(CheckHasState(*table));
  EMBANK_RETURN_IF_ERROR(CheckAdamSteps(*table, keys, state));
  Batch batch(table, keys, outcomes);
  ShardPlan plan;
  EMBANK_RETURN_IF_ERROR(plan.Allocate(keys.size()));
  plan.GroupAll(batch);
  plan.ForEachShard(batch, [&](const ShardGroup& group) { SetGroup(&batch, group, state); });
  return batch.AbsentStatus();
}

}  // namespace embank
