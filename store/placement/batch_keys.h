// The set of keys of a batch. Their rows are the last to be forgotten for new rows of the batch.
#ifndef EMBANK_STORE_PLACEMENT_BATCH_KEYS_H_
#define EMBANK_STORE_PLACEMENT_BATCH_KEYS_H_

#include <cstddef>
#include <cstdint>

#include "base/memory/scratch.h"
#include "base/status.h"
#include "base/types.h"
#include "store/table/table.h"

namespace embank {

class BatchKeys {
 public:
  // Allocates space for the keys of a batch, if its table forgets: eight bytes of scratch for each
  // key. Borrows the table and the keys. kResourceExhausted.
  Status Allocate(const Table& table, KeySpan keys);
  // Collects the keys, if the table forgets. After Allocate.
  void Collect();

  // Whether the keys were collected, and this row's key is one of them. Thread-safe.
  bool Has(TableId table, Key key) const;

 private:
  // The places of the hash table per key: it is at most half full.
  static constexpr size_t kPlacesPerKey = 2;
  // A place without a position.
  static constexpr uint32_t kNone = 0xFFFFFFFF;

  // The place at which the search for a key begins.
  size_t PlaceOf(Key key) const {
    const auto low_half = static_cast<uint32_t>(table_->HashOf(key));
    return (uint64_t{low_half} * places_.values().size()) >> 32;
  }

  const Table* table_ = nullptr;  // nullptr: the table does not forget
  KeySpan keys_;
  Scratch<uint32_t, kPlacesPerKey * kInlineKeys> places_;  // position of a key, or kNone
};

}  // namespace embank

#endif  // EMBANK_STORE_PLACEMENT_BATCH_KEYS_H_
