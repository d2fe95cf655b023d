// One shard of the index: where its array stands, and how many rows it has.
#ifndef EMBANK_STORE_INDEX_INDEX_SHARD_H_
#define EMBANK_STORE_INDEX_INDEX_SHARD_H_

#include <atomic>
#include <cstdint>

#include "base/threads/mutex.h"

namespace embank {

// Readers see `seq` and what follows; the lock guards all changes.
struct alignas(64) IndexShard {
  std::atomic<uint32_t> seq{0};  // odd while the boundary moves
  std::atomic<uint32_t> low_buckets{0};
  std::atomic<uint32_t> high_buckets{0};
  std::atomic<uint64_t> boundary{0};    // of q; low_buckets == high_buckets: no matter
  std::atomic<bool> is_starved{false};  // the last growth found no memory
  std::atomic<bool> is_near{false};     // it was nearly full enough to grow, and has not grown
  uint32_t number = 0;
  alignas(64) Mutex mutex;  // apart from what readers read
  uint64_t rows EMBANK_GUARDED_BY(mutex) = 0;
  uint64_t near_rows EMBANK_GUARDED_BY(mutex) = 0;  // from so many rows on ReserveMore is asked
  bool growing EMBANK_GUARDED_BY(mutex) = false;    // where the boundary goes: down, else up
};

}  // namespace embank

#endif  // EMBANK_STORE_INDEX_INDEX_SHARD_H_
