// Moves pages of DRAM to where they are needed, in stores whose rows can leave memory: to the index
// when it has to grow, to the log when it needs memory for its segments, and from row classes whose
// rows are seldom used to those whose rows have to make space for each other.
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
#include "store/table/table_directory.h"
#include "tiers/dram/dram_tier.h"

namespace embank {

// The parts that a page mover works with; all of them outlive it.
struct PageMoverParts {
  MemoryBudget* budget;
  DramTier* tier;
  KeyIndex* index;
  RowLogs* logs;
  const TableDirectory* tables;
  BatchGate* gate;
};

// Thread-safe. Its callers hold no lock of a shard, no write guard, and are no readers.
class PageMover {
 public:
  explicit PageMover(const PageMoverParts& parts) : parts_(parts) {}
  PageMover(const PageMover&) = delete;
  PageMover& operator=(const PageMover&) = delete;

  // A row class whose pages may move. Before its first row. std::bad_alloc leaves it.
  void AddClass(RowMover* mover);

  // Before a batch that may make `rows` rows of a shard: gives the index memory for them, as long
  // as rows have more of it than a 16th of dram_bytes.
  void ReserveIndexMemory(KeyIndex::Shard* shard, uint64_t rows);

  // Before a batch that may make so many rows of a class dirty: gives the log memory for them.
  void ReserveLogMemory(const RowMover& mover, uint64_t rows);

  // Empties pages until so many bytes of the budget are free. False: no row can leave any more.
  bool FreeBytes(uint64_t bytes);

  // Empties a page and gives its memory back. False: no row can leave any more.
  bool EmptyOnePage();

  // After a batch of so many keys of a class: does the part of the work that they owe, when memory
  // is wanted or classes are out of balance.
  void PayDebt(RowMover* mover, uint64_t keys);

  uint64_t budget_bytes() const { return parts_.budget->limit_bytes(); }
  // Pages that were emptied; of them those that went to another class.
  uint64_t emptied_pages() const { return emptied_pages_.load(std::memory_order_relaxed); }
  uint64_t given_pages() const { return given_pages_.load(std::memory_order_relaxed); }

 private:
  // Looks at a page before it is given up: others may hold free slots of it for a moment.
  static constexpr uint32_t kLooksMax = 3;
  // A new row takes about 14 bytes of index, and the index asks an eighth of its rows ahead for a
  // quarter of its memory: 28 bytes for each. Twice that, so that it is there in time.
  static constexpr uint64_t kBytesPerKey = 64;
  // A class is given a page of another one whose rows stay in memory so many times as long.
  static constexpr uint64_t kLongerStay = 2;

  struct Class {
    RowMover* mover;
    uint64_t noted_wanted;   // slots_wanted when it was last looked at
    uint64_t recent_wanted;  // how many lately; older ones count half, a quarter, ...
  };

  uint64_t MissingBytes() const;
  bool EmptyPage(std::optional<SlotClass> slot_class) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool EmptyOnce(uint32_t page) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Balance() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const PageMoverParts parts_;
  std::atomic<uint64_t> credit_bytes_{0};  // what batches owe for memory that is missing
  std::atomic<uint64_t> emptied_pages_{0};
  std::atomic<uint64_t> given_pages_{0};
  Mutex mutex_;  // taken before locks of shards: one page is emptied at a time
  std::vector<Class> classes_ EMBANK_GUARDED_BY(mutex_);
};

}  // namespace embank

#endif  // EMBANK_STORE_PLACEMENT_PAGE_MOVER_H_
