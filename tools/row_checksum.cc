#include "tools/row_checksum.h"

#include <vector>

#include "base/crc32c.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "store/batch/state.h"
#include "store/scan/scan.h"

namespace embank {
namespace {

constexpr size_t kRowsAtOnce = 1024;

// Sums do not depend on the order of rows. A CRC alone is linear: differences could cancel out.
StatusOr<uint64_t> ChecksumOf(Table* table, uint32_t number) {
  const RowLayout& layout = table->layout();
  const uint64_t state_bytes = uint64_t{layout.state_floats} * sizeof(float);
  std::vector<Key> keys(kRowsAtOnce);
  std::vector<std::byte> vectors(kRowsAtOnce * layout.vector_bytes);
  std::vector<std::byte> states(kRowsAtOnce * state_bytes);
  uint64_t sum = 0;
  Scan scan(table);
  while (true) {
    EMBANK_ASSIGN_OR_RETURN(const uint64_t rows,
                            scan.Next(keys, {vectors.data(), layout.vector_bytes}));
    if (rows == 0) return sum;
    if (state_bytes > 0) {
      EMBANK_RETURN_IF_ERROR(
          GetState(table, KeySpan(keys).first(rows), {states.data(), state_bytes}, {}));
    }
    for (size_t i = 0; i < rows; ++i) {
      uint32_t crc = ExtendCrc32c(number, std::as_bytes(std::span(&keys[i], 1)));
      crc = ExtendCrc32c(crc,
                         std::span(vectors).subspan(i * layout.vector_bytes, layout.vector_bytes));
      crc = ExtendCrc32c(crc, std::span(states).subspan(i * state_bytes, state_bytes));
      sum += Mix(uint64_t{crc} + 1);
    }
  }
}

}  // namespace

StatusOr<uint64_t> ChecksumOfRows(std::span<Table* const> tables) {
  uint64_t sum = 0;
  for (uint32_t number = 0; number < tables.size(); ++number) {
    EMBANK_ASSIGN_OR_RETURN(const uint64_t of_table, ChecksumOf(tables[number], number));
    sum += of_table;
  }
  return sum;
}

}  // namespace embank
