#include "store/packed/packed_prefetch.h"

#include <algorithm>
#include <vector>

#include "base/memory/scratch.h"
#include "base/status_macros.h"
#include "store/batch/prefetch.h"
#include "store/packed/table_groups.h"

namespace embank {
namespace {

// The keys of all groups whose rows have the slots of this table's.
uint64_t KeysBeside(const Table& table, std::span<const TableGroup> groups) {
  uint64_t keys = 0;
  for (const TableGroup& group : groups) {
    if (group.table->slot_class() == table.slot_class()) keys += group.keys;
  }
  return keys;
}

}  // namespace

Status PrefetchPacked(std::span<const Feature> features) {
  const std::vector<TableGroup> groups = GroupByTable(features);
  uint64_t keys_max = 0;
  for (const TableGroup& group : groups) {
    EMBANK_RETURN_IF_ERROR(group.table->CheckAlive());
    if (group.features.size() > 1) keys_max = std::max(keys_max, group.keys);
  }
  Scratch<Key, kInlineKeys> memory;
  EMBANK_RETURN_IF_ERROR(memory.Allocate(keys_max));
  for (const TableGroup& group : groups) {
    KeySpan keys = features[group.features[0]].keys;
    if (group.features.size() > 1) {
      auto end = memory.values().begin();
      for (const size_t i : group.features) end = std::ranges::copy(features[i].keys, end).out;
      keys = KeySpan(memory.values()).first(group.keys);
    }
    EMBANK_RETURN_IF_ERROR(Prefetch(group.table, keys, KeysBeside(*group.table, groups)));
  }
  return OkStatus();
}

}  // namespace embank
