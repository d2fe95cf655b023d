#include "store/index/index_shard.h"

#include <algorithm>

#include "base/check.h"
#include "store/index/index_sizes.h"

namespace embank {

uint64_t IndexShard::RowsToForget() const {
  const uint32_t size = high_buckets.load(std::memory_order_relaxed);
  const uint64_t begin = RowsAtLoad(size, kLoadMax);
  if (IsRehashing() || rows < begin) return 0;
  // All shards' rows at half of the rest: batches under way add to that.
  const uint64_t half = (RowsAtLoad(size, kLoadFull) - begin) / 2;
  const double fullness =
      std::min(1.0, static_cast<double>(rows - begin) / static_cast<double>(half));
  return 1 + static_cast<uint64_t>((kIndexShardCount - 1) * fullness * fullness);
}

void IndexShard::Begin(uint32_t shard_number) {
  EMBANK_CHECK(rows == 0);
  EMBANK_CHECK(shard_number < kIndexShardCount);
  number = shard_number;
  low_buckets.store(kBucketsMin, std::memory_order_relaxed);
  high_buckets.store(kBucketsMin, std::memory_order_relaxed);
  near_rows = RowsAtLoad(kBucketsMin, kLoadNear);
}

void IndexShard::BeginGrowing(uint32_t buckets) {
  EMBANK_CHECK(!IsRehashing() && buckets > low_buckets);
  EMBANK_CHECK(buckets <= kBucketsMax);
  is_starved.store(false, std::memory_order_relaxed);
  is_near.store(false, std::memory_order_relaxed);
  near_rows = RowsAtLoad(buckets, kLoadNear);
  growing = true;
  BeginWrite();
  boundary.store(kQuotientEnd, std::memory_order_relaxed);
  high_buckets.store(buckets, std::memory_order_relaxed);
  EndWrite();
}

void IndexShard::BeginShrinking(uint32_t buckets) {
  EMBANK_CHECK(!IsRehashing() && buckets < low_buckets);
  EMBANK_CHECK(buckets >= kBucketsMin && rows <= RowsAtLoad(buckets, kLoadMax));
  is_starved.store(false, std::memory_order_relaxed);
  is_near.store(false, std::memory_order_relaxed);
  near_rows = RowsAtLoad(buckets, kLoadNear);
  growing = false;
  BeginWrite();
  boundary.store(0, std::memory_order_relaxed);
  low_buckets.store(buckets, std::memory_order_relaxed);
  EndWrite();
}

}  // namespace embank
