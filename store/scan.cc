#include "store/scan.h"

#include <cstring>
#include <new>

#include "base/status_macros.h"

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
  KeyIndex::Shard* const shard =
      index->shard(KeyIndex::ShardOf(KeyHash{next_range_} << (64 - kRangeBits)));
  try {
    ReaderMutexLock lock(&shard->mutex);
    index->CollectRange(*shard, next_range_, table_->id(), &pending_);
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
  KeyIndex* const index = table_->parts().index;
  // All keys of a range are in one shard.
  KeyIndex::Shard* const shard =
      index->shard(KeyIndex::ShardOf(table_->HashOf(pending_[pending_done_])));
  ReaderMutexLock lock(&shard->mutex);
  while (copied < keys.size() && pending_done_ < pending_.size()) {
    const Key key = pending_[pending_done_++];
    const Location location = index->Find(*shard, table_->IdOf(key, table_->HashOf(key)));
    if (location == kNoLocation) continue;  // erased since the range was collected
    keys[copied] = key;
    std::memcpy(rows.Row(copied), layout.Vector(table_->parts().tier->Row(location)),
                layout.vector_bytes);
    ++copied;
  }
  return copied;
}

}  // namespace embank
