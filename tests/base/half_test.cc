#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/random.h"

namespace embank::test::half_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A 16-bit format, its value by the definition of IEEE 754 and its conversions under test.
struct Format {
  const char* name;
  int fraction_bits;
  int bias;
  float (*widen)(uint16_t);
  uint16_t (*narrow)(float);

  uint16_t infinity() const {
    return static_cast<uint16_t>(0x7FFFu >> fraction_bits << fraction_bits);
  }
  bool IsNan(uint16_t h) const { return (h & 0x7FFFu) > infinity(); }
  double ValueOf(uint16_t h) const {
    const int exponent = (h & 0x7FFF) >> fraction_bits;
    const int fraction = h & ((1 << fraction_bits) - 1);
    const int implicit = exponent > 0 ? 1 << fraction_bits : 0;
    const double magnitude =
        std::ldexp(implicit + fraction, std::max(exponent, 1) - bias - fraction_bits);
    return h & 0x8000 ? -magnitude : magnitude;
  }
};

const Format kFormats[] = {{"f16", 10, 15, F16ToFloat, FloatToF16},
                           {"bf16", 7, 127, Bf16ToFloat, FloatToBf16}};

TEST(Half, EveryOneOf65536ValuesWidensToItsDefinitionAndBack) {
  for (const Format& format : kFormats) {
    int finite = 0;
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      const auto h = static_cast<uint16_t>(bits);
      const float wide = format.widen(h);
      if (format.IsNan(h)) {
        ASSERT_TRUE(std::isnan(wide)) << format.name << " " << bits;
        ASSERT_TRUE(format.IsNan(format.narrow(wide))) << format.name << " " << bits;
        continue;
      }
      ASSERT_EQ(format.narrow(wide), h) << format.name << " " << bits;
      if ((h & 0x7FFF) == format.infinity()) {
        ASSERT_EQ(wide, h & 0x8000 ? -kInfinity : kInfinity) << format.name;
        continue;
      }
      ++finite;
      ASSERT_EQ(static_cast<double>(wide), format.ValueOf(h)) << format.name << " " << bits;
      ASSERT_EQ(std::signbit(wide), (h & 0x8000) != 0) << format.name << " " << bits;
    }
    EXPECT_EQ(finite, 2 * format.infinity()) << format.name;
  }
}

// The bits of the 16-bit value nearest to a non-negative finite float, ties to even, by search.
uint16_t NearestBySearch(const Format& format, float value) {
  uint16_t low = 0;
  uint16_t high = format.infinity();
  while (high - low > 1) {
    const auto middle = static_cast<uint16_t>((low + high) / 2);
    (format.ValueOf(middle) <= static_cast<double>(value) ? low : high) = middle;
  }
  // Infinity stands where the next value would be.
  const double below = static_cast<double>(value) - format.ValueOf(low);
  const double above = format.ValueOf(high) - static_cast<double>(value);
  if (below != above) return below < above ? low : high;
  return low % 2 == 0 ? low : high;
}

void ExpectNearest(const Format& format, float value) {
  const uint16_t expected = NearestBySearch(format, value);
  ASSERT_EQ(format.narrow(value), expected) << format.name << " of " << value;
  ASSERT_EQ(format.narrow(-value), expected | 0x8000) << format.name << " of " << -value;
}

TEST(Half, NarrowingRoundsToNearestEvenEverywhere) {
  Random random(1);
  for (const Format& format : kFormats) {
    for (int i = 0; i < 200'000; ++i) {
      const float value = std::bit_cast<float>(static_cast<uint32_t>(random.Bits() >> 33));
      if (!std::isfinite(value)) continue;
      ASSERT_NO_FATAL_FAILURE(ExpectNearest(format, value));
    }
  }
}

TEST(Half, TiesGoToEvenAndTheirNeighboursToTheNearerSide) {
  for (const Format& format : kFormats) {
    for (uint32_t bits = 0; bits < format.infinity(); ++bits) {
      const double low = format.ValueOf(static_cast<uint16_t>(bits));
      const double high = format.ValueOf(static_cast<uint16_t>(bits + 1));
      const auto tie = static_cast<float>(low + (high - low) / 2);
      // Between the smallest bfloat16 values lie few floats, but the tie is one of them.
      ASSERT_EQ(static_cast<double>(tie), low + (high - low) / 2);
      const auto even = static_cast<uint16_t>(bits % 2 == 0 ? bits : bits + 1);
      ASSERT_EQ(format.narrow(tie), even) << format.name << " above " << bits;
      ASSERT_EQ(format.narrow(std::nextafterf(tie, 0.0f)), bits) << format.name;
      ASSERT_EQ(format.narrow(std::nextafterf(tie, kInfinity)), bits + 1) << format.name;
    }
  }
}

// As many of all draws go up as the part of the distance says.
TEST(Half, ADrawGoesUpWithTheProbabilityOfTheDistance) {
  constexpr uint32_t kDraws = 1u << 24;
  const auto rounds = [](const Format& format, float value, uint32_t draw) {
    return format.infinity() == 0x7C00 ? DrawF16(value, draw) : DrawBf16(value, draw);
  };
  for (const Format& format : kFormats) {
    for (uint32_t bits = 0; bits < format.infinity(); bits += 1 + bits / 97) {
      const double low = format.ValueOf(static_cast<uint16_t>(bits));
      const double high = format.ValueOf(static_cast<uint16_t>(bits + 1));
      for (const double part : {0.0, 0.125, 0.375, 0.75}) {
        const auto value = static_cast<float>(low + part * (high - low));
        // Few floats lie between the smallest bfloat16 values.
        if (static_cast<double>(value) != low + part * (high - low)) continue;
        const auto first_low = static_cast<uint32_t>(part * kDraws);  // draws below it go up
        for (const uint32_t draw : {0u, first_low - 1, first_low, kDraws - 1}) {
          if (draw >= kDraws) continue;
          const uint32_t expected = draw < first_low ? bits + 1 : bits;
          ASSERT_EQ(rounds(format, value, draw), expected) << format.name << " " << value;
          ASSERT_EQ(rounds(format, -value, draw), expected | 0x8000) << format.name;
        }
      }
    }
    EXPECT_EQ(rounds(format, kInfinity, 0), format.infinity());
    EXPECT_TRUE(format.IsNan(rounds(format, std::numeric_limits<float>::quiet_NaN(), 5)));
  }
  EXPECT_EQ(DrawF16(65536.0f, kDraws - 1), 0x7C00);
  EXPECT_EQ(DrawF16(65535.0f, kDraws - 1), 0x7BFF) << "infinity stands for 65536";
}

TEST(Half, OverflowBecomesInfinityAndNotBefore) {
  EXPECT_EQ(FloatToF16(65504.0f), 0x7BFF);
  EXPECT_EQ(FloatToF16(65519.996f), 0x7BFF);
  EXPECT_EQ(FloatToF16(65520.0f), 0x7C00);
  EXPECT_EQ(FloatToF16(-65520.0f), 0xFC00);
  EXPECT_EQ(FloatToF16(3e38f), 0x7C00);
  EXPECT_EQ(FloatToF16(-kInfinity), 0xFC00);
  EXPECT_EQ(FloatToBf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(FloatToBf16(-kInfinity), 0xFF80);
  EXPECT_EQ(FloatToBf16(std::bit_cast<float>(0x7F7F7FFFu)), 0x7F7F);
  EXPECT_EQ(FloatToBf16(std::bit_cast<float>(0x7F7F8000u)), 0x7F80);
}

TEST(Half, UnderflowKeepsTheSign) {
  EXPECT_EQ(FloatToF16(0.0f), 0x0000);
  EXPECT_EQ(FloatToF16(-0.0f), 0x8000);
  EXPECT_EQ(FloatToF16(0x1p-24f), 0x0001);
  EXPECT_EQ(FloatToF16(0x1p-25f), 0x0000) << "half of the smallest ties to zero";
  EXPECT_EQ(FloatToF16(-0x1.000002p-25f), 0x8001);
  EXPECT_EQ(FloatToF16(1e-30f), 0x0000);
  EXPECT_EQ(FloatToF16(std::numeric_limits<float>::denorm_min()), 0x0000);
  EXPECT_EQ(FloatToBf16(-0.0f), 0x8000);
  EXPECT_EQ(FloatToBf16(std::numeric_limits<float>::denorm_min()), 0x0000);
}

TEST(Half, ANanIsNeverRoundedToInfinity) {
  for (const Format& format : kFormats) {
    for (const uint32_t bits : {0x7F800001u, 0x7F80FFFFu, 0x7FBFFFFFu, 0x7FC00000u, 0x7FFFFFFFu}) {
      const uint16_t narrow = format.narrow(std::bit_cast<float>(bits));
      EXPECT_TRUE(format.IsNan(narrow)) << format.name << " of " << bits;
      EXPECT_EQ(narrow & 0x8000, 0) << format.name << " of " << bits;
      const uint16_t negative = format.narrow(std::bit_cast<float>(bits | 0x80000000u));
      EXPECT_TRUE(format.IsNan(negative)) << format.name << " of " << bits;
      EXPECT_EQ(negative & 0x8000, 0x8000) << format.name << " of " << bits;
    }
  }
}

}  // namespace
}  // namespace embank::test::half_test
