#include "store/compaction.h"

#include <span>
#include <utility>

#include "store/table.h"

namespace embank {

Compaction::Compaction(const CompactionParts& parts)
    : parts_(parts), task_(parts.executor->MakeBackgroundTask([this] {
        MutexLock lock(&mutex_);
        return Step(CompactionAim::kDebt);
      })) {}

void Compaction::Pay(uint64_t changed_keys) {
  const LogDebt debt = parts_.log->debt();
  if (debt == LogDebt::kNone) return;
  task_->Wake();
  if (debt != LogDebt::kLarge || changed_keys == 0) return;
  // Twice as many as the batch may have made dead: the debt shrinks, whatever the victims hold.
  uint64_t rows = rows_to_pay_.fetch_add(2 * changed_keys) + 2 * changed_keys;
  while (rows >= kRowsAtATime) {
    if (!rows_to_pay_.compare_exchange_weak(rows, rows - kRowsAtATime)) continue;
    rows -= kRowsAtATime;
    MutexLock lock(&mutex_);
    if (!Step(CompactionAim::kDebt)) return rows_to_pay_.store(0);
  }
}

void Compaction::MakeRoom(const RowMover& mover, uint64_t rows) {
  while (!mover.HasRoom(rows)) {
    MutexLock lock(&mutex_);
    if (!Step(CompactionAim::kSpace)) return;
  }
}

void Compaction::MakeRoomLater() {
  MutexLock lock(&mutex_);
  while (Step(CompactionAim::kLaterSpace)) {
  }
}

// False: there is nothing to be done, or it cannot be done now.
bool Compaction::Step(CompactionAim aim) {
  if (victim_ != nullptr && aim != aim_) parts_.log->Release(std::exchange(victim_, nullptr));
  if (victim_ == nullptr) {
    victim_ = parts_.log->PickVictim(aim);
    aim_ = aim;
    next_slot_ = 0;
    if (victim_ == nullptr) return false;
  }
  const size_t count = parts_.log->LiveOf(*victim_, &next_slot_, rows_);
  const std::span<const Location> rows = std::span(rows_).first(count);
  stuck_ = false;
  bool damaged = false;
  const absl::Status read =
      parts_.log->Read(rows, [&](size_t i, const absl::Status& status, auto record) {
        mutex_.AssertHeld();
        damaged = damaged || !status.ok();
        if (status.ok()) MoveRow(rows[i], record);
      });
  // What cannot be read stays where it is, and its segment with it.
  if (damaged) parts_.log->PassOver(victim_.get());
  const bool failed = !read.ok() || stuck_;
  const bool done = count < rows_.size();
  if (failed || done) parts_.log->Release(std::exchange(victim_, nullptr));
  return !failed;
}

void Compaction::MoveRow(Location from, std::span<const std::byte> record) {
  const RecordHeader header = LoadRecordHeader(record);
  const Table* const table = parts_.tables->Get(header.table);
  if (table == nullptr) return;
  const RowId id = table->IdOf(header.key, table->HashOf(header.key));
  KeyIndex::Shard* const shard = parts_.index->shard(KeyIndex::ShardOf(id.hash));
  // The copy belongs to no checkpoint that has the record: no flip comes between.
  const BatchGate::Ticket ticket(parts_.gate);
  MutexLock lock(&shard->mutex);
  if (!table->mover()->Relocate(shard, id, from, record)) stuck_ = true;
}

}  // namespace embank
