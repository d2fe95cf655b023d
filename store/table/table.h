// A table: the layout and first values of its rows, and its counters. It does not hold the rows:
// they are in the tiers, found through the index that all tables share.
#ifndef EMBANK_STORE_TABLE_TABLE_H_
#define EMBANK_STORE_TABLE_TABLE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "base/function_ref.h"
#include "base/hash.h"
#include "base/hash_keys.h"
#include "base/status.h"
#include "base/threads/clock.h"
#include "base/threads/executor.h"
#include "base/threads/mutex.h"
#include "base/threads/owner_process.h"
#include "store/index/key_index.h"
#include "store/table/call_counters.h"
#include "store/table/current_rule.h"
#include "store/table/initializer.h"
#include "store/table/options.h"
#include "store/table/pins.h"
#include "store/table/store_context.h"
#include "store/table/store_rows.h"
#include "tiers/dram/dram_tier.h"
#include "tiers/row/row_layout.h"

namespace embank {

class RowForgetter;
class RowMover;

// kFailedPrecondition: the store is read-only; the message is the one for a call that would change
// it.
Status OpenedReadOnly();

// Monotonic counts.
struct TableCounters {
  CallCounters calls;
  std::atomic<uint64_t> prefetched_rows{0};                     // promoted by prefetches
  std::array<std::atomic<uint64_t>, kTiers> prefetched_from{};  // of these, by tier
  std::atomic<uint64_t> unused_rows{0};  // promoted rows that left memory before they were used
  std::atomic<uint64_t> forgotten_rows{0};
  std::atomic<uint64_t> payload_lookups{0};    // positions that device memory answered
  std::atomic<uint64_t> lookup_batches{0};     // that TopkFlush counted
  std::atomic<uint64_t> looked_at_batches{0};  // of them those at the last look of TopkFlush
  // Those with keys that came as far as their steps, since the table was made. They are counted
  // inside a write guard, so that a checkpoint has either a call and its number or neither.
  std::atomic<uint64_t> gradient_calls{0};
};

class Table {
 public:
  // `options` are valid. `slot_class` has the slots of the row class. `gradient_calls` is what the
  // table has had before.
  Table(const StoreContext& store, TableId id, std::string name, const TableOptions& options,
        uint64_t store_seed, SlotClass slot_class, RowMover* mover, RowForgetter* forgetter,
        uint64_t gradient_calls);
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  const StoreContext& store() const { return store_; }
  // The process in which it can be used. A child process inherits the table itself, but none of its
  // rows.
  const OwnerProcess& owner() const { return owner_; }
  TableId id() const { return id_; }
  const std::string& name() const { return name_; }
  const RowLayout& layout() const { return layout_; }
  SlotClass slot_class() const { return slot_class_; }
  // Moves rows of the table's class.
  RowMover* mover() const { return mover_; }
  // Forgets rows of the table's class for new ones, in a store without a log; nullptr: new rows
  // without space are refused.
  RowForgetter* forgetter() const { return forgetter_; }
  RowId IdOf(Key key, KeyHash hash) const { return {id_, key, hash}; }
  KeyHash HashOf(Key key) const { return HashKey(table_hash_, key); }
  void HashesOf(KeySpan keys, KeyHash* hashes) const { HashKeys(table_hash_, keys, hashes); }

  // The update rule of a batch that begins now. Thread-safe, without a lock.
  UpdateRule rule() const { return rule_.Get(); }
  // The options as created, but with that rule. Thread-safe, without a lock.
  TableOptions options() const;
  // Calls change(rule) for a copy of the update rule, and takes it over if the status is OK and the
  // options are valid with it. Returns the status. Thread-safe.
  Status ChangeRule(FunctionRef<void(UpdateRule*)> change);

  // Writes a key's first vector to `vector`. Thread-safe.
  void InitializeVectorOf(Key key, std::byte* vector) const;
  // The seed by which gradient call number `call` rounds a key's row. Thread-safe.
  uint64_t RoundingSeedOf(Key key, uint64_t call) const {
    return RoundingSeed(RowSeed(table_seed_, key), call);
  }

  // kFailedPrecondition once the table was dropped. Thread-safe.
  Status CheckAlive() const;
  // Like CheckAlive; also kFailedPrecondition if the store is read-only. Thread-safe.
  Status CheckMayChange() const;
  void MarkDropped() { dropped_.store(true, std::memory_order_release); }

  uint64_t rows() const { return rows_.load(std::memory_order_relaxed); }
  // The number of rows in one tier other than DRAM; in any log alone.
  uint64_t rows_in(Tier tier) const {
    return rows_in_tiers_[static_cast<uint32_t>(tier)].load(std::memory_order_relaxed);
  }
  uint64_t rows_in_log() const { return rows_in(Tier::kPmem) + rows_in(Tier::kSsd); }
  void AddRowsIn(Tier tier, int64_t change) const {
    rows_in_tiers_[static_cast<uint32_t>(tier)].fetch_add(static_cast<uint64_t>(change),
                                                          std::memory_order_relaxed);
  }
  void AddRows(int64_t change) {
    rows_.fetch_add(static_cast<uint64_t>(change), std::memory_order_relaxed);
    store_.store_rows->Add(change);
  }

  // Whether the last large creating lookup made most of its rows. Then the next one is likely to.
  bool fills() const { return fills_.load(std::memory_order_relaxed); }
  void SetFills(bool fills) {
    if (fills != this->fills()) fills_.store(fills, std::memory_order_relaxed);
  }

  // The pins of the table's rows.
  Pins& pins() { return pins_; }

  // Counts a row that was forgotten.
  void CountForgotten() {
    AddRows(-1);
    counters_.forgotten_rows.fetch_add(1, std::memory_order_relaxed);
  }

  TableCounters& counters() const { return counters_; }

 private:
  const StoreContext& store_;
  const OwnerProcess owner_;
  const TableId id_;
  const std::string name_;
  const uint64_t table_hash_;
  const uint64_t table_seed_;
  const TableOptions options_;
  const RowLayout layout_;
  const SlotClass slot_class_;
  RowMover* const mover_;
  RowForgetter* const forgetter_;

  Mutex rule_mutex_;  // one change at a time
  CurrentRule rule_;
  std::atomic<bool> dropped_{false};
  // On cache lines apart from data that every batch reads.
  alignas(64) std::atomic<uint64_t> rows_{0};
  mutable std::array<std::atomic<uint64_t>, kTiers> rows_in_tiers_ = {};  // by tier
  std::atomic<bool> fills_{false};
  Pins pins_;
  mutable TableCounters counters_;
};

// The number of a table's rows in DRAM. Rows of a batch under way may be counted in another tier
// before they are counted at all.
inline uint64_t RowsInDram(const Table& table) {
  const uint64_t elsewhere = table.rows_in_log() + table.rows_in(Tier::kHbm);
  const uint64_t all = table.rows();
  return all - (elsewhere < all ? elsewhere : all);
}

}  // namespace embank

#endif  // EMBANK_STORE_TABLE_TABLE_H_
