// The one index of the store: (table, key) -> location of the row's home. Keys are not kept in it:
// the key and table are verified in the row.
//
//   hash:   | shard 6 | quotient bits q 32               | not used 26 |
//            63        57                                 25            0
//           | logical range 12   |
//
// A shard is an array of N buckets (store/index/bucket.h). The product q * N, 32 bits below the
// point, says everything: its whole part is the home bucket, the first 24 bits of its fraction are
// the tag. So the place grows with the hash (a logical range is one run of buckets), N may be any
// number, and place and tag together give q back: growing needs neither keys nor rows. With N >=
// 2^8 no two values of q share place and tag.
//
// Growing and shrinking move a boundary through the array, a few buckets with each insertion:
// hashes at or above it have their place by `high_buckets`, those below by `low_buckets`.
//
//   growing:   | low: N buckets ...... | free | high: N' > N buckets |   the boundary moves down
//
// The arrays of the shards are interleaved by blocks of 64 buckets, so that all grow into the same
// huge pages:  | block 0 of shard 0 | block 0 of shard 1 | ... | block 1 of shard 0 | ...
//
// Readers take no lock: what they find they verify (store/batch/row_group.h), what they do not find
// they confirm by the versions of buckets and shard. Writers hold the shard's lock
// (docs/threading.md).
#ifndef EMBANK_STORE_INDEX_KEY_INDEX_H_
#define EMBANK_STORE_INDEX_KEY_INDEX_H_

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/hash.h"
#include "base/memory/address_range.h"
#include "base/memory/memory.h"
#include "base/status.h"
#include "base/status_or.h"
#include "base/threads/epoch.h"
#include "store/index/bucket.h"
#include "store/index/index_place.h"
#include "store/index/index_shard.h"
#include "store/index/tag_match.h"
#include "tiers/dram/dram_tier.h"
#include "tiers/row/row_header.h"

namespace embank {

// What identifies a row. hash == HashKey(hash of the table's name, key).
struct RowId {
  TableId table;
  Key key;
  KeyHash hash;
};

// Keys that go through the index together, so that their cache misses overlap.
inline constexpr size_t kGroupKeys = 16;

class KeyIndex {
 public:
  static constexpr uint32_t kShardBits = 6;
  static constexpr uint32_t kShardCount = 1u << kShardBits;

  using Shard = IndexShard;

  // kResourceExhausted. The tier, whose rows are verified, source, budget and epochs outlive it.
  static StatusOr<std::unique_ptr<KeyIndex>> Create(MemorySource* source, MemoryBudget* budget,
                                                    EpochTable* epochs, DramTier* tier);
  ~KeyIndex();

  static uint32_t ShardOf(KeyHash hash) { return static_cast<uint32_t>(hash >> (64 - kShardBits)); }
  Shard* shard(uint32_t i) { return &shards_[i]; }

  // ---- reading, with or without the lock; without it inside an EpochTable::Guard ----

  // Where a search begins, as things stand.
  Probe ProbeOf(KeyHash hash) const {
    const Shard& shard = shards_[ShardOf(hash)];
    const Place place = CurrentPlace(shard, hash);
    return {BucketAt(shard, place.home), place.tag};
  }

  // The bucket behind a shard's bucket.
  static const Bucket* Next(const Bucket* bucket) {
    const bool last_of_block = (reinterpret_cast<uintptr_t>(bucket + 1) % kBlockBytes) == 0;
    return last_of_block ? bucket + 1 + size_t{kShardCount - 1} * kBlockBuckets : bucket + 1;
  }

  // Which entries of the probes' buckets carry their tags, as TagMatcher says it.
  void MatchTags(std::span<const Probe> probes, uint8_t* masks) const {
    match_tags_(probes, masks);
  }

  // The first of those, or none. A hint: `Find` decides.
  static Match FirstMatch(const Probe& probe, uint32_t mask) {
    // More than one round only where the tag is that of empty entries.
    for (; mask != 0; mask &= mask - 1) {
      const auto& word = probe.bucket->words[1 + std::countr_zero(mask)];
      const uint64_t seen = word.load(std::memory_order_relaxed);
      if (~seen != kEmptyEntry) return {&word, seen};
    }
    return {};
  }

  // The row's entry as of some moment during the call, or none; waits while the place is written.
  // Of another tier than DRAM it may, one in 2^24, be another row's (VisitMatches).
  Match Find(const RowId& id) const;

  // ---- writing, under the shard's lock ----

  // The row's entry, or none, given a guess that changes since may have outdated.
  Match Confirm(const Match& guess, const RowId& id) const {
    const bool holds = guess.any() && IsInArray(shards_[ShardOf(id.hash)], guess) &&
                       guess.Stands() && MayBe(guess.location(), id);
    return holds ? guess : Find(id);
  }

  // Makes sure that Insert has room. kResourceExhausted: no memory to grow into; the shard is as it
  // was.
  Status ReserveOne(Shard* shard, KeyHash hash) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Makes room for so many rows in all, in whatever order of their hashes they come.
  // kResourceExhausted. Takes the shards' locks.
  Status ReserveRows(uint64_t rows);

  // Whether so many more rows of a shard may need memory that nobody has reserved. A hint, without
  // the lock: where growth is near the batches of four threads still fit.
  static bool MayNeedMemory(const Shard& shard, uint64_t rows) {
    if (shard.is_starved.load(std::memory_order_relaxed)) return true;
    return rows > BucketsOf(shard) / (shard.is_near.load(std::memory_order_relaxed) ? 20u : 4u);
  }
  // Makes sure that ReserveOne gives so many more rows of the shard a place. kResourceExhausted: no
  // memory; then wanted_bytes() says how much is missing.
  Status ReserveMore(Shard* shard, uint64_t rows) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Adds a row that is not there and whose header is written, after ReserveOne with its hash.
  void Insert(Shard* shard, KeyHash hash, Location location)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Moves the row that `match` names, found under the lock; its match there.
  Match Move(Shard* shard, KeyHash hash, const Match& match, Location location)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Calls visit(match) for the entries that may be the row's, until it says that one is.
  void VisitMatches(Shard* shard, const RowId& id, FunctionRef<bool(const Match&)> visit)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Takes out the row that `match` names, found under the lock.
  void Erase(Shard* shard, KeyHash hash, const Match& match)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Calls `erases` for every row in the shard, and takes out those for which it says true.
  void EraseRows(Shard* shard, FunctionRef<bool(Location)> erases)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Calls `visit` for each row of the shard with a hash in [first, last], low 26 bits apart.
  void VisitHashes(Shard* shard, KeyHash first, KeyHash last,
                   FunctionRef<void(Location)> visit) const
      EMBANK_SHARED_LOCKS_REQUIRED(shard->mutex);

  // How many buckets the shard's hashes are spread over. Thread-safe.
  static uint32_t BucketsOf(const Shard& shard) {
    return std::max(shard.low_buckets.load(std::memory_order_relaxed),
                    shard.high_buckets.load(std::memory_order_relaxed));
  }
  // Behind ReserveOne: how many rows, of whatever shards, have to go for one that the shard takes,
  // as it had no memory to grow into. The fuller, the more; 0: it is not full.
  static uint64_t RowsToForget(const Shard& shard) EMBANK_SHARED_LOCKS_REQUIRED(shard.mutex);

  // Whether any shard has found no memory to grow into. Thread-safe.
  bool IsStarved() const;
  // Rows have no memory to give up to the index, until one of its shards grows.
  void NoteExhausted() { is_exhausted_.store(true, std::memory_order_relaxed); }
  bool is_exhausted() const { return is_exhausted_.load(std::memory_order_relaxed); }
  // Bytes of memory that the next growth takes; 0 while none is near. Thread-safe.
  uint64_t wanted_bytes() const { return wanted_bytes_.load(std::memory_order_relaxed); }

  // Gives memory that shrunken shards left back to the budget; how many bytes. Waits for readers:
  // the caller is none. Thread-safe.
  uint64_t ReleaseMemory();

  // Bytes of memory taken; what growing leaves of the budget. Thread-safe.
  uint64_t memory_bytes() const { return committed_bytes_.load(std::memory_order_relaxed); }
  void KeepFree(uint64_t bytes) { kept_free_bytes_.store(bytes, std::memory_order_relaxed); }
  // What an index of `rows` rows takes at the most, growing included; where there is no more
  // memory.
  static uint64_t EstimateBytes(uint64_t rows);
  static uint64_t LeastBytes(uint64_t rows);

 private:
  static constexpr uint32_t kQuotientBits = 32;
  static constexpr uint64_t kQuotientEnd = uint64_t{1} << kQuotientBits;
  // Of the 32 bits of fraction the tag keeps 24.
  static constexpr uint32_t kDroppedBits = kQuotientBits - kTagBits;
  // Interleaved by blocks of 4 KiB: 64 buckets of a shard, then 64 of the next.
  static constexpr uint32_t kBlockBuckets = 64;
  static constexpr uint64_t kBlockBytes = kBlockBuckets * sizeof(Bucket);

  using Place = IndexPlace;
  using Position = IndexPosition;
  using PlacedEntry = IndexPlacedEntry;
  using HomeEntries = IndexHomeEntries;
  using Path = IndexPath;

  KeyIndex(MemoryBudget* budget, EpochTable* epochs, DramTier* tier, AddressRange addresses);

  static uint64_t QuotientBitsOf(KeyHash hash) {
    return (hash << kShardBits) >> (64 - kQuotientBits);
  }
  static Place PlaceOf(uint64_t q, uint32_t buckets) {
    const uint64_t product = q * buckets;
    return {static_cast<uint32_t>(product >> kQuotientBits),
            static_cast<uint32_t>(product) >> kDroppedBits};
  }
  static uint64_t QuotientOf(Place place, uint32_t buckets);
  static uint64_t FirstQuotientOf(uint32_t home, uint32_t buckets);
  static Place CurrentPlace(const Shard& shard, KeyHash hash) {
    const uint64_t q = QuotientBitsOf(hash);
    const bool high = q >= shard.boundary.load(std::memory_order_relaxed);
    return PlaceOf(q,
                   (high ? shard.high_buckets : shard.low_buckets).load(std::memory_order_relaxed));
  }
  Bucket* BucketAt(const Shard& shard, uint32_t bucket) const {
    const uint64_t block = uint64_t{bucket / kBlockBuckets} * kShardCount + shard.number;
    return reinterpret_cast<Bucket*>(base_ + block * kBlockBytes) + bucket % kBlockBuckets;
  }

  // Whether the shard's array still reaches to where a guess points: a shrunken one's memory may be
  // gone. Under the shard's lock.
  bool IsInArray(const Shard& shard, const Match& guess) const {
    const auto offset_bytes =
        static_cast<uint64_t>(reinterpret_cast<const std::byte*>(guess.word) - base_);
    const uint64_t bucket = offset_bytes / kBlockBytes / kShardCount * kBlockBuckets +
                            offset_bytes % kBlockBytes / sizeof(Bucket);
    return bucket < uint64_t{BucketsOf(shard)} + kPadBuckets;
  }
  Match FindAt(const Shard& shard, Place place, const RowId& id, bool* changed) const;
  // Of a row that is not in memory only its record can tell.
  bool MayBe(Location location, const RowId& id) const {
    if (location.tier() != Tier::kDram) return true;
    const auto* const header = reinterpret_cast<const RowHeader*>(tier_->Row(location));
    return TableOf(LoadIdentity(header)) == id.table && LoadKey(header) == id.key;
  }

  template <typename Visit>
  void VisitBuckets(const Shard& shard, uint32_t begin, uint32_t end, Visit visit) const;
  bool FindPath(const Shard& shard, uint32_t home, Path* path) const;
  bool Fits(const Shard& shard, uint32_t home) const;
  void PutAt(Shard* shard, Position position, uint32_t home, uint64_t entry);
  uint32_t PutAtHome(Shard* shard, Place place, Location location);
  bool PutEntry(Shard* shard, Place place, Location location);
  void AddPassed(Shard* shard, uint32_t begin, uint32_t end, int32_t change);
  bool PutCopies(Shard* shard, std::span<const PlacedEntry> entries, Place to);
  void RemoveEntry(Shard* shard, Position position);
  Status CommitFor(uint32_t buckets) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  uint64_t WantedBytesFor(uint32_t buckets) const;
  void NoteNear(Shard* shard) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  Status StartGrowing(Shard* shard, double buckets) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  bool StartShrinking(Shard* shard) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  void Sweep(Shard* shard, uint32_t buckets) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  void PrefetchHomeAhead(const Shard& shard, uint32_t home) const
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);
  bool SweepOneHome(Shard* shard) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  size_t EntriesOfHome(const Shard& shard, uint32_t home, HomeEntries* entries) const
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);
  bool MoveHome(Shard* shard, uint32_t home) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  bool MoveToHomes(Shard* shard, std::span<const PlacedEntry> entries, uint32_t to_buckets)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  bool MoveInOrder(Shard* shard, std::span<PlacedEntry> entries, uint32_t home, uint32_t to_buckets)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  bool MoveEqual(Shard* shard, std::span<const PlacedEntry> equal, uint32_t from_home,
                 uint32_t to_buckets) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  Position PositionOf(const Shard& shard, uint32_t home, uint64_t entry) const;
  Position PositionNow(const Shard& shard, const PlacedEntry& placed, uint32_t home) const;

  MemoryBudget* const budget_;
  EpochTable* const epochs_;
  DramTier* const tier_;
  const TagMatcher match_tags_ = BestTagMatcher().match;
  const AddressRange addresses_;
  std::byte* const base_;

  // Growing commits under it; taken after a shard's lock.
  Mutex commit_mutex_;
  std::atomic<uint64_t> committed_bytes_{0};
  std::atomic<uint64_t> kept_free_bytes_{0};
  std::atomic<uint64_t> wanted_bytes_{0};
  std::atomic<bool> is_exhausted_{false};

  std::vector<Shard> shards_;
};

}  // namespace embank

#endif  // EMBANK_STORE_INDEX_KEY_INDEX_H_
