#include "train/pipeline/row_ring.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/seeded_bug.h"

namespace embank {

// Two tasks: a lookup and an update may run at once. A batch's update may lag behind by `staleness`
// batches when its lookup is begun, and that of the batch itself by as many more.
RowRing::RowRing(const RowRingOptions& options, Executor* executor, Work lookup, Work update)
    : options_(options),
      lookup_(std::move(lookup)),
      update_(std::move(update)),
      places_(2 * (uint64_t{options.staleness} + 1)) {
  EMBANK_CHECK(options.staleness <= kStalenessMax);
  for (int i = 0; i < 2; ++i) {
    tasks_.push_back(executor->MakeBackgroundTask([this] { return Step(); }));
  }
}

RowRing::~RowRing() {
  Drop();
  tasks_.clear();
}

void RowRing::Wake() {
  for (const std::unique_ptr<BackgroundTask>& task : tasks_) task->Wake();
}

uint64_t RowRing::BeginLookup() {
  uint64_t batch = 0;
  {
    MutexLock lock(&mutex_);
    EMBANK_CHECK(lookups_begun_ - updates_begun_ <= options_.staleness);
    batch = lookups_begun_++;
    PlaceOf(batch) = {.lookup = {}, .updates_before = updates_begun_, .lookups_before = 0};
    changed_.NotifyAll();
  }
  Wake();
  return batch;
}

void RowRing::BeginUpdate() {
  {
    MutexLock lock(&mutex_);
    EMBANK_CHECK(updates_begun_ < lookups_done_);
    PlaceOf(updates_begun_++).lookups_before = lookups_begun_;
    changed_.NotifyAll();
  }
  Wake();
}

Status RowRing::WaitForLookup() {
  MutexLock lock(&mutex_);
  EMBANK_CHECK(updates_begun_ < lookups_begun_);
  WaitUntil(&lookups_done_, updates_begun_ + 1);
  return failure_.ok() ? PlaceOf(updates_begun_).lookup : failure_;
}

Status RowRing::WaitForUpdates() {
  MutexLock lock(&mutex_);
  WaitUntil(&updates_done_, updates_begun_);
  return failure_;
}

void RowRing::Drop() {
  MutexLock lock(&mutex_);
  WaitUntil(&updates_done_, updates_begun_);
  WaitUntil(&lookups_done_, lookups_begun_);
  updates_begun_ = updates_done_ = lookups_begun_;
}

// Where no task has taken the work, the caller does it: the system may refuse a thread.
void RowRing::WaitUntil(const uint64_t* done, uint64_t count) {
  while (*done < count) {
    uint64_t batch = 0;
    const Next first = done == &lookups_done_ ? Next::kLookup : Next::kUpdate;
    const Next next = looks_up_ || updates_ ? Next::kNothing : Claim(first, &batch);
    if (next == Next::kNothing) {
      changed_.Wait(&mutex_);
    } else {
      Run(next, batch);
    }
  }
}

// Waits while the other task runs, since its end may let something run. Else the next call that
// begins something wakes this one.
bool RowRing::Step() {
  MutexLock lock(&mutex_);
  for (;;) {
    uint64_t batch = 0;
    // Lookups wait for updates.
    const Next next = Claim(Next::kUpdate, &batch);
    if (next != Next::kNothing) {
      Run(next, batch);
      return true;
    }
    const bool has_more = lookups_done_ < lookups_begun_ || updates_done_ < updates_begun_;
    if (!has_more || (!looks_up_ && !updates_)) return false;
    changed_.Wait(&mutex_);
  }
}

// Takes what may run, of two things the first.
RowRing::Next RowRing::Claim(Next first, uint64_t* batch) {
  const bool may_look_up = MayLookUp();
  if (MayUpdate() && (first == Next::kUpdate || !may_look_up)) {
    updates_ = true;
    *batch = updates_done_;
    if (Seeded(SeededBug::kUpdatesOutOfOrder) && updates_begun_ - updates_done_ > 1) ++*batch;
    return Next::kUpdate;
  }
  if (!may_look_up) return Next::kNothing;
  looks_up_ = true;
  *batch = lookups_done_;
  CountLookup();
  return Next::kLookup;
}

bool RowRing::MayLookUp() const {
  if (looks_up_ || lookups_done_ == lookups_begun_) return false;
  if (Seeded(SeededBug::kStalenessUnbounded)) return true;
  const uint64_t batch = lookups_done_;
  const bool is_deterministic =
      options_.is_deterministic && !Seeded(SeededBug::kPendingUpdatesSkipped);
  return is_deterministic ? updates_done_ >= PlaceOf(batch).updates_before
                          : updates_done_ + options_.staleness >= batch;
}

bool RowRing::MayUpdate() const {
  if (updates_ || updates_done_ == updates_begun_) return false;
  return !options_.is_deterministic || lookups_done_ >= PlaceOf(updates_done_).lookups_before;
}

void RowRing::CountLookup() {
  const uint64_t missing = lookups_done_ - updates_done_;
  EMBANK_CHECK(missing <= options_.staleness || Seeded(SeededBug::kStalenessUnbounded));
  ++counts_.lookups;
  counts_.staleness_sum += missing;
  counts_.staleness_max = std::max(counts_.staleness_max, static_cast<uint32_t>(missing));
}

// Ends with the lock, without which the work runs.
void RowRing::Run(Next next, uint64_t batch) {
  const bool is_lookup = next == Next::kLookup;
  const bool runs = is_lookup || failure_.ok();
  mutex_.Unlock();
  Status status = runs ? (is_lookup ? lookup_ : update_)(batch) : OkStatus();
  mutex_.Lock();
  if (is_lookup) {
    PlaceOf(batch).lookup = std::move(status);
    ++lookups_done_;
    looks_up_ = false;
  } else {
    failure_.Update(status);
    ++updates_done_;
    ++counts_.updates;
    updates_ = false;
  }
  changed_.NotifyAll();
}

uint32_t RowRing::under_way() const {
  MutexLock lock(&mutex_);
  return static_cast<uint32_t>(lookups_begun_ - updates_begun_);
}

uint64_t RowRing::oldest() const {
  MutexLock lock(&mutex_);
  return updates_begun_;
}

RowRingCounts RowRing::counts() const {
  MutexLock lock(&mutex_);
  return counts_;
}

}  // namespace embank
