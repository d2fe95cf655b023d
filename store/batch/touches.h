// Heat and recent use of the rows that a lookup has read without a lock, noted and then counted.
// An order of LRU is touched under locks, after all rows of a part have been read.
#ifndef EMBANK_STORE_BATCH_TOUCHES_H_
#define EMBANK_STORE_BATCH_TOUCHES_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "store/batch/batch.h"
#include "store/batch/key_group.h"
#include "store/batch/row_group.h"
#include "store/placement/heat_clock.h"
#include "store/placement/row_mover.h"
#include "store/table/table.h"
#include "tiers/row/row_header.h"

namespace embank {

// Counts the heat of rows that were read without a lock, many at a time. An exchange waits for all
// writes before it, also for a row's answer that is on its way to memory.
class HeatTouches {
 public:
  explicit HeatTouches(const Batch& batch)
      : batch_(&batch), now_(batch.table().parts().heat_clock->now()) {}

  // The rows that are added next are those of another batch of the store.
  void Use(const Batch& batch) {
    if (batch_ == &batch) return;
    Flush();
    batch_ = &batch;
  }
  void Add(uint32_t position, const RowSeen& row) {
    if (count_ == touches_.size()) Flush();
    touches_[count_] = {row.header, WordOf(row.mark),
                        TouchedWord(row.mark, now_, batch_->TouchesOf(position))};
    positions_[count_++] = position;
  }
  // Inside the guard under which the rows were seen.
  void Flush() {
    for (size_t i = 0; i < count_; ++i) {
      const Touch& touch = touches_[i];
      uint64_t word = touch.seen;
      if (std::atomic_ref(*MarkWord(touch.header))
              .compare_exchange_strong(word, touch.touched, std::memory_order_relaxed)) {
        continue;
      }
      // Mostly another thread has touched it.
      const bool is_same = MarkOf(word).identity == MarkOf(touch.seen).identity;
      const uint32_t touches = batch_->TouchesOf(positions_[i]);
      if (!is_same || !TouchHeat(touch.header, MarkOf(word), now_, touches)) {
        TouchAnew(positions_[i], touches);
      }
    }
    count_ = 0;
  }

 private:
  // The second word of a header, before and after, so that an exchange waits for nothing else.
  struct Touch {
    RowHeader* header;
    uint64_t seen;
    uint64_t touched;
  };

  // The row was written since it was read; or it was erased, and its heat is dropped. If its key
  // was created again meanwhile, the new row gets the heat: only the key identifies a row.
  void TouchAnew(uint32_t position, uint32_t touches) const {
    const Key key = batch_->keys()[position];
    const Table& table = batch_->table();
    RowSeen row;
    do {
      Match match = {};
      row = FindAndReadRow(
          table, key, table.HashOf(key), [](const RowWatch& watch) { return watch.IsCurrent(); },
          &match);
    } while (row.header != nullptr && !TouchHeat(row.header, row.mark, now_, touches));
  }

  const Batch* batch_;
  const HeatEpoch now_;
  size_t count_ = 0;
  std::array<Touch, 64> touches_;
  std::array<uint32_t, 64> positions_;
};

// Rows whose links are on their way to the cache at once.
inline constexpr size_t kTouchedAtOnce = 64;

// The positions of one part of a batch that found their rows in memory. It touches these rows
// together: one lock for each shard and part, and within a shard in the order of the positions.
class RecentUses {
 public:
  // The part begins at position `begin`. `orders` is that of RowMover::OrdersToTouch.
  RecentUses(const Batch& batch, uint32_t begin, SlotOrders* orders)
      : batch_(batch), begin_(begin), orders_(*orders) {}
  RecentUses(const RecentUses&) = delete;
  RecentUses& operator=(const RecentUses&) = delete;

  // The rows of `count` positions were found. At most Batch::kPartKeys in all, in rising order.
  void Add(uint32_t position, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      found_[count_++] = static_cast<uint16_t>(position - begin_ + i);
    }
  }
  // Touches the rows that are still in memory. Takes locks of shards; inside no EpochTable::Guard.
  void Touch();

 private:
  static_assert(Batch::kPartKeys <= uint32_t{1} << 16);

  Key KeyOf(uint16_t offset) const { return batch_.keys()[begin_ + offset]; }
  void TouchShard(KeyIndex::Shard* shard, std::span<const uint16_t> offsets)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  const Batch& batch_;
  const uint32_t begin_;
  SlotOrders& orders_;
  size_t count_ = 0;
  std::array<uint16_t, Batch::kPartKeys> found_;  // positions, from begin_ on
};

inline void RecentUses::Touch() {
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
    KeyIndex::Shard* const shard = table.parts().index->shard(number);
    if (shard_offsets(number).empty()) continue;
    if (shard->mutex.TryLock()) {
      TouchShard(shard, shard_offsets(number));
      shard->mutex.Unlock();
    } else {
      passed_by[passed_by_count++] = static_cast<uint8_t>(number);
    }
  }
  for (const uint8_t number : std::span(passed_by).first(passed_by_count)) {
    KeyIndex::Shard* const shard = table.parts().index->shard(number);
    MutexLock lock(&shard->mutex);
    TouchShard(shard, shard_offsets(number));
  }
  count_ = 0;
}

// The rows may have moved since they were read, so that they are found anew; their buckets and
// headers are still in the cache.
inline void RecentUses::TouchShard(KeyIndex::Shard* shard, std::span<const uint16_t> offsets) {
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
          const Match match = table.parts().index->Confirm(guess, table.IdOf(KeyOf(some[i]), hash));
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

#endif  // EMBANK_STORE_BATCH_TOUCHES_H_
