// Powers, exponentials, logarithms, cosines and normal quantiles of our own. Those of libm may
// differ in the last bit from machine to machine, and a row's bits must not (docs/arithmetic.md).
#ifndef EMBANK_BASE_NUMERIC_H_
#define EMBANK_BASE_NUMERIC_H_

#include <cstdint>

#include "base/host_device.h"

namespace embank {

// base^exponent, by squaring.
EMBANK_HOST_DEVICE inline double Power(double base, uint32_t exponent) {
  double result = 1.0;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result = result * base;
    base = base * base;
  }
  return result;
}

// Natural logarithm of a positive normal number.
double NaturalLog(double x);

// e^x; 0 below -700, and e^700 above 700.
double Exponential(double x);

// (e^t - 1) / t, also where t is small or 0.
double ExponentialRatio(double t);

// Cosine of an angle of 0 to pi.
double Cosine(double x);

// Returns the x below which a standard normal variable falls with probability p, 0 < p < 1.
// Wichura, Algorithm AS 241 (Applied Statistics 37, 1988), PPND16: relative error about 1e-16.
double NormalQuantile(double p);

}  // namespace embank

#endif  // EMBANK_BASE_NUMERIC_H_
