// The dirty rows of a store, found by a walk over its index.
#ifndef EMBANK_TESTS_SUPPORT_DIRTY_ROWS_H_
#define EMBANK_TESTS_SUPPORT_DIRTY_ROWS_H_

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <set>

#include "store/placement/row_mover.h"
#include "store/store.h"
#include "tiers/dram/dirty_slots.h"

namespace embank::test {

struct DirtyRows {
  uint64_t bytes = 0;        // of their records
  std::set<uint64_t> slots;  // of their headers, as units of locations
};

// No batch is under way.
inline DirtyRows DirtyRowsOf(Store* store) {
  std::map<TableId, const Table*> tables;
  for (const Table* const table : store->catalog().List()) tables[table->id()] = table;
  DirtyRows dirty;
  if (tables.empty()) return dirty;
  const StoreContext& context = tables.begin()->second->store();
  for (uint32_t i = 0; i < KeyIndex::kShardCount; ++i) {
    constexpr int kShardHashBits = 64 - std::bit_width(KeyIndex::kShardCount - 1);
    const KeyHash first = KeyHash{i} << kShardHashBits;
    KeyIndex::Shard* const shard = context.index->shard(i);
    MutexLock lock(&shard->mutex);
    context.index->VisitHashes(shard, first, first + ((KeyHash{1} << kShardHashBits) - 1),
                               [&](Location location) {
                                 if (location.IsInLog()) return;
                                 const std::byte* const row = context.tier->Row(location);
                                 const auto* const header = reinterpret_cast<const RowHeader*>(row);
                                 const Table& table = *tables.at(TableOf(LoadIdentity(header)));
                                 if (!table.mover()->rows().IsDirty(location)) return;
                                 if (!dirty.slots.insert(DramSlotOf(location).units).second) return;
                                 dirty.bytes += RecordBytesOf(table.layout().row_bytes);
                               });
  }
  return dirty;
}

// A slot has its dirty bit if, and only if, its row is dirty. No batch is under way.
inline void ExpectDirtyBits(Store* store) {
  std::set<uint64_t> marked;
  DirtySlots walk(store->tier());
  std::array<Location, 100> slots;
  while (const size_t count = walk.Next(slots).count) {
    for (size_t i = 0; i < count; ++i) ASSERT_TRUE(marked.insert(slots[i].units).second);
  }
  ASSERT_EQ(marked, DirtyRowsOf(store).slots);
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_DIRTY_ROWS_H_
