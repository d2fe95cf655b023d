#include "store/placement/compaction.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"
#include "store/table/table.h"

namespace embank {
namespace {

// Whether a reservation for so many rows would be given; cheap where there is plenty.
bool HasSpace(const ClassRows& class_rows, uint64_t rows) {
  return class_rows.store().logs->lowest().space().CanReserve(class_rows.slot_class(),
                                                              class_rows.record_bytes(), rows);
}

// Whether the log's oldest rows leave it.
bool IsByAge(CompactionAim aim) {
  return aim == CompactionAim::kForget || aim == CompactionAim::kDemote;
}

}  // namespace

Compaction::Compaction(const StoreContext& store, RowLog* log)
    : store_(store),
      log_(log),
      task_(store.executor->MakeBackgroundTask([this] { return ReduceDebt(/*is_aside=*/true); })) {}

void Compaction::PayDebt(uint64_t changed_keys) {
  const uint64_t pace = log_->candidates().pace();
  if (pace == 0 || changed_keys == 0 || log_->writer().has_stopped()) return;
  // A single key adds a whole row to the debt.
  const uint64_t rows =
      (changed_keys * pace + CompactionPace::kChangedRows - 1) / CompactionPace::kChangedRows;
  if (debt_rows_.fetch_add(rows) + rows < kRowsAtATime) return;
  task_->Wake();
  for (uint64_t paid = 0; paid < rows && debt_rows_.load() > kDebtRowsMax; paid += kRowsAtATime) {
    if (!ReduceDebt(/*is_aside=*/false)) return;
  }
}

// Reduces the debt. is_aside: in the background. False: less than one step is left, or a checkpoint
// is under way, for whose end the background task waits; or the step cannot be done now. Then the
// debt is cleared, and the next change tries again.
bool Compaction::ReduceDebt(bool is_aside) {
  MutexLock lock(&mutex_);
  if (debt_rows_.load() < kRowsAtATime) return false;
  // A flush pass would take moves for batches, and rest for them. The next change goes on.
  if (is_aside && store_.gate->checkpoint_wait()->IsUnderWay()) return false;
  if (!Step(CompactionAim::kPace)) {
    debt_rows_.store(0);
    return false;
  }
  // Only the holder of the lock reduces the debt.
  const uint64_t before = debt_rows_.fetch_sub(step_rows_);
  EMBANK_CHECK(before >= step_rows_);
  return before - step_rows_ >= kRowsAtATime;
}

void Compaction::Settle(RowMover* mover, uint64_t changed_keys, uint64_t keys) {
  PayDebt(changed_keys);
  if (demotes()) {
    Demote(*mover, keys);
  } else if (mover->compacted().forgets()) {
    Forget(mover, keys);
  }
}

void Compaction::EnsureSpace(const RowMover& mover, uint64_t rows, uint64_t others_bytes,
                             bool waits) {
  if (demotes()) return;
  rows += others_bytes / mover.rows().record_bytes();
  CheckpointWait* const checkpoints = store_.gate->checkpoint_wait();
  bool has_waited = !waits;
  while (!HasSpace(mover.rows(), rows)) {
    const uint64_t ended = checkpoints->ended();
    // A checkpoint that has ended since then may have freed space; one that is under way may soon.
    if (HasSpace(mover.rows(), rows)) return;
    const FlushPace::Hurry hurry(store_.gate->pace());
    {
      MutexLock lock(&mutex_);
      if (Step(CompactionAim::kSpace)) continue;
    }
    if (std::exchange(has_waited, true) || !checkpoints->WaitFor(ended)) return;
  }
}

void Compaction::Forget(RowMover* mover, uint64_t keys) {
  const uint64_t bytes_max = kLookedAtPart * keys * mover->rows().record_bytes() + kLookedAtMin;
  for (uint64_t looked_at_bytes = 0; looked_at_bytes < bytes_max && MustForget();) {
    RowMover* in_memory = nullptr;
    const StepEnd end = LeaveLog(CompactionAim::kForget, &in_memory, &looked_at_bytes);
    if (end == StepEnd::kFailed) return ClearIndexDebt();
    // No segment has ended, so the rows to forget are in memory.
    if (end == StepEnd::kNothing) in_memory = mover;
    if (in_memory == nullptr) continue;
    const uint64_t rows = ForgetInMemory(in_memory, kRowsAtATime);
    if (rows == 0) return ClearIndexDebt();
    looked_at_bytes += rows * in_memory->rows().record_bytes();
  }
}

void Compaction::ForgetRows(RowMover* mover, uint64_t rows) {
  NoteRowsToForget(rows);
  Forget(mover, rows);
}

void Compaction::Demote(const RowMover& mover, uint64_t keys) {
  EMBANK_CHECK(demotes());
  const uint64_t bytes_max = kLookedAtPart * keys * mover.rows().record_bytes() + kLookedAtMin;
  for (uint64_t looked_at_bytes = 0; looked_at_bytes < bytes_max && MustForget();) {
    RowMover* in_memory = nullptr;
    // Where no segment has ended, or the lower log takes nothing, rows stay.
    if (LeaveLog(CompactionAim::kDemote, &in_memory, &looked_at_bytes) != StepEnd::kDone) return;
  }
}

// *in_memory: the class of the rows where three quarters or more are in memory: the oldest records
// are of rows in use, and others of them are colder.
Compaction::StepEnd Compaction::LeaveLog(CompactionAim aim, RowMover** in_memory,
                                         uint64_t* looked_at_bytes) {
  MutexLock lock(&mutex_);
  // Another batch may have done it.
  if (!MustForget()) return StepEnd::kDone;
  const StepEnd end = TryStep(aim);
  const uint64_t index_debt = rows_to_forget_.load(std::memory_order_relaxed);
  // Rows of a higher tier are forgotten, too.
  EMBANK_CHECK(!store_.compactions.empty());
  Compaction* const highest = store_.compactions.front();
  if (end == StepEnd::kNothing && highest != this && index_debt > 0) {
    return highest->ForgetFor(this, index_debt, in_memory, looked_at_bytes);
  }
  if (end == StepEnd::kDone) NoteStep(in_memory, looked_at_bytes);
  return end;
}

void Compaction::NoteStep(RowMover** in_memory, uint64_t* looked_at_bytes) {
  *looked_at_bytes += std::max<uint64_t>(step_bytes_, 1);
  const bool most = step_in_memory_ > 0 && step_in_memory_ >= step_rows_ - step_rows_ / 4;
  if (most) *in_memory = in_memory_;
}

// Rows go to the lower log by age, so that those of this log are the oldest where that has none.
// The lower one holds its lock: one thread at a time forgets rows.
Compaction::StepEnd Compaction::ForgetFor(Compaction* lower, uint64_t rows, RowMover** in_memory,
                                          uint64_t* looked_at_bytes) {
  MutexLock lock(&mutex_);
  lower_ = lower;
  lower_rows_ = rows;
  const StepEnd end = TryStep(CompactionAim::kForget);
  lower_ = nullptr;
  if (end == StepEnd::kDone) NoteStep(in_memory, looked_at_bytes);
  return end;
}

void Compaction::Evacuate() {
  if (!demotes() || !log_->writer().has_stopped()) return;
  for (bool goes_on = true; goes_on;) {
    // Batches run between the steps.
    MutexLock lock(&mutex_);
    goes_on = Step(CompactionAim::kEvacuate);
  }
}

// Forgets the coldest row of each shard in turn; returns how many.
uint64_t Compaction::ForgetInMemory(RowMover* mover, uint64_t rows) {
  uint64_t forgotten = 0;
  for (uint32_t in_vain = 0; forgotten < rows && in_vain < KeyIndex::kShardCount && MustForget();) {
    KeyIndex::Shard* const shard = store_.index->shard(next_shard_++ % KeyIndex::kShardCount);
    const BatchGate::WriteGuard write_guard(store_.gate);
    MutexLock lock(&shard->mutex);
    const bool is_forgotten = mover->compacted().ForgetColdest(shard);
    if (is_forgotten) CountForgotten();
    forgotten += is_forgotten ? 1 : 0;
    in_vain = is_forgotten ? 0 : in_vain + 1;
  }
  return forgotten;
}

// The number of rows that leave the victim in one step.
size_t Compaction::RowsToLeave() const {
  if (lower_ != nullptr) return std::clamp<uint64_t>(lower_rows_, 1, kRowsAtATime);
  const uint64_t record_bytes = victim_->header.record_bytes;
  const uint64_t rows = (log_->space().BytesToForget() + record_bytes - 1) / record_bytes;
  return std::clamp<uint64_t>(std::max(rows, rows_to_forget_.load()), 1, kRowsAtATime);
}

// Rows that cannot be forgotten now are not made up for: keys that were refused come again.
void Compaction::ClearIndexDebt() { rows_to_forget_.store(0); }

void Compaction::CountForgotten() {
  uint64_t rows = rows_to_forget_.load();
  while (rows > 0 && !rows_to_forget_.compare_exchange_weak(rows, rows - 1)) {
  }
}

void Compaction::NoteForgotten() { (lower_ != nullptr ? lower_ : this)->CountForgotten(); }

void Compaction::CompactBeforeCheckpoint() {
  // It takes no row anew. Evacuate moves rows out of it.
  if (log_->writer().has_stopped()) return;
  CompactFor(CompactionAim::kLaterSpace);
  // Sessions with few changes pay no debt, and each leaves its segments.
  if (log_->candidates().HasWaste()) CompactFor(CompactionAim::kSize);
}

void Compaction::CompactFor(CompactionAim aim) {
  bool goes_on = true;
  for (uint64_t rows = 0; goes_on && rows < kLaterRowsMax;) {
    // Batches run between the steps.
    MutexLock lock(&mutex_);
    goes_on = Step(aim);
    rows += step_rows_;
  }
}

bool Compaction::Pick(CompactionAim aim) {
  EMBANK_CHECK(victim_ == nullptr);
  victim_ = log_->candidates().PickVictim(aim);
  aim_ = aim;
  next_slot_ = 0;
  if (victim_ == nullptr) return false;
  const bool goes_on = IsByAge(aim) && victim_->header.segment_id == forget_from_.segment;
  if (goes_on) next_slot_ = forget_from_.slot;
  return true;
}

void Compaction::Drop(bool is_done) {
  EMBANK_CHECK(victim_ != nullptr && next_slot_ <= victim_->geometry.slots);
  if (IsByAge(aim_)) {
    forget_from_.segment = is_done ? 0 : victim_->header.segment_id;
    forget_from_.slot = next_slot_;
  }
  log_->candidates().Release(std::exchange(victim_, nullptr), is_done);
}

Compaction::StepEnd Compaction::TryStep(CompactionAim aim) {
  if (victim_ != nullptr && aim != aim_) Drop(/*is_done=*/false);
  step_rows_ = 0;
  if (victim_ == nullptr && !Pick(aim)) return StepEnd::kNothing;
  const bool by_age = IsByAge(aim);
  const size_t wanted = by_age ? RowsToLeave() : rows_.size();
  const uint32_t first_slot = next_slot_;
  const size_t count =
      log_->candidates().LiveOf(*victim_, &next_slot_, std::span(rows_).first(wanted));
  EMBANK_CHECK(count <= wanted && first_slot <= next_slot_);
  const std::span<const Location> rows = std::span(rows_).first(count);
  step_rows_ = count;
  step_bytes_ = count * victim_->header.record_bytes;
  step_in_memory_ = 0;
  stuck_ = false;
  bool damaged = false;
  bool unread = false;
  const Status read = log_->reader().Read(rows, [&](size_t i, const Status& status, auto record) {
    mutex_.AssertHeld();
    (IsDataLoss(status) ? damaged : unread) |= !status.ok();
    if (status.ok()) MoveRow(rows[i], record);
  });
  // Records that cannot be read stay where they are, and their segment with them.
  if (damaged || unread) log_->candidates().Exclude(victim_.get(), damaged);
  if (!read.ok()) next_slot_ = first_slot;
  // It can wait until the device reads again.
  const bool waits = by_age && unread;
  const bool failed = !read.ok() || stuck_ || waits;
  const bool done = (count < wanted && read.ok()) || waits;
  if (failed || done) Drop(done);
  return failed ? StepEnd::kFailed : StepEnd::kDone;
}

void Compaction::MoveRow(Location from, std::span<const std::byte> record) {
  const RecordHeader header = LoadRecordHeader(record);
  const Table* const table = store_.tables->Get(header.table);
  if (table == nullptr) return;
  const RowId id = table->IdOf(header.key, table->HashOf(header.key));
  KeyIndex::Shard* const shard = store_.index->shard(KeyIndex::ShardOf(id.hash));
  // The copy belongs to no checkpoint that has the record: no barrier comes between.
  const BatchGate::WriteGuard write_guard(store_.gate);
  MutexLock lock(&shard->mutex);
  if (aim_ == CompactionAim::kDemote || aim_ == CompactionAim::kEvacuate) {
    DemoteRow(table->mover(), shard, id, from, record);
  } else if (aim_ == CompactionAim::kForget) {
    ForgetRow(table->mover(), shard, id, from, record);
  } else if (!table->mover()->compacted().Relocate(shard, id, from, record)) {
    stuck_ = true;
  }
}

void Compaction::DemoteRow(RowMover* mover, KeyIndex::Shard* shard, const RowId& id, Location from,
                           std::span<const std::byte> record) {
  const CompactedRows::Fate fate = mover->compacted().DemoteOrSpare(shard, id, from, record);
  if (fate == CompactedRows::Fate::kStuck) stuck_ = true;
  if (fate == CompactedRows::Fate::kDemoted) {
    demoted_rows_.fetch_add(1, std::memory_order_relaxed);
  }
}

void Compaction::ForgetRow(RowMover* mover, KeyIndex::Shard* shard, const RowId& id, Location from,
                           std::span<const std::byte> record) {
  switch (mover->compacted().ForgetOrSpare(shard, id, from, record)) {
    case CompactedRows::Fate::kForgotten:
      return NoteForgotten();
    case CompactedRows::Fate::kInMemory:
      ++step_in_memory_;
      in_memory_ = mover;
      return;
    case CompactedRows::Fate::kElsewhere:
    case CompactedRows::Fate::kSpared:
    case CompactedRows::Fate::kDemoted:
    case CompactedRows::Fate::kStuck:
      return;
  }
}

}  // namespace embank
