#include "store/index/key_index.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/threads/fence.h"
#include "base/threads/spin_wait.h"

namespace embank {
namespace {

// Calls visit(position, location) for the entries of some buckets; prefetches the rows of the next
// buckets meanwhile.
template <typename Visit>
void VisitBuckets(const BucketArray& array, RowAddresses rows, uint32_t begin, uint32_t end,
                  Visit visit) {
  constexpr uint32_t kAhead = 3;
  for (uint32_t bucket = begin; bucket < end + kAhead; ++bucket) {
    for (uint32_t slot = 0; bucket < end && slot < kBucketEntries; ++slot) {
      const uint64_t entry = array.At(bucket)->Entry(slot);
      if (!LocationOf(entry).IsInLog()) {
        __builtin_prefetch(rows.At(LocationOf(entry)));
      }
    }
    if (bucket < begin + kAhead) continue;
    for (uint32_t slot = 0; slot < kBucketEntries; ++slot) {
      const uint64_t entry = array.At(bucket - kAhead)->Entry(slot);
      if (entry != kEmptyEntry) visit(IndexPosition{bucket - kAhead, slot}, LocationOf(entry));
    }
  }
}

}  // namespace

StatusOr<std::unique_ptr<KeyIndex>> KeyIndex::Create(MemorySource* source, MemoryBudget* budget,
                                                     EpochTable* epochs, DramTier* tier) {
  EMBANK_ASSIGN_OR_RETURN(AddressRange addresses, IndexMemory::ReserveAddresses(source, *budget));
  std::unique_ptr<KeyIndex> index(new KeyIndex(budget, epochs, tier, std::move(addresses)));
  EMBANK_RETURN_IF_ERROR(index->memory_.CommitFirst());
  for (uint32_t i = 0; i < kShardCount; ++i) {
    Shard* const shard = index->shard(i);
    MutexLock lock(&shard->mutex);
    shard->Begin(i);
  }
  return index;
}

KeyIndex::KeyIndex(MemoryBudget* budget, EpochTable* epochs, DramTier* tier, AddressRange addresses)
    : tier_(tier),
      shards_(kShardCount),
      memory_(budget, epochs, tier->pool(), std::move(addresses), shards_),
      capacity_(&memory_, shards_) {}

// ---- reading ----

Match KeyIndex::Find(const RowId& id) const {
  const Shard& shard = shards_[ShardOf(id.hash)];
  SpinWait wait;
  while (true) {
    const uint32_t seq = shard.seq.load(std::memory_order_acquire);
    if (seq % 2 == 0) {
      bool changed = false;
      const Match match = FindAt(shard, shard.PlaceOf(id.hash), id, &changed);
      if (match.any()) return match;
      AcquireFence();
      if (!changed && shard.seq.load(std::memory_order_relaxed) == seq) return {};
    }
    wait.Pause();
  }
}

// Looks through the home and the buckets behind it. *changed: one of them was written meanwhile.
Match KeyIndex::FindAt(const Shard& shard, IndexPlace place, const RowId& id, bool* changed) const {
  for (uint32_t displacement = 0; displacement <= kDisplacementMax; ++displacement) {
    const Probe probe = {ArrayOf(shard).At(place.home + displacement), place.tag};
    const Bucket& bucket = *probe.bucket;
    const uint64_t head = bucket.Head();
    uint8_t mask = 0;
    MatchTags({&probe, 1}, &mask);
    for (uint32_t left = mask; left != 0; left &= left - 1) {
      const Match match = FirstMatch(probe, left);
      if (match.any() && MayBe(match.location(), id)) return match;
    }
    AcquireFence();
    if (Bucket::IsBeingWritten(head) || bucket.words[0].load(std::memory_order_relaxed) != head) {
      *changed = true;
      return {};
    }
    if (Bucket::Passed(head) == 0) break;
  }
  return {};
}

// ---- changing ----

void KeyIndex::Insert(Shard* shard, KeyHash hash, Location location) {
  EMBANK_CHECK(ShardOf(hash) == shard->number && location != kNoLocation);
  EMBANK_CHECK(ArrayOf(*shard).Put(shard->PlaceOf(hash), location));
  ++shard->rows;
}

Match KeyIndex::Move(Shard* shard, KeyHash hash, const Match& match, Location location) {
  EMBANK_CHECK(match.any() && ShardOf(hash) == shard->number);
  BucketArray array = ArrayOf(*shard);
  const uint64_t entry = MakeEntry(TagOf(~match.seen), location);
  array.Replace(array.Find(shard->PlaceOf(hash).home, ~match.seen), entry);
  return {match.word, ~entry};
}

void KeyIndex::Erase(Shard* shard, KeyHash hash, const Match& match) {
  EMBANK_CHECK(match.any() && ShardOf(hash) == shard->number);
  EMBANK_CHECK(shard->rows > 0);
  BucketArray array = ArrayOf(*shard);
  array.Remove(array.Find(shard->PlaceOf(hash).home, ~match.seen));
  --shard->rows;
  capacity_.NoteErased(shard);
}

// ---- visits ----

// The lock keeps entries as they are, so that no version is needed.
template <typename Visit>
void KeyIndex::VisitUnderLock(const RowId& id, const Visit& visit) const {
  const Shard& shard = shards_[ShardOf(id.hash)];
  const BucketArray array = ArrayOf(shard);
  const IndexPlace place = shard.PlaceOf(id.hash);
  for (uint32_t displacement = 0; displacement <= kDisplacementMax; ++displacement) {
    const Probe probe = {array.At(place.home + displacement), place.tag};
    uint8_t mask = 0;
    MatchTags({&probe, 1}, &mask);
    for (uint32_t left = mask; left != 0; left &= left - 1) {
      const Match match = FirstMatch(probe, left);
      if (match.any() && MayBe(match.location(), id) && visit(match)) return;
    }
    if (Bucket::Passed(probe.bucket->Head()) == 0) return;
  }
}

Match KeyIndex::FindUnderLock(const RowId& id) const {
  Match found = {};
  VisitUnderLock(id, [&](const Match& match) {
    found = match;
    return true;
  });
  return found;
}

void KeyIndex::VisitMatches(Shard* shard, const RowId& id, FunctionRef<bool(const Match&)> visit) {
  EMBANK_CHECK(ShardOf(id.hash) == shard->number);
  VisitUnderLock(id, visit);
}

Match KeyIndex::MatchAt(Shard* shard, const RowId& id, Location location) {
  Match match = {};
  VisitMatches(shard, id, [&](const Match& candidate) {
    if (candidate.location() == location) match = candidate;
    return match.any();
  });
  return match;
}

void KeyIndex::EraseRows(Shard* shard, FunctionRef<bool(Location)> erases) {
  BucketArray array = ArrayOf(*shard);
  uint64_t erased = 0;
  VisitBuckets(array, tier_->rows(), 0, array.end(),
               [&](IndexPosition position, Location location) {
                 if (!erases(location)) return;
                 array.Remove(position);
                 ++erased;
               });
  if (erased == 0) return;
  EMBANK_CHECK(erased <= shard->rows);
  shard->rows -= erased;
  capacity_.ShrinkToRows(shard);
}

void KeyIndex::VisitHashes(Shard* shard, KeyHash first, KeyHash last,
                           FunctionRef<void(Location)> visit) const {
  EMBANK_CHECK(first <= last);
  EMBANK_CHECK(ShardOf(first) == shard->number && ShardOf(last) == shard->number);
  const BucketArray array = ArrayOf(*shard);
  const uint64_t first_q = IndexPlace::QuotientOf(first);
  const uint64_t last_q = IndexPlace::QuotientOf(last);
  const uint64_t boundary = shard->boundary.load(std::memory_order_relaxed);
  const auto home = [&](uint64_t q) {
    return IndexPlace::Of(q, q >= boundary ? shard->high_buckets : shard->low_buckets).home;
  };
  // An entry of the other array has its q on the other side of the boundary, as in IndexRehash.
  const auto quotient = [&](IndexPosition position) {
    const IndexPlace place = {array.HomeOf(position),
                              TagOf(array.At(position.bucket)->Entry(position.slot))};
    const uint64_t low_q = place.Quotient(shard->low_buckets);
    return low_q < boundary ? low_q : place.Quotient(shard->high_buckets);
  };
  const auto visit_buckets = [&](uint32_t begin, uint32_t end) {
    VisitBuckets(array, tier_->rows(), begin, end, [&](IndexPosition position, Location location) {
      const uint32_t bucket = position.bucket;
      const bool inside = begin + kPadBuckets < bucket && bucket + kPadBuckets + 1 < end;
      const uint64_t q = inside ? first_q : quotient(position);
      if (first_q <= q && q <= last_q) visit(location);
    });
  };
  const bool split = first_q < boundary && boundary <= last_q;
  const uint32_t low_end = home(split ? boundary - 1 : last_q) + kPadBuckets + 1;
  visit_buckets(home(first_q), low_end);
  // Hashes on both sides of the boundary are two runs, which may overlap.
  if (split) visit_buckets(std::max(low_end, home(boundary)), home(last_q) + kPadBuckets + 1);
}

}  // namespace embank
