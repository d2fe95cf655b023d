// A table without an engine: index lines and rows as drawn in probe_kernels.h, in memory of the
// size that a store's would have.
#ifndef EMBANK_BENCH_PROBE_TABLE_H_
#define EMBANK_BENCH_PROBE_TABLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/status_or.h"
#include "base/types.h"
#include "bench/probe_kernels.h"
#include "bench/probe_memory.h"
#include "tiers/row/row_layout.h"

namespace embank {

struct ProbeShape {
  uint64_t rows = 0;
  RowLayout layout;
  PageKind pages = PageKind::kHuge;
};

// Thread-safe but for Reshape, FindRows and SetRandomRows, which must be alone.
class ProbeTable {
 public:
  // RESOURCE_EXHAUSTED. Touches no memory yet.
  static StatusOr<std::unique_ptr<ProbeTable>> Create(const ProbeShape& shape);

  // Makes another table of the same memory, which must be large enough, with its pages.
  void Reshape(uint64_t rows, const RowLayout& layout);

  // Bytes of index lines for so many rows: 64 per 7 * 0.7 rows.
  static uint64_t IndexBytes(uint64_t rows);

  // Takes the next rows for the keys: a random read-modify-write of the index, rows in order.
  void Fill(KeySpan keys);

  // Gives each of `keys`, as many as there are rows, a row of its own.
  void FindRows(KeySpan keys);
  // Gives every index word some row, so that all keys have one.
  void SetRandomRows(uint64_t seed);

  // The vectors of the keys' rows, packed. After FindRows or SetRandomRows.
  void Gather(KeySpan keys, std::byte* out) const {
    GatherRows(view_, keys, layout_.vector_bytes, out);
  }
  // Reads, changes and writes vectors and state of the keys' rows. After FindRows or SetRandomRows.
  void ReadModifyWrite(KeySpan keys) const { AddToRows(view_, keys, layout_.payload_bytes()); }

  // The row number of a key.
  uint64_t RowOf(Key key) const;
  const ProbeView& view() const { return view_; }

 private:
  ProbeTable(ProbeMemory index, ProbeMemory rows)
      : index_(std::move(index)), rows_(std::move(rows)) {}

  KeyHash HashOf(Key key) const { return HashKey(view_.table_hash, key); }
  uint64_t* WordOf(KeyHash hash) const { return view_.words + ProbePlace(hash, view_.words_count); }

  const ProbeMemory index_;
  const ProbeMemory rows_;
  uint64_t rows_count_ = 0;
  RowLayout layout_;
  ProbeView view_;
  std::atomic<uint64_t> next_row_{0};
};

}  // namespace embank

#endif  // EMBANK_BENCH_PROBE_TABLE_H_
