// The capacity of the index. Places for rows are reserved here before the rows are inserted, which
// makes shards grow; shards with few rows shrink, and give their memory back.
#ifndef EMBANK_STORE_INDEX_INDEX_CAPACITY_H_
#define EMBANK_STORE_INDEX_INDEX_CAPACITY_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "store/index/bucket_array.h"
#include "store/index/index_memory.h"
#include "store/index/index_shard.h"

namespace embank {

// Functions that take a shard are called under its lock; the others take the locks themselves.
class IndexCapacity {
 public:
  // Both outlive it. The shards are the memory's.
  IndexCapacity(IndexMemory* memory, std::span<IndexShard> shards)
      : memory_(memory), shards_(shards) {}

  // Makes sure that KeyIndex::Insert has a place for one row with this hash. kResourceExhausted:
  // there is no memory to grow into, or too many keys have their place in one part of the index;
  // nothing was changed.
  Status ReserveOne(IndexShard* shard, KeyHash hash) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex) {
    return HasPlaceAtHome(*shard, hash) ? OkStatus() : GrowForPlace(shard, hash);
  }
  // Makes sure that ReserveOne succeeds for `rows` more rows of the shard. kResourceExhausted: no
  // memory; then IndexMemory::wanted_bytes() says how much is missing.
  Status ReserveMore(IndexShard* shard, uint64_t rows)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  // The number of places that rows which are promised of the shard lack: ReserveMore fails for
  // them.
  uint64_t MissingPlaces(IndexShard* shard);
  // Makes sure that there are places for `rows` rows in all, in any order of their hashes.
  // kResourceExhausted.
  Status ReserveRows(uint64_t rows);

  // Grows all shards so that they take `rows` rows in all without growing again, or as far as an
  // index of `bytes_max` goes; from then on no shard shrinks below that size. A hint: without
  // memory it does less, or nothing.
  void GrowAhead(uint64_t rows, uint64_t bytes_max);
  // From now on shards shrink as if GrowAhead had been called for `rows` rows, if it was for more.
  // Several threads may call it, but none while GrowAhead runs.
  void KeepAhead(uint64_t rows);
  // Has Shrink call `renew` first, without locks, which calls KeepAhead for the rows that are
  // expected then. Before other threads use the index.
  void RenewAheadBy(std::function<void()> renew) { renew_ahead_ = std::move(renew); }

  // Notes that a row was erased from the shard: continues a rehash, or begins to shrink a sparse
  // array.
  void NoteErased(IndexShard* shard) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  // Notes that many rows were erased from the shard: shrinks its array at once, as far as possible.
  void ShrinkToRows(IndexShard* shard) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Gives back the memory that the index does not need for its rows and for those promised, but for
  // a quarter of what it needs (ShrunkenBuckets) and what GrowAhead keeps, renewed; returns the
  // bytes. Takes the locks of shards, each for a few homes at a time, and waits for readers: the
  // caller has no such lock, nor one that RenewAheadBy's function takes, and is no reader.
  uint64_t Shrink();
  // Call it after a batch that erased `rows` rows: Shrink, once many were erased.
  void ShrinkAfterErasing(uint64_t rows);

 private:
  static constexpr uint32_t kRehashesMax = 2;  // one under way, and that to the smaller size

  // Whether nothing has to be done for a row, as for most: it has a slot in its home, and the shard
  // neither grows nor is near to it.
  bool HasPlaceAtHome(const IndexShard& shard, KeyHash hash) const
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex) {
    if (shard.IsRehashing() || shard.rows >= shard.near_rows) return false;
    const BucketArray array(memory_->base(), shard);
    return Bucket::EmptySlots(array.At(shard.PlaceOf(hash).home)->Head()) != 0;
  }
  // The rest of ReserveOne: rehashes, grows.
  Status GrowForPlace(IndexShard* shard, KeyHash hash)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  void ShrinkShard(IndexShard* shard, uint32_t buckets);
  bool Fits(const IndexShard& shard, KeyHash hash) const
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);
  void Rehash(IndexShard* shard, uint32_t homes) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  void NoteNear(IndexShard* shard) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  Status StartGrowing(IndexShard* shard, double buckets)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  bool StartShrinking(IndexShard* shard) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  IndexMemory* const memory_;
  const std::span<IndexShard> shards_;
  std::atomic<uint64_t> erased_rows_{0};    // since ShrinkAfterErasing last shrank the index
  std::atomic<uint32_t> buckets_ahead_{0};  // no array shrinks below it
  std::function<void()> renew_ahead_ = [] {};
};

}  // namespace embank

#endif  // EMBANK_STORE_INDEX_INDEX_CAPACITY_H_
