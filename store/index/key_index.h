// The one index of the store: (table, key) -> location of the row. It does not keep keys: key and
// table are verified in the row.
//
//   hash:   | shard 6 | quotient bits q 32               | not used 26 |
//            63        57                                 25            0
//
// A hash belongs to one of 64 shards (store/index/index_shard.h). Its place in the array of the
// shard (store/index/bucket_array.h) is arithmetic (store/index/index_place.h).
//
// Readers take no lock: they verify the rows that they find (store/batch/row_group.h), and confirm
// that a key has no row by the versions of buckets and shard. Writers hold the shard's lock
// (docs/threading.md).
#ifndef EMBANK_STORE_INDEX_KEY_INDEX_H_
#define EMBANK_STORE_INDEX_KEY_INDEX_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/hash.h"
#include "base/memory/memory.h"
#include "base/status_or.h"
#include "base/threads/epoch.h"
#include "store/index/bucket.h"
#include "store/index/bucket_array.h"
#include "store/index/index_capacity.h"
#include "store/index/index_memory.h"
#include "store/index/index_place.h"
#include "store/index/index_shard.h"
#include "store/index/tag_match.h"
#include "tiers/dram/dram_tier.h"
#include "tiers/row/row_header.h"

namespace embank {

// A row is identified by its table and key. hash == HashKey(hash of the table's name, key).
struct RowId {
  TableId table;
  Key key;
  KeyHash hash;
};

// Keys that go through the index together, so that their cache misses overlap.
inline constexpr size_t kGroupKeys = 16;

class KeyIndex {
 public:
  static constexpr uint32_t kShardBits = kIndexShardBits;
  static constexpr uint32_t kShardCount = kIndexShardCount;

  using Shard = IndexShard;

  // kResourceExhausted. The tier, whose rows are verified, source, budget and epochs outlive it.
  static StatusOr<std::unique_ptr<KeyIndex>> Create(MemorySource* source, MemoryBudget* budget,
                                                    EpochTable* epochs, DramTier* tier);
  KeyIndex(const KeyIndex&) = delete;
  KeyIndex& operator=(const KeyIndex&) = delete;

  static uint32_t ShardOf(KeyHash hash) { return static_cast<uint32_t>(hash >> (64 - kShardBits)); }
  Shard* shard(uint32_t i) { return &shards_[i]; }
  // The memory of the index.
  IndexMemory* memory() { return &memory_; }
  const IndexMemory* memory() const { return &memory_; }
  // Reserves places for rows.
  IndexCapacity* capacity() { return &capacity_; }

  // ---- reading, with or without the lock; without it inside an EpochTable::Guard ----

  // Where a search begins at this moment.
  Probe ProbeOf(KeyHash hash) const {
    const Shard& shard = shards_[ShardOf(hash)];
    const IndexPlace place = shard.PlaceOf(hash);
    return {ArrayOf(shard).At(place.home), place.tag};
  }

  // The same for many; prefetches their buckets.
  void FindHomes(std::span<const KeyHash> hashes, Probe* probes) const {
    // Local copies: the compiler must assume that the writes below change the originals.
    const Shard* const shards = shards_.data();
    std::byte* const base = memory_.base();
    for (size_t i = 0; i < hashes.size(); ++i) {
      const Shard& shard = shards[ShardOf(hashes[i])];
      const IndexPlace place = shard.PlaceOf(hashes[i]);
      probes[i] = {BucketArray(base, shard).At(place.home), place.tag};
      __builtin_prefetch(probes[i].bucket);
    }
  }

  // Tells which entries of the probes' buckets have their tags, as TagMatcher does.
  void MatchTags(std::span<const Probe> probes, uint8_t* masks) const {
    match_tags_(probes, masks);
  }

  // The first of those entries, or none. A hint: `Find` decides.
  static Match FirstMatch(const Probe& probe, uint32_t mask) {
    // More than one round is needed only if the tag is that of empty entries.
    for (; mask != 0; mask &= mask - 1) {
      const auto& word = probe.bucket->words[1 + static_cast<size_t>(std::countr_zero(mask))];
      const uint64_t seen = word.load(std::memory_order_relaxed);
      if (~seen != kEmptyEntry) return {&word, seen};
    }
    return {};
  }

  // Returns the row's entry at some moment during the call, or none. Waits while the place is
  // written. An entry of another tier than DRAM may, one in 2^24, be that of another row
  // (VisitMatches).
  Match Find(const RowId& id) const;

  // ---- writing, under the shard's lock ----

  // Returns the row's entry, or none, given a guess that later changes may have outdated.
  Match Confirm(const Match& guess, const RowId& id) const {
    const bool holds = guess.any() && ArrayOf(shards_[ShardOf(id.hash)]).Reaches(guess) &&
                       guess.IsCurrent() && MayBe(guess.location(), id);
    return holds ? guess : FindUnderLock(id);
  }

  // Adds a row that is not in the index and whose header is written, after
  // IndexCapacity::ReserveOne with its hash.
  void Insert(Shard* shard, KeyHash hash, Location location)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Moves the row of `match`, which was found under the lock; returns its new match.
  Match Move(Shard* shard, KeyHash hash, const Match& match, Location location)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Calls visit(match) for the entries that may be the row's, until one call returns true.
  void VisitMatches(Shard* shard, const RowId& id, FunctionRef<bool(const Match&)> visit)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Returns the entry that may be the row's and that names this location, or none.
  Match MatchAt(Shard* shard, const RowId& id, Location location)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Removes the row of `match`, which was found under the lock.
  void Erase(Shard* shard, KeyHash hash, const Match& match)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Calls `erases` for every row in the shard, and removes those for which it returns true.
  void EraseRows(Shard* shard, FunctionRef<bool(Location)> erases)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Calls `visit` for each row of the shard with a hash in [first, last], low 26 bits apart.
  void VisitHashes(Shard* shard, KeyHash first, KeyHash last,
                   FunctionRef<void(Location)> visit) const
      EMBANK_SHARED_LOCKS_REQUIRED(shard->mutex);

 private:
  KeyIndex(MemoryBudget* budget, EpochTable* epochs, DramTier* tier, AddressRange addresses);

  BucketArray ArrayOf(const Shard& shard) const { return {memory_.base(), shard}; }
  Match FindAt(const Shard& shard, IndexPlace place, const RowId& id, bool* changed) const;
  template <typename Visit>
  void VisitUnderLock(const RowId& id, const Visit& visit) const;
  Match FindUnderLock(const RowId& id) const;
  // Whether the row at this location may be the wanted one. If it is not in memory, only its record
  // can tell.
  bool MayBe(Location location, const RowId& id) const {
    if (location.IsInLog()) return true;
    const auto* const header = reinterpret_cast<const RowHeader*>(tier_->Row(location));
    return TableOf(LoadIdentity(header)) == id.table && LoadKey(header) == id.key;
  }

  DramTier* const tier_;
  const TagMatcher match_tags_ = BestTagMatcher().match;
  std::vector<Shard> shards_;
  IndexMemory memory_;
  IndexCapacity capacity_;
};

}  // namespace embank

#endif  // EMBANK_STORE_INDEX_KEY_INDEX_H_
