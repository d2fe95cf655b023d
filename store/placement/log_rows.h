// The rows of a class that are in the log alone. Finds a row's entry among those that may be the
// row's, and changes rows for which DRAM has no slot.
#ifndef EMBANK_STORE_PLACEMENT_LOG_ROWS_H_
#define EMBANK_STORE_PLACEMENT_LOG_ROWS_H_

#include <cstdint>
#include <span>

#include "base/function_ref.h"
#include "base/status_or.h"
#include "store/placement/class_rows.h"

namespace embank {

// Whether a whole record belongs to this row.
inline bool IsRecordOf(const RowId& id, std::span<const std::byte> record) {
  const RecordHeader header = LoadRecordHeader(record);
  return header.table == id.table && header.key == id.key;
}

// Returns a record as a row: vector and state behind the space for a row's header.
inline const std::byte* RowIn(std::span<const std::byte> record) {
  return record.data() + sizeof(RecordHeader) - sizeof(RowHeader);
}

// A row as it was found under the lock of its shard.
//   kFound: `match` is its entry; if that is in the log, `record` is its record.
//   kAbsent: there is no such row.
//   kDataLoss: the record cannot be read. `match` is the row's entry if the record's segment says
//   that the row owns it, and none if nobody knows the owner.
//   kUnavailable: as kDataLoss, of a record that cannot be read now: there is no descriptor for it.
struct FoundRow {
  Outcome outcome = Outcome::kAbsent;
  Match match = {};
  std::span<const std::byte> record = {};

  // Whether the row's vector and state are in device memory.
  bool HasDevicePayload() const {
    return outcome == Outcome::kFound && match.location().HasDevicePayload();
  }
};

class LogRows {
 public:
  // `rows` outlives it.
  explicit LogRows(ClassRows* rows) : store_(rows->store()), rows_(*rows) {}
  LogRows(const LogRows&) = delete;
  LogRows& operator=(const LogRows&) = delete;

  // Finds a row in any tier, and calls use(row) under the lock of its shard. Before that it reads
  // the records of entries that may be the row's into *scratch, without the lock. Then it compares
  // the entries again, and repeats all if they have changed. The caller holds no lock of a shard
  // and is no reader (EpochTable::Guard).
  using Use = FunctionRef<void(const FoundRow&)>;
  void Find(KeyIndex::Shard* shard, const RowId& id, RecordScratch* scratch, Use use) const
      EMBANK_LOCKS_EXCLUDED(shard->mutex);

  // ---- the caller holds the lock of the row's shard ----

  // Returns the heat of the row of this record. The lock may be shared.
  uint32_t HeatOfRecord(KeyHash hash, std::span<const std::byte> record) const;
  // Counts lookups of a row that stays in the log.
  void Touch(KeyHash hash, std::span<const std::byte> record, uint32_t touches);

  // Forgets the heat of a row beside its record. Where there is no log, it does nothing.
  void DropHeat(KeyHash hash);

  // Appends a row that is in no slot: a new one, or, with a match, the row of the match, whose
  // former record is dead then. `row` has the layout of DRAM. False: the log takes no row, or has
  // no space for it; nothing was changed.
  bool Append(KeyIndex::Shard* shard, const RowId& id, uint32_t heat, const std::byte* row,
              const Match& match) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

 private:
  class Candidates;

  FoundRow Read(const RowId& id, const Candidates& candidates, RecordScratch* scratch,
                size_t* found) const;

  const StoreContext& store_;
  ClassRows& rows_;
};

}  // namespace embank

#endif  // EMBANK_STORE_PLACEMENT_LOG_ROWS_H_
