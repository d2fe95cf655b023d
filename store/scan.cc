#include "store/scan.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
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
  // Rows that move on and on are collected sooner than so often.
  constexpr int kTries = 8;
  for (int tries = 1;; ++tries) {
    absl::Status status;
    try {
      // Where a segment was given up, a record may be another's than the entry said.
      const uint64_t dead_segments = DeadSegments();
      CollectEntries();
      status = CollectLogged();
      if (DeadSegments() != dead_segments) continue;
    } catch (const std::bad_alloc&) {
      // Without a message, which would need memory too.
      status = NoMemory();
    }
    if (status.ok()) break;
    const bool damaged = absl::IsDataLoss(status) && tries >= kTries;
    if (damaged) damage_ = status;
    if (damaged) break;
    if (absl::IsDataLoss(status)) continue;
    pending_.clear();
    return status;
  }
  ++next_range_;
  return absl::OkStatus();
}

uint64_t Scan::DeadSegments() const {
  return table_->mover() == nullptr ? 0 : table_->mover()->log()->counters().dead_segments.load();
}

void Scan::CollectEntries() {
  pending_.clear();
  logged_.clear();
  pending_done_ = 0;
  KeyIndex* const index = table_->parts().index;
  const KeyHash first = KeyHash{next_range_} << (64 - kRangeBits);
  const KeyHash last = first | (~KeyHash{0} >> kRangeBits);
  KeyIndex::Shard* const shard = index->shard(KeyIndex::ShardOf(first));
  ReaderMutexLock lock(&shard->mutex);
  index->VisitHashes(shard, first, last, [&](Location location) {
    if (location.tier() != Tier::kDram) return logged_.push_back(location);
    const RowHeader* const header = table_->layout().Header(table_->parts().tier->Row(location));
    AddIfMine(TableOf(LoadIdentity(header)), LoadKey(header));
  });
}

// Adds the keys of rows in the log. Records that cannot be read are damaged, or of rows that have
// moved meanwhile: the range is collected anew, which tells.
absl::Status Scan::CollectLogged() {
  if (logged_.empty()) return absl::OkStatus();
  pending_.reserve(pending_.size() + logged_.size());
  uint64_t unread = 0;
  EMBANK_RETURN_IF_ERROR(table_->mover()->log()->Read(
      logged_, [&](size_t, const absl::Status& status, std::span<const std::byte> record) {
        if (!status.ok()) {
          ++unread;
        } else {
          AddIfMine(LoadRecordHeader(record).table, LoadRecordHeader(record).key);
        }
      }));
  if (unread == 0) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(unread, " records of the log cannot be read; their rows are of table \"",
                   table_->name(), "\" or of another, and the scan may go on without them"));
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
  return absl::DataLossError(absl::StrCat("the row of key ", key, " of table \"", table_->name(),
                                          "\" cannot be read; the scan may go on without it"));
}

}  // namespace embank
