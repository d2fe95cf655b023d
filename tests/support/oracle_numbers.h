// The numbers of docs/arithmetic.md, written a second time: scalar, plain, with no regard for speed
// where plainness costs some. Nothing here is shared with the library that it judges.
#ifndef EMBANK_TESTS_SUPPORT_ORACLE_NUMBERS_H_
#define EMBANK_TESTS_SUPPORT_ORACLE_NUMBERS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace embank::oracle {

// The 64-bit mixer, and XXH3-64 (seed 0) of a table's name.
uint64_t Mix(uint64_t x);
uint64_t TableHash(const std::string& name);

// Natural logarithm of a positive normal number, and Wichura's normal quantile of 0 < p < 1.
double Log(double x);
double Quantile(double p);

// base^exponent by squaring.
double Pow(double base, uint64_t exponent);

// The sum over 32 lanes and its fixed fold.
float LaneSum(const std::vector<float>& values);

// Rounding to nearest even, overflow to infinity; widening is exact.
uint16_t HalfFromFloat(float value);
float FloatFromHalf(uint16_t bits);
uint16_t Bfloat16FromFloat(float value);
float FloatFromBfloat16(uint16_t bits);

// Value bytes of one row of `value_type` (EMBANK_F32, ...) to float32 and back.
uint64_t ValueBytes(int32_t value_type);
float LoadValue(const uint8_t* bytes, int32_t value_type);
void StoreValue(float value, int32_t value_type, uint8_t* bytes);

}  // namespace embank::oracle

#endif  // EMBANK_TESTS_SUPPORT_ORACLE_NUMBERS_H_
