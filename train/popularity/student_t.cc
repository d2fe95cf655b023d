#include "train/popularity/student_t.h"

#include <cmath>

#include "base/check.h"
#include "base/numeric.h"

namespace embank {
namespace {

constexpr double kHalfLogTwoPi = 0.91893853320467274178;
// The fraction converges in some sqrt(a) steps, which is 23,000 for 2^29.
constexpr uint32_t kFractionStepsMax = 1u << 17;
constexpr uint32_t kBisections = 50;  // 2^-50 of the interval

// The logarithm of the gamma function, by Stirling's series. Its first term that is left out,
// 1 / (1680 x^7), is 2e-12 at the smallest x.
double LogGamma(double x) {
  double shift = 0.0;
  for (; x < 16.0; x += 1.0) shift += NaturalLog(x);
  const double square = x * x;
  return (x - 0.5) * NaturalLog(x) - x + kHalfLogTwoPi +
         (1.0 / 12 - (1.0 / 360 - 1.0 / (1260 * square)) / square) / x - shift;
}

// The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method.
double BetaFraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr double kConverged = 1e-14;
  const auto nonzero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1.0;
  double d = 1.0 / nonzero(1.0 - (a + b) * x / (a + 1.0));
  double fraction = d;
  for (uint32_t step = 1; step <= kFractionStepsMax; ++step) {
    const double m = step;
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1.0 / nonzero(1.0 + even * d);
    c = nonzero(1.0 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1.0 / nonzero(1.0 + odd * d);
    c = nonzero(1.0 + odd / c);
    fraction *= d * c;
    if (std::abs(d * c - 1.0) < kConverged) break;
  }
  return fraction;
}

// The regularised incomplete beta function at x = 1 - rest, I_x(a, b).
double IncompleteBeta(double a, double b, double x, double rest) {
  const double front = Exponential(a * NaturalLog(x) + b * NaturalLog(rest) + LogGamma(a + b) -
                                   LogGamma(a) - LogGamma(b));
  // On the other side of the mean the fraction converges slowly.
  if (x < (a + 1.0) / (a + b + 2.0)) return front * BetaFraction(a, b, x) / a;
  return 1.0 - front * BetaFraction(b, a, rest) / b;
}

// The probability that a variable is outside of [-t, t].
double OutsideOf(double t, double degrees) {
  const double sum = degrees + t * t;
  return IncompleteBeta(0.5 * degrees, 0.5, degrees / sum, t * t / sum);
}

}  // namespace

double StudentT(double confidence, uint32_t degrees) {
  EMBANK_CHECK(confidence > 0.0 && confidence < 1.0 && degrees >= 1 && degrees <= 1u << 30);
  const double outside = 1.0 - confidence;
  double low = 0.0;
  double high = 1.0;
  for (; OutsideOf(high, degrees) > outside; high *= 2.0) low = high;
  for (uint32_t i = 0; i < kBisections; ++i) {
    const double middle = 0.5 * (low + high);
    (OutsideOf(middle, degrees) > outside ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace embank
