// Makes the rows that a shard group needs: a slot, a place in the index, the header.
#ifndef EMBANK_STORE_NEW_ROWS_H_
#define EMBANK_STORE_NEW_ROWS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "store/table.h"

namespace embank {

// Lives for one shard group, under the shard's lock. Takes slots from the tier a few at a time and
// gives back on destruction what was not used.
class NewRows {
 public:
  // `rows_max`: no more than so many rows will be asked for.
  NewRows(Table* table, KeyIndex::Shard* shard, size_t rows_max)
      : table_(table), shard_(shard), rows_left_(rows_max) {}
  ~NewRows();
  NewRows(const NewRows&) = delete;
  NewRows& operator=(const NewRows&) = delete;

  // Adds the absent row `id` with heat `heat`, and returns its bytes; the caller writes vector and
  // state before it lets go of the lock. nullptr: no room, nothing was changed.
  std::byte* Add(const RowId& id, uint32_t heat);

 private:
  static constexpr size_t kSlotsAtOnce = 32;

  bool TakeSlots();

  Table* const table_;
  KeyIndex::Shard* const shard_;
  size_t rows_left_;
  int64_t rows_added_ = 0;
  std::array<Location, kSlotsAtOnce> slots_;
  size_t slots_taken_ = 0;
};

}  // namespace embank

#endif  // EMBANK_STORE_NEW_ROWS_H_
