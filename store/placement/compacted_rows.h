// Rows whose segments compaction empties: they are written anew, demoted to the log of a lower
// tier, or, in tables that forget, forgotten.
#ifndef EMBANK_STORE_PLACEMENT_COMPACTED_ROWS_H_
#define EMBANK_STORE_PLACEMENT_COMPACTED_ROWS_H_

#include <algorithm>
#include <cstdint>
#include <span>

#include "store/placement/class_rows.h"
#include "store/placement/log_rows.h"

namespace embank {

// The caller holds the lock of the row's shard and a write guard of the gate.
class CompactedRows {
 public:
  // Rows and log rows outlive it; they belong to the class.
  CompactedRows(ClassRows* rows, LogRows* log_rows, const RowClass& row_class)
      : store_(rows->store()),
        rows_(*rows),
        log_rows_(*log_rows),
        forgets_(row_class.on_full == OnFull::kForget),
        by_heat_(row_class.eviction == EvictionPolicy::kLfu) {}
  CompactedRows(const CompactedRows&) = delete;
  CompactedRows& operator=(const CompactedRows&) = delete;

  // Whether the class forgets rows when the log or the index is full. Without a lock.
  bool forgets() const { return forgets_; }

  // Appends a row's record again and marks the record at `from` dead, if that is still the row's:
  // of a row in the log alone, or of a clean row in DRAM. False: the log takes no row.
  bool Relocate(KeyIndex::Shard* shard, const RowId& id, Location from,
                std::span<const std::byte> record) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // The fate of a row whose record was read, in a class that forgets.
  enum class Fate {
    kElsewhere,  // the row has another record by now, or is gone
    kInMemory,   // DRAM has the row, too
    kSpared,     // the row is warm and was written anew
    kForgotten,
    kDemoted,
    kStuck,  // the row has to leave, and no log takes it
  };
  // Forgets the row whose record is at `from`, unless DRAM has it or it is warm: looked up since it
  // was written or, under LFU, hotter than most rows that were seen before it. A warm row is
  // written anew with its heat, as long as no more rows are spared than forgotten; then warm rows
  // are forgotten, too. One thread at a time.
  Fate ForgetOrSpare(KeyIndex::Shard* shard, const RowId& id, Location from,
                     std::span<const std::byte> record)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Demotes the row whose record is at `from` to the log of the lowest tier, unless DRAM has it or
  // it is warm: such a row is written anew in its log, as long as no more rows are than go. One
  // thread at a time.
  Fate DemoteOrSpare(KeyIndex::Shard* shard, const RowId& id, Location from,
                     std::span<const std::byte> record)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Forgets the row of the shard that is the next victim in DRAM. False: the shard has less than
  // its part of rows, or the next victims are pinned.
  bool ForgetColdest(KeyIndex::Shard* shard) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

 private:
  // Which rows of a log are warm, and how many may be spared for that.
  struct Sparing {
    // Rows that may be spared before as many have to go: two steps of compaction.
    static constexpr uint32_t kMax = 512;

    void CountSeen(bool is_warm);
    void CountGone() { left = std::min(left + 1, kMax); }

    // Under LFU rows whose heat has more bits are warm, so that about half are.
    uint32_t warm_bits = 0;
    uint32_t seen_rows = 0;  // since warm_bits was set
    uint32_t warm_rows = 0;
    uint32_t left = kMax;  // the number of rows that may be spared
  };

  // Finds the index's place of a row whose record is known: the entry of the log, or the note of a
  // clean row in DRAM. Neither: the row has another record, or is gone.
  struct Logged {
    Match match = {};
    SlotNote* note = nullptr;
    bool is_in_device = false;  // the note is that of a row in device memory
    bool any() const { return match.any() || note != nullptr; }
  };
  Logged FindLogged(KeyIndex::Shard* shard, const RowId& id, Location from) const
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  RowToLog CopyOf(const RowId& id, std::span<const std::byte> record, uint32_t heat) const;
  void Replace(KeyIndex::Shard* shard, const RowId& id, Location from, const Logged& logged,
               Location logged_at) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  bool WriteAnew(KeyIndex::Shard* shard, const RowId& id, Location from, const Logged& logged,
                 std::span<const std::byte> record, uint32_t heat)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  bool WriteBelow(KeyIndex::Shard* shard, const RowId& id, Location from, const Logged& logged,
                  std::span<const std::byte> record, uint32_t heat)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  bool Spare(Sparing* sparing, KeyIndex::Shard* shard, const RowId& id, Location from,
             const Logged& logged, std::span<const std::byte> record, uint32_t heat)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  void ForgetSlot(KeyIndex::Shard* shard, Location slot)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  bool IsWarm(const Sparing& sparing, KeyHash hash, std::span<const std::byte> record) const;

  const StoreContext& store_;
  ClassRows& rows_;
  LogRows& log_rows_;
  const bool forgets_;
  const bool by_heat_;
  Sparing forgetting_;  // ForgetOrSpare's
  Sparing demoting_;    // DemoteOrSpare's
};

}  // namespace embank

#endif  // EMBANK_STORE_PLACEMENT_COMPACTED_ROWS_H_
