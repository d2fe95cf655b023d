#include "store/inspect/replicated_rows.h"

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/status_macros.h"

namespace embank {
namespace {

uint64_t HashOfBytes(std::span<const std::byte> bytes) {
  return TableHash({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// Without the padding, which may be any bytes.
uint64_t HashOfRow(const RowLayout& layout, const CheckpointRow& row) {
  const size_t state = layout.state_offset_bytes - RowLayout::kVectorOffsetBytes;
  const uint64_t vector_hash = HashOfBytes(row.payload.first(layout.vector_bytes));
  const uint64_t state_hash = HashOfBytes(row.payload.subspan(state, layout.state_bytes()));
  return Mix(Mix(row.hash ^ Mix(vector_hash)) + state_hash);
}

RowLayout LayoutOf(const CheckpointRows& rows, std::string_view table, size_t* place) {
  const std::vector<ManifestTable>& tables = rows.manifest().tables;
  const auto found = std::ranges::find(tables, table, &ManifestTable::name);
  *place = static_cast<size_t>(found - tables.begin());
  return MakeRowLayout(found->options.dim, found->options.value_type, found->options.optimizer);
}

// Calls visit(hash of the row, row) for each row of a table.
template <typename Visit>
Status VisitTable(CheckpointRows* rows, std::string_view table, Visit visit) {
  size_t place = 0;
  const RowLayout layout = LayoutOf(*rows, table, &place);
  for (size_t i = 0; i < rows->manifest().segments.size(); ++i) {
    EMBANK_RETURN_IF_ERROR(rows->VisitSegment(i, [&](const CheckpointRow& row) {
      if (row.table == place) visit(HashOfRow(layout, row), row);
      return OkStatus();
    }));
  }
  return OkStatus();
}

StatusOr<std::vector<uint64_t>> SumsByRange(CheckpointRows* rows, std::string_view table) {
  std::vector<uint64_t> sums(kRangeCount);
  EMBANK_RETURN_IF_ERROR(VisitTable(rows, table, [&](uint64_t hash, const CheckpointRow& row) {
    sums[RangeOf(row.hash)] += hash;
  }));
  return sums;
}

StatusOr<std::map<Key, uint64_t>> HashesOfRange(CheckpointRows* rows, std::string_view table,
                                                uint32_t range) {
  std::map<Key, uint64_t> hashes;
  EMBANK_RETURN_IF_ERROR(VisitTable(rows, table, [&](uint64_t hash, const CheckpointRow& row) {
    if (RangeOf(row.hash) == range) hashes[row.key] = hash;
  }));
  return hashes;
}

}  // namespace

void RowSum::Add(const RowLayout& layout, const CheckpointRow& row) {
  ++rows;
  sum += HashOfRow(layout, row);
}

StatusOr<RowDifference> FindDifference(CheckpointRows* first, CheckpointRows* second,
                                       std::string_view table) {
  EMBANK_ASSIGN_OR_RETURN(const std::vector<uint64_t> ours, SumsByRange(first, table));
  EMBANK_ASSIGN_OR_RETURN(const std::vector<uint64_t> theirs, SumsByRange(second, table));
  const auto range = static_cast<uint32_t>(std::ranges::mismatch(ours, theirs).in1 - ours.begin());
  if (range == kRangeCount) return InternalError("the rows of both stores are the same");
  EMBANK_ASSIGN_OR_RETURN(const auto in_first, HashesOfRange(first, table, range));
  EMBANK_ASSIGN_OR_RETURN(const auto in_second, HashesOfRange(second, table, range));
  const auto [a, b] = std::ranges::mismatch(in_first, in_second);
  if (a == in_first.end()) return RowDifference{.key = b->first, .in_second = true};
  if (b == in_second.end()) return RowDifference{.key = a->first, .in_first = true};
  return RowDifference{.key = std::min(a->first, b->first),
                       .in_first = a->first <= b->first,
                       .in_second = b->first <= a->first};
}

}  // namespace embank
