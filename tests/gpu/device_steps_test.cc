// Every rule, value type and length against the steps of rows in DRAM, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/half.h"
#include "gpu/twin.h"
#include "tests/gpu/device_arrays.h"
#include "tests/support/random.h"
#include "tiers/row/row_update.h"

namespace embank::test::device_steps_test {
namespace {

constexpr uint32_t kHeader = RowLayout::kVectorOffsetBytes;

// Values of many sizes: ordinary ones, zeros, tiny and large ones.
float AnyFloat(Random* random) {
  switch (random->Below(16)) {
    case 0:
      return 0.0f;
    case 1:
      return -0.0f;
    case 2:
      return random->Signed() * 1e-40f;  // subnormal
    case 3:
      return random->Signed() * 1e15f;
    case 4:
      return random->Signed() * 1e-15f;
    default:
      return random->Signed();
  }
}

// Most steps of f16 rows are to be made, too.
float Tamed(const RowLayout& layout, float value) {
  return layout.value_type == ValueType::kF16 ? std::clamp(value, -100.0f, 100.0f) : value;
}

UpdateRule AnyRule(const RowLayout& layout, Random* random) {
  UpdateRule rule = {.learning_rate = random->OneIn(8) ? 1.0f : 0.5f * random->Unit() + 1e-3f,
                     .beta1 = random->Unit(),
                     .beta2 = random->Unit(),
                     .epsilon = random->OneIn(4) ? 0.0f : 1e-8f,
                     .weight_decay = random->OneIn(2) ? 0.0f : 0.1f * random->Unit(),
                     .initial_accumulator = random->Unit(),
                     .max_gradient_norm = random->OneIn(3) ? random->Unit() : 0.0f};
  if (layout.optimizer == Optimizer::kFtrl) {
    if (random->OneIn(2)) rule.ftrl_l1 = random->Unit();
    if (random->OneIn(2)) rule.ftrl_l2 = random->Unit();
  } else if (random->OneIn(3)) {
    rule.decoupled_weight_decay = random->Unit();
  }
  const bool is_wide = layout.value_type == ValueType::kF32;
  if (!is_wide && random->OneIn(2)) rule.rounding = Rounding::kStochastic;
  return rule;
}

struct alignas(16) Unit {
  std::byte bytes[16];
};

// Rows as DRAM has them, one behind the other.
class Rows {
 public:
  Rows(const RowLayout& layout, const UpdateRule& rule, uint32_t count, Random* random)
      : layout_(layout), units_(uint64_t{count} * layout.row_bytes / sizeof(Unit)) {
    std::memset(units_.data(), 0xA5, units_.size() * sizeof(Unit));
    for (uint32_t row = 0; row < count; ++row) {
      for (uint32_t i = 0; i < layout.dim; ++i) SetWeight(row, i, AnyFloat(random));
      ResetState(layout, rule, Row(row));
      MoveState(row, random);
    }
  }

  std::byte* Row(uint32_t row) {
    return reinterpret_cast<std::byte*>(units_.data()) + uint64_t{row} * layout_.row_bytes;
  }
  std::span<const std::byte> Payload(uint32_t row) {
    return {Row(row) + kHeader, layout_.payload_bytes()};
  }

 private:
  void SetWeight(uint32_t row, uint32_t i, float value) {
    std::byte* const vector = Row(row) + kHeader;
    if (layout_.value_type == ValueType::kF32) {
      std::memcpy(vector + i * sizeof value, &value, sizeof value);
      return;
    }
    // 16-bit weights stay finite: 1e15 would not.
    const float tame = std::clamp(value, -60000.0f, 60000.0f);
    const uint16_t half =
        layout_.value_type == ValueType::kF16 ? FloatToF16(tame) : FloatToBf16(tame);
    std::memcpy(vector + i * sizeof half, &half, sizeof half);
  }
  // A row that has made steps already. Sums of squares are not negative; Adam's last is its count.
  void MoveState(uint32_t row, Random* random) {
    float* const state = layout_.State(Row(row));
    for (uint32_t i = 0; i < layout_.state_floats; ++i) {
      if (random->OneIn(3)) state[i] = Tamed(layout_, std::fabs(AnyFloat(random)));
    }
    if (layout_.optimizer == Optimizer::kAdam) {
      const float counts[] = {0, 1, 2, 1000, 123457, 0x1p24f - 1, 0x1p24f};
      state[size_t{2} * layout_.dim] = counts[random->Below(std::size(counts))];
    }
  }

  const RowLayout layout_;
  std::vector<Unit> units_;
};

struct StepCounts {
  uint64_t rows = 0;
  uint64_t not_made = 0;  // their results would not be finite
};

uint64_t SeedOf(uint32_t row) { return 0x5EED + row * uint64_t{0x9E3779B97F4A7C15}; }

// One StepRows on the twin beside StepRow on each row, for rows in any order at any distance.
void ExpectTheSameSteps(Twin* twin, const RowLayout& layout, Random* random, StepCounts* counts) {
  const auto count = static_cast<uint32_t>(layout.dim > 512 ? 2 : random->Between(1, 9));
  const UpdateRule rule = AnyRule(layout, random);
  Rows rows(layout, rule, count, random);
  const uint64_t payload_distance = RoundUp(layout.payload_bytes(), 16) + 16 * random->Below(3);
  const uint64_t gradient_stride = layout.dim * sizeof(float) + 4 * random->Below(5);
  std::vector<std::byte> payloads(count * payload_distance, std::byte{0x5B});
  std::vector<std::byte> gradients(count * gradient_stride);
  std::vector<DeviceRow> list(count);
  std::vector<bool> is_made(count);
  RowImage former;
  for (uint32_t row = 0; row < count; ++row) {
    list[row] = {row * payload_distance, count - 1 - row};
    std::ranges::copy(rows.Payload(row), payloads.begin() + row * payload_distance);
    std::vector<float> gradient(layout.dim);
    for (float& g : gradient) g = Tamed(layout, AnyFloat(random));
    // Not made, as the step with a sum that has overflowed is under every rule.
    if (random->OneIn(16)) gradient[random->Below(layout.dim)] = HUGE_VALF;
    if (random->OneIn(16)) gradient[random->Below(layout.dim)] = 3e38f;
    std::memcpy(gradients.data() + list[row].index * gradient_stride, gradient.data(),
                layout.dim * sizeof(float));
    is_made[row] = StepRow(layout, rule, SeedOf(row), gradient.data(), rows.Row(row), former.bytes);
    counts->rows += 1;
    counts->not_made += is_made[row] ? 0 : 1;
  }
  for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[random->Below(i)]);
  std::vector<uint64_t> seeds;
  for (const DeviceRow& row : list) {
    seeds.push_back(SeedOf(static_cast<uint32_t>(row.offset_bytes / payload_distance)));
  }

  DeviceArrays arrays(twin);
  std::byte* const memory = arrays.Upload(payloads);
  const std::span<DeviceRow> steps = arrays.PinnedCopy(list);
  twin->StepRows(memory, steps, layout, rule,
                 {arrays.Upload(gradients, 4 * random->Below(4)), gradient_stride},
                 {reinterpret_cast<std::byte*>(arrays.PinnedCopy(seeds).data()), sizeof(uint64_t)});
  const std::vector<std::byte> stepped = arrays.Download(memory, payloads.size());
  for (const DeviceRow& step : steps) {
    ASSERT_EQ(step.count != 0, is_made[step.offset_bytes / payload_distance]);
  }
  for (uint32_t row = 0; row < count; ++row) {
    std::ranges::copy(rows.Payload(row), payloads.begin() + row * payload_distance);
  }
  // Padding of the vector and bytes between payloads keep what they had.
  ASSERT_EQ(stepped, payloads) << "dim " << layout.dim << ", decay " << rule.weight_decay;
}

// Every short length, and some of the long ones.
uint32_t StepOf(uint32_t dim, Random* random) {
  return dim < 140 ? 1 : static_cast<uint32_t>(random->Between(1, 400));
}

class EveryRule : public testing::TestWithParam<std::tuple<Optimizer, ValueType>> {};

TEST_P(EveryRule, StepsTheBitsOfRowsInDram) {
  const auto [optimizer, type] = GetParam();
  Twin twin({});
  Random random(100 * static_cast<uint64_t>(optimizer) + static_cast<uint64_t>(type));
  StepCounts counts;
  for (uint32_t dim = 1; dim <= kDimMax; dim += StepOf(dim, &random)) {
    ExpectTheSameSteps(&twin, MakeRowLayout(dim, type, optimizer), &random, &counts);
    if (HasFatalFailure()) return;
  }
  for (const uint32_t dim : {511u, 512u, 513u, 1024u, 4095u, 4096u}) {
    ExpectTheSameSteps(&twin, MakeRowLayout(dim, type, optimizer), &random, &counts);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(counts.not_made, counts.rows / 100);
  EXPECT_LT(counts.not_made, counts.rows - counts.rows / 4);
}

INSTANTIATE_TEST_SUITE_P(RulesAndTypes, EveryRule,
                         testing::Combine(testing::Values(Optimizer::kSgd, Optimizer::kAdagrad,
                                                          Optimizer::kRowwiseAdagrad,
                                                          Optimizer::kAdam, Optimizer::kFtrl),
                                          testing::Values(ValueType::kF32, ValueType::kF16,
                                                          ValueType::kBf16)));

TEST(StepRowsDeathTest, ATableWithoutOptimizerIsADefectOfOurs) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Twin twin({});
  EXPECT_DEATH(
      twin.StepRows(nullptr, {}, MakeRowLayout(4, ValueType::kF32, Optimizer::kNone), {}, {}, {}),
      "broken");
}

}  // namespace
}  // namespace embank::test::device_steps_test
