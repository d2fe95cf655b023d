#include "store/batch/write_scope.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/memory/scratch.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "store/batch/logged_rows.h"
#include "store/payload/payload_rows.h"
#include "store/placement/compaction.h"
#include "store/placement/memory_plan.h"
#include "store/placement/page_mover.h"
#include "store/placement/row_mover.h"

namespace embank {
namespace {

// A piece takes the locks of 64 shards, 5 us. Its rows take 40 us and more.
constexpr uint64_t kPieceKeysMin = 256;
// Sixteen parts, which threads share, or 4 ms of one.
constexpr uint64_t kPieceKeysMax = 16 * Batch::kPartKeys;
// The rows of a piece have at most this part of the memory that rows have, so that those which were
// promoted for it are still there when it comes to them. Where rows are forgotten for others, from
// half of ssd_bytes on, they have at most this part of ssd_bytes.
constexpr uint64_t kPiecePart = 8;
// Rows that are forgotten for a batch free places in all shards alike, and a shard has mostly
// enough after the first time.
constexpr uint32_t kForgetTimesMax = 16;

// The number of rows that take kPiecePart of the memory of rows, if rows can leave it.
uint64_t RowsOfMemoryPart(const Table& table) {
  const StoreContext& store = table.store();
  if (store.pages == nullptr) return UINT64_MAX;
  const uint64_t dram_bytes = store.pages->budget_bytes();
  const uint64_t index_bytes = store.index->memory()->bytes();
  const uint64_t rows_bytes =
      std::max(RowBytesMin(dram_bytes), dram_bytes - std::min(dram_bytes, index_bytes));
  return rows_bytes / kPiecePart / table.layout().row_bytes;
}

// The number of rows whose records take kPiecePart of ssd_bytes, if rows are forgotten for others.
uint64_t RowsOfLogPart(const Table& table) {
  RowMover& mover = *table.mover();
  if (table.store().compactions.empty() || !mover.compacted().forgets()) return UINT64_MAX;
  const uint64_t ssd_bytes = mover.logs().lowest().options().ssd_bytes;
  return ssd_bytes == 0 ? UINT64_MAX : ssd_bytes / kPiecePart / mover.rows().record_bytes();
}

// The most keys of a piece of a batch. A batch of no more rows than memory and log have space for
// at once has one piece.
uint64_t PieceKeysOf(const Batch& batch) {
  const uint64_t keys = batch.keys().size();
  if (keys <= kPieceKeysMin) return UINT64_MAX;
  const Table& table = batch.table();
  const uint64_t rows = std::min(RowsOfMemoryPart(table), RowsOfLogPart(table));
  return keys <= rows ? UINT64_MAX : std::clamp(rows, kPieceKeysMin, kPieceKeysMax);
}

// Flushes the rows of the batch in device memory whose flush is pending.
Status FlushPayloads(const Batch& batch, ShardPlan* plan) {
  const Table& table = batch.table();
  const StoreContext& store = table.store();
  Scratch<RowInSlot, kInlineKeys> rows;
  EMBANK_RETURN_IF_ERROR(rows.Allocate(plan->count()));
  size_t count = 0;
  plan->ForEachGroup(batch, [&](const ShardGroup& group) {
    MutexLock lock(&group.shard->mutex);
    for (size_t i = 0; i < group.size(); ++i) {
      const RowId id = table.IdOf(batch.keys()[group.positions[i]], group.hashes[i]);
      store.index->VisitMatches(group.shard, id, [&](const Match& match) {
        if (!match.location().HasDevicePayload()) return false;
        rows.values()[count++] = {id, match.location()};
        return true;
      });
    }
  });
  return store.payloads->FlushBeforeChange(rows.values().first(count));
}

void FlushBeforeChange(const Batch& batch, ShardPlan* plan) {
  const StoreContext& store = batch.table().store();
  if (store.payloads == nullptr || !store.gate->IsFlushing()) return;
  const Status flushed = FlushPayloads(batch, plan);
  // The checkpoint fails, and the changes go on.
  if (!flushed.ok()) store.gate->Fail(flushed);
}

}  // namespace

WriteScope::WriteScope(const Batch& batch, Need need)
    : batch_(batch), need_(need), piece_keys_(PieceKeysOf(batch)) {}

WriteScope::~WriteScope() { EMBANK_CHECK(changed_keys_ == 0); }

// Each shard's part is rounded up.
size_t WriteScope::PieceKeysMax() const {
  const size_t keys = batch_.keys().size();
  return MayBeInPieces() ? std::min(keys, piece_keys_ + KeyIndex::kShardCount) : keys;
}

Status WriteScope::Allocate() {
  const size_t keys = batch_.keys().size();
  EMBANK_RETURN_IF_ERROR(promoted_keys_.Allocate(MayBeInPieces() ? PieceKeysMax() : 0));
  return plan_.Allocate(keys, batch_.table().mover()->InLogMax(keys));
}

void WriteScope::Group(Positions positions) {
  positions.has_value() ? plan_.Group(batch_, *positions) : plan_.GroupAll(batch_);
  is_in_pieces_ = plan_.count() > piece_keys_;
}

void WriteScope::PromoteAll() {
  if (!MayBeInPieces()) PromoteRows(batch_);
}

void WriteScope::Change(Positions positions, Body body, OnDevice on_device) {
  Group(positions);
  if (plan_.count() == 0) return;
  AdmitGroups(0);
  const ChangeGuard guard(batch_.table().store(), is_in_pieces_);
  ChangeAdmitted(guard, body, on_device);
}

void WriteScope::ChangeTogether(Positions positions, Work work) {
  Group(positions);
  if (plan_.count() == 0) return;
  AdmitGroups(0);
  const ChangeGuard guard(batch_.table().store(), is_in_pieces_);
  // The rows that `work` finds in device memory stay there until its end.
  const PayloadGuard payload_guard(is_in_pieces_ ? batch_.table().store().payloads : nullptr);
  RunAdmitted(work);
  // Rows in device memory were in no piece.
  if (is_in_pieces_) changed_keys_ += plan_.count() - settled_keys_;
}

void WriteScope::Admit(Positions positions, uint64_t others_bytes) {
  Group(positions);
  if (positions.has_value() && !is_in_pieces_) {
    EMBANK_CHECK(MayBeInPieces());
    Promote(batch_, &plan_);
  }
  AdmitGroups(others_bytes);
}

void WriteScope::ChangeAdmitted(const ChangeGuard& guard, Body body, OnDevice on_device,
                                const ShardPlan::Choose* choose) {
  if (is_in_pieces_) return ChangeInPieces(body, on_device);
  // Another batch under the guard is in pieces.
  const PayloadGuard payload_guard(guard.in_pieces() ? batch_.table().store().payloads : nullptr);
  RunAdmitted([&](ShardPlan* plan) {
    plan->ForEachShard(batch_, body, choose);
    return batch_.table().store().payloads == nullptr ? OkStatus() : on_device();
  });
}

// A batch in pieces only looks for space here, for which it may wait.
void WriteScope::AdmitGroups(uint64_t others_bytes) {
  EMBANK_CHECK(!batch_.table().store().options->read_only);
  const uint64_t keys = plan_.count();
  if (!is_in_pieces_) changed_keys_ += keys;
  if (keys == 0 || need_ == Need::kNone) return;
  EnsureSpace(keys, others_bytes, /*waits=*/true);
  if (!is_in_pieces_) MakeMemory(batch_, &plan_);
}

void WriteScope::EnsureSpace(uint64_t keys, uint64_t others_bytes, bool waits) {
  const Table& table = batch_.table();
  for (Compaction* const compaction : table.store().compactions) {
    compaction->EnsureSpace(*table.mover(), keys, others_bytes, waits);
  }
}

void WriteScope::RunAdmitted(Work work) {
  FlushBeforeChange(batch_, &plan_);
  device_status_.Update(work(&plan_));
  EndPromises();
}

void WriteScope::ChangeInPieces(Body body, OnDevice on_device) {
  const auto pieces = static_cast<uint32_t>((plan_.count() + piece_keys_ - 1) / piece_keys_);
  for (uint32_t i = 0; i < pieces; ++i) {
    plan_.UsePart(i, pieces);
    ChangePiece(batch_, &plan_, [&] {
      const PayloadGuard payload_guard(batch_.table().store().payloads);
      FlushBeforeChange(batch_, &plan_);
      plan_.ForEachShard(batch_, body);
      if (batch_.table().store().payloads != nullptr) device_status_.Update(on_device());
    });
  }
}

void WriteScope::ChangePiece(const Batch& piece, ShardPlan* plan, FunctionRef<void()> change) {
  batch_.table().store().gate->CountPiece();
  Promote(piece, plan);
  changed_keys_ += plan->count();
  if (need_ != Need::kNone) {
    // A checkpoint that could be waited for waits for this batch.
    EnsureSpace(plan->count(), 0, /*waits=*/false);
    MakeMemory(piece, plan);
  }
  change();
  EndPromises();
  SettleKeys(plan->count());
  settled_keys_ += plan->count();
}

void WriteScope::Promote(const Batch& batch, ShardPlan* plan) {
  if (batch.table().mover()->rows().rows_in_log() == 0) return;
  size_t count = 0;
  plan->ForEachGroup(batch, [&](const ShardGroup& group) {
    for (const uint32_t position : group.positions) {
      promoted_keys_.values()[count++] = batch.keys()[position];
    }
  });
  PromoteRows(Batch(&batch.table(), KeySpan(promoted_keys_.values()).first(count), {}));
}

void WriteScope::EndPromises() {
  const StoreContext& store = batch_.table().store();
  if (!std::exchange(has_promises_, false)) return;
  for (uint32_t i = 0; i < KeyIndex::kShardCount; ++i) {
    const uint32_t rows = promised_rows_[i];
    if (rows > 0) store.index->shard(i)->promised_rows.fetch_sub(rows, std::memory_order_relaxed);
  }
}

// Memory for the log, and for the rows' places in the index.
void WriteScope::MakeMemory(const Batch& batch, ShardPlan* plan) {
  const StoreContext& store = batch.table().store();
  if (store.pages == nullptr) return;
  store.pages->ReserveLogMemory(*batch.table().mover(), plan->count());
  if (need_ == Need::kPlaces) MakePlaces(batch, plan);
}

void WriteScope::MakePlaces(const Batch& batch, ShardPlan* plan) {
  const Table& table = batch.table();
  const StoreContext& store = table.store();
  bool has_places = true;
  if (!std::exchange(has_promises_, true)) promised_rows_.fill(0);
  plan->ForEachGroup(batch, [&](const ShardGroup& group) {
    if (!group.shard->MayNeedMemory(group.size())) return;
    // Most keys of a large batch may have rows already.
    uint64_t absent = 0;
    {
      const EpochTable::Guard guard(store.epochs);
      for (size_t i = 0; i < group.size(); ++i) {
        const RowId id = table.IdOf(batch.keys()[group.positions[i]], group.hashes[i]);
        absent += store.index->Find(id).any() ? 0 : 1;
      }
    }
    if (absent == 0) return;
    // Batches of other threads must not count on the same places.
    promised_rows_[group.shard->number] = static_cast<uint32_t>(absent);
    group.shard->promised_rows.fetch_add(absent, std::memory_order_relaxed);
    has_places &= store.pages->ReserveIndexMemory(group.shard);
  });
  if (!has_places && table.mover()->compacted().forgets()) ForgetForPlaces();
}

// Places that the index cannot grow to have are those of forgotten rows.
void WriteScope::ForgetForPlaces() {
  const Table& table = batch_.table();
  KeyIndex* const index = table.store().index;
  for (uint32_t times = 0; times < kForgetTimesMax; ++times) {
    uint64_t missing = 0;
    for (uint32_t i = 0; i < KeyIndex::kShardCount; ++i) {
      if (promised_rows_[i] == 0) continue;
      missing = std::max(missing, index->capacity()->MissingPlaces(index->shard(i)));
    }
    if (missing == 0) return;
    // One row in 64 is of the shard that lacks most.
    const uint64_t rows = missing * KeyIndex::kShardCount;
    const uint64_t rows_before = table.store().store_rows->count();
    table.store().compactions.back()->ForgetRows(table.mover(), rows);
    if (table.store().store_rows->count() == rows_before) return;
  }
}

void WriteScope::SettleKeys(uint64_t keys) {
  const Table& table = batch_.table();
  const StoreContext& store = table.store();
  uint64_t changed_keys = std::exchange(changed_keys_, 0);
  if (Seeded(SeededBug::kNoCompactionDebt)) changed_keys = 0;
  if (store.pages != nullptr) store.pages->PayDebt(table.mover(), keys);
  for (Compaction* const compaction : store.compactions) {
    compaction->Settle(table.mover(), changed_keys, keys);
  }
}

Status WriteScope::Settle(Debts debts) {
  const uint64_t keys = batch_.keys().size();
  EMBANK_CHECK(settled_keys_ <= keys);
  SettleKeys(debts == Debts::kAll ? keys - settled_keys_ : 0);
  return device_status_;
}

}  // namespace embank
