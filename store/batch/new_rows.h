// Creates the rows that a shard group needs (a slot, its bytes, a place in the index), and frees
// those that it erases.
#ifndef EMBANK_STORE_BATCH_NEW_ROWS_H_
#define EMBANK_STORE_BATCH_NEW_ROWS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/function_ref.h"
#include "store/placement/batch_keys.h"
#include "store/placement/row_forgetter.h"
#include "store/table/table.h"

namespace embank {

// Lives for one shard group, under the shard's lock. Takes slots from the tier a few at a time, and
// returns unused ones on destruction.
class NewRows {
 public:
  static constexpr size_t kSlotsAtOnce = 32;

  // rows_max: the largest number of rows that will be added. keys: the keys of the batch, whose
  // rows a table that forgets forgets last.
  NewRows(Table* table, KeyIndex::Shard* shard, size_t rows_max, const BatchKeys* keys = nullptr)
      : table_(table), shard_(shard), rows_left_(rows_max) {
    if (table->forgetter() != nullptr) turn_.emplace(table->forgetter(), shard, keys);
  }
  ~NewRows();
  NewRows(const NewRows&) = delete;
  NewRows& operator=(const NewRows&) = delete;

  // Adds the absent row `id` with heat `heat`; fill(image) writes vector and state
  // (tiers/row/row_write.h). False: no space, nothing was changed.
  bool Add(const RowId& id, uint32_t heat, FunctionRef<void(std::byte*)> fill);
  // The number of refusals because the index had no place.
  uint64_t without_place() const { return without_place_; }

 private:
  bool TakeSlots();
  bool ForgetOne();
  bool MakePlace(KeyHash hash);
  bool ReservePlace(KeyHash hash);
  void NoteRowsToForget();
  void NoteAdded();
  bool AddInLog(const RowId& id, uint32_t heat, FunctionRef<void(std::byte*)> fill);

  Table* const table_;
  KeyIndex::Shard* const shard_;
  size_t rows_left_;
  int64_t rows_added_ = 0;
  std::array<Location, kSlotsAtOnce + 1> slots_;  // one more by MakePlace
  size_t slots_taken_ = 0;
  size_t slots_wanted_ = 1;  // the number of slots to take next time
  bool no_slots_ = false;    // set so that a full store is asked once per group
  bool is_full_ = false;     // nothing takes a further row of the group
  uint64_t without_place_ = 0;
  uint64_t rows_to_forget_ = 0;             // with a path, for the row that is being added
  std::optional<RowForgetter::Turn> turn_;  // of a table that forgets
};

// Frees the slots of rows that the index no longer has, and subtracts them from their table's
// count, rows in the log too.
class FreedRows {
 public:
  explicit FreedRows(Table* table) : table_(table) {}
  ~FreedRows() { Return(); }
  FreedRows(const FreedRows&) = delete;
  FreedRows& operator=(const FreedRows&) = delete;

  // Adds a row of the shard, from memory or the log.
  void Add(KeyIndex::Shard* shard, Location location) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

 private:
  void Return();

  Table* const table_;
  std::array<Location, 64> slots_;
  size_t count_ = 0;
};

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_NEW_ROWS_H_
