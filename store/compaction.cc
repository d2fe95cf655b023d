#include "store/compaction.h"

#include <algorithm>
#include <span>
#include <utility>

#include "store/table.h"

namespace embank {

Compaction::Compaction(const CompactionParts& parts)
    : parts_(parts), task_(parts.executor->MakeBackgroundTask([this] { return WorkOff(); })) {}

void Compaction::Pay(uint64_t changed_keys) {
  const uint64_t pace = parts_.log->pace();
  if (pace == 0 || changed_keys == 0) return;
  // A single key owes a whole row.
  const uint64_t rows =
      (changed_keys * pace + CompactionPace::kChangedRows - 1) / CompactionPace::kChangedRows;
  if (owed_rows_.fetch_add(rows) + rows < kRowsAtATime) return;
  task_->Wake();
  for (uint64_t paid = 0; paid < rows && owed_rows_.load() > kOwedRowsMax; paid += kRowsAtATime) {
    if (!WorkOff()) return;
  }
}

// Some of what is owed. False: less than is done at once is left, or it cannot be done now; then it
// is forgiven, and what next changes owe tries again.
bool Compaction::WorkOff() {
  MutexLock lock(&mutex_);
  if (owed_rows_.load() < kRowsAtATime) return false;
  if (!Step(CompactionAim::kPace)) {
    owed_rows_.store(0);
    return false;
  }
  // Only who has the lock takes some off.
  return owed_rows_.fetch_sub(step_rows_) - step_rows_ >= kRowsAtATime;
}

void Compaction::MakeRoom(RowMover* mover, uint64_t rows) {
  if (mover->forgets()) Forget(mover, rows);
  bool has_waited = false;
  while (!mover->HasRoom(rows)) {
    const uint64_t ended = CheckpointsEnded();
    // One that has ended since then may have made room.
    if (mover->HasRoom(rows)) return;
    {
      MutexLock lock(&mutex_);
      if (Step(CompactionAim::kSpace)) continue;
    }
    if (std::exchange(has_waited, true) || !WaitForCheckpoint(ended)) return;
  }
}

void Compaction::Forget(RowMover* mover, uint64_t rows) {
  uint64_t wanted = mover->TakeRowsToForget(rows);
  if (wanted == 0) return;
  if (!mover->IsMostlyInMemory()) wanted -= ForgetInLog(wanted);
  ForgetInMemory(mover, wanted);
}

// How many of so many rows have been; the last step may take more.
uint64_t Compaction::ForgetInLog(uint64_t rows) {
  uint64_t forgotten = 0;
  for (uint64_t looked_at = 0;
       forgotten < rows && looked_at < kLookedAtMax * rows + kRowsAtATime;) {
    // Other batches come in between.
    MutexLock lock(&mutex_);
    if (!Step(CompactionAim::kForget)) break;
    forgotten += step_forgotten_;
    looked_at += step_rows_;
  }
  return std::min(forgotten, rows);
}

// The coldest of each shard in turn.
void Compaction::ForgetInMemory(RowMover* mover, uint64_t rows) {
  for (uint32_t in_vain = 0; rows > 0 && in_vain < KeyIndex::kShardCount;) {
    KeyIndex::Shard* const shard = parts_.index->shard(next_shard_++ % KeyIndex::kShardCount);
    const BatchGate::Ticket ticket(parts_.gate);
    MutexLock lock(&shard->mutex);
    const bool forgotten = mover->ForgetColdest(shard);
    rows -= forgotten ? 1 : 0;
    in_vain = forgotten ? 0 : in_vain + 1;
  }
}

void Compaction::MakeRoomLater() {
  bool goes_on = true;
  for (uint64_t rows = 0; goes_on && rows < kLaterRowsMax;) {
    // Batches come in between.
    MutexLock lock(&mutex_);
    goes_on = Step(CompactionAim::kLaterSpace);
    rows += step_rows_;
  }
}

Compaction::UnderWay::UnderWay(Compaction* compaction) : compaction_(compaction) {
  MutexLock lock(&compaction_->checkpoint_mutex_);
  compaction_->checkpoint_maker_ = std::this_thread::get_id();
}

Compaction::UnderWay::~UnderWay() {
  {
    MutexLock lock(&compaction_->checkpoint_mutex_);
    compaction_->checkpoint_maker_ = {};
    ++compaction_->checkpoints_ended_;
  }
  compaction_->checkpoint_ended_.NotifyAll();
}

uint64_t Compaction::CheckpointsEnded() {
  MutexLock lock(&checkpoint_mutex_);
  return checkpoints_ended_;
}

// Until more than so many have ended. False: none is under way, or it would wait for this thread.
bool Compaction::WaitForCheckpoint(uint64_t ended) {
  MutexLock lock(&checkpoint_mutex_);
  if (checkpoint_maker_ == std::this_thread::get_id()) return false;
  while (checkpoints_ended_ == ended && checkpoint_maker_ != std::thread::id()) {
    checkpoint_ended_.Wait(&checkpoint_mutex_);
  }
  return checkpoints_ended_ != ended;
}

// False: there is nothing to be done, or it cannot be done now.
bool Compaction::Step(CompactionAim aim) {
  if (victim_ != nullptr && aim != aim_) {
    parts_.log->Release(std::exchange(victim_, nullptr), /*is_done=*/false);
  }
  if (victim_ == nullptr) {
    victim_ = parts_.log->PickVictim(aim);
    aim_ = aim;
    next_slot_ = 0;
    if (victim_ == nullptr) return false;
  }
  const size_t count = parts_.log->LiveOf(*victim_, &next_slot_, rows_);
  const std::span<const Location> rows = std::span(rows_).first(count);
  step_rows_ = count;
  step_forgotten_ = 0;
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
  if (failed || done) parts_.log->Release(std::exchange(victim_, nullptr), done);
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
  if (aim_ == CompactionAim::kForget) {
    step_forgotten_ += table->mover()->ForgetOrRelocate(shard, id, from, record) ? 1 : 0;
  } else if (!table->mover()->Relocate(shard, id, from, record)) {
    stuck_ = true;
  }
}

}  // namespace embank
