// A row in the hands of a writer, under its shard's lock, wherever it is.
#ifndef EMBANK_STORE_HELD_ROW_H_
#define EMBANK_STORE_HELD_ROW_H_

#include "store/table.h"

namespace embank {

// For one position, under the lock. A row in the log comes up to memory; where that has no slot for
// it, it is changed in an image, which goes into the log.
class HeldRow {
 public:
  // `match` is what the index confirms.
  HeldRow(const Table& table, KeyIndex::Shard* shard, const RowId& id, const Match& match)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex)
      : table_(table), shard_(shard), id_(id), match_(match) {
    if (!match.any()) return;
    outcome_ = Outcome::kFound;
    if (match.location().tier() == Tier::kDram) {
      row_ = table.parts().tier->Row(match.location());
    } else {
      FetchFromLog();
    }
  }
  HeldRow(const HeldRow&) = delete;
  HeldRow& operator=(const HeldRow&) = delete;

  // kFound; kAbsent: there is no such row; kDataLoss: its record cannot be read.
  Outcome outcome() const { return outcome_; }
  // Of a row that is found: to be looked at.
  std::byte* row() { return row_; }
  // Of a row that is found: to be changed there (tiers/row_write.h), and committed.
  std::byte* RowToChange() {
    if (table_.mover() != nullptr && row_ != image_.bytes) {
      table_.mover()->NoteChanging(match_.location());
    }
    return row_;
  }

  // After a change; kFound, or kRefused: the log takes nothing, the row is as it was.
  Outcome Commit() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (table_.mover() == nullptr || row_ != image_.bytes) return Outcome::kFound;
    return table_.mover()->PutInLog(shard_, id_, heat_, row_, match_) ? Outcome::kFound
                                                                      : Outcome::kRefused;
  }

 private:
  void FetchFromLog() ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard_->mutex);

  const Table& table_;
  KeyIndex::Shard* const shard_;
  const RowId id_;
  Match match_;
  Outcome outcome_ = Outcome::kAbsent;
  std::byte* row_ = nullptr;
  uint32_t heat_ = 0;
  RowImage image_;
};

}  // namespace embank

#endif  // EMBANK_STORE_HELD_ROW_H_
