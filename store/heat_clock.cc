#include "store/heat_clock.h"

namespace embank {
namespace {

// The hashes whose stamps are renewed in one epoch: all of them in 64 epochs, half of what stamps
// can count.
constexpr KeyHash kHashesPerEpoch = KeyHash{1} << (64 - 6);
// Buckets whose rows' stamps are renewed at once: 360 rows at most loads, 20 us.
constexpr uint64_t kRenewalBuckets = 64;

}  // namespace

void HeatClock::Count(uint64_t positions) {
  if (positions == 0) return;
  const uint64_t epoch = epoch_.load(std::memory_order_relaxed);
  const uint64_t epoch_positions = HeatEpochPositions(rows_.load(std::memory_order_relaxed));
  uint64_t counted = positions_.fetch_add(positions, std::memory_order_relaxed) + positions;
  if (counted < epoch_positions) {
    RenewStampsUpTo(epoch * kHashesPerEpoch + kHashesPerEpoch / epoch_positions * counted);
    return;
  }
  // Of several threads that see the epoch's end, the one that takes the count begins the next.
  if (!positions_.compare_exchange_strong(counted, 0, std::memory_order_relaxed)) return;
  const uint64_t next = epoch_.fetch_add(1, std::memory_order_relaxed) + 1;
  RenewStampsUpTo(next * kHashesPerEpoch);
}

// A few stamps with each batch, so that no batch renews many.
void HeatClock::RenewStampsUpTo(KeyHash due) {
  constexpr KeyHash kShardHashes = KeyHash{1} << (64 - KeyIndex::kShardBits);
  KeyHash first = renewed_.load(std::memory_order_relaxed);
  for (;;) {
    const uint32_t buckets = KeyIndex::BucketsOf(*index_->shard(KeyIndex::ShardOf(first)));
    const KeyHash to_shard_end = kShardHashes - first % kShardHashes;
    const KeyHash step = std::min(kShardHashes / buckets * kRenewalBuckets, to_shard_end);
    if (static_cast<int64_t>(due - first) < static_cast<int64_t>(step)) return;
    if (!renewed_.compare_exchange_weak(first, first + step, std::memory_order_relaxed)) continue;
    RenewStamps(first, first + step - 1);
    first += step;
  }
}

void HeatClock::RenewStamps(KeyHash first, KeyHash last) {
  KeyIndex::Shard* const shard = index_->shard(KeyIndex::ShardOf(first));
  const HeatEpoch now = this->now();
  ReaderMutexLock lock(&shard->mutex);
  index_->VisitHashes(shard, first, last, [&](Location location) {
    auto* const header = reinterpret_cast<RowHeader*>(tier_->Row(location));
    TouchHeat(header, LoadMark(header), now, 0);
  });
}

}  // namespace embank
