// Moves pages of DRAM in stores whose rows can leave memory: to the index when it has to grow, to
// the log when it needs memory for its segments, and from row classes whose rows are seldom used to
// those whose rows are evicted often.
//
//   page of a class  --- its rows leave, or move to slots of rows that leave --->   empty
//   empty page       --- its memory goes back to the budget ------------------->   index, log
//   empty page       --- given to another class ------------------------------->   its rows
//
// A page is emptied between batches or before one, never under a lock of a shard that its caller
// holds: rows of all shards are in it.
#ifndef EMBANK_STORE_PLACEMENT_PAGE_MOVER_H_
#define EMBANK_STORE_PLACEMENT_PAGE_MOVER_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/function_ref.h"
#include "base/memory/memory.h"
#include "base/threads/mutex.h"
#include "store/gate/batch_gate.h"
#include "store/index/key_index.h"
#include "store/placement/row_mover.h"
#include "store/table/store_context.h"
#include "store/table/table_directory.h"
#include "tiers/dram/dram_tier.h"

namespace embank {

// Thread-safe. Its callers hold no lock of a shard, no write guard, and are no readers.
class PageMover {
 public:
  explicit PageMover(const StoreContext& store) : store_(store) {}
  PageMover(const PageMover&) = delete;
  PageMover& operator=(const PageMover&) = delete;

  // Adds a row class whose pages may move, before its first row. Throws std::bad_alloc.
  void AddClass(RowMover* mover);

  // Call it before a batch that may create rows of a shard, which are among its promised rows.
  // Gives the index memory for all promised rows, as long as rows have more memory than a 16th of
  // dram_bytes. False: they have no more, and the shard has no places for all promised rows.
  bool ReserveIndexMemory(KeyIndex::Shard* shard);

  // Call it before a batch that may make so many rows of a class dirty. Gives the log memory for
  // them.
  void ReserveLogMemory(const RowMover& mover, uint64_t rows);

  // Empties pages until so many bytes of the budget are free. False: no row can leave any more.
  bool FreeBytes(uint64_t bytes);

  // Empties a page and gives its memory back. False: no row can leave any more.
  bool EmptyOnePage();

  // Empties a few pages at most, until one goes to a class, though the index and the log may want
  // its memory. False: no row can leave any more, or other rows have taken each of them.
  bool GivePage(SlotClass slot_class);

  // Call it after a batch of so many keys of a class. Does the keys' part of the work, when memory
  // is wanted or classes are out of balance.
  void PayDebt(RowMover* mover, uint64_t keys);

  uint64_t budget_bytes() const { return store_.budget->limit_bytes(); }
  // The number of pages that were emptied; of those that went to another class.
  uint64_t emptied_pages() const { return emptied_pages_.load(std::memory_order_relaxed); }
  uint64_t given_pages() const { return given_pages_.load(std::memory_order_relaxed); }

 private:
  // Looks at a page so often before it gives up: other threads may hold free slots of it for a
  // moment.
  static constexpr uint32_t kLooksMax = 3;
  // A new row takes about 14 bytes of index, and the index wants a quarter more memory an eighth of
  // its rows ahead: 28 bytes for each row. Twice that is in time.
  static constexpr uint64_t kBytesPerKey = 64;
  // A class gets a page of another class whose rows stay in memory so many times as long.
  static constexpr uint64_t kLongerStay = 2;

  struct Class {
    RowMover* mover;
    uint64_t noted_wanted;   // slots_wanted at the last look
    uint64_t recent_wanted;  // slots wanted lately; older ones count half, a quarter, ...
  };

  uint64_t MissingBytes() const;
  bool EmptyPage(std::optional<SlotClass> slot_class) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool EmptyOnce(uint32_t page) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Balance() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const StoreContext& store_;
  std::atomic<uint64_t> credit_bytes_{0};  // the debt of batches for missing memory
  std::atomic<uint64_t> emptied_pages_{0};
  std::atomic<uint64_t> given_pages_{0};
  Mutex mutex_;  // taken before locks of shards: one page is emptied at a time
  std::vector<Class> classes_ EMBANK_GUARDED_BY(mutex_);
};

}  // namespace embank

#endif  // EMBANK_STORE_PLACEMENT_PAGE_MOVER_H_
