#include "store/scan.h"

#include <algorithm>
#include <new>

#include "base/status_macros.h"
#include "store/row_group.h"
#include "tiers/row_copy.h"

namespace embank {

absl::StatusOr<uint64_t> Scan::Next(std::span<Key> keys, RowSpan rows) {
  EMBANK_RETURN_IF_ERROR(table_->CheckAlive());
  uint64_t copied = 0;
  while (copied < keys.size()) {
    if (pending_done_ < pending_.size()) {
      copied = CopyPending(keys, rows, copied);
    } else if (next_range_ < kRangeCount) {
      const absl::Status status = CollectRange();
      // Rows that were copied already must not be lost with the status.
      if (!status.ok() && copied == 0) return status;
      if (!status.ok()) break;
    } else {
      break;
    }
  }
  return copied;
}

absl::Status Scan::CollectRange() {
  pending_.clear();
  pending_done_ = 0;
  KeyIndex* const index = table_->parts().index;
  const KeyHash first = KeyHash{next_range_} << (64 - kRangeBits);
  const KeyHash last = first | (~KeyHash{0} >> kRangeBits);
  KeyIndex::Shard* const shard = index->shard(KeyIndex::ShardOf(first));
  try {
    ReaderMutexLock lock(&shard->mutex);
    index->VisitHashes(shard, first, last, [&](Location location) {
      const RowHeader* const header = table_->layout().Header(table_->parts().tier->Row(location));
      if (TableOf(LoadIdentity(header)) != table_->id()) return;
      const Key key = LoadKey(header);
      if (RangeOf(table_->HashOf(key)) == next_range_) pending_.push_back(key);
    });
  } catch (const std::bad_alloc&) {
    pending_.clear();
    // Without a message, which would need memory too.
    return absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
  ++next_range_;
  return absl::OkStatus();
}

// Copies pending rows that still exist behind the `copied` that are there, and returns the new
// count.
uint64_t Scan::CopyPending(std::span<Key> keys, RowSpan rows, uint64_t copied) {
  const RowLayout& layout = table_->layout();
  const size_t count = std::min<size_t>(keys.size() - copied, pending_.size() - pending_done_);
  const KeySpan pending = KeySpan(pending_).subspan(pending_done_, count);
  const auto copy = [&](uint32_t, const std::byte* row) {
    CopyFromRow(layout.Vector(row), layout.vector_bytes, rows.Row(copied));
  };
  const EpochTable::Guard guard(table_->parts().epochs);
  ReadRows(*table_, layout.vector_end_bytes(), pending, 0, static_cast<uint32_t>(count), copy,
           [&](uint32_t i, const RowSeen& seen) {
             // Absent: erased since the range was collected.
             if (seen.header != nullptr) keys[copied++] = pending[i];
           });
  pending_done_ += count;
  return copied;
}

}  // namespace embank
