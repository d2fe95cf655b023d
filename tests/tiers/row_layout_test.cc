#include "tiers/row/row_layout.h"

#include <gtest/gtest.h>

#include <vector>

namespace embank::test::row_layout_test {
namespace {

constexpr ValueType kTypes[] = {ValueType::kF32, ValueType::kF16, ValueType::kBf16};
constexpr Optimizer kOptimizers[] = {Optimizer::kNone,    Optimizer::kSgd,
                                     Optimizer::kAdagrad, Optimizer::kRowwiseAdagrad,
                                     Optimizer::kAdam,    Optimizer::kFtrl};

// docs/arithmetic.md, "First optimizer state".
uint32_t StateFloatsOnPaper(Optimizer optimizer, uint32_t dim) {
  const uint32_t floats[] = {0, 0, dim, 1, 2 * dim + 1, 2 * dim};
  return floats[static_cast<size_t>(optimizer)];
}

template <typename Body>
void ForEachLayout(const Body& body) {
  for (const ValueType type : kTypes) {
    for (const Optimizer optimizer : kOptimizers) {
      for (uint32_t dim = 1; dim <= kDimMax; dim += dim < 600 ? 1 : 37) {
        ASSERT_NO_FATAL_FAILURE(body(MakeRowLayout(dim, type, optimizer)))
            << "dim " << dim << ", type " << static_cast<int>(type) << ", optimizer "
            << static_cast<int>(optimizer);
      }
      ASSERT_NO_FATAL_FAILURE(body(MakeRowLayout(kDimMax, type, optimizer)));
    }
  }
}

TEST(RowLayout, HeaderVectorAndStateFollowEachOtherWithoutOverlapOrWaste) {
  ForEachLayout([](const RowLayout& layout) {
    const uint32_t value_bytes = layout.value_type == ValueType::kF32 ? 4 : 2;
    ASSERT_EQ(layout.vector_bytes, layout.dim * value_bytes);
    ASSERT_EQ(layout.state_floats, StateFloatsOnPaper(layout.optimizer, layout.dim));
    ASSERT_EQ(layout.state_bytes(), 4 * layout.state_floats);
    const uint32_t vector_end = 16 + layout.vector_bytes;
    ASSERT_EQ(layout.state_offset_bytes, vector_end % 4 == 0 ? vector_end : vector_end + 2);
    ASSERT_GE(layout.row_bytes, layout.state_offset_bytes + layout.state_bytes());
  });
}

TEST(RowLayout, RowsAreWholeCacheLinesWhereThatCostsAtMostAnEighth) {
  int lines = 0;
  int units = 0;
  ForEachLayout([&](const RowLayout& layout) {
    const uint32_t bytes = layout.state_offset_bytes + layout.state_bytes();
    const uint32_t whole_lines = (bytes + 63) / 64 * 64;
    const uint32_t whole_units = (bytes + 15) / 16 * 16;
    const bool cheap = whole_lines - bytes <= whole_lines / 8;
    ASSERT_EQ(layout.row_bytes, cheap ? whole_lines : whole_units);
    if (whole_lines != whole_units) ++(cheap ? lines : units);
  });
  EXPECT_GT(lines, 1000);
  EXPECT_GT(units, 100);
}

TEST(RowLayout, MatchesExamplesOnPaper) {
  const struct {
    uint32_t dim;
    ValueType type;
    Optimizer optimizer;
    uint32_t state_offset_bytes;
    uint32_t row_bytes;
  } examples[] = {
      {1, ValueType::kF16, Optimizer::kNone, 20, 32},            // 20 -> 2 units
      {8, ValueType::kF32, Optimizer::kNone, 48, 48},            // a line would waste 16 of 64
      {12, ValueType::kF32, Optimizer::kNone, 64, 64},           // one line
      {3, ValueType::kF16, Optimizer::kRowwiseAdagrad, 24, 32},  // 16 + 6 + 2, 4
      {23, ValueType::kF32, Optimizer::kSgd, 108, 112},         // a line more would waste 20 of 128
      {24, ValueType::kF32, Optimizer::kSgd, 112, 128},         // wastes 16 of 128, an eighth
      {16, ValueType::kF32, Optimizer::kAdagrad, 80, 144},      // 80 + 64; 48 of 192 is too much
      {64, ValueType::kF32, Optimizer::kNone, 272, 272},        // 48 of 320 is too much
      {64, ValueType::kF32, Optimizer::kAdagrad, 272, 576},     // 528; 48 of 576 is not
      {16, ValueType::kBf16, Optimizer::kAdam, 48, 192},        // 48 + 33 * 4 = 180
      {16, ValueType::kF16, Optimizer::kFtrl, 48, 192},         // 48 + 128; 16 of 192 is cheap
      {4096, ValueType::kF32, Optimizer::kAdam, 16400, 49216},  // 16400 + 8193 * 4 = 49172
  };
  for (const auto& example : examples) {
    const RowLayout layout = MakeRowLayout(example.dim, example.type, example.optimizer);
    EXPECT_EQ(layout.state_offset_bytes, example.state_offset_bytes) << example.dim;
    EXPECT_EQ(layout.row_bytes, example.row_bytes) << example.dim;
  }
}

TEST(RowLayout, PointsIntoTheRow) {
  const RowLayout layout = MakeRowLayout(3, ValueType::kBf16, Optimizer::kAdagrad);
  alignas(16) std::byte row[64] = {};
  ASSERT_LE(layout.row_bytes, sizeof row);
  EXPECT_EQ(static_cast<void*>(layout.Header(row)), row);
  EXPECT_EQ(layout.Vector(row), row + 16);
  EXPECT_EQ(static_cast<void*>(layout.State(row)), row + 24);
}

TEST(RowLayout, EqualMeansTheSameInEveryPart) {
  const RowLayout layout = MakeRowLayout(8, ValueType::kF16, Optimizer::kSgd);
  EXPECT_EQ(layout, MakeRowLayout(8, ValueType::kF16, Optimizer::kSgd));
  EXPECT_NE(layout, MakeRowLayout(8, ValueType::kBf16, Optimizer::kSgd));
  EXPECT_NE(layout, MakeRowLayout(8, ValueType::kF16, Optimizer::kNone));
}

TEST(RowLayoutDeathTest, DimsOutOfRangeAreADefectOfOurs) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(MakeRowLayout(0, ValueType::kF32, Optimizer::kNone), "broken");
  EXPECT_DEATH(MakeRowLayout(kDimMax + 1, ValueType::kF32, Optimizer::kNone), "broken");
}

}  // namespace
}  // namespace embank::test::row_layout_test
