#include "tests/support/oracle_numbers.h"

#include <array>
#include <cmath>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "bindings/c/embank.h"

namespace embank::oracle {
namespace {

using Polynomial = std::array<double, 8>;  // from the highest coefficient

// Wichura, "Algorithm AS 241", Applied Statistics 37 (1988): A/B in the middle, C/D and E/F beyond.
constexpr Polynomial kA = {2.5090809287301226727e+3, 3.3430575583588128105e+4,
                           6.7265770927008700853e+4, 4.5921953931549871457e+4,
                           1.3731693765509461125e+4, 1.9715909503065514427e+3,
                           1.3314166789178437745e+2, 3.3871328727963666080e+0};
constexpr Polynomial kB = {5.2264952788528545610e+3, 2.8729085735721942674e+4,
                           3.9307895800092710610e+4, 2.1213794301586595867e+4,
                           5.3941960214247511077e+3, 6.8718700749205790830e+2,
                           4.2313330701600911252e+1, 1.0};
constexpr Polynomial kC = {7.74545014278341407640e-4, 2.27238449892691845833e-2,
                           2.41780725177450611770e-1, 1.27045825245236838258e+0,
                           3.64784832476320460504e+0, 5.76949722146069140550e+0,
                           4.63033784615654529590e+0, 1.42343711074968357734e+0};
constexpr Polynomial kD = {1.05075007164441684324e-9, 5.47593808499534494600e-4,
                           1.51986665636164571966e-2, 1.48103976427480074590e-1,
                           6.89767334985100004550e-1, 1.67638483018380384940e+0,
                           2.05319162663775882187e+0, 1.0};
constexpr Polynomial kE = {2.01033439929228813265e-7, 2.71155556874348757815e-5,
                           1.24266094738807843860e-3, 2.65321895265761230930e-2,
                           2.96560571828504891230e-1, 1.78482653991729133580e+0,
                           5.46378491116411436990e+0, 6.65790464350110377720e+0};
constexpr Polynomial kF = {2.04426310338993978564e-15, 1.42151175831644588870e-7,
                           1.84631831751005468180e-5,  7.86869131145613259100e-4,
                           1.48753612908506148525e-2,  1.36929880922735805310e-1,
                           5.99832206555887937690e-1,  1.0};

double Horner(const Polynomial& coefficients, double r) {
  double sum = coefficients[0];
  for (size_t i = 1; i < coefficients.size(); ++i) sum = sum * r + coefficients[i];
  return sum;
}

uint32_t FloatBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

}  // namespace

uint64_t Mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9u;
  x ^= x >> 27;
  x *= 0x94D049BB133111EBu;
  x ^= x >> 31;
  return x;
}

uint64_t TableHash(const std::string& name) { return XXH3_64bits(name.data(), name.size()); }

double Log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent) * 2.0;
  double e = exponent - 1;
  if (m > 1.4142135623730951) {
    m *= 0.5;
    e += 1.0;
  }
  double s = (m - 1.0) / (m + 1.0);
  double q = s * s;
  double p = 1.0 / 23.0;
  for (int k = 21; k >= 1; k -= 2) p = p * q + 1.0 / k;
  return e * 0.6931471805599453 + 2.0 * s * p;
}

double Quantile(double p) {
  double q = p - 0.5;
  if (std::fabs(q) <= 0.425) {
    double r = 0.180625 - q * q;
    return q * Horner(kA, r) / Horner(kB, r);
  }
  double r = std::sqrt(-Log(q < 0 ? p : 1.0 - p));
  double tail = r <= 5.0 ? Horner(kC, r - 1.6) / Horner(kD, r - 1.6)
                         : Horner(kE, r - 5.0) / Horner(kF, r - 5.0);
  return q < 0 ? -tail : tail;
}

double Pow(double base, uint64_t exponent) {
  double result = 1.0;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result = result * base;
    base = base * base;
  }
  return result;
}

float LaneSum(const std::vector<float>& values) {
  std::array<float, 32> lanes{};
  for (size_t i = 0; i < values.size(); ++i) lanes[i % 32] += values[i];
  for (size_t half = 16; half >= 1; half /= 2) {
    for (size_t j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  }
  return lanes[0];
}

uint16_t HalfFromFloat(float value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7E00);
  double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude >= 65520.0) return static_cast<uint16_t>(sign | 0x7C00);
  // Halves are spaced 2^-24 up to 2^-13, and from each power of two on twice as far apart.
  int exponent = -14;
  while (magnitude >= std::ldexp(1.0, exponent + 1)) ++exponent;
  double steps = std::nearbyint(std::ldexp(magnitude, 10 - exponent));
  // The implicit bit of a normal carries into the exponent field, as does rounding up past 2047.
  auto bits = static_cast<uint32_t>(steps) + (static_cast<uint32_t>(exponent + 14) << 10);
  return static_cast<uint16_t>(sign | bits);
}

float FloatFromHalf(uint16_t bits) {
  int exponent = (bits >> 10) & 31;
  int fraction = bits & 1023;
  float magnitude;
  if (exponent == 31) {
    magnitude = fraction != 0 ? NAN : INFINITY;
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(fraction), -24);
  } else {
    magnitude = std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

uint16_t Bfloat16FromFloat(float value) {
  uint32_t bits = FloatBits(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  uint32_t rest = bits & 0xFFFF;
  uint32_t high = bits >> 16;
  bool up = rest > 0x8000 || (rest == 0x8000 && high % 2 == 1);
  return static_cast<uint16_t>(high + (up ? 1 : 0));
}

float FloatFromBfloat16(uint16_t bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

uint64_t ValueBytes(int32_t value_type) { return value_type == EMBANK_F32 ? 4 : 2; }

float LoadValue(const uint8_t* bytes, int32_t value_type) {
  if (value_type == EMBANK_F32) {
    float value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, bytes, sizeof bits);
  return value_type == EMBANK_F16 ? FloatFromHalf(bits) : FloatFromBfloat16(bits);
}

void StoreValue(float value, int32_t value_type, uint8_t* bytes) {
  if (value_type == EMBANK_F32) {
    std::memcpy(bytes, &value, sizeof value);
    return;
  }
  uint16_t bits = value_type == EMBANK_F16 ? HalfFromFloat(value) : Bfloat16FromFloat(value);
  std::memcpy(bytes, &bits, sizeof bits);
}

}  // namespace embank::oracle
