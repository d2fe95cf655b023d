#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/inverse_mix.h"

namespace embank::test::random_test {
namespace {

// The seed from which draw number 0 is `bits`.
constexpr uint64_t SeedOfBits(uint64_t bits) { return InverseMix(bits) - kGoldenRatio; }

TEST(CounterRandom, IsSplitmix64AtEveryPosition) {
  const CounterRandom random(1234567);
  const uint64_t outputs[] = {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                              4593380528125082431u, 16408922859458223821u};
  for (uint64_t i = 0; i < std::size(outputs); ++i) EXPECT_EQ(random.Bits(i), outputs[i]);
  EXPECT_EQ(random.Bits(~uint64_t{0}), Mix(1234567)) << "positions wrap";
}

TEST(CounterRandom, UnitFloatIsTheTop24BitsBelowOne) {
  const CounterRandom random(7);
  double sum = 0;
  constexpr int kDraws = 100'000;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const float u = random.UnitFloat(i);
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
    ASSERT_EQ(static_cast<uint64_t>(std::ldexp(static_cast<double>(u), 24)), random.Bits(i) >> 40);
    sum += static_cast<double>(u);
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);  // five standard deviations of the mean
}

TEST(CounterRandom, UnitDoubleIsTheMiddleOfOneOf2To52Parts) {
  const CounterRandom random(8);
  double sum = 0;
  constexpr int kDraws = 100'000;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const double u = random.UnitDouble(i);
    ASSERT_GT(u, 0.0);
    ASSERT_LT(u, 1.0);
    const double middle = static_cast<double>(random.Bits(i) >> 12) + 0.5;
    ASSERT_EQ(u, std::ldexp(middle, -52));
    sum += u;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);
}

TEST(CounterRandom, ReachesTheEndsOfItsScales) {
  const CounterRandom lowest(SeedOfBits(0));
  EXPECT_EQ(lowest.UnitFloat(0), 0.0f);
  EXPECT_EQ(lowest.UnitDouble(0), 0x1p-53);
  const CounterRandom highest(SeedOfBits(~uint64_t{0}));
  EXPECT_EQ(highest.UnitFloat(0), 1.0f - 0x1p-24f);
  // The ends are never reached: a logarithm of them would be none.
  EXPECT_EQ(highest.UnitDouble(0), 1.0 - 0x1p-53);
}

TEST(CounterRandom, SeedsAndPositionsGiveUnrelatedBits) {
  EXPECT_NE(CounterRandom(1).Bits(0), CounterRandom(2).Bits(0));
  EXPECT_NE(CounterRandom(1).Bits(0), CounterRandom(1).Bits(1));
}

}  // namespace
}  // namespace embank::test::random_test
