// Moves rows of one slot class between DRAM and the log: what leaves, what comes back, and what the
// log still has of rows in memory.
//
//   in memory, dirty   --- evicted: a record is appended, the entry moved --->   in the log
//   in memory, dirty   --- owed to a checkpoint: a record is appended ------->   in memory, clean
//   in memory, clean   --- evicted: the entry moved ------------------------->   in the log
//   in the log         --- brought up: a slot is taken, the entry moved ----->   in memory, clean
//
// A row that changes in memory is dirty from then on, and its record dead. Every move is one store
// into the row's entry, under its shard's lock: readers find the row where it was or where it is.
//
// A record keeps the heat that the row had when it was written. A clean row that was looked up
// since leaves its heat in the sketch (store/placement/heat_sketch.h), and has the larger of both
// when it returns: where the sketch is full, cold rows have their records'. A class has the pages
// that it got while there were any: one that comes when others have them all lives in the log,
// until those rows are erased.
#ifndef EMBANK_STORE_PLACEMENT_ROW_MOVER_H_
#define EMBANK_STORE_PLACEMENT_ROW_MOVER_H_

#include <atomic>
#include <cstdint>
#include <span>

#include "base/status_or.h"
#include "store/gate/batch_gate.h"
#include "store/index/key_index.h"
#include "store/placement/heat_clock.h"
#include "store/placement/heat_sketch.h"
#include "store/placement/slot_orders.h"
#include "store/table/options.h"
#include "store/table/table_directory.h"
#include "tiers/dram/dram_tier.h"
#include "tiers/dram/slot_notes.h"
#include "tiers/log/row_log.h"

namespace embank {

class Table;

// Whether a whole record is of this row.
inline bool IsRecordOf(const RowId& id, std::span<const std::byte> record) {
  const RecordHeader header = LoadRecordHeader(record);
  return header.table == id.table && header.key == id.key;
}

// A record laid out as a row: vector and state behind the room of a row's header.
inline const std::byte* RowIn(std::span<const std::byte> record) {
  return record.data() + sizeof(RecordHeader) - sizeof(RowHeader);
}

// What the movers of a store work with; all of it outlives them.
struct MoverParts {
  DramTier* tier;
  KeyIndex* index;
  RowLog* log;
  HeatClock* heat_clock;
  HeatSketch* heat_sketch;
  TableDirectory* tables;
  BatchGate* gate;
};

// A row that was seen in a slot.
struct RowInSlot {
  RowId id;
  Location slot;
};

class RowMover {
 public:
  // Of a class with notes.
  RowMover(const MoverParts& parts, SlotClass slot_class, const RowClass& row_class);

  // What the store charges.
  static constexpr uint64_t kFixedBytes = SlotOrders::kFixedBytes;

  SlotClass slot_class() const { return slot_class_; }
  RowLog* log() const { return parts_.log; }

  // ---- all of these under the lock of the shard that the row is in ----

  // A row was made in a slot, for which room was taken; is about to change there (false: the log
  // has no room for that, the row stays as it is); is gone from the index, but still whole in its
  // slot, or its record dead.
  void NoteMade(KeyIndex::Shard* shard, Location slot)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  bool NoteChanging(Location slot);
  void NoteGone(KeyIndex::Shard* shard, const Table& table, Location home)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Puts rows of the shard into the log that are owed to a checkpoint and still in their slots, of
  // at most kOwedAtOnce: they are clean then. The status of the log.
  static constexpr size_t kOwedAtOnce = 16;
  Status SaveOwed(KeyIndex::Shard* shard, std::span<const RowInSlot> rows)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Free slots for rows of the shard: the tier's, or those of rows that leave for them; how many.
  // None: what is in memory is in the hands of others, or the log takes no rows.
  size_t TakeSlots(KeyIndex::Shard* shard, std::span<Location> slots)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Empties a slot of a closed page (DramTier::ClosePage), if the row is still in it: the row takes
  // another slot of the class, for which the row that leaves memory next leaves; or it is that row.
  // False: the log takes no row. Its caller has a ticket.
  bool Vacate(KeyIndex::Shard* shard, const RowInSlot& row)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // A row's match, wherever it is, by way of *scratch: kFound; kAbsent; kDataLoss: it cannot be
  // read, *match is its entry all the same, or none where nobody knows whether the row is there.
  Outcome Find(KeyIndex::Shard* shard, const RowId& id, RecordScratch* scratch, Match* match) const
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // A row's match among entries that only records tell apart: of DRAM as it is, of the log with its
  // record in *scratch and *record; none: there is no such row. kDataLoss, kUnavailable: a record
  // cannot be read that is the row's, as its segment says; then *unread is its entry; or of which
  // nobody knows whose it is, then that is none.
  StatusOr<Match> Resolve(KeyIndex::Shard* shard, const RowId& id, RecordScratch* scratch,
                          std::span<const std::byte>* record, Match* unread) const
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // The heat of a row in the log, whose record that is. Under the lock, shared.
  uint32_t HeatInLog(KeyHash hash, std::span<const std::byte> record) const;
  // Counts lookups of a row that stays in the log. Under the lock.
  void TouchInLog(KeyHash hash, std::span<const std::byte> record, uint32_t touches);

  // Brings a row up whose match is of the log and stands, with `touches` lookups more; its match
  // now, or none: no slot is to be had.
  Match BringUp(KeyIndex::Shard* shard, const RowId& id, const Match& match,
                std::span<const std::byte> record, uint32_t touches)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // As BringUp, ahead of its use, and pinned, if one more row may be; unless it `may_evict`, into a
  // slot that is free already. False: no slot is to be had.
  bool BringUpAhead(KeyIndex::Shard* shard, const RowId& id, const Match& match,
                    std::span<const std::byte> record, bool may_evict)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  // Pins the row in a slot from now on, if one more that was there before may be.
  void Pin(Location slot);

  // Puts a row into the log that is in no slot: a new one, or, where a match is given, the one that
  // it names, whose record is dead then. `row` is laid out as in memory. False: the log takes none,
  // or has no room for it; nothing was changed.
  bool PutInLog(KeyIndex::Shard* shard, const RowId& id, uint32_t heat, const std::byte* row,
                const Match& match) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Writes a row's record, whose place was `from` when it was read, elsewhere, if it still is the
  // row's, in the log alone or in memory, clean. False: the log takes none. Its caller has a
  // ticket.
  bool Relocate(KeyIndex::Shard* shard, const RowId& id, Location from,
                std::span<const std::byte> record) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // What becomes of a row whose record was read, of a class that forgets: it has another record by
  // now, or is gone; is in memory; is spared; is forgotten.
  enum class Fate { kElsewhere, kInMemory, kSpared, kForgotten };
  // Forgets the row whose record is `from`, unless it is in memory or warm: looked up since it was
  // written or, under LFU, hotter than most that were seen before it. What is not forgotten is
  // written anew, with its heat, as long as no more rows are than go: then warm ones go, too. By
  // one thread at a time, which has a ticket.
  Fate ForgetOrSpare(KeyIndex::Shard* shard, const RowId& id, Location from,
                     std::span<const std::byte> record)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  // Forgets the row of the shard that would leave memory next. False: the shard has less than its
  // part of rows, or only pinned ones are next. Its caller has a ticket.
  bool ForgetColdest(KeyIndex::Shard* shard) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // ---- thread-safe ----

  bool forgets() const { return forgets_; }
  uint32_t record_bytes() const { return RecordBytesOf(slot_bytes_); }

  // Room in the log for rows that will be made (SpaceReservations::Reserve), or were not.
  // Thread-safe.
  uint64_t TakeRoom(uint64_t rows) { return parts_.log->space().Reserve(slot_class_, rows); }
  void GiveRoom(uint64_t rows) { parts_.log->space().Release(slot_class_, rows); }
  // Whether there is such room; cheap where there is plenty. Thread-safe.
  bool HasRoom(uint64_t rows) const {
    return parts_.log->space().CanReserve(slot_class_, RecordBytesOf(slot_bytes_), rows);
  }

  // Asks the cache for what BringUp needs first. Thread-safe. Always inlined: g++ 12 drops calls of
  // what only asks.
  [[gnu::always_inline]] void AskFor(KeyHash hash) const {
    __builtin_prefetch(parts_.index->ProbeOf(hash).bucket, 1);
    parts_.heat_sketch->AskFor(hash);
  }

  // Whether the row in a slot is dirty. Under the lock of its shard.
  bool IsDirty(Location slot) const { return notes_.Of(notes_.NumberOf(slot)).IsDirty(); }

  // Rows of the class that are in memory; in the log alone. Thread-safe.
  uint64_t rows_in_memory() const { return rows_in_memory_.load(std::memory_order_relaxed); }
  uint64_t rows_in_log() const { return rows_in_log_.load(std::memory_order_relaxed); }
  // How many slots rows have wanted so far for which others had to leave, or for which there was
  // none: how short of memory the class is. Thread-safe.
  uint64_t slots_wanted() const { return slots_wanted_.load(std::memory_order_relaxed); }
  // Whether it has wanted as many slots as a page has since EndWantedPage.
  bool HasWantedPage() const {
    const uint64_t ended = wanted_pages_end_.load(std::memory_order_relaxed);
    return slots_wanted() - ended >= DramTier::SlotsPerPage(slot_bytes_, true);
  }
  void EndWantedPage() { wanted_pages_end_.store(slots_wanted(), std::memory_order_relaxed); }
  // So many rows of a table came into the log, or went. Thread-safe.
  void CountInLog(const Table& table, int64_t change);

 private:
  // Written anew before as many have to be forgotten: two steps of compaction.
  static constexpr uint32_t kSparingsMax = 512;

  RowHeader* HeaderAt(Location slot) const {
    return reinterpret_cast<RowHeader*>(parts_.tier->Row(slot));
  }
  SlotOrders::Order& OrderOf(const KeyIndex::Shard* shard) { return orders_.Of(shard); }
  size_t EmptySlots(KeyIndex::Shard* shard, std::span<Location> slots)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  size_t Evict(KeyIndex::Shard* shard, std::span<Location> slots, bool* log_takes)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  bool Leave(KeyIndex::Shard* shard, Location slot) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  bool EvictOne(KeyIndex::Shard* shard, bool pinned_too, Location* slot, bool* log_takes)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  bool TakeSlotFor(KeyIndex::Shard* shard, Location* slot)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  void MoveToSlot(KeyIndex::Shard* shard, const RowInSlot& row, Location to)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  size_t TakeFromAnother(KeyIndex::Shard* shard, std::span<Location> slots, bool* log_takes);
  Match BringUpTo(Location slot, KeyIndex::Shard* shard, const RowId& id, const Match& match,
                  std::span<const std::byte> record, uint32_t touches)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  void AskForNext(uint32_t victim) const;
  bool IsPinned(Location slot) const;
  void CountIfUnused(Location slot) const;
  void Unpin(Location slot);
  Table& TableAt(Location slot) const;
  Match MatchAt(KeyIndex::Shard* shard, const RowId& id, Location location) const
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  void ForgetGained(Location slot) const;
  RowToLog RowOf(Location slot, uint32_t checkpoint, bool lives) const;
  StatusOr<Location> LogSlot(Location slot, uint32_t checkpoint, bool lives) const;
  void LeavePreImage(Location slot, uint32_t checkpoint) const;
  std::span<const std::byte> PayloadOf(const std::byte* row) const {
    return {row + sizeof(RowHeader), slot_bytes_ - sizeof(RowHeader)};
  }

  // Where the index has a row whose record is known: the entry of the log, or of memory, where it
  // is clean; neither: the row has another record, or is gone.
  struct Logged {
    Match match = {};
    SlotNote* note = nullptr;
    bool any() const { return match.any() || note != nullptr; }
  };
  Logged FindLogged(KeyIndex::Shard* shard, const RowId& id, Location from) const
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  bool WriteAnew(KeyIndex::Shard* shard, const RowId& id, Location from, const Logged& logged,
                 std::span<const std::byte> record, uint32_t heat)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  void ForgetSlot(KeyIndex::Shard* shard, Location slot)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  bool IsWarm(KeyHash hash, std::span<const std::byte> record) const;
  void NoteSeen(bool is_warm);
  bool Spare(KeyIndex::Shard* shard, const RowId& id, Location from, const Logged& logged,
             std::span<const std::byte> record, uint32_t heat)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  const MoverParts parts_;
  const SlotClass slot_class_;
  const uint32_t slot_bytes_;
  const bool forgets_;
  const bool by_heat_;
  SlotOrders orders_;
  const SlotNotes& notes_;
  // Apart from what every call reads.
  alignas(64) std::atomic<uint64_t> rows_in_log_{0};
  std::atomic<uint64_t> rows_in_memory_{0};
  std::atomic<uint64_t> slots_wanted_{0};
  std::atomic<uint64_t> wanted_pages_end_{0};
  alignas(64) std::atomic<uint32_t> next_giver_{0};  // the shard to be asked for slots by others
  // ForgetOrSpare's. Under LFU rows whose heat has more bits are warm, so that about half are.
  uint32_t warm_bits_ = 0;
  uint32_t seen_rows_ = 0;  // since it was set
  uint32_t warm_rows_ = 0;
  uint32_t sparings_ = kSparingsMax;  // how many more rows may be written anew
};

}  // namespace embank

#endif  // EMBANK_STORE_PLACEMENT_ROW_MOVER_H_
