#include "store/device/device_gradients.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/memory/scratch.h"
#include "base/status_macros.h"
#include "gpu/gradient_rows.h"
#include "store/batch/batch.h"
#include "store/batch/gradients.h"
#include "store/batch/row_group.h"
#include "store/batch/unique_keys.h"
#include "store/batch/write_scope.h"
#include "store/device/batch_piece.h"
#include "store/device/caller_stream.h"
#include "store/device/gradient_sums.h"
#include "store/payload/payload_rows.h"
#include "tiers/row/row_update.h"

namespace embank {
namespace {

static_assert(kSumRun == kGradientRun, "the host and the device sum the same runs");

// A distinct key: its shard, and the index in the shard's group of its first position.
struct KeyAt {
  uint32_t shard;
  uint32_t first;
};

class DeviceGradients {
 public:
  DeviceGradients(Batch* batch, WriteScope* scope, DeviceArray gradients)
      : batch_(*batch),
        scope_(*scope),
        table_(batch->table()),
        memory_(table_.store().payloads->memory()),
        call_{.rule = table_.rule()},
        dim_(table_.layout().dim),
        gradients_(gradients) {}

  // kResourceExhausted.
  Status Allocate();
  // Waits for the caller's gradients. kInvalidArgument: one of them is not finite. kUnavailable.
  Status CheckFinite();
  // Steps the rows of a plan. kUnavailable: the device is lost.
  Status Run(ShardPlan* plan);

 private:
  void NoteGroup(const ShardGroup& group);
  void Answer(const KeyAt& key, Outcome outcome, OutcomeTally* tally);
  uint64_t CountOf(const KeyAt& key) const;
  void CopyPositions(const KeyAt& key, std::span<uint32_t> to) const;
  Status SumLong(const KeyAt& key, GradientSums* sums);
  Status StepOthers();
  void StepPiece(ConstRowSpan sums);
  Status StepPayloads();
  Status StepLong(const PayloadPosition& at, GradientSums* sums);
  static KeyAt KeyOf(const PayloadPosition& at) { return {at.shard, at.number}; }
  uint64_t RoundingSeedOf(const PayloadPosition& at) const {
    return call_.RoundingSeedOf(table_, batch_.keys()[groups_[at.shard].positions[at.number]]);
  }

  Batch& batch_;
  WriteScope& scope_;
  Table& table_;
  PayloadMemory& memory_;
  GradientCall call_;
  const uint32_t dim_;
  const DeviceArray gradients_;
  UniqueKeys unique_;
  PayloadList payloads_;
  BatchPiece piece_;
  UniqueKeys piece_unique_;
  size_t others_count_ = 0;
  std::array<ShardGroup, KeyIndex::kShardCount> groups_;  // by shard, those that have positions
  Scratch<KeyAt, kInlineKeys> others_;                    // keys without a row in device memory
  Scratch<float, 1> long_sum_;                            // of a key with very many positions
};

Status DeviceGradients::Allocate() {
  const size_t keys = batch_.keys().size();
  const size_t piece_keys = std::min(scope_.PieceKeysMax(), GradientSums::KeysMax(memory_, dim_));
  EMBANK_RETURN_IF_ERROR(unique_.Allocate(keys));
  EMBANK_RETURN_IF_ERROR(payloads_.Allocate(table_.store().payloads, keys));
  EMBANK_RETURN_IF_ERROR(piece_.Allocate(&table_, piece_keys));
  EMBANK_RETURN_IF_ERROR(piece_unique_.Allocate(piece_keys));
  EMBANK_RETURN_IF_ERROR(long_sum_.Allocate(dim_));
  return others_.Allocate(keys);
}

Status DeviceGradients::CheckFinite() {
  const size_t keys = batch_.keys().size();
  if (keys == 0) return OkStatus();
  const std::span<std::byte> buffer = memory_.staging().Take();
  auto* const first = reinterpret_cast<uint64_t*>(buffer.data());
  Device& device = memory_.device();
  device.FindNotFinite(gradients_, static_cast<uint32_t>(keys), dim_, first);
  const Status found = device.Wait(device.Record());
  const uint64_t first_bad = *first;
  memory_.staging().Return(buffer);
  EMBANK_RETURN_IF_ERROR(found);
  return first_bad == keys ? OkStatus() : BadGradientStatus(batch_, first_bad);
}

Status DeviceGradients::Run(ShardPlan* plan) {
  call_.Count(&table_);
  plan->ForEachGroup(batch_, [&](const ShardGroup& group) {
    ShardGroup& kept = groups_[group.shard->number];
    kept = group;
    kept.guesses = nullptr;  // the guesses of a visit end with it
    NoteGroup(group);
  });
  EMBANK_RETURN_IF_ERROR(StepOthers());
  return StepPayloads();
}

// Tells the keys of a group apart, and notes those whose rows are in device memory. No other row
// gets there before the batch leaves the payload gate.
void DeviceGradients::NoteGroup(const ShardGroup& group) {
  const std::span<const uint32_t> firsts = unique_.Find(group);
  OutcomeTally tally;
  PayloadList::Part payloads(&payloads_, group.begin);
  MutexLock lock(&group.shard->mutex);
  const auto note = [&](size_t i, KeyHash hash, const Match& guess) {
    const KeyAt key = {group.shard->number, firsts[i]};
    const RowId id = table_.IdOf(batch_.keys()[group.positions[key.first]], hash);
    const Match match = table_.store().index->Confirm(guess, id);
    if (match.any() && match.location().HasDevicePayload()) {
      const Outcome noted = NotePayload(table_, key.first, match.location(), &payloads, key.shard);
      // The others have their outcome when their steps are made.
      if (noted != Outcome::kFound) Answer(key, noted, &tally);
    } else {
      others_.values()[others_count_++] = key;
    }
  };
  ForEachGuess(
      table_, sizeof(RowHeader), firsts.size(), [&](size_t i) { return group.hashes[firsts[i]]; },
      note);
  batch_.Add(tally);
}

void DeviceGradients::Answer(const KeyAt& key, Outcome outcome, OutcomeTally* tally) {
  const ShardGroup& group = groups_[key.shard];
  for (uint32_t i = key.first; i != UniqueKeys::kEnd; i = unique_.Next(group, i)) {
    batch_.Answer(group.positions[i], outcome, tally);
  }
}

uint64_t DeviceGradients::CountOf(const KeyAt& key) const {
  const ShardGroup& group = groups_[key.shard];
  uint64_t count = 0;
  for (uint32_t i = key.first; i != UniqueKeys::kEnd; i = unique_.Next(group, i)) ++count;
  return count;
}

void DeviceGradients::CopyPositions(const KeyAt& key, std::span<uint32_t> to) const {
  const ShardGroup& group = groups_[key.shard];
  uint32_t i = key.first;
  for (uint32_t& position : to) {
    EMBANK_CHECK(i != UniqueKeys::kEnd);
    position = group.positions[i];
    i = unique_.Next(group, i);
  }
}

// Sums the gradients of a key that has more positions than a buffer takes, to long_sum_: the device
// sums the runs, and the host adds them, in order.
Status DeviceGradients::SumLong(const KeyAt& key, GradientSums* sums) {
  const ShardGroup& group = groups_[key.shard];
  float* const total = long_sum_.values().data();
  uint64_t left = CountOf(key);
  uint32_t next = key.first;
  bool is_first = true;
  while (left > 0) {
    sums->Clear();
    while (left > 0 && sums->HasSpaceFor(kSumRun)) {
      const std::span<uint32_t> run =
          sums->Add(static_cast<uint32_t>(std::min<uint64_t>(left, kSumRun)));
      for (uint32_t& position : run) {
        position = group.positions[next];
        next = unique_.Next(group, next);
      }
      left -= run.size();
    }
    EMBANK_RETURN_IF_ERROR(sums->SumToHost());
    for (size_t i = 0; i < sums->size(); ++i) {
      if (is_first) {
        std::memcpy(total, sums->Sum(i), dim_ * sizeof(float));
      } else {
        AddSum(sums->Sum(i), dim_, total);
      }
      is_first = false;
    }
  }
  sums->Clear();
  return OkStatus();
}

Status DeviceGradients::StepOthers() {
  const std::span<const KeyAt> others = others_.values().first(others_count_);
  for (size_t done = 0; done < others.size();) {
    GradientSums sums(&memory_, dim_, call_.rule.max_gradient_value, gradients_);
    piece_.Clear();
    const auto add = [&] {
      const KeyAt& key = others[done];
      piece_.Add(batch_.keys()[groups_[key.shard].positions[key.first]],
                 static_cast<uint32_t>(done));
      ++done;
    };
    for (uint64_t count = CountOf(others[done]); sums.HasSpaceFor(count);
         count = CountOf(others[done])) {
      CopyPositions(others[done], sums.Add(static_cast<uint32_t>(count)));
      add();
      if (done == others.size() || piece_.is_full()) break;
    }
    if (piece_.size() > 0) {
      EMBANK_RETURN_IF_ERROR(sums.SumToHost());
      StepPiece({reinterpret_cast<const std::byte*>(sums.Sum(0)), sums.stride_bytes()});
    } else {
      EMBANK_RETURN_IF_ERROR(SumLong(others[done], &sums));
      add();
      StepPiece({reinterpret_cast<const std::byte*>(long_sum_.values().data()), 0});
    }
  }
  return OkStatus();
}

// Steps the keys of the piece, which are distinct, with one gradient each.
void DeviceGradients::StepPiece(ConstRowSpan sums) {
  GradientCall summed = call_;
  summed.rule.max_gradient_value = 0.0f;  // the device has clipped the gradients
  piece_.Run(&scope_, [&](Batch* piece, const ShardGroup& group) {
    StepGroup(piece, group, summed, sums, &piece_unique_, &piece_.payloads());
  });
  EMBANK_CHECK(piece_.payloads().size() == 0);
  OutcomeTally tally;
  for (size_t i = 0; i < piece_.size(); ++i) {
    EMBANK_CHECK(piece_.outcome(i) != BatchPiece::kNoOutcome);
    Answer(others_.values()[piece_.number(i)], static_cast<Outcome>(piece_.outcome(i)), &tally);
  }
  batch_.Add(tally);
}

// Sums and steps the rows in device memory, and answers them. If the device is lost, those of which
// nothing is known count as found.
Status DeviceGradients::StepPayloads() {
  const std::span<const PayloadPosition> positions = payloads_.positions();
  OutcomeTally tally;
  Status status;
  size_t done = 0;
  while (done < positions.size() && status.ok()) {
    GradientSums sums(&memory_, dim_, call_.rule.max_gradient_value, gradients_);
    const size_t begin = done;
    for (uint64_t count = CountOf(KeyOf(positions[done])); sums.HasSpaceFor(count);
         count = CountOf(KeyOf(positions[done]))) {
      const PayloadPosition& at = positions[done++];
      CopyPositions(KeyOf(at),
                    sums.Add(static_cast<uint32_t>(count), at.payload, RoundingSeedOf(at)));
      if (done == positions.size()) break;
    }
    status = sums.size() > 0 ? sums.SumAndStep(table_.layout(), call_.rule)
                             : StepLong(positions[done++], &sums);
    for (size_t i = begin; i < done; ++i) {
      const bool is_made = !status.ok() || sums.IsStepped(i - begin);
      Answer(KeyOf(positions[i]), is_made ? Outcome::kFound : Outcome::kNotFinite, &tally);
    }
  }
  for (const PayloadPosition& at : positions.subspan(done))
    Answer(KeyOf(at), Outcome::kFound, &tally);
  batch_.Add(tally);
  return status;
}

// Steps a row in device memory whose key has more positions than a buffer takes.
Status DeviceGradients::StepLong(const PayloadPosition& at, GradientSums* sums) {
  EMBANK_RETURN_IF_ERROR(SumLong(KeyOf(at), sums));
  return sums->StepWith(long_sum_.values().data(), at.payload, RoundingSeedOf(at), table_.layout(),
                        call_.rule);
}

}  // namespace

Status ApplyGradientsFromDevice(Table* table, KeySpan keys, DeviceArray gradients, void* stream,
                                OutcomeSpan outcomes) {
  EMBANK_RETURN_IF_ERROR(CheckTakesGradients(*table));
  const uint64_t begin_ns = table->store().clock->NowNs();
  Batch batch(table, keys, outcomes);
  WriteScope scope(batch, WriteScope::Need::kSpace);
  DeviceGradients step(&batch, &scope, gradients);
  EMBANK_RETURN_IF_ERROR(scope.Allocate());
  EMBANK_RETURN_IF_ERROR(step.Allocate());
  CallerStream callers(&table->store().payloads->memory().device(), stream);
  EMBANK_RETURN_IF_ERROR(callers.Join());
  EMBANK_RETURN_IF_ERROR(step.CheckFinite());
  scope.PromoteAll();
  scope.ChangeTogether(WriteScope::kAll, [&](ShardPlan* plan) { return step.Run(plan); });
  const Status released = callers.Release();
  const Status finished = FinishGradients(&batch, &scope, batch.NsSince(begin_ns));
  return released.ok() ? finished : released;
}

}  // namespace embank
