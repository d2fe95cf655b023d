// The features of a packed call by their tables, and the tables' work on threads.
#ifndef EMBANK_STORE_PACKED_TABLE_GROUPS_H_
#define EMBANK_STORE_PACKED_TABLE_GROUPS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/threads/executor.h"
#include "store/packed/feature.h"

namespace embank {

// The numbers of the features of one table, in order.
struct TableGroup {
  Table* table;
  std::vector<size_t> features = {};
  uint64_t keys = 0;
  // Whether its batches are large enough to be shared among threads, one table after the other.
  // The others share the threads: each has one.
  bool is_large = false;
};

// Groups features by table, in the order of first occurrence. Throws std::bad_alloc.
std::vector<TableGroup> GroupByTable(std::span<const LookupFeature> features);
std::vector<TableGroup> GroupByTable(std::span<const GradientFeature> features);
std::vector<TableGroup> GroupByTable(std::span<const Feature> features);  // none is large

// The part of a call's time that a group has, by its part of the keys.
uint64_t ShareNs(uint64_t call_ns, const TableGroup& group, std::span<const TableGroup> groups);

// Whether all keys of a call are so few that one thread does them.
bool AreFew(std::span<const TableGroup> groups);

// Calls body(i) for each group: on the caller's thread, one after the other, for large ones, and on
// the threads of the store for the others. Bodies do not throw.
void ForEachTable(std::span<const TableGroup> groups, FunctionRef<void(size_t)> body);

}  // namespace embank

#endif  // EMBANK_STORE_PACKED_TABLE_GROUPS_H_
