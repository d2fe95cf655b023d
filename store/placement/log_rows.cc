#include "store/placement/log_rows.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "store/index/bucket.h"
#include "store/table/table.h"

namespace embank {
namespace {

// An entry stands in its home bucket or a few behind it.
constexpr size_t kCandidatesMax = size_t{kBucketEntries} * (kDisplacementMax + 1);

// The outcome of a row by the status of the read of its record.
Outcome UnreadOutcomeOf(const Status& read) {
  EMBANK_CHECK(!read.ok());
  if (Seeded(SeededBug::kLossIsAbsence)) return Outcome::kAbsent;
  return IsResourceExhausted(read) ? Outcome::kUnavailable : Outcome::kDataLoss;
}

}  // namespace

// The entries of the index that may be a row's, at one moment under the lock of its shard. While it
// lives, no other segment takes the place of a segment that they name.
class LogRows::Candidates {
 public:
  Candidates(const StoreContext& store, KeyIndex::Shard* shard, const RowId& id)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex) {
    store.index->VisitMatches(shard, id, [&](const Match& match) {
      EMBANK_CHECK(count_ < matches_.size());
      const Location location = match.location();
      matches_[count_] = match;
      if (!location.IsInLog()) return ++count_ > 0;  // its header tells: no other is
      segments_[count_++] = store.logs->Hold(location);
      return false;
    });
  }

  std::span<const Match> matches() const { return std::span(matches_).first(count_); }
  // The entry of the row if it has a header in memory, or none.
  Match InMemory() const {
    const bool is_there = count_ > 0 && !matches_[count_ - 1].location().IsInLog();
    return is_there ? matches_[count_ - 1] : Match{};
  }
  // Whether these are the same entries. They may stand elsewhere in the index.
  bool AreSame(const Candidates& others) const {
    return std::ranges::equal(matches(), others.matches(), [](const Match& a, const Match& b) {
      return a.location() == b.location();
    });
  }

 private:
  std::array<Match, kCandidatesMax> matches_;
  std::array<std::shared_ptr<const LogSegment>, kCandidatesMax> segments_;
  size_t count_ = 0;
};

// Which of the candidates in the log is the row's, in *found.
FoundRow LogRows::Read(const RowId& id, const Candidates& candidates, RecordScratch* scratch,
                       size_t* found) const {
  FoundRow row;
  for (size_t i = 0; i < candidates.matches().size(); ++i) {
    const Location location = candidates.matches()[i].location();
    const auto record = store_.logs->ReadOne(location, scratch);
    if (record.ok()) {
      if (!IsRecordOf(id, *record)) continue;
      *found = i;
      return {.outcome = Outcome::kFound, .record = *record};
    }
    SlotOwner owner;
    const bool is_known = store_.logs->OwnerOf(location, scratch, &owner);
    const bool is_row = is_known && owner.table == id.table && owner.key == id.key;
    if (is_known && !is_row) continue;
    const Outcome unread = UnreadOutcomeOf(record.status());
    *found = i;
    if (is_row) return {.outcome = unread, .match = candidates.matches()[i]};
    // If one of several cannot be read now, a later call learns more.
    if (row.outcome != Outcome::kUnavailable) row.outcome = unread;
  }
  return row;
}

void LogRows::Find(KeyIndex::Shard* shard, const RowId& id, RecordScratch* scratch, Use use) const {
  for (;;) {
    std::optional<Candidates> before;
    {
      MutexLock lock(&shard->mutex);
      before.emplace(store_, shard, id);
      const Match in_memory = before->InMemory();
      if (in_memory.any()) return use({.outcome = Outcome::kFound, .match = in_memory});
      if (before->matches().empty()) return use({});
    }
    size_t found = 0;
    FoundRow row = Read(id, *before, scratch, &found);
    MutexLock lock(&shard->mutex);
    const Candidates now(store_, shard, id);
    if (!now.AreSame(*before)) continue;
    EMBANK_CHECK(found < now.matches().size());
    if (row.outcome == Outcome::kFound || row.match.any()) row.match = now.matches()[found];
    return use(row);
  }
}

uint32_t LogRows::HeatOfRecord(KeyHash hash, std::span<const std::byte> record) const {
  const uint32_t logged = std::min(LoadRecordHeader(record).heat, kHeatMax);
  return std::max(logged, store_.heat_sketch->Get(hash, store_.heat_clock->epochs()));
}

void LogRows::Touch(KeyHash hash, std::span<const std::byte> record, uint32_t touches) {
  if (touches == 0) return;
  const uint32_t heat = std::min(HeatOfRecord(hash, record), kHeatMax - touches) + touches;
  store_.heat_sketch->Put(hash, heat, store_.heat_clock->epochs());
}

void LogRows::DropHeat(KeyHash hash) {
  if (store_.heat_sketch == nullptr) return;
  store_.heat_sketch->Take(hash, store_.heat_clock->epochs());
}

bool LogRows::Append(KeyIndex::Shard* shard, const RowId& id, uint32_t heat, const std::byte* row,
                     const Match& match) {
  if (rows_.Reserve(1) == 0) return false;
  const StatusOr<Location> logged_at = store_.logs->Append(
      {.row_class = rows_.slot_class(),
       .record_bytes = rows_.record_bytes(),
       .table = id.table,
       .key = id.key,
       .heat = heat,
       .checkpoint = store_.gate->checkpoint(),
       .payload = {row + sizeof(RowHeader), rows_.slot_bytes() - sizeof(RowHeader)},
       .was_dirty = true});
  if (!logged_at.ok()) {
    rows_.Release(1);
    return false;
  }
  EMBANK_CHECK(logged_at->IsInLog());
  if (match.any()) {
    const Location former = match.location();
    EMBANK_CHECK(former.IsInLog() && former != *logged_at);
    store_.index->Move(shard, id.hash, match, *logged_at);
    store_.logs->MarkDead(former);
    rows_.CountInLog(*store_.tables->Get(id.table), former.tier(), -1);
  } else {
    store_.index->Insert(shard, id.hash, *logged_at);
  }
  rows_.CountInLog(*store_.tables->Get(id.table), logged_at->tier(), 1);
  return true;
}

}  // namespace embank
