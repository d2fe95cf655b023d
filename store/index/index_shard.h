// One shard of the index: its lock, its number of rows, and the number of buckets of its places.
//
// Growing and shrinking move a boundary through the array, a few homes with each insertion. Hashes
// at or above it have their place by `high_buckets`, those below by `low_buckets`.
//
//   growing:   | low: N buckets ...... | free | high: N' > N buckets |   the boundary moves down
#ifndef EMBANK_STORE_INDEX_INDEX_SHARD_H_
#define EMBANK_STORE_INDEX_INDEX_SHARD_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/check.h"
#include "base/hash.h"
#include "base/threads/fence.h"
#include "base/threads/mutex.h"
#include "store/index/index_place.h"

namespace embank {

// Readers see `seq` and what follows; the lock guards all changes.
struct alignas(64) IndexShard {
  std::atomic<uint32_t> seq{0};  // odd while the boundary moves
  std::atomic<uint32_t> low_buckets{0};
  std::atomic<uint32_t> high_buckets{0};
  std::atomic<uint64_t> boundary{0};    // of q; low_buckets == high_buckets: no matter
  std::atomic<bool> is_starved{false};  // the last growth found no memory
  std::atomic<bool> is_near{false};     // it was nearly full enough to grow, but has not grown
  uint32_t number = 0;
  alignas(64) Mutex mutex;  // on cache lines apart from the readers' data
  // Rows that batches under way may add, and have reserved memory for.
  std::atomic<uint64_t> promised_rows{0};
  uint64_t rows EMBANK_GUARDED_BY(mutex) = 0;
  uint64_t near_rows EMBANK_GUARDED_BY(mutex) = 0;  // from so many rows on ReserveMore is called
  bool growing EMBANK_GUARDED_BY(mutex) = false;    // the boundary moves down, else up

  // ---- with or without the lock: as things stand ----

  // The place of a hash of the shard.
  IndexPlace PlaceOf(KeyHash hash) const {
    const uint64_t q = IndexPlace::QuotientOf(hash);
    const bool high = q >= boundary.load(std::memory_order_relaxed);
    return IndexPlace::Of(q, (high ? high_buckets : low_buckets).load(std::memory_order_relaxed));
  }
  // The number of buckets for the hashes.
  uint32_t buckets() const {
    return std::max(low_buckets.load(std::memory_order_relaxed),
                    high_buckets.load(std::memory_order_relaxed));
  }
  // Whether the array grows or shrinks.
  bool IsRehashing() const {
    return low_buckets.load(std::memory_order_relaxed) !=
           high_buckets.load(std::memory_order_relaxed);
  }
  // Whether so many more rows may need memory that is not reserved yet. A hint: where growth is
  // near, the batches of four threads still fit.
  bool MayNeedMemory(uint64_t more_rows) const {
    if (is_starved.load(std::memory_order_relaxed)) return true;
    return more_rows + promised_rows.load(std::memory_order_relaxed) >
           buckets() / (is_near.load(std::memory_order_relaxed) ? 20u : 4u);
  }

  // ---- under the lock ----

  // The rows and those that batches under way may add.
  uint64_t RowsPromisedToo() const EMBANK_SHARED_LOCKS_REQUIRED(mutex) {
    return rows + promised_rows.load(std::memory_order_relaxed);
  }
  // After a reservation: the number of rows, of any shards, to forget for one that this shard takes
  // because it had no memory to grow into. The fuller the shard, the more; 0: it is not full.
  uint64_t RowsToForget() const EMBANK_SHARED_LOCKS_REQUIRED(mutex);

  // Begins the shard, empty, with this number.
  void Begin(uint32_t shard_number) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Begins to move the boundary through the array, from before all of its entries. The memory for
  // `buckets` is there.
  void BeginGrowing(uint32_t buckets) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void BeginShrinking(uint32_t buckets) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // A reader that finds nothing between these two looks again.
  void BeginWrite() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    EMBANK_CHECK(seq.load(std::memory_order_relaxed) % 2 == 0);
    seq.fetch_add(1, std::memory_order_relaxed);
    ReleaseFence();
  }
  void EndWrite() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    EMBANK_CHECK(seq.load(std::memory_order_relaxed) % 2 == 1);
    seq.fetch_add(1, std::memory_order_release);
  }
};

}  // namespace embank

#endif  // EMBANK_STORE_INDEX_INDEX_SHARD_H_
