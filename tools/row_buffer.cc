#include "tools/row_buffer.h"

#include <algorithm>
#include <numeric>

namespace embank {
namespace {

constexpr uint64_t kBufferBytes = uint64_t{8} << 20;
constexpr uint64_t kBufferRowsMax = 1 << 16;

size_t RowsOfBuffer(const RowLayout& layout, bool has_state, bool has_heat) {
  const uint64_t row_bytes = sizeof(Key) + layout.vector_bytes +
                             (has_state ? layout.state_bytes() : 0) +
                             (has_heat ? sizeof(uint32_t) : 0);
  return std::clamp(kBufferBytes / row_bytes, uint64_t{1}, kBufferRowsMax);
}

}  // namespace

RowBuffer::RowBuffer(const RowLayout& layout, bool has_state, bool has_heat)
    : RowBuffer(layout, has_state, has_heat, RowsOfBuffer(layout, has_state, has_heat)) {}

RowBuffer::RowBuffer(const RowLayout& layout, bool has_state, bool has_heat, size_t rows)
    : row_bytes_{sizeof(Key), has_state ? layout.state_bytes() : 0, has_heat ? sizeof(uint32_t) : 0,
                 layout.vector_bytes},
      keys_(rows),
      values_(rows * layout.vector_bytes),
      states_(rows * RowBytes(RowColumn::kState)),
      heats_(has_heat ? rows : 0) {}

ScannedRows RowBuffer::Scanned(size_t rows) {
  return {.keys = std::span(keys_).first(rows),
          .vectors = values(),
          .states = states_.empty() ? RowSpan() : states(),
          .heats = heats_.empty() ? nullptr : heats_.data()};
}

RowsToWrite RowBuffer::ToWrite() const {
  RowsToWrite rows(ConstRowSpan{values_.data(), RowBytes(RowColumn::kValues)});
  if (!states_.empty()) rows.states = {states_.data(), RowBytes(RowColumn::kState)};
  if (!heats_.empty()) rows.heats = heats_.data();
  return rows;
}

std::span<std::byte> RowBuffer::Bytes(RowColumn column, size_t rows) {
  switch (column) {
    case RowColumn::kKeys:
      return std::as_writable_bytes(std::span(keys_).first(rows));
    case RowColumn::kState:
      return std::span(states_).first(rows * RowBytes(column));
    case RowColumn::kHeat:
      return std::as_writable_bytes(std::span(heats_).first(rows));
    case RowColumn::kValues:
      return std::span(values_).first(rows * RowBytes(column));
  }
  return {};
}

}  // namespace embank
