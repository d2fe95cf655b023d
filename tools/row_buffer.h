// Memory for rows of a table, column by column.
#ifndef EMBANK_TOOLS_ROW_BUFFER_H_
#define EMBANK_TOOLS_ROW_BUFFER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "store/batch/write.h"
#include "store/scan/scanned_rows.h"
#include "tiers/row/row_layout.h"

namespace embank {

// In the order in which safetensors files have them: larger numbers come first, so that all are
// aligned.
enum class RowColumn : uint32_t { kKeys = 0, kState = 1, kHeat = 2, kValues = 3 };
inline constexpr std::array kRowColumns = {RowColumn::kKeys, RowColumn::kState, RowColumn::kHeat,
                                           RowColumn::kValues};

// One thread.
class RowBuffer {
 public:
  // The rows of a transfer: as many as take 8 MiB, and at most 65,536.
  RowBuffer(const RowLayout& layout, bool has_state, bool has_heat);
  // `rows` rows.
  RowBuffer(const RowLayout& layout, bool has_state, bool has_heat, size_t rows);

  size_t rows() const { return keys_.size(); }
  // The bytes of a row in a column; 0: the buffer does not have it.
  uint64_t RowBytes(RowColumn column) const { return row_bytes_[static_cast<size_t>(column)]; }
  std::span<Key> keys() { return keys_; }
  std::span<uint32_t> heats() { return heats_; }
  RowSpan values() { return {values_.data(), RowBytes(RowColumn::kValues)}; }
  RowSpan states() { return {states_.data(), RowBytes(RowColumn::kState)}; }

  // The first `rows` rows, for a scan.
  ScannedRows Scanned(size_t rows);
  // The first `rows` rows, for an upsert.
  RowsToWrite ToWrite() const;
  // The bytes of the first `rows` rows in a column.
  std::span<std::byte> Bytes(RowColumn column, size_t rows);

 private:
  std::array<uint64_t, kRowColumns.size()> row_bytes_ = {};
  std::vector<Key> keys_;
  std::vector<std::byte> values_;
  std::vector<std::byte> states_;
  std::vector<uint32_t> heats_;
};

}  // namespace embank

#endif  // EMBANK_TOOLS_ROW_BUFFER_H_
