#include "store/index/key_index.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/threads/spin_wait.h"
#include "store/index/index_sizes.h"

namespace embank {
namespace {

uint64_t DivideUp(uint64_t dividend, uint64_t divisor) {
  return (dividend + divisor - 1) / divisor;
}

}  // namespace

StatusOr<std::unique_ptr<KeyIndex>> KeyIndex::Create(MemorySource* source, MemoryBudget* budget,
                                                     EpochTable* epochs, DramTier* tier) {
  // Never more addresses than the budget, or twice the machine's memory, could fill.
  const uint64_t memory_bytes =
      budget->limit_bytes() != 0 ? budget->limit_bytes() : 2 * PhysicalMemoryBytes();
  const uint64_t address_bytes = std::clamp(RoundUp(memory_bytes, kHugePageBytes),
                                            BytesFor(kBucketsMin), BytesFor(kBucketsMax));
  EMBANK_ASSIGN_OR_RETURN(AddressRange addresses, AddressRange::Reserve(source, address_bytes));
  std::unique_ptr<KeyIndex> index(new KeyIndex(budget, epochs, tier, std::move(addresses)));
  {
    MutexLock lock(&index->commit_mutex_);
    EMBANK_RETURN_IF_ERROR(index->CommitFor(kBucketsMin));
  }
  for (uint32_t i = 0; i < kShardCount; ++i) {
    index->shards_[i].number = i;
    index->shards_[i].low_buckets = kBucketsMin;
    index->shards_[i].high_buckets = kBucketsMin;
    MutexLock lock(&index->shards_[i].mutex);
    index->shards_[i].near_rows = RowsAtLoad(kBucketsMin, kLoadNear);
  }
  return index;
}

KeyIndex::KeyIndex(MemoryBudget* budget, EpochTable* epochs, DramTier* tier, AddressRange addresses)
    : budget_(budget),
      epochs_(epochs),
      tier_(tier),
      addresses_(std::move(addresses)),
      base_(addresses_.data()),
      shards_(kShardCount) {}

KeyIndex::~KeyIndex() {
  static_assert(kBucketsMin >= 1u << kDroppedBits);
  static_assert(kPageBuckets % kBlockBuckets == 0);
  // The memory itself goes with `addresses_`; nobody takes from the budget of a store that closes.
  budget_->Release(memory_bytes());
}

// ---- places ----

// The one q whose product begins with this place: products are `buckets` >= 2^8 apart, and a place
// covers 2^8 of them.
uint64_t KeyIndex::QuotientOf(Place place, uint32_t buckets) {
  const uint64_t product =
      (uint64_t{place.home} << kQuotientBits) | (uint64_t{place.tag} << kDroppedBits);
  return DivideUp(product, buckets);
}

uint64_t KeyIndex::FirstQuotientOf(uint32_t home, uint32_t buckets) {
  return DivideUp(uint64_t{home} << kQuotientBits, buckets);
}

// ---- reading ----

Match KeyIndex::Find(const RowId& id) const {
  const Shard& shard = shards_[ShardOf(id.hash)];
  SpinWait wait;
  while (true) {
    const uint32_t seq = shard.seq.load(std::memory_order_acquire);
    if (seq % 2 == 0) {
      bool changed = false;
      const Match match = FindAt(shard, CurrentPlace(shard, id.hash), id, &changed);
      if (match.any()) return match;
      AcquireFence();
      if (!changed && shard.seq.load(std::memory_order_relaxed) == seq) return {};
    }
    wait.Pause();
  }
}

// Looks through the home and the buckets behind it. *changed: one of them was written meanwhile.
Match KeyIndex::FindAt(const Shard& shard, Place place, const RowId& id, bool* changed) const {
  for (uint32_t displacement = 0; displacement <= kDisplacementMax; ++displacement) {
    const Probe probe = {BucketAt(shard, place.home + displacement), place.tag};
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

// ---- inserting and erasing ----

// Entries that stand farther from their home have precedence: one that finds its bucket full goes
// on, and where it comes to stand pushes on an entry that is nearer to its own home. So the search
// for any entry stays short: at four fifths full the farthest of a million stands three buckets
// off.
bool KeyIndex::FindPath(const Shard& shard, uint32_t home, Path* path) const {
  const uint32_t end = BucketsOf(shard) + kPadBuckets;
  uint32_t displacement = 0;  // of the entry that looks for a place
  for (uint32_t bucket = home; bucket < end && path->count < Path::kPositionsMax; ++bucket) {
    const uint64_t head = BucketAt(shard, bucket)->Head();
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

bool KeyIndex::Fits(const Shard& shard, uint32_t home) const {
  if (Bucket::EmptySlots(BucketAt(shard, home)->Head()) != 0) return true;
  Path path;
  return FindPath(shard, home, &path);
}

// Writes an entry over what stands at a position.
void KeyIndex::PutAt(Shard* shard, Position position, uint32_t home, uint64_t entry) {
  BucketAt(*shard, position.bucket)->Put(position.slot, entry, position.bucket - home);
}

// The slot that the entry has got, or kBucketEntries: its home is full.
uint32_t KeyIndex::PutAtHome(Shard* shard, Place place, Location location) {
  Bucket* const bucket = BucketAt(*shard, place.home);
  const uint32_t empty = Bucket::EmptySlots(bucket->Head());
  if (empty == 0) return kBucketEntries;
  const auto slot = static_cast<uint32_t>(std::countr_zero(empty));
  bucket->Put(slot, MakeEntry(place.tag, location), 0);
  return slot;
}

bool KeyIndex::PutEntry(Shard* shard, Place place, Location location) {
  if (PutAtHome(shard, place, location) < kBucketEntries) return true;
  Path path;
  if (!FindPath(*shard, place.home, &path)) return false;
  // From the end, each entry being written to its new position before it leaves the old one: a
  // reader, who goes the same way, meets it at least once.
  for (uint32_t i = path.count - 1; i > 0; --i) {
    const Position from = path.positions[i - 1];
    const Position to = path.positions[i];
    const Bucket& bucket = *BucketAt(*shard, from.bucket);
    const uint32_t home = from.bucket - Bucket::Displacement(bucket.Head(), from.slot);
    PutAt(shard, to, home, bucket.Entry(from.slot));
    AddPassed(shard, from.bucket, to.bucket, 1);
  }
  PutAt(shard, path.positions[0], place.home, MakeEntry(place.tag, location));
  AddPassed(shard, place.home, path.positions[0].bucket, 1);
  return true;
}

void KeyIndex::AddPassed(Shard* shard, uint32_t begin, uint32_t end, int32_t change) {
  for (uint32_t bucket = begin; bucket < end; ++bucket) {
    BucketAt(*shard, bucket)->AddPassed(change);
  }
}

void KeyIndex::RemoveEntry(Shard* shard, Position position) {
  Bucket* const bucket = BucketAt(*shard, position.bucket);
  const uint32_t displacement = Bucket::Displacement(bucket->Head(), position.slot);
  bucket->Remove(position.slot);
  AddPassed(shard, position.bucket - displacement, position.bucket, -1);
}

Status KeyIndex::ReserveOne(Shard* shard, KeyHash hash) {
  Sweep(shard, kSweepHomes);
  if (shard->rows >= shard->near_rows) {
    // No further than is promised: a store that is opened again has to have places for all rows.
    EMBANK_RETURN_IF_ERROR(ReserveMore(shard, 1));
    Sweep(shard, kSweepHomes);
  }
  if (Fits(*shard, CurrentPlace(*shard, hash).home)) return OkStatus();
  // Its place is full: grow at once, as far as it takes, but not beyond once more.
  Sweep(shard, shard->low_buckets + shard->high_buckets);
  if (Fits(*shard, CurrentPlace(*shard, hash).home)) return OkStatus();
  if (shard->low_buckets == shard->high_buckets &&
      shard->rows >= RowsAtLoad(shard->high_buckets, kLoadOfFullPlace)) {
    if (!StartGrowing(shard, shard->high_buckets * kGrowth).ok()) {
      EMBANK_RETURN_IF_ERROR(StartGrowing(shard, shard->high_buckets + 1.0));
    }
    Sweep(shard, shard->high_buckets);
    if (Fits(*shard, CurrentPlace(*shard, hash).home)) return OkStatus();
  }
  return NoMemory();  // too many keys have their place in one part of the index
}

Status KeyIndex::ReserveMore(Shard* shard, uint64_t rows) {
  const uint64_t wanted = shard->rows + rows;
  if (shard->low_buckets != shard->high_buckets) {
    // What is under way gives room enough, or ends first.
    if (wanted <=
        RowsAtLoad(std::min<uint32_t>(shard->low_buckets, shard->high_buckets), kLoadFull)) {
      return OkStatus();
    }
    Sweep(shard, shard->low_buckets + shard->high_buckets);
    if (shard->low_buckets != shard->high_buckets) {
      return wanted <= RowsAtLoad(BucketsOf(*shard), kLoadFull) ? OkStatus() : NoMemory();
    }
  }
  NoteNear(shard);
  const uint32_t buckets = shard->high_buckets;
  if (wanted <= RowsAtLoad(buckets, kLoadMax)) return OkStatus();
  const double needed = static_cast<double>(wanted) / (kBucketEntries * kLoadMax);
  if (StartGrowing(shard, std::max(buckets * kGrowth, needed)).ok()) return OkStatus();
  // Without memory to grow into, the array may fill up; then it takes what there is.
  if (wanted <= RowsAtLoad(buckets, kLoadFull)) return OkStatus();
  return StartGrowing(shard, static_cast<double>(wanted) / (kBucketEntries * kLoadFull) + 1);
}

bool KeyIndex::IsStarved() const {
  return std::any_of(shards_.begin(), shards_.end(), [](const Shard& shard) {
    return shard.is_starved.load(std::memory_order_relaxed);
  });
}

uint64_t KeyIndex::RowsToForget(const Shard& shard) {
  const uint64_t begin = RowsAtLoad(shard.high_buckets, kLoadMax);
  if (shard.low_buckets != shard.high_buckets || shard.rows < begin) return 0;
  // All of them at half of what is left: what batches under way make comes on top.
  const uint64_t half = (RowsAtLoad(shard.high_buckets, kLoadFull) - begin) / 2;
  const double fullness =
      std::min(1.0, static_cast<double>(shard.rows - begin) / static_cast<double>(half));
  return 1 + static_cast<uint64_t>((kShardCount - 1) * fullness * fullness);
}

Status KeyIndex::ReserveRows(uint64_t rows) {
  const uint64_t fullest = RowsOfFullestShard(rows);
  for (Shard& shard : shards_) {
    MutexLock lock(&shard.mutex);
    if (shard.rows >= fullest) continue;
    EMBANK_RETURN_IF_ERROR(ReserveMore(&shard, fullest - shard.rows));
    Sweep(&shard, shard.low_buckets + shard.high_buckets);
  }
  return OkStatus();
}

void KeyIndex::Insert(Shard* shard, KeyHash hash, Location location) {
  EMBANK_CHECK(PutEntry(shard, CurrentPlace(*shard, hash), location));
  ++shard->rows;
}

Match KeyIndex::Move(Shard* shard, KeyHash hash, const Match& match, Location location) {
  const Position position = PositionOf(*shard, CurrentPlace(*shard, hash).home, ~match.seen);
  const uint64_t entry = MakeEntry(TagOf(~match.seen), location);
  BucketAt(*shard, position.bucket)->Replace(position.slot, entry);
  return {match.word, ~entry};
}

void KeyIndex::Erase(Shard* shard, KeyHash hash, const Match& match) {
  RemoveEntry(shard, PositionOf(*shard, CurrentPlace(*shard, hash).home, ~match.seen));
  --shard->rows;
  if (shard->low_buckets != shard->high_buckets) {
    Sweep(shard, kSweepHomes);
  } else if (shard->rows < RowsAtLoad(shard->high_buckets, kLoadMin)) {
    StartShrinking(shard);
  }
}

// ---- growing and shrinking ----

// Under commit_mutex_: memory for arrays of `buckets`.
Status KeyIndex::CommitFor(uint32_t buckets) {
  while (memory_bytes() < BytesFor(buckets)) {
    if (memory_bytes() == addresses_.bytes()) {
      return NoMemory();
    }
    const uint64_t kept_free_bytes = kept_free_bytes_.load(std::memory_order_relaxed);
    Status status = budget_->Charge(kHugePageBytes, kept_free_bytes);
    // Pages of the tier without rows hold budget that the index may have.
    if (!status.ok() && tier_->ReleaseEmptyPages() > 0) {
      status = budget_->Charge(kHugePageBytes, kept_free_bytes);
    }
    EMBANK_RETURN_IF_ERROR(status);
    status = addresses_.Commit(memory_bytes(), kHugePageBytes);
    if (!status.ok()) {
      budget_->Release(kHugePageBytes);
      return status;
    }
    committed_bytes_.fetch_add(kHugePageBytes, std::memory_order_relaxed);
  }
  return OkStatus();
}

// The shard will soon want to grow: from now on it is known how much memory that takes.
void KeyIndex::NoteNear(Shard* shard) {
  const uint32_t buckets = shard->high_buckets;
  if (shard->rows < RowsAtLoad(buckets, kLoadNear)) return;
  shard->near_rows = RowsAtLoad(buckets, kLoadMax);
  shard->is_near.store(true, std::memory_order_relaxed);
  const uint64_t wanted_bytes = WantedBytesFor(FillPages(buckets * kGrowth));
  if (wanted_bytes > this->wanted_bytes()) {
    wanted_bytes_.store(wanted_bytes, std::memory_order_relaxed);
  }
}

// CommitFor succeeds where so many bytes are free.
uint64_t KeyIndex::WantedBytesFor(uint32_t buckets) const {
  const uint64_t bytes = BytesFor(buckets);
  if (bytes <= memory_bytes()) return 0;
  return bytes - memory_bytes() + kept_free_bytes_.load(std::memory_order_relaxed);
}

Status KeyIndex::StartGrowing(Shard* shard, double wanted_buckets) {
  EMBANK_CHECK(shard->low_buckets == shard->high_buckets);
  const uint32_t buckets = FillPages(wanted_buckets);
  shard->is_starved.store(true, std::memory_order_relaxed);
  if (buckets > kBucketsMax) return NoMemory();
  // ReleaseMemory must see the new size, or not the memory.
  MutexLock lock(&commit_mutex_);
  const Status status = CommitFor(buckets);
  wanted_bytes_.store(WantedBytesFor(buckets), std::memory_order_relaxed);
  EMBANK_RETURN_IF_ERROR(status);
  shard->is_starved.store(false, std::memory_order_relaxed);
  shard->is_near.store(false, std::memory_order_relaxed);
  is_exhausted_.store(false, std::memory_order_relaxed);
  shard->seq.fetch_add(1, std::memory_order_relaxed);
  ReleaseFence();
  shard->growing = true;
  shard->boundary.store(kQuotientEnd, std::memory_order_relaxed);
  shard->high_buckets.store(buckets, std::memory_order_relaxed);
  shard->near_rows = RowsAtLoad(buckets, kLoadNear);
  shard->seq.fetch_add(1, std::memory_order_release);
  return OkStatus();
}

// False: the array is as small as it gets, or still on its way.
bool KeyIndex::StartShrinking(Shard* shard) {
  if (shard->low_buckets != shard->high_buckets) return false;
  // The pad is left out, so that two pages become one.
  const uint32_t buckets = FillPages(shard->high_buckets / 2.0 - kPadBuckets);
  if (buckets >= shard->high_buckets) return false;
  shard->seq.fetch_add(1, std::memory_order_relaxed);
  ReleaseFence();
  shard->growing = false;
  shard->boundary.store(0, std::memory_order_relaxed);
  shard->low_buckets.store(buckets, std::memory_order_relaxed);
  shard->near_rows = RowsAtLoad(buckets, kLoadNear);
  shard->seq.fetch_add(1, std::memory_order_release);
  return true;
}

// Moves the boundary over up to `homes` homes.
void KeyIndex::Sweep(Shard* shard, uint32_t homes) {
  if (shard->low_buckets == shard->high_buckets) return;
  shard->seq.fetch_add(1, std::memory_order_relaxed);
  ReleaseFence();
  while (homes > 0 && SweepOneHome(shard)) --homes;
  shard->seq.fetch_add(1, std::memory_order_release);
}

// Asks for a home that the boundary will come to soon, and for where its entries go.
void KeyIndex::PrefetchHomeAhead(const Shard& shard, uint32_t home) const {
  constexpr uint32_t kAhead = 2 * kSweepHomes;
  const uint64_t low = shard.low_buckets;
  const uint64_t high = shard.high_buckets;
  const uint64_t ahead =
      shard.growing ? uint64_t{home} - kAhead : uint64_t{home} + kAhead;  // wraps below zero
  if (ahead >= (shard.growing ? low : high)) return;
  const auto to = static_cast<uint32_t>(shard.growing ? ahead * high / low : ahead * low / high);
  __builtin_prefetch(BucketAt(shard, static_cast<uint32_t>(ahead)), 1);
  __builtin_prefetch(BucketAt(shard, to), 1);
  __builtin_prefetch(BucketAt(shard, to + 1), 1);
}

// Moves the boundary over the next home. False: done, or an entry does not fit where it belongs.
bool KeyIndex::SweepOneHome(Shard* shard) {
  const uint32_t low = shard->low_buckets;
  const uint32_t high = shard->high_buckets;
  const uint64_t boundary = shard->boundary;
  const bool growing = shard->growing;
  const uint32_t home = growing ? PlaceOf(boundary - 1, low).home : PlaceOf(boundary, high).home;
  PrefetchHomeAhead(*shard, home);
  if (!MoveHome(shard, home)) return false;
  const uint64_t next = growing ? FirstQuotientOf(home, low) : FirstQuotientOf(home + 1, high);
  shard->boundary.store(next, std::memory_order_relaxed);
  if (next != (growing ? 0 : kQuotientEnd)) return true;
  (growing ? shard->low_buckets : shard->high_buckets)
      .store(growing ? high : low, std::memory_order_relaxed);
  return false;
}

// The entries of a home in the array that is left.
size_t KeyIndex::EntriesOfHome(const Shard& shard, uint32_t home, HomeEntries* entries) const {
  const uint64_t boundary = shard.boundary;
  const uint32_t from_buckets = shard.growing ? shard.low_buckets : shard.high_buckets;
  size_t count = 0;
  for (uint32_t displacement = 0; displacement <= kDisplacementMax; ++displacement) {
    const Bucket& bucket = *BucketAt(shard, home + displacement);
    const uint64_t head = bucket.Head();
    for (uint32_t slots = Bucket::SlotsDisplacedBy(head, displacement); slots != 0;
         slots &= slots - 1) {
      const auto slot = static_cast<uint32_t>(std::countr_zero(slots));
      const uint64_t entry = bucket.Entry(slot);
      const uint64_t q = QuotientOf({home, TagOf(entry)}, from_buckets);
      (*entries)[count] = {q, entry, {home + displacement, slot}};
      // The lowest homes have the same number in both arrays. An entry of the other array has its q
      // on the other side of the boundary, and so has what it seems to be in this one.
      if (shard.growing == (q < boundary)) ++count;
    }
    if (Bucket::Passed(head) == 0) break;
  }
  return count;
}

// Moves the entries of a home in the array that is left to the other one. False: one does not fit;
// then the boundary stands before it.
bool KeyIndex::MoveHome(Shard* shard, uint32_t home) {
  HomeEntries memory;
  const std::span entries = std::span(memory).first(EntriesOfHome(*shard, home, &memory));
  const uint32_t to_buckets = shard->growing ? shard->high_buckets : shard->low_buckets;
  return MoveToHomes(shard, entries, to_buckets) || MoveInOrder(shard, entries, home, to_buckets);
}

// Moves entries that all find an empty slot in their new homes, as most do: nothing is pushed on.
// False: one finds none, and nothing has moved.
bool KeyIndex::MoveToHomes(Shard* shard, std::span<const PlacedEntry> entries,
                           uint32_t to_buckets) {
  std::array<Position, kHomeEntriesMax> put;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Place to = PlaceOf(entries[i].q, to_buckets);
    put[i] = {to.home, PutAtHome(shard, to, LocationOf(entries[i].entry))};
    if (put[i].slot < kBucketEntries) continue;
    while (i > 0) RemoveEntry(shard, put[--i]);
    return false;
  }
  for (const PlacedEntry& placed : entries) RemoveEntry(shard, placed.seen);
  return true;
}

// Moves entries of a home in the order in which the boundary meets them, up to the first that does
// not fit.
bool KeyIndex::MoveInOrder(Shard* shard, std::span<PlacedEntry> entries, uint32_t home,
                           uint32_t to_buckets) {
  const bool growing = shard->growing;
  std::sort(entries.begin(), entries.end(), [&](const PlacedEntry& a, const PlacedEntry& b) {
    return growing ? a.q > b.q : a.q < b.q;
  });
  for (size_t begin = 0, end = 0; begin < entries.size(); begin = end) {
    while (end < entries.size() && entries[end].q == entries[begin].q) ++end;
    const std::span<const PlacedEntry> equal = entries.subspan(begin, end - begin);
    if (!MoveEqual(shard, equal, home, to_buckets)) return false;
    shard->boundary.store(growing ? equal[0].q : equal[0].q + 1, std::memory_order_relaxed);
  }
  return true;
}

// Moves entries of the same q, all or none: an entry alone to where it leaves room, more of them,
// a rarity, as copies first.
bool KeyIndex::MoveEqual(Shard* shard, std::span<const PlacedEntry> equal, uint32_t from_home,
                         uint32_t to_buckets) {
  const Place to = PlaceOf(equal[0].q, to_buckets);
  if (equal.size() > 1) {
    if (!PutCopies(shard, equal, to)) return false;
    for (const PlacedEntry& placed : equal)
      RemoveEntry(shard, PositionNow(*shard, placed, from_home));
    return true;
  }
  const PlacedEntry& placed = equal[0];
  const Position from = PositionNow(*shard, placed, from_home);
  RemoveEntry(shard, from);
  if (PutEntry(shard, to, LocationOf(placed.entry))) return true;
  PutAt(shard, from, from_home, placed.entry);
  AddPassed(shard, from_home, from.bucket, 1);
  return false;
}

// False: not all find room, and none was put.
bool KeyIndex::PutCopies(Shard* shard, std::span<const PlacedEntry> entries, Place to) {
  for (size_t i = 0; i < entries.size(); ++i) {
    if (PutEntry(shard, to, LocationOf(entries[i].entry))) continue;
    while (i > 0) {
      const uint64_t copy = MakeEntry(to.tag, LocationOf(entries[--i].entry));
      RemoveEntry(shard, PositionOf(*shard, to.home, copy));
    }
    return false;
  }
  return true;
}

// It may have been pushed on since it was seen.
KeyIndex::Position KeyIndex::PositionNow(const Shard& shard, const PlacedEntry& placed,
                                         uint32_t home) const {
  const Bucket& bucket = *BucketAt(shard, placed.seen.bucket);
  const bool there =
      bucket.Entry(placed.seen.slot) == placed.entry &&
      Bucket::Displacement(bucket.Head(), placed.seen.slot) == placed.seen.bucket - home;
  return there ? placed.seen : PositionOf(shard, home, placed.entry);
}

// Where an entry of the home stands that is there.
KeyIndex::Position KeyIndex::PositionOf(const Shard& shard, uint32_t home, uint64_t entry) const {
  for (uint32_t bucket = home; bucket <= home + kDisplacementMax; ++bucket) {
    for (uint32_t slot = 0; slot < kBucketEntries; ++slot) {
      const Bucket& at = *BucketAt(shard, bucket);
      const bool is_of_home = Bucket::Displacement(at.Head(), slot) == bucket - home;
      if (is_of_home && at.Entry(slot) == entry) return {bucket, slot};
    }
  }
  EMBANK_CHECK(false);
}

uint64_t KeyIndex::ReleaseMemory() {
  MutexLock lock(&commit_mutex_);
  uint32_t buckets = 0;
  for (const Shard& shard : shards_) {
    buckets = std::max(buckets, BucketsOf(shard));
  }
  const uint64_t kept_bytes = BytesFor(buckets);
  const uint64_t released_bytes = memory_bytes() - kept_bytes;
  if (released_bytes == 0) return 0;
  // Readers may still look at places of an array's former size.
  epochs_->WaitUntilPassed(epochs_->Retire());
  addresses_.Decommit(kept_bytes, released_bytes);
  committed_bytes_.fetch_sub(released_bytes, std::memory_order_relaxed);
  budget_->Release(released_bytes);
  return released_bytes;
}

uint64_t KeyIndex::EstimateBytes(uint64_t rows) {
  const uint64_t fullest = RowsOfFullestShard(rows);
  uint32_t buckets = kBucketsMin;
  while (RowsAtLoad(buckets, kLoadMax) <= fullest && buckets < kBucketsMax) {
    buckets = FillPages(buckets * kGrowth);
  }
  return BytesFor(buckets);
}

uint64_t KeyIndex::LeastBytes(uint64_t rows) {
  const auto fullest = static_cast<double>(RowsOfFullestShard(rows));
  // A page more for the shard that is the first to have no position for an entry.
  return BytesFor(FillPages(fullest / (kBucketEntries * kLoadFull) + 1)) + kHugePageBytes;
}

}  // namespace embank
