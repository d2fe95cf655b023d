#include "tiers/log/dead_segments.h"

#include <new>
#include <utility>

#include "base/check.h"
#include "base/memory/memory.h"
#include "base/str_cat.h"
#include "base/threads/log.h"

namespace embank {
namespace {

// Logging is best effort.
void TellOf(const Status& status) noexcept {
  try {
    Log(LogLevel::kWarning, StrCat("a dead segment takes space: ", status.ToString()));
  } catch (const std::bad_alloc&) {
  }
}

// The lock is not held here: an exception would release it twice.
Status Remove(Directory* directory, const std::string& name) noexcept {
  try {
    return directory->Remove(name);
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
}

}  // namespace

// While a thread reads from a segment, its place stays taken. Another segment's record in the same
// place would be taken for the one that was there.
void DeadSegments::Collect() {
  for (const std::shared_ptr<LogSegment>& segment : segments_.all()) {
    if (segment == nullptr || !segments_.IsDead(*segment) || segment.use_count() > 1) continue;
    EMBANK_CHECK(dead_.size() < dead_.capacity());
    dead_.push_back(segments_.Take(segment->index));
    ++counters_.dead_segments;
  }
}

bool DeadSegments::RemoveOne() {
  if (dead_.empty()) return false;
  std::shared_ptr<LogSegment> segment = std::move(dead_.back());
  EMBANK_CHECK(segment != nullptr && segment->live_rows == 0);
  dead_.pop_back();
  ++removals_under_way_;  // it takes its space until it is gone, and closed
  segments_.mutex()->Unlock();
  const auto bytes = static_cast<int64_t>(segment->header.segment_bytes);
  Status status = Remove(directory_, segment->name);
  if (IsNotFound(status)) status = OkStatus();  // somebody else has removed it
  if (!status.ok()) TellOf(status);
  segment.reset();
  segments_.mutex()->Lock();
  EMBANK_CHECK(removals_under_way_ > 0);
  --removals_under_way_;
  if (status.ok()) segments_.mutable_accounts().AddTaken(-bytes);
  removed_.NotifyAll();
  return true;
}

bool DeadSegments::RemoveOneOrWait() {
  if (RemoveOne()) return true;
  if (removals_under_way_ == 0) return false;
  removed_.Wait(segments_.mutex());
  return true;
}

}  // namespace embank
