#include "base/numeric.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/random.h"

namespace embank::test::numeric_test {
namespace {

TEST(Power, PowersOfSmallWholeNumbersAreExact) {
  EXPECT_EQ(Power(3.0, 0), 1.0);
  EXPECT_EQ(Power(0.0, 0), 1.0);
  EXPECT_EQ(Power(0.0, 5), 0.0);
  EXPECT_EQ(Power(7.0, 1), 7.0);
  EXPECT_EQ(Power(3.0, 33), 5559060566555523.0);
  EXPECT_EQ(Power(-2.0, 3), -8.0);
  EXPECT_EQ(Power(0.5, 1074), 0x1p-1074);
  EXPECT_EQ(Power(1.0, 0xFFFFFFFFu), 1.0);
}

TEST(Power, MultipliesBySquaringFromTheLowestBit) {
  const double b = static_cast<double>(0.9f);
  EXPECT_EQ(Power(b, 2), b * b);
  EXPECT_EQ(Power(b, 3), b * (b * b));
  EXPECT_EQ(Power(b, 5), b * ((b * b) * (b * b)));
  EXPECT_EQ(Power(b, 6), (b * b) * ((b * b) * (b * b)));
}

TEST(Power, StaysCloseToTheTruthUpToTheLastAdamStep) {
  for (const double b : {0.9, 0.999, 0.999999}) {
    for (uint32_t t = 1; t <= 1u << 24; t = t * 3 + 1) {
      const double truth = std::exp(static_cast<double>(t) * std::log(b));
      if (truth < 1e-300) break;
      EXPECT_NEAR(Power(b, t) / truth, 1.0, 1e-16 * t + 1e-15) << b << "^" << t;
    }
  }
}

TEST(Exponential, IsWithin4e16OfTheTruth) {
  Random random(2);
  for (int i = 0; i < 200'000; ++i) {
    const double x = 1400.0 * static_cast<double>(random.Unit()) - 700.0;
    const auto truth = static_cast<double>(std::exp(static_cast<long double>(x)));
    ASSERT_LE(std::fabs(Exponential(x) - truth), 4e-16 * truth) << x;
  }
}

TEST(Exponential, HasBoundsAndKeepsNan) {
  EXPECT_EQ(Exponential(0.0), 1.0);
  EXPECT_EQ(Exponential(-701.0), 0.0);
  EXPECT_EQ(Exponential(-std::numeric_limits<double>::infinity()), 0.0);
  EXPECT_EQ(Exponential(1e9), Exponential(700.0));
  EXPECT_TRUE(std::isnan(Exponential(std::numeric_limits<double>::quiet_NaN())));
}

TEST(ExponentialRatio, IsExactNearZero) {
  EXPECT_EQ(ExponentialRatio(0.0), 1.0);
  for (const double t : {1e-12, -1e-12, 0.25, -0.5, 0.75, -3.0}) {
    const auto exact = static_cast<long double>(t);
    const auto truth = static_cast<double>(std::expm1(exact) / exact);
    EXPECT_NEAR(ExponentialRatio(t) / truth, 1.0, 4e-16) << t;
  }
}

TEST(NaturalLog, IsWithin1e15OfTheTruth) {
  Random random(1);
  for (int i = 0; i < 200'000; ++i) {
    const double x = std::ldexp(1.0 + static_cast<double>(random.Unit()),
                                static_cast<int>(random.Between(0, 2044)) - 1022);
    const long double truth = std::log(static_cast<long double>(x));
    ASSERT_LE(std::fabs(static_cast<double>(NaturalLog(x) - truth)),
              1e-15 * std::fabs(static_cast<double>(truth)))
        << x;
  }
}

TEST(NaturalLog, KeepsItsDigitsAroundOneAndTheRootOfTwo) {
  for (const double centre : {1.0, 1.4142135623730951, 0.5, 2.0, 0.7071067811865476}) {
    double x = centre;
    for (int i = 0; i < 50; ++i) x = std::nextafter(x, 0.0);
    for (int i = 0; i < 100; ++i, x = std::nextafter(x, 4.0)) {
      const auto truth = static_cast<double>(std::log(static_cast<long double>(x)));
      ASSERT_LE(std::fabs(NaturalLog(x) - truth), 1e-15 * std::fabs(truth)) << x;
    }
  }
  EXPECT_EQ(NaturalLog(1.0), 0.0);
  EXPECT_EQ(NaturalLog(2.0), 0.6931471805599453);
  const double smallest = std::numeric_limits<double>::min();
  EXPECT_EQ(NaturalLog(smallest), -1022 * 0.6931471805599453);
}

// The three values that the paper prints.
TEST(Cosine, IsWithin4e16OfTheTruth) {
  constexpr double kPi = 3.14159265358979323846;
  for (int i = 0; i <= 1000; ++i) {
    const double x = kPi * i / 1000;
    EXPECT_NEAR(Cosine(x), std::cos(x), 4e-16) << x;
  }
  EXPECT_EQ(Cosine(0), 1.0);
  EXPECT_EQ(Cosine(kPi), -1.0);
}

TEST(NormalQuantile, GivesTheCheckValuesOfAs241) {
  EXPECT_NEAR(NormalQuantile(0.25) / -0.6744897501960817, 1.0, 5e-16);
  EXPECT_NEAR(NormalQuantile(0.001) / -3.090232306167814, 1.0, 5e-16);
  EXPECT_NEAR(NormalQuantile(1e-20) / -9.262340089798408, 1.0, 5e-16);
}

TEST(NormalQuantile, UndoesTheNormalDistributionInAllThreeRegions) {
  int central = 0;
  int middle = 0;
  int tail = 0;
  for (double x = -12.0; x <= 5.0; x += 0.01) {
    const double p = 0.5 * std::erfc(-x / std::sqrt(2.0));
    if (std::fabs(p - 0.5) <= 0.425) {
      ++central;
    } else if (std::sqrt(-std::log(std::fmin(p, 1.0 - p))) <= 5.0) {
      ++middle;
    } else {
      ++tail;
    }
    // Near one the rounding of p itself moves the quantile, by 2^-53 over the density.
    const double density = std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::acos(-1.0));
    const double moved = x > 0 ? 0x1p-53 / density : 0.0;
    ASSERT_NEAR(NormalQuantile(p), x, 1e-14 * (1.0 + x * x) + 2 * moved) << "x = " << x;
  }
  EXPECT_GT(central, 200);
  EXPECT_GT(middle, 500);
  EXPECT_GT(tail, 400);
}

TEST(NormalQuantile, IsOddAroundOneHalf) {
  EXPECT_EQ(NormalQuantile(0.5), 0.0);
  Random random(2);
  for (int i = 0; i < 100'000; ++i) {
    // Halved down to 2^-30, so that 1 - p is exact and every region is met.
    const double p =
        std::ldexp(static_cast<double>(random.Unit()) + 0x1p-24, -static_cast<int>(i % 28) - 1);
    if (p >= 0.5) continue;
    ASSERT_EQ(NormalQuantile(1.0 - p), -NormalQuantile(p)) << p;
    ASSERT_LT(NormalQuantile(p), 0.0) << p;
  }
}

TEST(NormalQuantile, RisesAcrossTheSeamsOfItsRegions) {
  // |q| = 0.425, and r = 5: p = e^-25.
  for (const double seam : {0.075, 0.925, std::exp(-25.0)}) {
    double below = seam * (1 - 1e-12);
    const double left = NormalQuantile(below);
    const double right = NormalQuantile(seam * (1 + 1e-12));
    EXPECT_LT(left, right) << seam;
    EXPECT_NEAR(left, right, 1e-10) << seam;
  }
}

TEST(NormalQuantile, IsFiniteAndOddAtTheEndsThatADrawCanReach) {
  EXPECT_NEAR(NormalQuantile(0x1p-53), -8.209536151601387, 1e-14);
  EXPECT_EQ(NormalQuantile(1.0 - 0x1p-53), -NormalQuantile(0x1p-53));
}

}  // namespace
}  // namespace embank::test::numeric_test
