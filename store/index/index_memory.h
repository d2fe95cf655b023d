// The memory behind the arrays of all shards: addresses, reserved once, of which the first part is
// committed by huge pages, in step with the largest array.
#ifndef EMBANK_STORE_INDEX_INDEX_MEMORY_H_
#define EMBANK_STORE_INDEX_INDEX_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/memory/address_range.h"
#include "base/memory/memory.h"
#include "base/status.h"
#include "base/status_or.h"
#include "base/threads/epoch.h"
#include "base/threads/mutex.h"
#include "store/index/index_shard.h"
#include "tiers/dram/page_pool.h"

namespace embank {

// Thread-safe.
class IndexMemory {
 public:
  // Reserves addresses for as much memory as the budget or the machine could give.
  // kResourceExhausted.
  static StatusOr<AddressRange> ReserveAddresses(MemorySource* source, const MemoryBudget& budget);

  // The arrays are those of `shards`. Shards, budget, epochs and the pool of pages for rows, whose
  // empty pages may become the index's, outlive it.
  IndexMemory(MemoryBudget* budget, EpochTable* epochs, PagePool* pages, AddressRange addresses,
              std::span<const IndexShard> shards);
  ~IndexMemory();
  IndexMemory(const IndexMemory&) = delete;
  IndexMemory& operator=(const IndexMemory&) = delete;

  // The begin of the arrays (store/index/bucket_array.h).
  std::byte* base() const { return base_; }

  // Commits the memory of the smallest arrays, with which the shards begin. kResourceExhausted.
  Status CommitFirst();
  // Commits memory for an array of `buckets`, and lets the shard begin to grow to it; no Release
  // comes between the two. kResourceExhausted: the shard is unchanged, and wanted_bytes() says how
  // much is missing.
  Status Grow(IndexShard* shard, uint32_t buckets) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  // Gives memory that shrunken shards left back to the budget; returns the bytes. Waits for
  // readers: the caller is none.
  uint64_t Release();

  // The bytes of committed memory.
  uint64_t bytes() const { return committed_bytes_.load(std::memory_order_relaxed); }
  // Further memory is taken only while so many bytes of the budget stay for others.
  void KeepFree(uint64_t bytes) { kept_free_bytes_.store(bytes, std::memory_order_relaxed); }

  // Notes that an array of `buckets` will soon be needed.
  void NoteWanted(uint32_t buckets);
  // The bytes of memory that the next growth takes; 0 while none is near.
  uint64_t wanted_bytes() const { return wanted_bytes_.load(std::memory_order_relaxed); }

  // Whether any shard has found no memory to grow into.
  bool IsStarved() const;
  // Notes that rows have no memory to give up to the index, until one of its shards grows.
  void NoteExhausted() { is_exhausted_.store(true, std::memory_order_relaxed); }
  bool is_exhausted() const { return is_exhausted_.load(std::memory_order_relaxed); }

 private:
  Status CommitFor(uint32_t buckets) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status ChargePage() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t MissingBytesFor(uint32_t buckets) const;

  std::byte* const base_;
  MemoryBudget* const budget_;
  EpochTable* const epochs_;
  PagePool* const pages_;
  const AddressRange addresses_;
  const std::span<const IndexShard> shards_;

  Mutex mutex_;                               // taken after a shard's lock
  std::atomic<uint64_t> committed_bytes_{0};  // changes under the lock
  std::atomic<uint64_t> kept_free_bytes_{0};
  std::atomic<uint64_t> wanted_bytes_{0};
  std::atomic<bool> is_exhausted_{false};
};

}  // namespace embank

#endif  // EMBANK_STORE_INDEX_INDEX_MEMORY_H_
