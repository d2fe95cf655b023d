// Rows whose segments compaction empties: they are written anew, or, in tables that forget,
// forgotten.
#ifndef EMBANK_STORE_PLACEMENT_COMPACTED_ROWS_H_
#define EMBANK_STORE_PLACEMENT_COMPACTED_ROWS_H_

#include <cstdint>
#include <span>

#include "store/placement/class_rows.h"
#include "store/placement/log_rows.h"

namespace embank {

// The caller holds the lock of the row's shard and a ticket of the gate.
class CompactedRows {
 public:
  // Rows and log rows outlive it; they are of the class.
  CompactedRows(ClassRows* rows, LogRows* log_rows, const RowClass& row_class)
      : parts_(rows->parts()),
        rows_(*rows),
        log_rows_(*log_rows),
        forgets_(row_class.on_full == OnFull::kForget),
        by_heat_(row_class.eviction == EvictionPolicy::kLfu) {}
  CompactedRows(const CompactedRows&) = delete;
  CompactedRows& operator=(const CompactedRows&) = delete;

  // Whether the class forgets rows where the log or the index is full. Without a lock.
  bool forgets() const { return forgets_; }

  // Appends a row's record again and marks the record at `from` dead, if that still is the row's:
  // in the log alone, or behind a clean row in DRAM. False: the log takes no row.
  bool Relocate(KeyIndex::Shard* shard, const RowId& id, Location from,
                std::span<const std::byte> record) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // The fate of a row whose record was read, in a class that forgets.
  enum class Fate {
    kElsewhere,  // the row has another record by now, or is gone
    kInMemory,   // DRAM has the row, too
    kSpared,     // the row is warm and was written anew
    kForgotten,
  };
  // Forgets the row whose record is at `from`, unless DRAM has it or it is warm: looked up since it
  // was written or, under LFU, hotter than most rows that were seen before it. A row that is not
  // forgotten is written anew with its heat, as long as no more rows are than go; then warm rows
  // are forgotten, too. One thread at a time.
  Fate ForgetOrSpare(KeyIndex::Shard* shard, const RowId& id, Location from,
                     std::span<const std::byte> record)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Forgets the row of the shard that is the next victim in DRAM. False: the shard has less than
  // its part of rows, or the next victims are pinned.
  bool ForgetColdest(KeyIndex::Shard* shard) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

 private:
  // Rows that may be spared before as many have to be forgotten: two steps of compaction.
  static constexpr uint32_t kSparingsMax = 512;

  // The place where the index has a row whose record is known: the entry of the log, or the note of
  // a clean row in DRAM. Neither: the row has another record, or is gone.
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
  bool Spare(KeyIndex::Shard* shard, const RowId& id, Location from, const Logged& logged,
             std::span<const std::byte> record, uint32_t heat)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  void ForgetSlot(KeyIndex::Shard* shard, Location slot)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  bool IsWarm(KeyHash hash, std::span<const std::byte> record) const;
  void CountSeen(bool is_warm);

  const PlacementParts& parts_;
  ClassRows& rows_;
  LogRows& log_rows_;
  const bool forgets_;
  const bool by_heat_;
  // ForgetOrSpare's. Under LFU rows whose heat has more bits are warm, so that about half are.
  uint32_t warm_bits_ = 0;
  uint32_t seen_rows_ = 0;  // since warm_bits_ was set
  uint32_t warm_rows_ = 0;
  uint32_t sparings_ = kSparingsMax;  // the number of rows that may be spared
};

}  // namespace embank

#endif  // EMBANK_STORE_PLACEMENT_COMPACTED_ROWS_H_
