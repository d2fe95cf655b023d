#include "store/batch/write_scope.h"

#include <utility>

#include "base/check.h"
#include "base/memory/scratch.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "store/hot/hot_rows.h"
#include "store/placement/compaction.h"
#include "store/placement/page_mover.h"
#include "store/placement/row_mover.h"

namespace embank {
namespace {

// Small batches need no allocation.
constexpr size_t kInlineRows = 64;

Status ChangeByShard(const Batch& batch, ShardPlan* plan, WriteScope::Body body,
                     WriteScope::OnDevice on_device) {
  plan->ForEachShard(batch, body);
  return batch.table().parts().hot == nullptr ? OkStatus() : on_device();
}

}  // namespace

WriteScope::~WriteScope() { EMBANK_CHECK(changed_keys_ == 0); }

Status WriteScope::Allocate() {
  const size_t keys = batch_.keys().size();
  return plan_.Allocate(keys, batch_.table().mover()->InLogMax(keys));
}

void WriteScope::ChangeAll(Body body, OnDevice on_device) {
  plan_.GroupAll(batch_);
  RunByShard(body, on_device);
}

void WriteScope::Change(std::span<const uint32_t> positions, Body body, OnDevice on_device) {
  plan_.Group(batch_, positions);
  RunByShard(body, on_device);
}

void WriteScope::ChangeAllTogether(Work work) {
  plan_.GroupAll(batch_);
  Run(work);
}

void WriteScope::ChangeTogether(std::span<const uint32_t> positions, Work work) {
  plan_.Group(batch_, positions);
  Run(work);
}

void WriteScope::AdmitAll(uint64_t others_bytes) {
  plan_.GroupAll(batch_);
  Admit(others_bytes);
}

void WriteScope::ChangeAdmitted(Body body, OnDevice on_device) {
  RunAdmitted([&](ShardPlan* plan) { return ChangeByShard(batch_, plan, body, on_device); });
}

void WriteScope::RunByShard(Body body, OnDevice on_device) {
  Run([&](ShardPlan* plan) { return ChangeByShard(batch_, plan, body, on_device); });
}

void WriteScope::Run(Work work) {
  if (plan_.count() == 0) return;
  Admit();
  const ChangeGuard guard(batch_.table().parts());
  RunAdmitted(work);
}

void WriteScope::Admit(uint64_t others_bytes) {
  const StoreParts& parts = batch_.table().parts();
  EMBANK_CHECK(!parts.read_only);
  changed_keys_ += plan_.count();
  if (plan_.count() == 0 || need_ == Need::kNone) return;
  for (Compaction* const compaction : parts.compactions) {
    compaction->EnsureSpace(*batch_.table().mover(), plan_.count(), others_bytes);
  }
  MakeMemory();
}

void WriteScope::RunAdmitted(Work work) {
  const StoreParts& parts = batch_.table().parts();
  if (parts.hot != nullptr && parts.gate->IsFlushing()) {
    const Status flushed = FlushHotRows();
    // The checkpoint fails, and the changes go on.
    if (!flushed.ok()) parts.gate->Fail(flushed);
  }
  device_status_.Update(work(&plan_));
  EndPromises();
}

// Flushes the rows of the batch in device memory whose flush is pending.
Status WriteScope::FlushHotRows() {
  const Table& table = batch_.table();
  const StoreParts& parts = table.parts();
  Scratch<RowInSlot, kInlineRows> rows;
  EMBANK_RETURN_IF_ERROR(rows.Allocate(plan_.count()));
  size_t count = 0;
  plan_.ForEachGroup(batch_, [&](const ShardGroup& group) {
    MutexLock lock(&group.shard->mutex);
    for (size_t i = 0; i < group.size(); ++i) {
      const RowId id = table.IdOf(batch_.keys()[group.positions[i]], group.hashes[i]);
      parts.index->VisitMatches(group.shard, id, [&](const Match& match) {
        if (!match.location().IsHot()) return false;
        rows.values()[count++] = {id, match.location()};
        return true;
      });
    }
  });
  return parts.hot->FlushBeforeChange(rows.values().first(count));
}

void WriteScope::EndPromises() {
  const StoreParts& parts = batch_.table().parts();
  if (parts.pages == nullptr) return;
  for (uint32_t i = 0; i < KeyIndex::kShardCount; ++i) {
    const uint32_t rows = std::exchange(promised_rows_[i], 0);
    if (rows > 0) parts.index->shard(i)->promised_rows.fetch_sub(rows, std::memory_order_relaxed);
  }
}

// Memory for the rows' places in the index, and for the log.
void WriteScope::MakeMemory() {
  const Table& table = batch_.table();
  const StoreParts& parts = table.parts();
  if (parts.pages == nullptr) return;
  parts.pages->ReserveLogMemory(*table.mover(), plan_.count());
  plan_.ForEachGroup(batch_, [&](const ShardGroup& group) {
    if (!group.shard->MayNeedMemory(group.size())) return;
    // Most keys of a large batch may have rows already.
    uint64_t absent = 0;
    {
      const EpochTable::Guard guard(parts.epochs);
      for (size_t i = 0; i < group.size(); ++i) {
        const RowId id = table.IdOf(batch_.keys()[group.positions[i]], group.hashes[i]);
        absent += parts.index->Find(id).any() ? 0 : 1;
      }
    }
    if (absent == 0) return;
    // Batches of other threads must not count on the same places.
    promised_rows_[group.shard->number] = static_cast<uint32_t>(absent);
    group.shard->promised_rows.fetch_add(absent, std::memory_order_relaxed);
    parts.pages->ReserveIndexMemory(group.shard);
  });
}

Status WriteScope::Settle() {
  const Table& table = batch_.table();
  const StoreParts& parts = table.parts();
  const uint64_t keys = batch_.keys().size();
  uint64_t changed_keys = std::exchange(changed_keys_, 0);
  if (Seeded(SeededBug::kNoCompactionDebt)) changed_keys = 0;
  if (parts.pages != nullptr) parts.pages->PayDebt(table.mover(), keys);
  for (Compaction* const compaction : parts.compactions) {
    compaction->Settle(table.mover(), changed_keys, keys);
  }
  return device_status_;
}

}  // namespace embank
