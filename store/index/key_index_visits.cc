// Visits to the entries of the index: those that may be one row's, those of a run of hashes, all.
#include <algorithm>

#include "store/index/index_sizes.h"
#include "store/index/key_index.h"

namespace embank {

void KeyIndex::VisitMatches(Shard* shard, const RowId& id, FunctionRef<bool(const Match&)> visit) {
  const Place place = CurrentPlace(*shard, id.hash);
  for (uint32_t displacement = 0; displacement <= kDisplacementMax; ++displacement) {
    const Probe probe = {BucketAt(*shard, place.home + displacement), place.tag};
    uint8_t mask = 0;
    MatchTags({&probe, 1}, &mask);
    for (uint32_t left = mask; left != 0; left &= left - 1) {
      const Match match = FirstMatch(probe, left);
      if (match.any() && MayBe(match.location(), id) && visit(match)) return;
    }
    if (Bucket::Passed(probe.bucket->Head()) == 0) return;
  }
}

// Calls visit(position, location) for the entries of some buckets; the rows of the next buckets are
// asked for meanwhile.
template <typename Visit>
void KeyIndex::VisitBuckets(const Shard& shard, uint32_t begin, uint32_t end, Visit visit) const {
  constexpr uint32_t kAhead = 3;
  for (uint32_t bucket = begin; bucket < end + kAhead; ++bucket) {
    for (uint32_t slot = 0; bucket < end && slot < kBucketEntries; ++slot) {
      const uint64_t entry = BucketAt(shard, bucket)->Entry(slot);
      if (LocationOf(entry).tier() == Tier::kDram) {
        __builtin_prefetch(tier_->Row(LocationOf(entry)));
      }
    }
    if (bucket < begin + kAhead) continue;
    for (uint32_t slot = 0; slot < kBucketEntries; ++slot) {
      const uint64_t entry = BucketAt(shard, bucket - kAhead)->Entry(slot);
      if (entry != kEmptyEntry) visit(Position{bucket - kAhead, slot}, LocationOf(entry));
    }
  }
}

void KeyIndex::EraseRows(Shard* shard, FunctionRef<bool(Location)> erases) {
  const uint32_t end = BucketsOf(*shard) + kPadBuckets;
  const uint64_t rows_before = shard->rows;
  uint64_t erased = 0;
  VisitBuckets(*shard, 0, end, [&](Position position, Location location) {
    if (!erases(location)) return;
    RemoveEntry(shard, position);
    ++erased;
  });
  if (erased == 0) return;
  shard->rows = rows_before - erased;
  Sweep(shard, end);
  while (shard->rows < RowsAtLoad(shard->high_buckets, kLoadMin) && StartShrinking(shard)) {
    Sweep(shard, end);
  }
}

void KeyIndex::VisitHashes(Shard* shard, KeyHash first, KeyHash last,
                           FunctionRef<void(Location)> visit) const {
  const uint64_t first_q = QuotientBitsOf(first);
  const uint64_t last_q = QuotientBitsOf(last);
  const uint64_t boundary = shard->boundary.load(std::memory_order_relaxed);
  const auto home = [&](uint64_t q) {
    return PlaceOf(q, q >= boundary ? shard->high_buckets : shard->low_buckets).home;
  };
  // Of the other array an entry has its q on the other side of the boundary, as in EntriesOfHome.
  const auto quotient = [&](Position position) {
    const Bucket& bucket = *BucketAt(*shard, position.bucket);
    const Place place = {position.bucket - Bucket::Displacement(bucket.Head(), position.slot),
                         TagOf(bucket.Entry(position.slot))};
    const uint64_t low_q = QuotientOf(place, shard->low_buckets);
    return low_q < boundary ? low_q : QuotientOf(place, shard->high_buckets);
  };
  const auto visit_buckets = [&](uint32_t begin, uint32_t end) {
    VisitBuckets(*shard, begin, end, [&](Position position, Location location) {
      const uint32_t bucket = position.bucket;
      const bool inside = begin + kPadBuckets < bucket && bucket + kPadBuckets + 1 < end;
      const uint64_t q = inside ? first_q : quotient(position);
      if (first_q <= q && q <= last_q) visit(location);
    });
  };
  const bool split = first_q < boundary && boundary <= last_q;
  const uint32_t low_end = home(split ? boundary - 1 : last_q) + kPadBuckets + 1;
  visit_buckets(home(first_q), low_end);
  // Hashes that the boundary parts are two runs, which may overlap.
  if (split) visit_buckets(std::max(low_end, home(boundary)), home(last_q) + kPadBuckets + 1);
}

}  // namespace embank
