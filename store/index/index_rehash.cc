#include "store/index/index_rehash.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "store/index/index_sizes.h"

namespace embank {

void IndexRehash::Step(uint32_t homes) {
  shard_->mutex.AssertHeld();
  if (!shard_->IsRehashing()) return;
  shard_->BeginWrite();
  while (homes > 0 && MoveNextHome()) --homes;
  shard_->EndWrite();
}

// Prefetches a home that the boundary will reach soon, and the new places of its entries.
void IndexRehash::PrefetchHomeAhead(uint32_t home) const {
  constexpr uint32_t kAhead = 2 * kStepHomes;
  const uint64_t low = shard_->low_buckets;
  const uint64_t high = shard_->high_buckets;
  const uint64_t ahead =
      shard_->growing ? uint64_t{home} - kAhead : uint64_t{home} + kAhead;  // wraps below zero
  if (ahead >= (shard_->growing ? low : high)) return;
  const auto to = static_cast<uint32_t>(shard_->growing ? ahead * high / low : ahead * low / high);
  __builtin_prefetch(array_.At(static_cast<uint32_t>(ahead)), 1);
  __builtin_prefetch(array_.At(to), 1);
  __builtin_prefetch(array_.At(to + 1), 1);
}

// Moves the boundary over the next home. False: the rehash is done, or an entry does not fit into
// its new place.
bool IndexRehash::MoveNextHome() {
  const uint32_t low = shard_->low_buckets;
  const uint32_t high = shard_->high_buckets;
  const uint64_t boundary = shard_->boundary;
  const bool growing = shard_->growing;
  const uint32_t home =
      growing ? IndexPlace::Of(boundary - 1, low).home : IndexPlace::Of(boundary, high).home;
  EMBANK_CHECK(home < (growing ? low : high));
  PrefetchHomeAhead(home);
  if (!MoveHome(home)) return false;
  const uint64_t next =
      growing ? IndexPlace::FirstQuotient(home, low) : IndexPlace::FirstQuotient(home + 1, high);
  EMBANK_CHECK(growing ? next < boundary : next > boundary);
  shard_->boundary.store(next, std::memory_order_relaxed);
  if (next != (growing ? 0 : kQuotientEnd)) return true;
  (growing ? shard_->low_buckets : shard_->high_buckets)
      .store(growing ? high : low, std::memory_order_relaxed);
  return false;
}

// The entries of a home in the old array.
size_t IndexRehash::EntriesOfHome(uint32_t home, HomeEntries* entries) const {
  const uint64_t boundary = shard_->boundary;
  const uint32_t from_buckets = shard_->growing ? shard_->low_buckets : shard_->high_buckets;
  size_t count = 0;
  for (uint32_t displacement = 0; displacement <= kDisplacementMax; ++displacement) {
    const Bucket& bucket = *array_.At(home + displacement);
    const uint64_t head = bucket.Head();
    for (uint32_t slots = Bucket::SlotsDisplacedBy(head, displacement); slots != 0;
         slots &= slots - 1) {
      const auto slot = static_cast<uint32_t>(std::countr_zero(slots));
      const uint64_t entry = bucket.Entry(slot);
      const uint64_t q = IndexPlace{home, TagOf(entry)}.Quotient(from_buckets);
      (*entries)[count] = {q, entry, {home + displacement, slot}};
      // The lowest homes have the same number in both arrays. An entry of the other array has its q
      // on the other side of the boundary, and so has the q that it seems to have in this one.
      if (shard_->growing == (q < boundary)) ++count;
    }
    if (Bucket::Passed(head) == 0) break;
  }
  return count;
}

// Moves the entries of a home from the old array to the new one. False: one does not fit; then the
// boundary stays before it.
bool IndexRehash::MoveHome(uint32_t home) {
  HomeEntries memory;
  const std::span entries = std::span(memory).first(EntriesOfHome(home, &memory));
  const uint32_t to_buckets = shard_->growing ? shard_->high_buckets : shard_->low_buckets;
  return MoveToHomes(entries, home, to_buckets) || MoveInOrder(entries, home, to_buckets);
}

// Moves entries that all find an empty slot in their new homes, as most do, so that no entry moves
// on. False: one finds none, and nothing has moved.
bool IndexRehash::MoveToHomes(std::span<const PlacedEntry> entries, uint32_t home,
                              uint32_t to_buckets) {
  std::array<IndexPosition, kHomeEntriesMax> put;
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto to = IndexPlace::Of(entries[i].q, to_buckets);
    put[i] = {to.home, array_.PutAtHome(to, LocationOf(entries[i].entry))};
    if (put[i].slot < kBucketEntries) continue;
    while (i > 0) array_.Remove(put[--i]);
    return false;
  }
  // Those of a bucket together: they were found bucket by bucket.
  for (size_t i = 0; i < entries.size();) {
    const uint32_t bucket = entries[i].seen.bucket;
    uint32_t slots = 0;
    for (; i < entries.size() && entries[i].seen.bucket == bucket; ++i) {
      slots |= 1u << entries[i].seen.slot;
    }
    array_.RemoveOfHome(home, bucket, slots);
  }
  return true;
}

// Moves entries of a home in the order in which the boundary reaches them, up to the first that
// does not fit.
bool IndexRehash::MoveInOrder(std::span<PlacedEntry> entries, uint32_t home, uint32_t to_buckets) {
  const bool growing = shard_->growing;
  std::sort(entries.begin(), entries.end(), [&](const PlacedEntry& a, const PlacedEntry& b) {
    return growing ? a.q > b.q : a.q < b.q;
  });
  for (size_t begin = 0, end = 0; begin < entries.size(); begin = end) {
    while (end < entries.size() && entries[end].q == entries[begin].q) ++end;
    const std::span<const PlacedEntry> equal = entries.subspan(begin, end - begin);
    EMBANK_CHECK(growing == (equal[0].q < shard_->boundary.load(std::memory_order_relaxed)));
    if (!MoveEqual(equal, home, to_buckets)) return false;
    shard_->boundary.store(growing ? equal[0].q : equal[0].q + 1, std::memory_order_relaxed);
  }
  return true;
}

// Moves entries of the same q, all or none. A single entry may use the space that it leaves;
// several, which is rare, are copied first.
bool IndexRehash::MoveEqual(std::span<const PlacedEntry> equal, uint32_t from_home,
                            uint32_t to_buckets) {
  const auto to = IndexPlace::Of(equal[0].q, to_buckets);
  if (equal.size() > 1) {
    if (!PutCopies(equal, to)) return false;
    for (const PlacedEntry& placed : equal) array_.Remove(PositionNow(placed, from_home));
    return true;
  }
  const PlacedEntry& placed = equal[0];
  const IndexPosition from = PositionNow(placed, from_home);
  array_.Remove(from);
  if (array_.Put(to, LocationOf(placed.entry))) return true;
  array_.PutBack(from, from_home, placed.entry);
  return false;
}

// Returns false if not all find space; then none was put.
bool IndexRehash::PutCopies(std::span<const PlacedEntry> entries, IndexPlace to) {
  for (size_t i = 0; i < entries.size(); ++i) {
    if (array_.Put(to, LocationOf(entries[i].entry))) continue;
    while (i > 0) {
      const uint64_t copy = MakeEntry(to.tag, LocationOf(entries[--i].entry));
      array_.Remove(array_.Find(to.home, copy));
    }
    return false;
  }
  return true;
}

// It may have been pushed on since it was seen.
IndexPosition IndexRehash::PositionNow(const PlacedEntry& placed, uint32_t home) const {
  const bool there = array_.At(placed.seen.bucket)->Entry(placed.seen.slot) == placed.entry &&
                     array_.HomeOf(placed.seen) == home;
  return there ? placed.seen : array_.Find(home, placed.entry);
}

}  // namespace embank
