#include "train/ranks/half_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "base/half.h"
#include "tests/support/random.h"

namespace embank::test::half_blocks_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<float> ThereAndBack(const std::vector<float>& floats) {
  // One byte more tells that none is written behind the halves.
  std::vector<std::byte> halves(HalfBlocksBytes(floats.size()) + 2, std::byte{0xAB});
  EncodeHalfBlocks(floats, halves.data());
  EXPECT_EQ(halves.back(), std::byte{0xAB});
  std::vector<float> back(floats.size());
  DecodeHalfBlocks(halves.data(), back);
  return back;
}

bool AreSameBits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

// The bounds of the contract, block by block.
void ExpectWithinBounds(const std::vector<float>& floats) {
  const std::vector<float> back = ThereAndBack(floats);
  for (size_t begin = 0; begin < floats.size(); begin += kHalfBlock) {
    const size_t end = std::min<size_t>(begin + kHalfBlock, floats.size());
    double largest = 0.0;
    for (size_t i = begin; i < end; ++i) {
      if (std::isfinite(floats[i])) largest = std::max(largest, std::abs(double{floats[i]}));
    }
    for (size_t i = begin; i < end; ++i) {
      if (!std::isfinite(floats[i])) {
        EXPECT_TRUE(std::isnan(floats[i]) ? std::isnan(back[i]) : back[i] == floats[i]);
        continue;
      }
      const double magnitude = std::abs(double{floats[i]});
      const double error = std::abs(double{back[i]} - double{floats[i]});
      EXPECT_LE(error, magnitude >= 1.9e-9 * largest ? magnitude * 0x1p-11 : largest * 0x1p-39)
          << floats[i] << " came back as " << back[i] << "; the largest is " << largest;
      EXPECT_EQ(std::signbit(back[i]), std::signbit(floats[i]));
    }
  }
}

TEST(HalfBlocks, AreHalfTheBytes) {
  EXPECT_EQ(HalfBlocksBytes(0), 0u);
  EXPECT_EQ(HalfBlocksBytes(1), 4u);
  EXPECT_EQ(HalfBlocksBytes(256), 514u);
  EXPECT_EQ(HalfBlocksBytes(257), 518u);
  EXPECT_LE(static_cast<double>(HalfBlocksBytes(1'000'000)), 0.502 * 4'000'000);
}

TEST(HalfBlocks, KeepTheirErrorForAnyMagnitudes) {
  Random random(5);
  for (uint32_t round = 0; round < 400; ++round) {
    std::vector<float> floats(random.Bits() % 700);
    // The exponents of a round are in a band, which may be among subnormal numbers or large ones.
    const int first = static_cast<int>(random.Bits() % 270) - 149;
    const int width = 1 + static_cast<int>(random.Bits() % 40);
    for (float& value : floats) {
      const double fraction = 1.0 + static_cast<double>(random.Bits() >> 12) * 0x1p-52;
      const int exponent = std::min(127, first + static_cast<int>(random.Bits() % width));
      value = static_cast<float>(
          std::min(std::ldexp(fraction, exponent), double{std::numeric_limits<float>::max()}));
      if (random.Bits() % 2 == 0) value = -value;
      if (random.Bits() % 50 == 0) value = 0.0f;
    }
    ExpectWithinBounds(floats);
  }
}

TEST(HalfBlocks, KeepNumbersOfFewBits) {
  for (const int exponent : {-149, -140, -127, -30, 0, 14, 100}) {
    std::vector<float> floats;
    for (int i = -500; i <= 500; ++i) floats.push_back(std::ldexp(static_cast<float>(i), exponent));
    const std::vector<float> back = ThereAndBack(floats);
    for (size_t i = 0; i < floats.size(); ++i) EXPECT_EQ(back[i], floats[i]) << exponent;
  }
}

// A cast to a half alone makes them 0.
TEST(HalfBlocks, KeepSmallGradients) {
  const std::vector<float> gradients = {1e-8f, -2e-8f, 2.5e-8f};
  for (const float gradient : gradients) EXPECT_EQ(F16ToFloat(FloatToF16(gradient)), 0.0f);
  ExpectWithinBounds(gradients);
}

TEST(HalfBlocks, HaveZerosInfinitiesAndNaN) {
  for (const float value : ThereAndBack(std::vector<float>(300, 0.0f))) {
    EXPECT_TRUE(AreSameBits(value, 0.0f));
  }
  const std::vector<float> back = ThereAndBack({-0.0f, kInfinity, -kInfinity, kNaN, 1e-40f, 3.0f});
  EXPECT_TRUE(AreSameBits(back[0], -0.0f));
  EXPECT_EQ(back[1], kInfinity);
  EXPECT_EQ(back[2], -kInfinity);
  EXPECT_TRUE(std::isnan(back[3]));
  EXPECT_EQ(back[5], 3.0f) << "infinities are not the largest number of a block";
  for (const float value : ThereAndBack({kInfinity, kNaN})) EXPECT_FALSE(std::isfinite(value));
  // Whatever its largest number, no finite one becomes infinite.
  for (const float largest : {65519.99f, 65520.0f, 65535.9f, std::numeric_limits<float>::max()}) {
    ExpectWithinBounds({largest, -largest, 1.0f, std::numeric_limits<float>::denorm_min()});
  }
}

}  // namespace
}  // namespace embank::test::half_blocks_test
