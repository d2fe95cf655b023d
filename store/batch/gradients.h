// Applying gradients.
#ifndef EMBANK_STORE_BATCH_GRADIENTS_H_
#define EMBANK_STORE_BATCH_GRADIENTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/memory/scratch.h"
#include "base/status.h"
#include "store/batch/batch.h"
#include "store/batch/shard_plan.h"
#include "store/batch/unique_keys.h"
#include "store/batch/write_scope.h"
#include "store/payload/payload_list.h"
#include "store/table/table.h"

namespace embank {

// The gradients of a batch's positions: in rows at equal distances, or each at its own address, so
// that positions can share one. Unaligned.
class GradientRows {
 public:
  GradientRows(ConstRowSpan rows) : rows_(rows) {}  // NOLINT: it is what most callers have
  explicit GradientRows(const std::byte* const* addresses) : addresses_(addresses) {}

  const std::byte* Row(uint64_t position) const {
    return addresses_ != nullptr ? addresses_[position] : rows_.Row(position);
  }
  [[gnu::always_inline]] void PrefetchAddress(uint64_t position) const {
    if (addresses_ != nullptr) __builtin_prefetch(&addresses_[position]);
  }

 private:
  ConstRowSpan rows_;
  const std::byte* const* addresses_ = nullptr;
};

// A call that makes steps: its rule, and its number among those of the table.
struct GradientCall {
  UpdateRule rule;
  uint64_t number = 0;

  // Counts the call, and numbers it from 1 on. Inside a write guard.
  void Count(Table* table) {
    number = table->counters().gradient_calls.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  // The seed by which the call rounds a key's row; 0 where it rounds to nearest.
  uint64_t RoundingSeedOf(const Table& table, Key key) const {
    return rule.rounding == Rounding::kNearest ? 0 : table.RoundingSeedOf(key, number);
  }
};

// Sums the gradients (dim floats each, unaligned) of equal keys and steps each row once, under its
// shard's lock. Thread-safe.
// kInvalidArgument: a gradient is not finite; nothing was done.
// kFailedPrecondition: the table was dropped, or has no optimizer.
// kResourceExhausted: no memory for scratch.
// kOutOfRange: steps would leave numbers that are not finite, and `outcomes` is empty; the rest was
// done.
// kNotFound: keys are absent and `outcomes` is empty; the rest was done.
Status ApplyGradients(Table* table, KeySpan keys, ConstRowSpan gradients, OutcomeSpan outcomes);

// A batch of gradients in parts, for callers that step several batches together (store/packed).
class GradientBatch {
 public:
  // Borrows all of them. The gradients are finite, and the table takes gradients.
  GradientBatch(Table* table, KeySpan keys, const GradientRows& gradients, OutcomeSpan outcomes);
  GradientBatch(const GradientBatch&) = delete;
  GradientBatch& operator=(const GradientBatch&) = delete;

  // Allocates scratch. kResourceExhausted; nothing was changed.
  Status Allocate();
  // Reads rows of the log into memory, and admits all positions; see WriteScope::Admit. Without
  // locks and guards.
  void Admit(uint64_t others_bytes = 0);
  // Sums and steps. Under a ChangeGuard; of IsInPieces, if a batch under it is.
  void Step(const ChangeGuard& guard);
  // Counts the batch, which took so long, pays its debts, and returns its status. Without locks and
  // guards.
  Status Finish(uint64_t nanoseconds);

  // Whether it is stepped in pieces. After Admit.
  bool IsInPieces() const { return scope_.IsInPieces(); }

 private:
  std::span<const uint32_t> FindKeys(const ShardGroup& group);
  size_t FindDistinct();
  void StepPart(const ShardGroup& group);

  GradientCall call_;
  const GradientRows gradients_;
  Batch batch_;
  WriteScope scope_;
  UniqueKeys unique_;
  PayloadList payloads_;
  std::array<ShardGroup, KeyIndex::kShardCount> groups_;  // by shard, those that have positions
  // The first positions of the distinct keys, by shard, as indexes in the groups.
  std::array<std::span<const uint32_t>, KeyIndex::kShardCount> firsts_;
  // A batch that may be in pieces has sums over all pieces: it keeps all its positions, and the
  // first ones of its distinct keys.
  ShardPlan all_;
  Scratch<uint32_t, 1> distinct_;
};

// ---- the steps of a batch of gradients, for callers whose gradients are in device memory ----

// kFailedPrecondition: the table was dropped, has no optimizer, or belongs to a store that is
// read-only.
Status CheckTakesGradients(const Table& table);
// The status of a batch of which nothing was applied, because the gradient at position `first` is
// not finite.
Status BadGradientStatus(const Batch& batch, uint64_t first);
// Steps the rows of a shard group whose keys are distinct. Notes rows in device memory in
// `payloads`, by the index in the group of each key's position; these have no outcome yet.
void StepGroup(Batch* batch, const ShardGroup& group, const GradientCall& call,
               const GradientRows& gradients, UniqueKeys* unique, PayloadList* payloads);
// Counts a batch that is done and took so long, pays its debts, and returns its status.
Status FinishGradients(Batch* batch, WriteScope* scope, uint64_t nanoseconds);

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_GRADIENTS_H_
