#include "store/batch/touches.h"

#include "base/seeded_bug.h"

namespace embank {
namespace {

// Rows whose links are on their way to the cache at once.
constexpr size_t kTouchedAtOnce = 64;

}  // namespace

void RecentUses::Touch() {
  EMBANK_CHECK(count_ <= found_.size());
  if (count_ == 0) return;
  const Table& table = batch_.table();
  const auto shard_of = [&](uint16_t offset) {
    return KeyIndex::ShardOf(table.HashOf(KeyOf(offset)));
  };
  const std::span<const uint16_t> found = std::span(found_).first(count_);
  std::array<uint32_t, KeyIndex::kShardCount> ends{};
  for (const uint16_t offset : found) ++ends[shard_of(offset)];
  uint32_t begin = 0;
  for (uint32_t& end : ends) {
    begin += end;
    end = begin - end;  // where the shard's begin, until all are in their places
  }
  EMBANK_CHECK(begin == count_);
  std::array<uint16_t, Batch::kPartKeys> by_shard;
  for (const uint16_t offset : found) by_shard[ends[shard_of(offset)]++] = offset;
  // From the first position's shard on, and past locks that others have: batches that run at once
  // do not wait for each other from lock to lock.
  const uint32_t first = shard_of(found.front());
  std::array<uint8_t, KeyIndex::kShardCount> passed_by;
  size_t passed_by_count = 0;
  const auto shard_offsets = [&](uint32_t number) {
    const uint32_t shard_begin = number == 0 ? 0 : ends[number - 1];
    return std::span<const uint16_t>(by_shard).subspan(shard_begin, ends[number] - shard_begin);
  };
  for (uint32_t i = 0; i < KeyIndex::kShardCount; ++i) {
    const uint32_t number = (first + i) % KeyIndex::kShardCount;
    KeyIndex::Shard* const shard = table.store().index->shard(number);
    if (shard_offsets(number).empty()) continue;
    if (shard->mutex.TryLock()) {
      TouchShard(shard, shard_offsets(number));
      shard->mutex.Unlock();
    } else {
      passed_by[passed_by_count++] = static_cast<uint8_t>(number);
    }
  }
  for (const uint8_t number : std::span(passed_by).first(passed_by_count)) {
    KeyIndex::Shard* const shard = table.store().index->shard(number);
    MutexLock lock(&shard->mutex);
    TouchShard(shard, shard_offsets(number));
  }
  count_ = 0;
}

// The rows may have moved since they were read, so that they are found anew; their buckets and
// headers are still in the cache.
void RecentUses::TouchShard(KeyIndex::Shard* shard, std::span<const uint16_t> offsets) {
  const Table& table = batch_.table();
  SlotOrders::Order& order = orders_.Of(shard);
  std::array<uint32_t, kTouchedAtOnce> slots;
  for (size_t begin = 0; begin < offsets.size(); begin += kTouchedAtOnce) {
    const auto some = offsets.subspan(begin, std::min(kTouchedAtOnce, offsets.size() - begin));
    size_t count = 0;
    ForEachGuess(
        table, sizeof(RowHeader), some.size(),
        [&](size_t i) { return table.HashOf(KeyOf(some[i])); },
        [&](size_t i, KeyHash hash, const Match& guess) {
          const Match match = table.store().index->Confirm(guess, table.IdOf(KeyOf(some[i]), hash));
          if (!match.any() || !match.location().IsInDram()) return;
          const uint32_t slot = orders_.notes().NumberOf(match.location());
          __builtin_prefetch(&orders_.Links(slot), 1);
          slots[count++] = slot;
        });
    for (size_t i = 0; i < count; ++i) order.PrefetchTouch(slots[i]);
    for (size_t i = Seeded(SeededBug::kTouchLost) ? 1 : 0; i < count; ++i) order.Touch(slots[i]);
  }
}

}  // namespace embank
