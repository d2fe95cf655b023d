#include "store/scan.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/status_with_room.h"
#include "store/logged_rows.h"
#include "store/row_group.h"
#include "tiers/row_copy.h"

namespace embank {

absl::StatusOr<uint64_t> Scan::Next(std::span<Key> keys, RowSpan rows) {
  EMBANK_RETURN_IF_ERROR(table_->CheckAlive());
  uint64_t copied = 0;
  absl::Status status;
  while (copied < keys.size() && status.ok() && damage_.ok()) {
    if (pending_done_ < pending_.size()) {
      status = CopyPending(keys, rows, &copied);
    } else if (next_range_ < kRangeCount) {
      status = CollectRange();
    } else {
      break;
    }
  }
  // Rows that were copied already must not be lost with a status: it is told by the next call.
  if (copied > 0) return copied;
  EMBANK_RETURN_IF_ERROR(std::exchange(damage_, absl::OkStatus()));
  EMBANK_RETURN_IF_ERROR(status);
  return copied;
}

absl::Status Scan::CollectRange() {
  // Rows that move, and segments that die, are rarely in the way twice.
  constexpr int kTries = 8;
  absl::Status status;
  for (int tries = 1; tries <= kTries; ++tries) {
    try {
      status = tries < kTries ? CollectFreely() : CollectHeld();
    } catch (const std::bad_alloc&) {
      // Without a message, which would need memory too.
      status = NoMemory();
    }
    if (!absl::IsDataLoss(status)) break;
  }
  if (absl::IsDataLoss(status)) damage_ = std::exchange(status, absl::OkStatus());
  if (status.ok()) {
    ++next_range_;
  } else {
    pending_.clear();
  }
  return status;
}

// Reads without a lock, as a list. kDataLoss: a record cannot be read, or is another's by now, for
// its row has moved, or its segment was given up.
absl::Status Scan::CollectFreely() {
  const uint64_t dead_segments = DeadSegments();
  {
    KeyIndex::Shard* const shard = ShardOfRange();
    ReaderMutexLock lock(&shard->mutex);
    CollectEntries(shard);
  }
  if (logged_.empty()) return absl::OkStatus();
  pending_.reserve(pending_.size() + logged_.size());
  uint64_t unread = 0;
  EMBANK_RETURN_IF_ERROR(table_->mover()->log()->Read(
      logged_, [&](size_t, const absl::Status& status, std::span<const std::byte> record) {
        unread += status.ok() ? 0 : 1;
        if (status.ok()) AddRecord(record);
      }));
  return DeadSegments() == dead_segments ? Unread(unread) : Unread(unread + 1);
}

// Reads record by record under the shard's lock: nothing moves meanwhile.
absl::Status Scan::CollectHeld() {
  RecordScratch scratch;
  uint64_t unread = 0;
  KeyIndex::Shard* const shard = ShardOfRange();
  ReaderMutexLock lock(&shard->mutex);
  CollectEntries(shard);
  for (const Location location : logged_) {
    const auto record = table_->mover()->log()->ReadOne(location, &scratch);
    unread += record.ok() ? 0 : 1;
    if (record.ok()) AddRecord(*record);
  }
  return Unread(unread);
}

absl::Status Scan::Unread(uint64_t records) const {
  if (records == 0) return absl::OkStatus();
  return StatusWithRoom(absl::StatusCode::kDataLoss, [&] {
    return absl::StrCat(records, " records of the log cannot be read; their rows are of table \"",
                        table_->name(), "\" or of another, and the scan may go on without them");
  });
}

uint64_t Scan::DeadSegments() const {
  return table_->mover() == nullptr ? 0 : table_->mover()->log()->counters().dead_segments.load();
}

KeyIndex::Shard* Scan::ShardOfRange() const {
  return table_->parts().index->shard(KeyIndex::ShardOf(KeyHash{next_range_} << (64 - kRangeBits)));
}

// The keys of rows in memory, and where the others are.
void Scan::CollectEntries(KeyIndex::Shard* shard) {
  pending_.clear();
  logged_.clear();
  pending_done_ = 0;
  const KeyHash first = KeyHash{next_range_} << (64 - kRangeBits);
  const KeyHash last = first | (~KeyHash{0} >> kRangeBits);
  table_->parts().index->VisitHashes(shard, first, last, [&](Location location) {
    if (location.tier() != Tier::kDram) return logged_.push_back(location);
    const RowHeader* const header = table_->layout().Header(table_->parts().tier->Row(location));
    AddIfMine(TableOf(LoadIdentity(header)), LoadKey(header));
  });
}

void Scan::AddRecord(std::span<const std::byte> record) {
  const RecordHeader header = LoadRecordHeader(record);
  AddIfMine(header.table, header.key);
}

void Scan::AddIfMine(TableId table, Key key) {
  if (table != table_->id() || RangeOf(table_->HashOf(key)) != next_range_) return;
  pending_.push_back(key);
}

// Copies pending rows that still exist behind the *copied that are there.
absl::Status Scan::CopyPending(std::span<Key> keys, RowSpan rows, uint64_t* copied) {
  const RowLayout& layout = table_->layout();
  const size_t count = std::min<size_t>(keys.size() - *copied, pending_.size() - pending_done_);
  const KeySpan pending = KeySpan(pending_).subspan(pending_done_, count);
  const Batch batch(table_, pending, {});
  LoggedRows logged_rows;
  EMBANK_RETURN_IF_ERROR(logged_rows.Allocate(batch));
  LoggedRows::Part logged(&logged_rows, batch, 0);
  const auto copy = [&](uint32_t, const RowWatch& watch) {
    const VectorCopy one = {watch, rows.Row(*copied)};
    return CopyVectors({&one, 1}, layout.vector_bytes, nullptr) != 0;
  };
  {
    const EpochTable::Guard guard(table_->parts().epochs);
    ReadRows(*table_, layout.vector_end_bytes(), pending, 0, static_cast<uint32_t>(count), copy,
             [&](uint32_t i, const RowSeen& seen, const Match& match) {
               if (seen.header == nullptr && match.any()) logged.Add(i, match.location());
               // Absent: erased since the range was collected.
               if (seen.header != nullptr) keys[(*copied)++] = pending[i];
             });
  }
  logged.Read({.touches = 0, .comes_up = false}, [&](uint32_t i, const LoggedRow& row) {
    if (row.outcome == Outcome::kFound) {
      CopyFromRow(layout.Vector(row.row), layout.vector_bytes, rows.Row(*copied));
      keys[(*copied)++] = pending[i];
    }
    if (row.outcome == Outcome::kDataLoss && damage_.ok()) damage_ = Damage(pending[i]);
  });
  pending_done_ += count;
  return absl::OkStatus();
}

absl::Status Scan::Damage(Key key) const {
  return StatusWithRoom(absl::StatusCode::kDataLoss, [&] {
    return absl::StrCat("the row of key ", key, " of table \"", table_->name(),
                        "\" cannot be read; the scan may go on without it");
  });
}

}  // namespace embank
