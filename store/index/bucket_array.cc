#include "store/index/bucket_array.h"

#include <array>
#include <bit>

#include "base/check.h"

namespace embank {

// How an entry gets its position: it takes the first one, whose entry takes the second one, and so
// on, up to the last one, which is empty.
struct BucketArray::Path {
  // In 2^23 buckets at a load of 0.83, the longest of 58 million paths is 75; the first longer path
  // than this comes at 0.86.
  static constexpr uint32_t kPositionsMax = 256;
  std::array<IndexPosition, kPositionsMax> positions;
  uint32_t count = 0;
};

IndexPosition BucketArray::Find(uint32_t home, uint64_t entry) const {
  for (uint32_t bucket = home; bucket <= home + kDisplacementMax; ++bucket) {
    for (uint32_t slot = 0; slot < kBucketEntries; ++slot) {
      const Bucket& at = *At(bucket);
      const bool is_of_home = Bucket::Displacement(at.Head(), slot) == bucket - home;
      if (is_of_home && at.Entry(slot) == entry) return {bucket, slot};
    }
  }
  EMBANK_CHECK(false);
}

// An entry farther from its home has precedence. An entry that finds its bucket full goes on; at
// its place it moves an entry on that is nearer to its own home. So every search stays short: at a
// load of four fifths, the farthest of a million entries is three buckets off.
bool BucketArray::FindPath(uint32_t home, Path* path) const {
  EMBANK_CHECK(home < shard_->buckets() && path->count == 0);
  const uint32_t end = this->end();
  uint32_t displacement = 0;  // of the entry that looks for a place
  for (uint32_t bucket = home; bucket < end && path->count < Path::kPositionsMax; ++bucket) {
    const uint64_t head = At(bucket)->Head();
    if (const uint32_t empty = Bucket::EmptySlots(head); empty != 0) {
      path->positions[path->count++] = {bucket, static_cast<uint32_t>(std::countr_zero(empty))};
      return true;
    }
    for (uint32_t nearer = 0; nearer < displacement; ++nearer) {
      const uint32_t slots = Bucket::SlotsDisplacedBy(head, nearer);
      if (slots == 0) continue;
      path->positions[path->count++] = {bucket, static_cast<uint32_t>(std::countr_zero(slots))};
      displacement = nearer;
      break;
    }
    if (++displacement > kDisplacementMax) return false;
  }
  return false;
}

bool BucketArray::HasSpaceFor(uint32_t home) const {
  if (Bucket::EmptySlots(At(home)->Head()) != 0) return true;
  Path path;
  return FindPath(home, &path);
}

bool BucketArray::PutByPath(IndexPlace place, Location location) {
  shard_->mutex.AssertHeld();
  Path path;
  if (!FindPath(place.home, &path)) return false;
  EMBANK_CHECK(path.count > 0);
  // The loop runs from the end and writes each entry to its new position before it leaves the old
  // one. A reader goes in the same direction, so that it meets the entry at least once.
  for (uint32_t i = path.count - 1; i > 0; --i) {
    const IndexPosition from = path.positions[i - 1];
    const IndexPosition to = path.positions[i];
    const uint32_t home = HomeOf(from);
    EMBANK_CHECK(to.bucket - home <= kDisplacementMax);
    At(to.bucket)->Put(to.slot, At(from.bucket)->Entry(from.slot), to.bucket - home);
    AddPassed(from.bucket, to.bucket, 1);
  }
  const IndexPosition first = path.positions[0];
  EMBANK_CHECK(first.bucket - place.home <= kDisplacementMax);
  At(first.bucket)->Put(first.slot, MakeEntry(place.tag, location), first.bucket - place.home);
  AddPassed(place.home, first.bucket, 1);
  return true;
}

uint32_t BucketArray::PutAtHome(IndexPlace place, Location location) {
  Bucket* const bucket = At(place.home);
  const uint32_t empty = Bucket::EmptySlots(bucket->Head());
  if (empty == 0) return kBucketEntries;
  const auto slot = static_cast<uint32_t>(std::countr_zero(empty));
  bucket->Put(slot, MakeEntry(place.tag, location), 0);
  return slot;
}

void BucketArray::PutBack(IndexPosition position, uint32_t home, uint64_t entry) {
  shard_->mutex.AssertHeld();
  EMBANK_CHECK(At(position.bucket)->Entry(position.slot) == kEmptyEntry);
  EMBANK_CHECK(position.bucket - home <= kDisplacementMax);
  At(position.bucket)->Put(position.slot, entry, position.bucket - home);
  AddPassed(home, position.bucket, 1);
}

void BucketArray::Replace(IndexPosition position, uint64_t entry) {
  shard_->mutex.AssertHeld();
  EMBANK_CHECK(TagOf(At(position.bucket)->Entry(position.slot)) == TagOf(entry));
  At(position.bucket)->Replace(position.slot, entry);
}

void BucketArray::RemoveOfHome(uint32_t home, uint32_t bucket, uint32_t slots) {
  shard_->mutex.AssertHeld();
  Bucket* const at = At(bucket);
  EMBANK_CHECK(bucket - home <= kDisplacementMax);
  EMBANK_CHECK(slots != 0 && (slots & ~Bucket::SlotsDisplacedBy(at->Head(), bucket - home)) == 0);
  at->RemoveSlots(slots);
  AddPassed(home, bucket, -std::popcount(slots));
}

void BucketArray::AddPassed(uint32_t begin, uint32_t end, int32_t change) {
  for (uint32_t bucket = begin; bucket < end; ++bucket) {
    EMBANK_CHECK(static_cast<int32_t>(Bucket::Passed(At(bucket)->Head())) + change >= 0);
    At(bucket)->AddPassed(change);
  }
}

}  // namespace embank
