#include "store/index/index_capacity.h"

#include <algorithm>

#include "base/check.h"
#include "base/status_macros.h"
#include "store/index/bucket_array.h"
#include "store/index/index_rehash.h"
#include "store/index/index_sizes.h"

namespace embank {

Status IndexCapacity::GrowForPlace(IndexShard* shard, KeyHash hash) {
  Rehash(shard, kStepHomes);
  if (shard->rows >= shard->near_rows) {
    // No further than promised: a store that is opened again needs places for all rows.
    EMBANK_RETURN_IF_ERROR(ReserveMore(shard, 1));
    Rehash(shard, kStepHomes);
  }
  if (Fits(*shard, hash)) return OkStatus();
  // If the place is full, grow at once, as far as necessary, but at most once more.
  Rehash(shard, kAllHomes);
  if (Fits(*shard, hash)) return OkStatus();
  const uint32_t buckets = shard->high_buckets;
  if (!shard->IsRehashing() && shard->rows >= RowsAtLoad(buckets, kLoadOfFullPlace)) {
    if (!StartGrowing(shard, buckets * kGrowth).ok()) {
      EMBANK_RETURN_IF_ERROR(StartGrowing(shard, buckets + 1.0));
    }
    Rehash(shard, kAllHomes);
    if (Fits(*shard, hash)) return OkStatus();
  }
  return NoMemory();  // too many keys have their place in one part of the index
}

bool IndexCapacity::Fits(const IndexShard& shard, KeyHash hash) const {
  return BucketArray(memory_->base(), shard).HasSpaceFor(shard.PlaceOf(hash).home);
}

void IndexCapacity::Rehash(IndexShard* shard, uint32_t homes) {
  IndexRehash(memory_->base(), shard).Step(homes);
}

Status IndexCapacity::ReserveMore(IndexShard* shard, uint64_t rows) {
  const uint64_t wanted = shard->rows + rows;
  if (shard->IsRehashing()) {
    // The growth under way gives enough space, or ends first.
    if (wanted <=
        RowsAtLoad(std::min<uint32_t>(shard->low_buckets, shard->high_buckets), kLoadFull)) {
      return OkStatus();
    }
    Rehash(shard, kAllHomes);
    if (shard->IsRehashing()) {
      return wanted <= RowsAtLoad(shard->buckets(), kLoadFull) ? OkStatus() : NoMemory();
    }
  }
  NoteNear(shard);
  const uint32_t buckets = shard->high_buckets;
  if (wanted <= RowsAtLoad(buckets, kLoadMax)) return OkStatus();
  const double needed = static_cast<double>(wanted) / (kBucketEntries * kLoadMax);
  if (StartGrowing(shard, std::max(buckets * kGrowth, needed)).ok()) return OkStatus();
  // Without memory to grow into, the array may fill up; then it takes any memory that is there.
  if (wanted <= RowsAtLoad(buckets, kLoadFull)) return OkStatus();
  return StartGrowing(shard, static_cast<double>(wanted) / (kBucketEntries * kLoadFull) + 1);
}

uint64_t IndexCapacity::MissingPlaces(IndexShard* shard) {
  MutexLock lock(&shard->mutex);
  const uint64_t rows = shard->RowsPromisedToo();
  if (ReserveMore(shard, rows - shard->rows).ok()) return 0;
  const uint64_t places = RowsAtLoad(shard->buckets(), kLoadFull);
  return rows - std::min(rows, places);
}

Status IndexCapacity::ReserveRows(uint64_t rows) {
  const uint64_t fullest = RowsOfFullestShard(rows);
  for (IndexShard& shard : shards_) {
    MutexLock lock(&shard.mutex);
    if (shard.rows >= fullest) continue;
    EMBANK_RETURN_IF_ERROR(ReserveMore(&shard, fullest - shard.rows));
    Rehash(&shard, kAllHomes);
  }
  return OkStatus();
}

void IndexCapacity::GrowAhead(uint64_t rows, uint64_t bytes_max) {
  const uint32_t buckets = std::min(BucketsAhead(rows), BucketsIn(bytes_max));
  buckets_ahead_.store(buckets, std::memory_order_relaxed);
  for (IndexShard& shard : shards_) {
    MutexLock lock(&shard.mutex);
    Rehash(&shard, kAllHomes);
    if (shard.IsRehashing() || shard.high_buckets >= buckets) continue;
    if (!memory_->Grow(&shard, buckets).ok()) return;
    Rehash(&shard, kAllHomes);
  }
}

void IndexCapacity::KeepAhead(uint64_t rows) {
  const uint32_t buckets = rows == 0 ? 0 : BucketsAhead(rows);
  uint32_t kept = buckets_ahead_.load(std::memory_order_relaxed);
  while (buckets < kept && !buckets_ahead_.compare_exchange_weak(kept, buckets)) {
  }
}

// The shard will soon want to grow; from now on the memory for that is known.
void IndexCapacity::NoteNear(IndexShard* shard) {
  const uint32_t buckets = shard->high_buckets;
  if (shard->rows < RowsAtLoad(buckets, kLoadNear)) return;
  shard->near_rows = RowsAtLoad(buckets, kLoadMax);
  shard->is_near.store(true, std::memory_order_relaxed);
  memory_->NoteWanted(FillPages(buckets * kGrowth));
}

Status IndexCapacity::StartGrowing(IndexShard* shard, double wanted_buckets) {
  EMBANK_CHECK(!shard->IsRehashing());
  const uint32_t buckets = FillPages(wanted_buckets);
  shard->is_starved.store(true, std::memory_order_relaxed);
  return buckets > kBucketsMax ? NoMemory() : memory_->Grow(shard, buckets);
}

void IndexCapacity::NoteErased(IndexShard* shard) {
  if (shard->IsRehashing()) {
    Rehash(shard, kStepHomes);
  } else if (shard->rows < RowsAtLoad(shard->high_buckets, kLoadMin)) {
    StartShrinking(shard);
  }
}

void IndexCapacity::ShrinkToRows(IndexShard* shard) {
  Rehash(shard, kAllHomes);
  while (shard->rows < RowsAtLoad(shard->high_buckets, kLoadMin) && StartShrinking(shard)) {
    Rehash(shard, kAllHomes);
  }
}

uint64_t IndexCapacity::Shrink() {
  if (memory_->bytes() <= BytesFor(kBucketsMin)) return 0;
  renew_ahead_();
  uint64_t rows = 0;
  for (IndexShard& shard : shards_) {
    ReaderMutexLock lock(&shard.mutex);
    rows = std::max(rows, shard.RowsPromisedToo());
  }
  const uint32_t buckets =
      std::max(ShrunkenBuckets(rows), buckets_ahead_.load(std::memory_order_relaxed));
  if (memory_->bytes() <= BytesFor(buckets)) return 0;
  for (IndexShard& shard : shards_) ShrinkShard(&shard, buckets);
  return memory_->Release();
}

void IndexCapacity::ShrinkAfterErasing(uint64_t rows) {
  const uint64_t entries = memory_->bytes() / sizeof(Bucket) * kBucketEntries;
  if (erased_rows_.fetch_add(rows, std::memory_order_relaxed) + rows < entries / kErasedPart)
    return;
  erased_rows_.store(0, std::memory_order_relaxed);
  Shrink();
}

// Batches that use the shard meanwhile run between the takings of its lock. So does GrowAhead,
// which sets buckets_ahead_ before it takes the lock.
void IndexCapacity::ShrinkShard(IndexShard* shard, uint32_t buckets) {
  for (uint32_t rehashes = 0; rehashes < kRehashesMax;) {
    MutexLock lock(&shard->mutex);
    buckets = std::max(buckets, buckets_ahead_.load(std::memory_order_relaxed));
    if (!shard->IsRehashing()) {
      const bool fits = shard->RowsPromisedToo() <= RowsAtLoad(buckets, kLoadMax);
      if (shard->high_buckets <= buckets || !fits) return;
      shard->BeginShrinking(buckets);
    }
    const uint64_t boundary = shard->boundary;
    for (uint32_t i = 0; i < kStepsAtOnce; ++i) Rehash(shard, kStepHomes);
    if (!shard->IsRehashing()) {
      ++rehashes;
    } else if (shard->boundary == boundary) {
      return;  // too many keys have their place here: an insertion or erasure goes on
    }
  }
}

// False: the array is as small as it gets, or still on its way.
bool IndexCapacity::StartShrinking(IndexShard* shard) {
  if (shard->IsRehashing()) return false;
  // The pad is left out, so that two pages become one.
  const uint32_t buckets = std::max(FillPages(shard->high_buckets / 2.0 - kPadBuckets),
                                    buckets_ahead_.load(std::memory_order_relaxed));
  if (buckets >= shard->high_buckets) return false;
  shard->BeginShrinking(buckets);
  return true;
}

}  // namespace embank
