#include "store/state.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "store/batch.h"

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

}  // namespace

absl::Status GetState(Table* table, KeySpan keys, RowSpan state, OutcomeSpan outcomes) {
  EMBANK_RETURN_IF_ERROR(CheckHasState(*table));
  const RowLayout& layout = table->layout();
  Batch batch(table, keys, outcomes);
  EMBANK_RETURN_IF_ERROR(batch.Plan());
  batch.ReadRows([&](uint32_t position, std::byte* row) {
    if (row == nullptr) return;
    std::memcpy(state.Row(position), layout.State(row), layout.state_bytes());
  });
  return batch.AbsentStatus();
}

absl::Status SetState(Table* table, KeySpan keys, ConstRowSpan state, OutcomeSpan outcomes) {
  EMBANK_RETURN_IF_ERROR(CheckHasState(*table));
  EMBANK_RETURN_IF_ERROR(CheckAdamSteps(*table, keys, state));
  const RowLayout& layout = table->layout();
  Batch batch(table, keys, outcomes);
  EMBANK_RETURN_IF_ERROR(batch.Plan());
  batch.WriteRows([&](uint32_t position, std::byte* row) {
    if (row == nullptr) return;
    std::memcpy(layout.State(row), state.Row(position), layout.state_bytes());
  });
  return batch.AbsentStatus();
}

}  // namespace embank
