#include "store/table/initializer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/half.h"
#include "base/hash.h"
#include "base/numeric.h"
#include "tests/support/inverse_mix.h"
#include "tests/support/random.h"

namespace embank::test::initializer_test {
namespace {

constexpr uint64_t kSeed = 12345;

std::vector<float> Floats(const Initializer& initializer, Key key, uint32_t dim,
                          uint64_t table_seed = kSeed) {
  std::vector<float> values(dim, -77.0f);
  InitializeVector(initializer, table_seed, key, ValueType::kF32, dim,
                   reinterpret_cast<std::byte*>(values.data()));
  return values;
}

// The key whose first draw has these 64 bits.
Key KeyWithFirstBits(uint64_t bits) {
  const uint64_t row_seed = InverseMix(bits) - kGoldenRatio;
  return InverseMix(row_seed) ^ kSeed;
}

TEST(TableSeed, IsWhatTheArithmeticPageSays) {
  const uint64_t hash = TableHash("users");
  EXPECT_EQ(TableSeed(7, hash), Mix(Mix(7 + 0x9E3779B97F4A7C15u) ^ hash));
  EXPECT_NE(TableSeed(7, hash), TableSeed(8, hash));
  EXPECT_NE(TableSeed(7, hash), TableSeed(7, TableHash("items")));
}

TEST(Initializer, WritesZerosAndConstantsOfEveryType) {
  for (const ValueType type : {ValueType::kF32, ValueType::kF16, ValueType::kBf16}) {
    const size_t bytes = type == ValueType::kF32 ? 4 : 2;
    for (const uint32_t dim : {1u, 3u, 4096u}) {
      std::vector<std::byte> vector(dim * bytes + 1, std::byte{0xA5});
      InitializeVector({}, kSeed, 9, type, dim, vector.data());
      for (size_t i = 0; i < dim * bytes; ++i) ASSERT_EQ(vector[i], std::byte{0}) << i;
      EXPECT_EQ(vector.back(), std::byte{0xA5}) << "wrote behind the vector";
      InitializeVector({InitializerKind::kConstant, 0.1f, 99.0f}, kSeed, 9, type, dim,
                       vector.data());
      uint16_t last = 0;
      std::memcpy(&last, vector.data() + (dim - 1) * bytes, sizeof last);
      if (type != ValueType::kF32) {
        EXPECT_EQ(last, type == ValueType::kF16 ? FloatToF16(0.1f) : FloatToBf16(0.1f));
      }
      EXPECT_EQ(vector.back(), std::byte{0xA5}) << "wrote behind the vector";
    }
  }
  EXPECT_EQ(Floats({InitializerKind::kConstant, 0.1f, 0.0f}, 1, 2),
            (std::vector<float>{0.1f, 0.1f}));
}

TEST(Initializer, DrawsFromKeySeedAndElementByTheWrittenFormula) {
  const Initializer uniform = {InitializerKind::kUniform, -0.5f, 2.0f};
  for (const Key key : {Key{0}, Key{1}, ~Key{0}}) {
    const uint64_t row_seed = Mix(kSeed ^ key);
    const std::vector<float> values = Floats(uniform, key, 10);
    for (uint64_t i = 0; i < 10; ++i) {
      const uint64_t bits = Mix(row_seed + (i + 1) * 0x9E3779B97F4A7C15u);
      const auto u = static_cast<float>(std::ldexp(static_cast<double>(bits >> 40), -24));
      EXPECT_EQ(values[i], -0.5f + u * 2.5f);
    }
  }
}

TEST(Initializer, UniformValuesStayBelowTheirUpperBound) {
  const std::pair<float, float> bounds[] = {
      {0.0f, 1.0f},     {-0.05f, 0.05f}, {1.0f, 2.0f},    {1.0f, 1.0000001f},
      {-3e38f, -1e30f}, {0.0f, 1e-45f},  {-1e-45f, 0.0f}, {16777216.0f, 16777218.0f}};
  for (const auto& [a, b] : bounds) {
    for (Key key = 0; key < 200; ++key) {
      for (const float x : Floats({InitializerKind::kUniform, a, b}, key, 16)) {
        ASSERT_GE(x, a);
        ASSERT_LT(x, b);
      }
    }
  }
}

TEST(Initializer, AUniformDrawThatRoundsUpToTheBoundStepsBackOnce) {
  // u = 1 - 2^-24: 1 + u lies half way between the last value below 2 and 2, and ties to 2.
  const Key key = KeyWithFirstBits(~uint64_t{0});
  const Initializer initializer = {InitializerKind::kUniform, 1.0f, 2.0f};
  EXPECT_EQ(Floats(initializer, key, 1)[0], 2.0f - 0x1p-23f);
  // A 16-bit row rounds that to nearest, which is the bound: so it is written.
  uint16_t half = 0;
  InitializeVector(initializer, kSeed, key, ValueType::kF16, 1,
                   reinterpret_cast<std::byte*>(&half));
  EXPECT_EQ(F16ToFloat(half), 2.0f);
  EXPECT_EQ(Floats(initializer, KeyWithFirstBits(0), 1)[0], 1.0f);
  // With neighbours as bounds half of the draws would be the upper one.
  int lower = 0;
  for (const float x : Floats({InitializerKind::kUniform, 1.0f, 1.0f + 0x1p-23f}, 3, 100)) {
    lower += x == 1.0f ? 1 : 0;
  }
  EXPECT_EQ(lower, 100);
}

struct Moments {
  double mean = 0;
  double deviation = 0;
  double within_one = 0;  // share of values closer than one deviation
};

Moments MomentsOf(const std::vector<float>& values, double mean, double deviation) {
  Moments moments;
  double squares = 0;
  for (const float x : values) {
    moments.mean += static_cast<double>(x);
    squares += (static_cast<double>(x) - mean) * (static_cast<double>(x) - mean);
    moments.within_one += std::fabs(static_cast<double>(x) - mean) < deviation ? 1 : 0;
  }
  const auto count = static_cast<double>(values.size());
  return {moments.mean / count, std::sqrt(squares / count), moments.within_one / count};
}

TEST(Initializer, NormalDrawsHaveTheirMomentsAcrossElementsAndKeys) {
  const Initializer normal = {InitializerKind::kNormal, 3.0f, 0.5f};
  std::vector<float> across_keys;
  std::vector<float> across_elements;
  for (Key key = 0; key < 100'000; ++key) across_keys.push_back(Floats(normal, key, 1)[0]);
  for (Key key = 0; key < 25; ++key) {
    const std::vector<float> values = Floats(normal, key << 40, 4000);
    across_elements.insert(across_elements.end(), values.begin(), values.end());
  }
  for (const std::vector<float>& values : {across_keys, across_elements}) {
    const Moments moments = MomentsOf(values, 3.0, 0.5);
    EXPECT_NEAR(moments.mean, 3.0, 0.008);       // five standard errors: 0.5 / sqrt(1e5)
    EXPECT_NEAR(moments.deviation, 0.5, 0.006);  // 0.5 / sqrt(2e5)
    EXPECT_NEAR(moments.within_one, 0.6827, 0.0075);
  }
}

TEST(Initializer, NormalDrawsAreQuantilesRoundedOnce) {
  const Key key = 5;
  const std::vector<float> values = Floats({InitializerKind::kNormal, 0.25f, 0.1f}, key, 64);
  for (uint64_t i = 0; i < values.size(); ++i) {
    const uint64_t bits = Mix(Mix(kSeed ^ key) + (i + 1) * 0x9E3779B97F4A7C15u);
    const double p = (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52;
    EXPECT_EQ(values[i], static_cast<float>(0.25 + static_cast<double>(0.1f) * NormalQuantile(p)));
  }
}

TEST(Initializer, ANormalOfNoDeviationIsItsMeanEvenAtTheEnds) {
  for (const Key key : {KeyWithFirstBits(0), KeyWithFirstBits(~uint64_t{0}), Key{3}}) {
    EXPECT_EQ(Floats({InitializerKind::kNormal, 1.5f, 0.0f}, key, 1)[0], 1.5f);
    EXPECT_TRUE(std::isfinite(Floats({InitializerKind::kNormal, 0.0f, 1.0f}, key, 1)[0]));
  }
}

TEST(Initializer, AnElementDoesNotDependOnTheDim) {
  for (const InitializerKind kind : {InitializerKind::kUniform, InitializerKind::kNormal}) {
    const Initializer initializer = {kind, -1.0f, 1.0f};
    const std::vector<float> longest = Floats(initializer, 11, 300);
    for (const uint32_t dim : {1u, 2u, 17u, 299u}) {
      const std::vector<float> values = Floats(initializer, 11, dim);
      EXPECT_TRUE(std::equal(values.begin(), values.end(), longest.begin())) << dim;
    }
  }
}

TEST(Initializer, A16BitRowIsTheFloatRowRounded) {
  for (const InitializerKind kind : {InitializerKind::kUniform, InitializerKind::kNormal}) {
    const Initializer initializer = {kind, -1.0f, 1.0f};
    const std::vector<float> wide = Floats(initializer, 11, 100);
    std::vector<uint16_t> f16(100);
    std::vector<uint16_t> bf16(100);
    InitializeVector(initializer, kSeed, 11, ValueType::kF16, 100,
                     reinterpret_cast<std::byte*>(f16.data()));
    InitializeVector(initializer, kSeed, 11, ValueType::kBf16, 100,
                     reinterpret_cast<std::byte*>(bf16.data()));
    for (size_t i = 0; i < wide.size(); ++i) {
      EXPECT_EQ(f16[i], FloatToF16(wide[i]));
      EXPECT_EQ(bf16[i], FloatToBf16(wide[i]));
    }
  }
}

TEST(Initializer, KeysAndSeedsGiveDifferentRows) {
  const Initializer uniform = {InitializerKind::kUniform, 0.0f, 1.0f};
  EXPECT_NE(Floats(uniform, 1, 8), Floats(uniform, 2, 8));
  EXPECT_NE(Floats(uniform, 1, 8, 1), Floats(uniform, 1, 8, 2));
}

TEST(Initializer, WritesToAnyAddress) {
  for (const ValueType type : {ValueType::kF32, ValueType::kF16}) {
    const size_t bytes = type == ValueType::kF32 ? 4 : 2;
    std::vector<std::byte> aligned(8 * bytes);
    std::vector<std::byte> odd(8 * bytes + 1);
    const Initializer normal = {InitializerKind::kNormal, 0.0f, 1.0f};
    InitializeVector(normal, kSeed, 4, type, 8, aligned.data());
    InitializeVector(normal, kSeed, 4, type, 8, odd.data() + 1);
    EXPECT_EQ(std::memcmp(aligned.data(), odd.data() + 1, aligned.size()), 0);
  }
}

}  // namespace
}  // namespace embank::test::initializer_test
