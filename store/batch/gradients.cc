#include "store/batch/gradients.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/batch/batch.h"
#include "store/batch/row_for_update.h"
#include "store/batch/row_group.h"
#include "store/batch/unique_keys.h"
#include "store/batch/write_scope.h"
#include "store/payload/payload_list.h"
#include "tiers/row/row_update.h"
#include "tiers/row/row_write.h"

namespace embank {
namespace {

using GradientRun = std::array<const std::byte*, kSumRun>;

// The first position whose gradient is NaN or infinite; the number of keys: none.
uint64_t FirstNotFinite(const Batch& batch, ConstRowSpan gradients) {
  const uint32_t dim = batch.table().layout().dim;
  const bool is_packed = gradients.stride_bytes == dim * sizeof(float);
  std::atomic<uint64_t> first = batch.keys().size();
  batch.ForEachPart([&](uint32_t begin, uint32_t end) {
    // The numbers of packed rows are one array. A part has at most 2,048 rows of 4,096 numbers.
    if (is_packed && AllFinite(gradients.Row(begin), (end - begin) * dim)) return;
    for (uint64_t i = begin; i < end && i < first.load(std::memory_order_relaxed); ++i) {
      if (AllFinite(gradients.Row(i), dim)) continue;
      uint64_t seen = first.load(std::memory_order_relaxed);
      while (i < seen && !first.compare_exchange_weak(seen, i, std::memory_order_relaxed)) {
      }
    }
  });
  return first;
}

Status CheckFinite(const Batch& batch, ConstRowSpan gradients) {
  const uint64_t first = FirstNotFinite(batch, gradients);
  return first == batch.keys().size() ? OkStatus() : BadGradientStatus(batch, first);
}

// Walks the gradients of one key's positions, in order.
class GradientChain {
 public:
  GradientChain(const UniqueKeys& unique, const ShardGroup& group, const GradientRows& gradients,
                uint32_t first)
      : unique_(unique), group_(group), gradients_(gradients), index_(first) {}

  bool done() const { return index_ == UniqueKeys::kEnd; }
  // Returns the only gradient, if there is but one at an address for floats; else nullptr.
  const float* Only() const {
    const std::byte* const gradient = gradients_.Row(group_.positions[index_]);
    const bool aligned = reinterpret_cast<uintptr_t>(gradient) % alignof(float) == 0;
    const bool only = aligned && unique_.Next(group_, index_) == UniqueKeys::kEnd;
    return only ? reinterpret_cast<const float*>(gradient) : nullptr;
  }
  // The next gradients, at least one.
  std::span<const std::byte* const> TakeRun(GradientRun* run) {
    size_t count = 0;
    for (; count < run->size() && !done(); ++count) {
      (*run)[count] = gradients_.Row(group_.positions[index_]);
      index_ = unique_.Next(group_, index_);
    }
    return std::span(*run).first(count);
  }

 private:
  const UniqueKeys& unique_;
  const ShardGroup& group_;
  const GradientRows& gradients_;
  uint32_t index_;
};

// A sum of this size fits on a stack (2 KiB). Larger rows are summed in blocks.
constexpr uint32_t kBlockDim = 512;
// So does the copy of a row of this size.
constexpr uint32_t kFormerBytes = 2048;

// sum[i] += the sum of a run's gradients, each clipped to `limit` (0: is not).
void AddRun(GradientRun* run, size_t count, uint32_t dim, float limit, float* sum) {
  float run_sum[kBlockDim];
  for (uint32_t begin = 0; begin < dim; begin += kBlockDim) {
    const uint32_t size = std::min(dim - begin, kBlockDim);
    SumGradients(std::span(*run).first(count), size, limit, run_sum);
    AddSum(run_sum, size, sum + begin);
    for (size_t i = 0; i < count; ++i) (*run)[i] += size * sizeof(float);
  }
}

// Sums the gradients of a key that has several, or whose gradients are clipped.
[[gnu::noinline]] const float* SumAll(GradientChain chain, uint32_t dim, float limit, float* sum) {
  GradientRun run;
  SumGradients(chain.TakeRun(&run), dim, limit, sum);
  while (!chain.done()) {
    const size_t count = chain.TakeRun(&run).size();
    AddRun(&run, count, dim, limit, sum);
  }
  return sum;
}

// The sum of a key's gradients: in `sum`, or where its only one is, as for most keys.
[[gnu::always_inline]] inline const float* Sum(GradientChain chain, uint32_t dim, float limit,
                                               float* sum) {
  const float* const only = limit == 0.0f ? chain.Only() : nullptr;
  return only != nullptr ? only : SumAll(chain, dim, limit, sum);
}

// The outcome of a step, made or not.
Outcome OutcomeOf(bool is_made) { return is_made ? Outcome::kFound : Outcome::kNotFinite; }

// Answers all positions of a key.
[[gnu::always_inline]] inline void AnswerKey(Batch* batch, const UniqueKeys& unique,
                                             const ShardGroup& group, uint32_t first,
                                             Outcome outcome, OutcomeTally* tally) {
  for (uint32_t i = first; i != UniqueKeys::kEnd; i = unique.Next(group, i)) {
    batch->Answer(group.positions[i], outcome, tally);
  }
}

// The gradients of one shard group on their way into the rows.
class GroupStep {
 public:
  // `places`: those of the group, or as many as the keys that it steps, in the batch's list of rows
  // in device memory and for rows that are deferred.
  GroupStep(Batch* batch, const ShardGroup& group, const ShardGroup& places,
            const GradientCall& call, const GradientRows& gradients, UniqueKeys* unique,
            PayloadList* payloads)
      : batch_(batch),
        group_(group),
        places_(places),
        call_(call),
        gradients_(gradients),
        unique_(unique),
        layout_(batch->table().layout()),
        deferred_(places),
        payloads_(payloads, places.begin),
        memory_(batch->table().store().row_memory) {}

  // Steps the rows of keys, which are given by the indexes of their first positions.
  void Run(std::span<const uint32_t> firsts) {
    {
      MutexLock lock(&group_.shard->mutex);
      StepRows(firsts);
      memory_.Return();
    }
    deferred_.ForEach(
        batch_->table(), [&](uint32_t first) { return batch_->keys()[group_.positions[first]]; },
        [&](uint32_t first, const RowId& id, const FoundRow& found) {
          StepOne(first, id, found);
          memory_.Return();
        });
    batch_->Add(tally_);
  }

 private:
  // The distance in keys from the prefetch of a key's gradients to its step; its row has the same.
  static constexpr size_t kAhead = kGroupKeys;

  void StepRows(std::span<const uint32_t> firsts) {
    const Table& table = batch_->table();
    for (size_t i = 0; i < std::min(2 * kAhead, firsts.size()); ++i) PrefetchPlace(firsts[i]);
    for (size_t i = 0; i < std::min(kAhead, firsts.size()); ++i) PrefetchGradients(firsts[i]);
    for (size_t i = 0; i < firsts.size(); ++i) {
      if (i + 2 * kAhead < firsts.size()) PrefetchPlace(firsts[i + 2 * kAhead]);
      if (i + kAhead < firsts.size()) PrefetchGradients(firsts[i + kAhead]);
      const RowId id =
          table.IdOf(batch_->keys()[group_.positions[firsts[i]]], group_.hashes[firsts[i]]);
      const Match match = MatchOf(table, places_, i, id);
      if (!deferred_.Defer(firsts[i], match)) StepOne(firsts[i], id, FoundInMemory(match));
    }
  }

  [[gnu::always_inline]] void StepOne(uint32_t first, const RowId& id, const FoundRow& found) {
    group_.shard->mutex.AssertHeld();
    if (found.HasDevicePayload()) {
      const Outcome noted = NotePayload(batch_->table(), first, found.match.location(), &payloads_,
                                        group_.shard->number);
      // The device answers the others when their steps are made.
      return noted == Outcome::kFound ? static_cast<void>(0) : Answer(first, noted);
    }
    RowForUpdate row(batch_->table(), group_.shard, id, found, &memory_);
    Outcome outcome = row.outcome();
    if (outcome == Outcome::kFound) {
      outcome = row.Change([&](std::byte* bytes) { return Step(first, id.key, bytes); });
    }
    Answer(first, outcome);
  }

  // Prefetches a key, and where its first gradient is: those of a batch are more than the
  // first-level cache holds.
  [[gnu::always_inline]] void PrefetchPlace(uint32_t first) const {
    __builtin_prefetch(&batch_->keys()[group_.positions[first]]);
    gradients_.PrefetchAddress(group_.positions[first]);
  }

  // Prefetches a key's first gradients: those of a batch are more than the second-level cache
  // holds.
  [[gnu::always_inline]] void PrefetchGradients(uint32_t first) const {
    constexpr uint32_t kLineBytes = 64;
    constexpr uint32_t kGradientsMax = 2;
    constexpr uint32_t kBytesMax = 1024;
    const uint32_t bytes = std::min<uint32_t>(layout_.dim * sizeof(float), kBytesMax);
    uint32_t i = first;
    for (uint32_t n = 0; n < kGradientsMax && i != UniqueKeys::kEnd; ++n) {
      const std::byte* const gradient = gradients_.Row(group_.positions[i]);
      for (uint32_t line = 0; line < bytes; line += kLineBytes) __builtin_prefetch(gradient + line);
      __builtin_prefetch(gradient + bytes - 1);
      i = unique_->Next(group_, i);
    }
  }

  // Returns kFound or kNotFinite.
  Outcome Step(uint32_t first, Key key, std::byte* row) {
    float* const total = layout_.dim <= kBlockDim ? sum_ : memory_.get()->sum;
    const float* const sum = Sum(GradientChain(*unique_, group_, gradients_, first), layout_.dim,
                                 call_.rule.max_gradient_value, total);
    FaultIn(reinterpret_cast<const std::byte*>(sum), layout_.dim * sizeof(float));
    const uint64_t seed = call_.RoundingSeedOf(batch_->table(), key);
    // A row that is changed in an image has that in its memory, and its record is elsewhere.
    std::byte* const former =
        layout_.row_bytes <= sizeof former_ ? former_ : memory_.get()->record.bytes;
    bool is_made = false;
    ChangeRow(layout_, batch_->table().id(), row, [&](std::byte* image) {
      is_made = StepRow(layout_, call_.rule, seed, sum, image, former);
    });
    return OutcomeOf(is_made);
  }

  void Answer(uint32_t first, Outcome outcome) {
    AnswerKey(batch_, *unique_, group_, first, outcome, &tally_);
  }

  Batch* const batch_;
  const ShardGroup& group_;
  const ShardGroup& places_;
  const GradientCall& call_;
  const GradientRows& gradients_;
  UniqueKeys* const unique_;
  const RowLayout& layout_;
  OutcomeTally tally_;
  DeferredRows deferred_;
  PayloadList::Part payloads_;
  BorrowedRowMemory memory_;
  float sum_[kBlockDim];
  alignas(64) std::byte former_[kFormerBytes];
};

// Steps the rows of a batch in device memory, and answers them. `groups` are those of the batch, by
// shard.
Status StepPayloads(Batch* batch, const GradientCall& call, const GradientRows& gradients,
                    const UniqueKeys& unique, std::span<const ShardGroup> groups,
                    PayloadList* payloads) {
  const Table& table = batch->table();
  const uint32_t dim = table.layout().dim;
  OutcomeTally tally;
  Status status = payloads->Step(
      table.layout(), call.rule,
      [&](const PayloadPosition& at, std::byte* gradient) {
        const ShardGroup& group = groups[at.shard];
        auto* const total = reinterpret_cast<float*>(gradient);
        const GradientChain chain(unique, group, gradients, at.number);
        const float* const sum = Sum(chain, dim, call.rule.max_gradient_value, total);
        if (sum != total) std::memcpy(total, sum, dim * sizeof(float));
        return call.RoundingSeedOf(table, batch->keys()[group.positions[at.number]]);
      },
      [&](const PayloadPosition& at, bool is_made) {
        AnswerKey(batch, unique, groups[at.shard], at.number, OutcomeOf(is_made), &tally);
      });
  batch->Add(tally);
  return status;
}

}  // namespace

Status CheckTakesGradients(const Table& table) {
  EMBANK_RETURN_IF_ERROR(table.CheckMayChange());
  if (table.layout().optimizer != Optimizer::kNone) return OkStatus();
  return FailedPreconditionError(StrCat(
      "table \"", table.name(), "\" has no optimizer; create it with one to apply gradients"));
}

Status BadGradientStatus(const Batch& batch, uint64_t first) {
  EMBANK_CHECK(first < batch.keys().size());
  return InvalidArgumentError(StrCat("gradients: that of key ", batch.keys()[first],
                                     " at position ", first,
                                     " is NaN or infinite; no gradient of the batch was applied"));
}

void StepGroup(Batch* batch, const ShardGroup& group, const GradientCall& call,
               const GradientRows& gradients, UniqueKeys* unique, PayloadList* payloads) {
  const std::span<const uint32_t> firsts = unique->Find(group);
  // The visit has a guess for each position, so each must be a key of its own.
  EMBANK_CHECK(firsts.size() == group.size());
  GroupStep(batch, group, group, call, gradients, unique, payloads).Run(firsts);
}

Status FinishGradients(Batch* batch, WriteScope* scope, uint64_t nanoseconds) {
  batch->CountVerb(TableVerb::kGradients, nanoseconds);
  EMBANK_RETURN_IF_ERROR(scope->Settle());
  return batch->AbsentStatus();
}

GradientBatch::GradientBatch(Table* table, KeySpan keys, const GradientRows& gradients,
                             OutcomeSpan outcomes)
    : call_{.rule = table->rule()},
      gradients_(gradients),
      batch_(table, keys, outcomes),
      scope_(batch_, WriteScope::Need::kSpace) {}

Status GradientBatch::Allocate() {
  const size_t keys = batch_.keys().size();
  const size_t keys_of_all = scope_.MayBeInPieces() ? keys : 0;
  EMBANK_RETURN_IF_ERROR(scope_.Allocate());
  EMBANK_RETURN_IF_ERROR(unique_.Allocate(keys));
  EMBANK_RETURN_IF_ERROR(all_.Allocate(keys_of_all));
  EMBANK_RETURN_IF_ERROR(distinct_.Allocate(keys_of_all));
  return payloads_.Allocate(batch_.table().store().payloads, scope_.PieceKeysMax());
}

void GradientBatch::Admit(uint64_t others_bytes) {
  if (scope_.MayBeInPieces()) {
    return scope_.Admit(distinct_.values().first(FindDistinct()), others_bytes);
  }
  scope_.PromoteAll();
  scope_.Admit(WriteScope::kAll, others_bytes);
}

// Finds the distinct keys of a group, once; returns their first positions, as indexes in it.
std::span<const uint32_t> GradientBatch::FindKeys(const ShardGroup& group) {
  std::span<const uint32_t>& firsts = firsts_[group.shard->number];
  if (firsts.empty()) {
    ShardGroup& kept = groups_[group.shard->number];
    kept = group;
    kept.guesses = nullptr;  // the guesses of a visit end with it
    firsts = unique_.Find(group);
  }
  return firsts;
}

// Finds the distinct keys of all positions; returns how many. Their first positions are in order
// within a shard.
size_t GradientBatch::FindDistinct() {
  all_.GroupAll(batch_);
  all_.ForEachShard(batch_, [&](const ShardGroup& group) { FindKeys(group); });
  size_t count = 0;
  all_.ForEachGroup(batch_, [&](const ShardGroup& group) {
    for (const uint32_t first : firsts_[group.shard->number]) {
      distinct_.values()[count++] = group.positions[first];
    }
  });
  return count;
}

void GradientBatch::Step(const ChangeGuard& guard) {
  if (!batch_.keys().empty()) call_.Count(&batch_.table());
  const auto find_keys = [&](const ShardGroup& group) { return FindKeys(group); };
  const ShardPlan::Choose choose = find_keys;
  scope_.ChangeAdmitted(
      guard, [&](const ShardGroup& group) { StepPart(group); },
      [&] {
        Status stepped = StepPayloads(&batch_, call_, gradients_, unique_, groups_, &payloads_);
        if (scope_.IsInPieces()) payloads_.Clear();
        return stepped;
      },
      scope_.MayBeInPieces() ? nullptr : &choose);
}

// Steps the keys of a group: of all positions, or of the first positions of distinct keys.
void GradientBatch::StepPart(const ShardGroup& group) {
  const uint32_t shard = group.shard->number;
  const bool has_all = !scope_.MayBeInPieces();
  const ShardGroup& all = has_all ? group : groups_[shard];
  GroupStep(&batch_, all, group, call_, gradients_, &unique_, &payloads_)
      .Run(has_all ? FindKeys(group) : firsts_[shard].subspan(group.offset, group.size()));
}

Status GradientBatch::Finish(uint64_t nanoseconds) {
  return FinishGradients(&batch_, &scope_, nanoseconds);
}

Status ApplyGradients(Table* table, KeySpan keys, ConstRowSpan gradients, OutcomeSpan outcomes) {
  EMBANK_RETURN_IF_ERROR(CheckTakesGradients(*table));
  const uint64_t begin_ns = table->store().clock->NowNs();
  GradientBatch batch(table, keys, gradients, outcomes);
  EMBANK_RETURN_IF_ERROR(CheckFinite(Batch(table, keys, {}), gradients));
  EMBANK_RETURN_IF_ERROR(batch.Allocate());
  batch.Admit();
  {
    const ChangeGuard guard(table->store(), batch.IsInPieces());
    batch.Step(guard);
  }
  return batch.Finish(table->store().clock->NowNs() - begin_ns);
}

}  // namespace embank
