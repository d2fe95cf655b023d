// A row in memory that makes steps.
#ifndef EMBANK_TESTS_TIERS_UPDATED_ROW_H_
#define EMBANK_TESTS_TIERS_UPDATED_ROW_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/half.h"
#include "tiers/row/row_update.h"

namespace embank::test {

// One row in memory, and the bytes around it.
class UpdatedRow {
 public:
  UpdatedRow(ValueType type, Optimizer optimizer, const UpdateRule& rule,
             const std::vector<float>& w)
      : layout_(MakeRowLayout(static_cast<uint32_t>(w.size()), type, optimizer)),
        rule_(rule),
        units_(layout_.row_bytes / sizeof(Unit) + 1) {
    std::memset(units_.data(), 0xA5, units_.size() * sizeof(Unit));
    for (uint32_t i = 0; i < layout_.dim; ++i) SetW(i, w[i]);
    ResetState(layout_, rule_, bytes());
  }

  // Whether the step was made.
  bool Step(std::vector<float> gradient, uint64_t rounding_seed = 0) {
    EXPECT_EQ(gradient.size(), layout_.dim);
    std::vector<Unit> former(units_.size());
    std::memset(former.data(), 0x5A, former.size() * sizeof(Unit));
    const bool is_made =
        StepRow(layout_, rule_, rounding_seed, gradient.data(), bytes(), former.data()->bytes);
    EXPECT_EQ(former.back().bytes[0], std::byte{0x5A}) << "wrote behind the former row";
    return is_made;
  }
  float W(uint32_t i) const {
    const std::byte* const vector = bytes() + 16;
    if (layout_.value_type == ValueType::kF32) {
      float value;
      std::memcpy(&value, vector + i * sizeof value, sizeof value);
      return value;
    }
    uint16_t half;
    std::memcpy(&half, vector + i * sizeof half, sizeof half);
    return layout_.value_type == ValueType::kF16 ? F16ToFloat(half) : Bf16ToFloat(half);
  }
  void SetW(uint32_t i, float value) {
    std::byte* const vector = bytes() + 16;
    if (layout_.value_type == ValueType::kF32) {
      std::memcpy(vector + i * sizeof value, &value, sizeof value);
      return;
    }
    const uint16_t half =
        layout_.value_type == ValueType::kF16 ? FloatToF16(value) : FloatToBf16(value);
    std::memcpy(vector + i * sizeof half, &half, sizeof half);
  }
  float& State(uint32_t i) { return layout_.State(bytes())[i]; }
  // All bytes of the row.
  std::vector<std::byte> Bytes() const { return {bytes(), bytes() + layout_.row_bytes}; }

  // Whether the header and the padding still hold their pattern.
  bool SurroundingsAreIntact() const {
    const std::byte* const row = bytes();
    const uint32_t state_end = layout_.state_offset_bytes + layout_.state_bytes();
    for (uint32_t i = 0; i < layout_.row_bytes + sizeof(Unit); ++i) {
      const bool vector = i >= 16 && i < 16 + layout_.vector_bytes;
      const bool state = i >= layout_.state_offset_bytes && i < state_end;
      if (!vector && !state && row[i] != std::byte{0xA5}) return false;
    }
    return true;
  }

 private:
  struct alignas(16) Unit {
    std::byte bytes[16];
  };
  std::byte* bytes() { return units_.data()->bytes; }
  const std::byte* bytes() const { return units_.data()->bytes; }

  const RowLayout layout_;
  const UpdateRule rule_;
  std::vector<Unit> units_;
};

inline UpdatedRow F32Row(Optimizer optimizer, const UpdateRule& rule, const std::vector<float>& w) {
  return UpdatedRow(ValueType::kF32, optimizer, rule, w);
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_TIERS_UPDATED_ROW_H_
