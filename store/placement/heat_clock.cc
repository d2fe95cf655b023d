#include "store/placement/heat_clock.h"

#include "base/seeded_bug.h"

namespace embank {
namespace {

// An epoch renews the stamps of one shard, 64 epochs those of all. How far renewal should be is
// compared modulo 64 epochs, so right up to 32; a stamp is then at most 64 + 32 epochs old, of the
// 127 that it can count. (Keys made to fill one shard alone can be later, and their heat wrong.)
constexpr KeyHash kHashesPerEpoch = KeyHash{1} << (64 - KeyIndex::kShardBits);
static_assert(KeyIndex::kShardCount == 64);

// Buckets whose rows' stamps are renewed in one step: 360 rows at most loads, 20 us.
constexpr uint64_t kStepBuckets = 64;
// At a load of a quarter, the least, a step has 64 x 1.75 rows of one of 64 shards, and an epoch
// eight positions per row of them all: 57,000 for each step. So renewal catches up, when rows have
// gone or a step could not be done.
constexpr uint64_t kPositionsPerStep = 1 << 15;

}  // namespace

void HeatClock::Count(uint64_t positions) {
  if (positions == 0) return;
  const uint64_t epoch = epoch_.load(std::memory_order_relaxed);
  const uint64_t epoch_positions = HeatEpochPositions(rows_->count());
  uint64_t counted = positions_.fetch_add(positions, std::memory_order_relaxed) + positions;
  KeyHash due = (epoch + 1) * kHashesPerEpoch;
  if (counted < epoch_positions) {
    due = epoch * kHashesPerEpoch + kHashesPerEpoch / epoch_positions * counted;
  } else if (positions_.compare_exchange_strong(counted, 0, std::memory_order_relaxed)) {
    // Several threads may see the epoch's end; the one that takes the count begins the next epoch.
    epoch_.fetch_add(1, std::memory_order_relaxed);
  }
  for (uint64_t steps = 1 + positions / kPositionsPerStep; steps > 0; --steps) {
    if (!RenewSomeStamps(due, Wait::kOverdue)) return;
  }
}

// One epoch after the other: however many there are, renewal is never further behind than by one of
// them and what Count had left.
void HeatClock::EndEpochs(uint32_t count) {
  for (; count > 0; --count) {
    const uint64_t epoch = epoch_.fetch_add(1, std::memory_order_relaxed) + 1;
    positions_.store(0, std::memory_order_relaxed);
    if (Seeded(SeededBug::kEarlyEpochsNotRenewed)) continue;
    while (RenewSomeStamps(epoch * kHashesPerEpoch, Wait::kAlways)) {
    }
  }
}

// Makes one step of renewal towards `due`, or another thread does. False: renewal is there; or,
// with kOverdue, a writer has the lock or another thread makes steps.
bool HeatClock::RenewSomeStamps(KeyHash due, Wait wait) {
  KeyHash first = renewed_.load(std::memory_order_relaxed);
  KeyIndex::Shard* const shard = index_->shard(KeyIndex::ShardOf(first));
  const KeyHash shard_left = kHashesPerEpoch - first % kHashesPerEpoch;
  const KeyHash step = std::min(kHashesPerEpoch / shard->buckets() * kStepBuckets, shard_left);
  const auto distance = static_cast<int64_t>(due - first);
  if (distance < static_cast<int64_t>(step)) return false;
  // A writer may be long; wait for it only when a few epochs were missed.
  const bool overdue = distance > static_cast<int64_t>(8 * kHashesPerEpoch);
  if (overdue || wait == Wait::kAlways) {
    shard->mutex.ReaderLock();
  } else if (!shard->mutex.ReaderTryLock()) {
    return false;
  }
  const bool mine =
      renewed_.compare_exchange_strong(first, first + step, std::memory_order_relaxed);
  if (mine) RenewStamps(shard, first, first + step - 1);
  shard->mutex.ReaderUnlock();
  return mine || wait == Wait::kAlways;
}

void HeatClock::RenewStamps(KeyIndex::Shard* shard, KeyHash first, KeyHash last) {
  const HeatEpoch epoch = now();
  index_->VisitHashes(shard, first, last, [&](Location location) {
    if (location.IsInLog()) return;
    if (!location.IsInDram() && Seeded(SeededBug::kPayloadStampsNotRenewed)) return;
    auto* const header = reinterpret_cast<RowHeader*>(tier_->Row(location));
    TouchHeat(header, LoadMark(header), epoch, 0);
  });
}

}  // namespace embank
