// The rows of one row class: in slots of DRAM, dirty or clean, or in the log alone. Without a log
// all are in memory: a change is none of the class's business, and slots have notes only in tables
// that forget.
//
//   in DRAM, dirty   --- evicted: a record is appended, the entry moves --->   in the log
//   in DRAM, dirty   --- flushed for a checkpoint: a record is appended --->   in DRAM, clean
//   in DRAM, clean   --- evicted: the entry moves ------------------------->   in the log
//   in the log       --- promoted: a slot is taken, the entry moves ------->   in DRAM, clean
//
// An update makes a row in DRAM dirty, and its record dead. Each move is one store into the row's
// entry, under the lock of its shard: readers find the row where it was or where it is.
#ifndef EMBANK_STORE_PLACEMENT_CLASS_ROWS_H_
#define EMBANK_STORE_PLACEMENT_CLASS_ROWS_H_

#include <atomic>
#include <cstdint>
#include <span>

#include "base/status_or.h"
#include "store/gate/batch_gate.h"
#include "store/index/key_index.h"
#include "store/placement/heat_clock.h"
#include "store/placement/heat_sketch.h"
#include "store/placement/pinned_slots.h"
#include "store/placement/slot_orders.h"
#include "store/table/options.h"
#include "store/table/store_context.h"
#include "store/table/table_directory.h"
#include "tiers/dram/dram_tier.h"
#include "tiers/dram/slot_notes.h"
#include "tiers/logs/row_logs.h"

namespace embank {

class Table;

// A row that was seen in a slot.
struct RowInSlot {
  RowId id;
  Location slot;
};

class ClassRows {
 public:
  // `has_notes`: slots of the class have notes, as all have in a store with a log.
  ClassRows(const StoreContext& store, SlotClass slot_class, const RowClass& row_class,
            bool has_notes);
  ClassRows(const ClassRows&) = delete;
  ClassRows& operator=(const ClassRows&) = delete;

  // The bytes that the store charges for a class with notes.
  static constexpr uint64_t kFixedBytes = SlotOrders::kFixedBytes;

  const StoreContext& store() const { return store_; }
  SlotClass slot_class() const { return slot_class_; }
  uint32_t slot_bytes() const { return slot_bytes_; }
  uint32_t record_bytes() const { return RecordBytesOf(slot_bytes_); }
  const SlotNotes& notes() const { return notes_; }

  // ---- one row; the caller holds the lock of the row's shard ----

  // The note of a row in DRAM or in device memory.
  SlotNote& NoteAt(Location location) const {
    const SlotNotes& notes = location.IsInDram() ? notes_ : header_notes_;
    return notes.Of(notes.NumberOf(DramSlotOf(location)));
  }
  RowHeader* HeaderAt(Location slot) const {
    return reinterpret_cast<RowHeader*>(store_.tier->Row(slot));
  }
  SlotOrders& orders() { return orders_; }
  const PinnedSlots& pins() const { return pins_; }

  // Notes that the row in the slot is new, and its space in the log is reserved; or that it was
  // promoted, or comes from device memory, and has a record or is dirty as `former` says.
  void OnInsert(KeyIndex::Shard* shard, Location slot, const SlotNote* former = nullptr)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex) {
    if (has_notes_) Add(shard, slot, former);
  }
  // Call it before the row in the slot changes. False: the log has no space to reserve for it, and
  // the row must stay as it is.
  bool BeforeUpdate(Location slot) { return !has_log_ || MakeDirty(slot); }
  // Notes that the index has the row no more. Its slot still holds it, or its record is dead now.
  // No flush of a row in device memory is pending.
  void OnErase(KeyIndex::Shard* shard, const Table& table, Location location)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Appends the row in a slot to the log, for a checkpoint. The statuses of the log.
  StatusOr<Location> AppendSlot(Location slot, uint32_t checkpoint, bool lives) const;
  // Appends those of the rows that are still in their slots and whose flush for the checkpoint is
  // pending; they are clean then. At most kFlushedAtOnce rows of the shard. The status of the log.
  // Adds the number of rows to *flushed, if it is given.
  static constexpr size_t kFlushedAtOnce = 16;
  Status FlushPending(KeyIndex::Shard* shard, std::span<const RowInSlot> rows,
                      std::atomic<uint64_t>* flushed = nullptr)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  // The same for one row in device memory whose flush is pending. `payload` was read of it after
  // the barrier.
  Status FlushPending(Location location, std::span<const std::byte> payload);
  // Whether the checkpoint under way still needs the row as it is.
  bool IsFlushPending(Location location) const {
    if (!store_.gate->IsFlushing()) return false;
    const SlotNote& note = NoteAt(location);
    return note.IsDirty() && store_.gate->IsFlushPending(note.checkpoint());
  }
  // Appends a row that leaves device memory to the log; `payload` was read of it. The statuses of
  // the log.
  StatusOr<Location> AppendPayload(Location location, std::span<const std::byte> payload) const;
  bool IsDirty(Location slot) const { return NoteAt(slot).IsDirty(); }

  // Notes that the row in a slot leaves it for device memory, where its header is at `to`.
  void OnRaise(KeyIndex::Shard* shard, Location slot, Location to)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  // ---- thread-safe ----

  // Reserves space in the log for rows that will be dirty; the number that it has space for.
  uint64_t Reserve(uint64_t rows) { return store_.logs->Reserve(slot_class_, rows); }
  // Gives reserved space back.
  void Release(uint64_t rows) { store_.logs->Release(slot_class_, rows); }

  // The number of rows in slots of DRAM with notes; in the log alone.
  uint64_t rows_in_memory() const { return rows_in_memory_.load(std::memory_order_relaxed); }
  uint64_t rows_in_log() const { return rows_in_log_.load(std::memory_order_relaxed); }
  // So many rows of a table came to a tier of the logs, or left it. So many rows left DRAM.
  void CountInLog(const Table& table, Tier tier, int64_t change);
  void CountEvicted();

 private:
  void Add(KeyIndex::Shard* shard, Location slot, const SlotNote* former)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  void Mark(Location location, bool is_dirty) const;
  bool MakeDirty(Location slot);
  RowToLog RowOf(Location location, std::span<const std::byte> payload, uint32_t checkpoint,
                 bool lives) const;

  const StoreContext& store_;
  const SlotClass slot_class_;
  const uint32_t slot_bytes_;
  const bool has_log_;
  const bool has_notes_;
  SlotOrders orders_;
  const SlotNotes& notes_;
  const PinnedSlots pins_;
  const SlotNotes header_notes_;  // of rows in device memory
  // Every call reads the members above; batches change those below.
  alignas(64) std::atomic<uint64_t> rows_in_log_{0};
  std::atomic<uint64_t> rows_in_memory_{0};
};

// The table of the row in a slot. Under the lock of its shard.
Table& TableAt(const ClassRows& rows, Location slot);

// Notes the heat of a row that leaves memory for the log, if it was looked up since its record was
// written. No lookup adds to it any more. Under the lock of its shard.
void KeepHeat(const ClassRows& rows, KeyHash hash, Location location);

}  // namespace embank

#endif  // EMBANK_STORE_PLACEMENT_CLASS_ROWS_H_
