// Rows of a batch that are in the log: noted while the index is looked at, then read as one list.
#ifndef EMBANK_STORE_BATCH_LOGGED_ROWS_H_
#define EMBANK_STORE_BATCH_LOGGED_ROWS_H_

#include <cstdint>
#include <span>

#include "base/function_ref.h"
#include "base/memory/scratch.h"
#include "base/status.h"
#include "store/batch/batch.h"

namespace embank {

// The result of reading a row from the log. kFound: `row` has the row's layout in memory (space for
// a header, vector, state), `tier` is where it was, and `heat` is set if it was asked for. kAbsent:
// the entry was another row's. kDataLoss, kUnavailable: the row cannot be read.
struct LoggedRow {
  Outcome outcome;
  const std::byte* row;
  uint32_t heat;
  Tier tier = Tier::kSsd;
};

// Which rows are promoted to DRAM when they are read: those that are only looked up, if they are
// hot enough for it; those that change next, all.
enum class PromotedRows { kNone, kHot, kAll };

// The use of rows that are read: how often they count as looked up, which of them are promoted, and
// whether their heat is asked for.
struct LoggedRowUse {
  uint32_t touches;  // times those of the position in its batch
  PromotedRows promoted;
  bool tells_heat = false;
};

class LoggedRows {
 public:
  // Allocates space for the rows of the batch that can be in a log. kResourceExhausted.
  Status Allocate(const Batch& batch);

  // The part of the positions from `begin` on, for one thread.
  class Part {
   public:
    Part(LoggedRows* rows, const Batch& batch, uint32_t begin)
        : batch_(batch),
          positions_(rows->positions_.values().subspan(rows->FirstOf(begin))),
          locations_(rows->locations_.values().subspan(rows->FirstOf(begin))) {}

    void Add(uint32_t position, Location location) {
      positions_[count_] = position;
      locations_[count_++] = location;
    }
    bool empty() const { return count_ == 0; }

    // Calls visit(position, row) for each, in any order. Takes locks of shards; inside no
    // EpochTable::Guard.
    using Visit = FunctionRef<void(uint32_t, const LoggedRow&)>;
    void Read(LoggedRowUse use, Visit visit);

   private:
    LoggedRowUse OfPosition(LoggedRowUse use, uint32_t position) const {
      use.touches *= batch_.TouchesOf(position);
      return use;
    }
    void Promote(const RowId& id, Location from, std::span<const std::byte> record,
                 LoggedRowUse use);
    bool UpdateHeat(const RowId& id, Location from, std::span<const std::byte> record,
                    uint32_t* heat) const;
    void ReadAlone(const RowId& id, uint32_t position, LoggedRowUse use, Visit visit);

    const Batch& batch_;
    const std::span<uint32_t> positions_;
    const std::span<Location> locations_;
    size_t count_ = 0;
  };

 private:
  // Without a log there is no space, and nothing is added.
  size_t FirstOf(uint32_t begin) const { return positions_.values().empty() ? 0 : begin; }

  Scratch<uint32_t, kInlineKeys> positions_;
  Scratch<Location, kInlineKeys> locations_;
};

// Promotes the rows of a batch that are in the log, as one list, before a writer takes locks. A
// writer defers rows that are in the log nevertheless (store/batch/row_for_update.h), so that only
// speed depends on this.
void PromoteRows(const Batch& batch);

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_LOGGED_ROWS_H_
