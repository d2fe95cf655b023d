#include "train/data/log_value.h"

#include <array>
#include <cstddef>

#include "base/numeric.h"

namespace embank {
namespace {

// Most counts are small. 16 KiB: half of a first-level cache.
constexpr uint32_t kTableSize = 4096;

std::array<float, kTableSize> MakeTable() {
  std::array<float, kTableSize> table{};
  for (uint32_t i = 0; i < kTableSize; ++i) table[i] = LogOfNumber(static_cast<double>(i));
  return table;
}

}  // namespace

float LogOfCount(int64_t count) {
  static const std::array<float, kTableSize> kTable = MakeTable();
  if (count <= 0) return 0.0f;
  if (count < kTableSize) return kTable[static_cast<size_t>(count)];
  return LogOfNumber(static_cast<double>(count));
}

float LogOfNumber(double number) {
  return number > 0.0 ? static_cast<float>(NaturalLog(number + 1.0)) : 0.0f;
}

}  // namespace embank
