#include "store/table/initializer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "base/hash.h"
#include "base/numeric.h"
#include "base/random.h"
#include "base/simd_clones.h"

namespace embank {
namespace {

// So many values are made at a time.
constexpr uint32_t kDrawn = 64;

// Writes `count` values as `value_type` from element `begin` of the vector on.
void Store(const float* values, uint32_t begin, uint32_t count, ValueType value_type,
           std::byte* vector) {
  if (value_type == ValueType::kF32) {
    std::memcpy(vector + begin * sizeof(float), values, count * sizeof(float));
    return;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const uint16_t h =
        value_type == ValueType::kF16 ? FloatToF16(values[i]) : FloatToBf16(values[i]);
    std::memcpy(vector + (begin + i) * sizeof h, &h, sizeof h);
  }
}

// Calls draw(begin, count, values) for up to kDrawn values at a time from element `begin` on, and
// writes them.
template <typename Draw>
void Fill(ValueType value_type, uint32_t dim, std::byte* vector, Draw draw) {
  float values[kDrawn];
  for (uint32_t begin = 0; begin < dim; begin += kDrawn) {
    const uint32_t count = std::min(kDrawn, dim - begin);
    draw(begin, count, values);
    Store(values, begin, count, value_type, vector);
  }
}

// It makes all kDrawn, needed or not: a loop of known length is the fastest.
EMBANK_SIMD_CLONES void DrawUniform(CounterRandom random, uint32_t begin, float a, float b,
                                    float below_b, float* __restrict values) {
  for (uint32_t i = 0; i < kDrawn; ++i) {
    const float x = a + random.UnitFloat(begin + i) * (b - a);
    values[i] = x >= b ? below_b : x;
  }
}

void DrawNormal(CounterRandom random, uint32_t begin, uint32_t count, float mean, float deviation,
                float* values) {
  for (uint32_t i = 0; i < count; ++i) {
    const double quantile = NormalQuantile(random.UnitDouble(begin + i));
    values[i] =
        static_cast<float>(static_cast<double>(mean) + static_cast<double>(deviation) * quantile);
  }
}

}  // namespace

uint64_t TableSeed(uint64_t store_seed, uint64_t table_hash) {
  return Mix(Mix(store_seed + kGoldenRatio) ^ table_hash);
}

void InitializeVector(const Initializer& initializer, uint64_t table_seed, Key key,
                      ValueType value_type, uint32_t dim, std::byte* vector) {
  const CounterRandom random(RowSeed(table_seed, key));
  const float a = initializer.a;
  const float b = initializer.b;
  switch (initializer.kind) {
    case InitializerKind::kZero:
      std::memset(vector, 0, dim * (value_type == ValueType::kF32 ? sizeof(float) : 2));
      return;
    case InitializerKind::kConstant:
      return Fill(value_type, dim, vector,
                  [&](uint32_t, uint32_t count, float* values) { std::fill_n(values, count, a); });
    case InitializerKind::kUniform: {
      const float below_b = std::nextafterf(b, a);
      return Fill(value_type, dim, vector, [&](uint32_t begin, uint32_t, float* values) {
        DrawUniform(random, begin, a, b, below_b, values);
      });
    }
    case InitializerKind::kNormal:
      return Fill(value_type, dim, vector, [&](uint32_t begin, uint32_t count, float* values) {
        DrawNormal(random, begin, count, a, b, values);
      });
  }
}

}  // namespace embank
