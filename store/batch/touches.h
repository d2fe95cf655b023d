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
      : batch_(&batch), now_(batch.table().store().heat_clock->now()) {}

  // The rows that are added next are those of another batch of the store, which outlives this.
  void Use(const Batch& batch) { batch_ = &batch; }
  // The rows of this position and those behind it. At most kGroupKeys.
  void Add(uint32_t position, const RowWatches& rows) {
    if (rows.size() == 0) return;
    EMBANK_CHECK(rows.size() <= kGroupKeys);
    if (count_ + rows.size() > headers_.size()) Flush();
    BeginRun(position);
    if (rows.size() == kGroupKeys) {
      std::copy_n(rows.headers, kGroupKeys, &headers_[count_]);
      std::copy_n(rows.marks, kGroupKeys, &marks_[count_]);
    } else {
      for (size_t i = 0; i < rows.size(); ++i) Note(count_ + i, {rows.headers[i], rows.marks[i]});
    }
    count_ += static_cast<uint32_t>(rows.size());
  }
  void Add(uint32_t position, const RowSeen& row) {
    if (count_ == headers_.size()) Flush();
    BeginRun(position);
    Note(count_++, row);
  }
  // Inside the guard under which the rows were seen.
  [[gnu::noinline]] void Flush() {
    for (size_t run = 0; run < run_count_; ++run) {
      const uint32_t end = run + 1 < run_count_ ? runs_[run + 1].begin : count_;
      TouchRun(runs_[run], end);
    }
    count_ = 0;
    run_count_ = 0;
  }

 private:
  static constexpr size_t kRowsMax = 4 * kGroupKeys;

  // Rows of positions of a batch next to each other, from number `begin` on.
  struct Run {
    const Batch* batch;
    uint32_t position;
    uint32_t begin;
  };

  void Note(size_t number, const RowSeen& row) {
    headers_[number] = row.header;
    marks_[number] = row.mark;
  }
  void BeginRun(uint32_t position) {
    if (run_count_ != 0) {
      const Run& last = runs_[run_count_ - 1];
      if (last.batch == batch_ && last.position + (count_ - last.begin) == position) return;
    }
    runs_[run_count_++] = {batch_, position, count_};
  }
  void TouchRun(const Run& run, size_t end) const {
    // A local copy: the compiler must assume that an exchange changes the original.
    const HeatEpoch now = now_;
    const auto touch = [&](size_t i, uint32_t touches) __attribute__((always_inline)) {
      if (TouchHeat(headers_[i], marks_[i], now, touches)) return;
      TouchAnew(*run.batch, PositionOf(run, i), touches);
    };
    if (!run.batch->has_touches()) {
      for (size_t i = run.begin; i < end; ++i) touch(i, 1);
      return;
    }
    for (size_t i = run.begin; i < end; ++i) touch(i, run.batch->TouchesOf(PositionOf(run, i)));
  }
  static uint32_t PositionOf(const Run& run, size_t i) {
    return run.position + (static_cast<uint32_t>(i) - run.begin);
  }
  // The row was written since it was read; or it was erased, and its heat is dropped. If its key
  // was created again meanwhile, the new row gets the heat: only the key identifies a row.
  [[gnu::noinline]] void TouchAnew(const Batch& batch, uint32_t position, uint32_t touches) const {
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
  uint32_t count_ = 0;
  uint32_t run_count_ = 0;
  std::array<RowHeader*, kRowsMax> headers_;
  std::array<RowMark, kRowsMax> marks_;
  std::array<Run, kRowsMax> runs_;
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
