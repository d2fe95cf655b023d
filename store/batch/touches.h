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

  // The rows that are added next are those of another batch of the store, which outlives this.
  void Use(const Batch& batch) { batch_ = &batch; }
  void Add(uint32_t position, const RowSeen& row) {
    if (count_ == touches_.size()) Flush();
    touches_[count_++] = {row.header, WordOf(row.mark),
                          TouchedWord(row.mark, now_, batch_->TouchesOf(position)), batch_,
                          position};
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
      const uint32_t touches = touch.batch->TouchesOf(touch.position);
      if (!is_same || !TouchHeat(touch.header, MarkOf(word), now_, touches)) {
        TouchAnew(*touch.batch, touch.position, touches);
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
    const Batch* batch;
    uint32_t position;
  };

  // The row was written since it was read; or it was erased, and its heat is dropped. If its key
  // was created again meanwhile, the new row gets the heat: only the key identifies a row.
  void TouchAnew(const Batch& batch, uint32_t position, uint32_t touches) const {
    const Key key = batch.keys()[position];
    const Table& table = batch.table();
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
};

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

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_TOUCHES_H_
