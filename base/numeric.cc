#include "base/numeric.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>

#include "base/check.h"

namespace embank {
namespace {

constexpr double kA[] = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                         1.9715909503065514427e+3, 1.3731693765509461125e+4,
                         4.5921953931549871457e+4, 6.7265770927008700853e+4,
                         3.3430575583588128105e+4, 2.5090809287301226727e+3};
constexpr double kB[] = {1.0,
                         4.2313330701600911252e+1,
                         6.8718700749205790830e+2,
                         5.3941960214247511077e+3,
                         2.1213794301586595867e+4,
                         3.9307895800092710610e+4,
                         2.8729085735721942674e+4,
                         5.2264952788528545610e+3};
constexpr double kC[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                         5.76949722146069140550e0,  3.64784832476320460504e0,
                         1.27045825245236838258e0,  2.41780725177450611770e-1,
                         2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr double kD[] = {1.0,
                         2.05319162663775882187e0,
                         1.67638483018380384940e0,
                         6.89767334985100004550e-1,
                         1.48103976427480074590e-1,
                         1.51986665636164571966e-2,
                         5.47593808499534494600e-4,
                         1.05075007164441684324e-9};
constexpr double kE[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                         1.78482653991729133580e0,  2.96560571828504891230e-1,
                         2.65321895265761230930e-2, 1.24266094738807843860e-3,
                         2.71155556874348757815e-5, 2.01033439929228813265e-7};
constexpr double kF[] = {1.0,
                         5.99832206555887937690e-1,
                         1.36929880922735805310e-1,
                         1.48753612908506148525e-2,
                         7.86869131145613259100e-4,
                         1.84631831751005468180e-5,
                         1.42151175831644588870e-7,
                         2.04426310338993978564e-15};

double Polynomial(std::span<const double> coefficients, double x) {
  double sum = coefficients.back();
  for (size_t i = coefficients.size() - 1; i-- > 0;) sum = sum * x + coefficients[i];
  return sum;
}

constexpr size_t kExponentialTerms = 17;
using ExponentialTerms = std::array<double, kExponentialTerms>;

// 1 / (i + first)!, for e^x = sum x^i / i! and (e^x - 1) / x = sum x^i / (i + 1)!: the terms left
// out are below 0.5^17 / 17! = 2e-20.
constexpr ExponentialTerms InverseFactorials(uint32_t first) {
  ExponentialTerms terms{};
  double factorial = 1.0;
  for (uint32_t i = 0; i < kExponentialTerms; ++i) {
    factorial *= i + first == 0 ? 1.0 : static_cast<double>(i + first);
    terms[i] = 1.0 / factorial;
  }
  return terms;
}

constexpr ExponentialTerms kExpTerms = InverseFactorials(0);
constexpr ExponentialTerms kExpRatioTerms = InverseFactorials(1);

double SumOfPowers(const ExponentialTerms& terms, double x) {
  double sum = terms[kExponentialTerms - 1];
  for (size_t i = kExponentialTerms - 1; i-- > 0;) sum = sum * x + terms[i];
  return sum;
}

}  // namespace

double NaturalLog(double x) {
  constexpr double kLn2 = 0.6931471805599453;
  constexpr double kSqrt2 = 1.4142135623730951;
  constexpr uint64_t kMantissaMask = (uint64_t{1} << 52) - 1;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & kMantissaMask) | (uint64_t{1023} << 52));
  if (m > kSqrt2) {
    m *= 0.5;
    ++exponent;
  }
  // ln m = 2 artanh(s); |s| <= 0.1716, so the terms after s^23 are below 2^-60 of the sum.
  const double s = (m - 1.0) / (m + 1.0);
  const double q = s * s;
  double p = 1.0 / 23.0;
  for (int k = 21; k >= 1; k -= 2) p = p * q + 1.0 / k;
  return exponent * kLn2 + (2.0 * s) * p;
}

// The sum of (-1)^k x^2k / (2k)!, whose first term that is left out is below 2e-17 at pi / 2.
double Cosine(double x) {
  constexpr double kPi = 3.14159265358979323846;
  EMBANK_CHECK(x >= 0.0 && x <= kPi);
  if (x > kPi / 2) return -Cosine(kPi - x);
  double sum = 1.0;
  for (double i = 20; i > 0; i -= 2) sum = 1.0 - x * x / (i * (i - 1.0)) * sum;
  return sum;
}

double NormalQuantile(double p) {
  const double q = p - 0.5;
  if (std::fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * Polynomial(kA, r) / Polynomial(kB, r);
  }
  double r = std::sqrt(-NaturalLog(q < 0.0 ? p : 1.0 - p));
  double x = 0.0;
  if (r <= 5.0) {
    r -= 1.6;
    x = Polynomial(kC, r) / Polynomial(kD, r);
  } else {
    r -= 5.0;
    x = Polynomial(kE, r) / Polynomial(kF, r);
  }
  return q < 0.0 ? -x : x;
}

double Exponential(double x) {
  constexpr double kLn2High =
      0x1.62e42feep-1;  // the upper 32 bits of ln 2, so that k * it is exact
  constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  if (std::isnan(x)) return x;
  if (x < -700.0) return 0.0;
  x = std::min(x, 700.0);
  const double k = std::floor(x * 1.4426950408889634 + 0.5);
  const double r = (x - k * kLn2High) - k * kLn2Low;  // |r| <= ln 2 / 2
  const auto exponent = static_cast<int64_t>(k);
  return SumOfPowers(kExpTerms, r) *
         std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

double ExponentialRatio(double t) {
  if (std::abs(t) > 0.5) return (Exponential(t) - 1.0) / t;
  return SumOfPowers(kExpRatioTerms, t);
}

}  // namespace embank
