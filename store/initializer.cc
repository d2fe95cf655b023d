#include "store/initializer.h"

#include <cmath>
#include <cstring>

#include "base/half.h"
#include "base/hash.h"
#include "base/numeric.h"
#include "base/random.h"

namespace embank {
namespace {

// Writes value(i) for all i, in the value type.
template <typename Value>
void Fill(ValueType value_type, uint32_t dim, std::byte* vector, Value value) {
  if (value_type == ValueType::kF32) {
    for (uint32_t i = 0; i < dim; ++i) {
      const float x = value(i);
      std::memcpy(vector + i * sizeof x, &x, sizeof x);
    }
    return;
  }
  for (uint32_t i = 0; i < dim; ++i) {
    const uint16_t h = value_type == ValueType::kF16 ? FloatToF16(value(i)) : FloatToBf16(value(i));
    std::memcpy(vector + i * sizeof h, &h, sizeof h);
  }
}

float Uniform(float a, float b, float below_b, float unit) {
  const float x = a + unit * (b - a);
  return x >= b ? below_b : x;
}

float Normal(float mean, float deviation, double probability) {
  return static_cast<float>(static_cast<double>(mean) +
                            static_cast<double>(deviation) * NormalQuantile(probability));
}

}  // namespace

uint64_t TableSeed(uint64_t store_seed, uint64_t table_hash) {
  return Mix(Mix(store_seed + kGoldenRatio) ^ table_hash);
}

void InitializeVector(const Initializer& initializer, uint64_t table_seed, Key key,
                      ValueType value_type, uint32_t dim, std::byte* vector) {
  const CounterRandom random(Mix(table_seed ^ key));
  const float a = initializer.a;
  const float b = initializer.b;
  switch (initializer.kind) {
    case InitializerKind::kZero:
      std::memset(vector, 0, dim * (value_type == ValueType::kF32 ? sizeof(float) : 2));
      return;
    case InitializerKind::kConstant:
      return Fill(value_type, dim, vector, [&](uint32_t) { return a; });
    case InitializerKind::kUniform: {
      const float below_b = std::nextafterf(b, a);
      return Fill(value_type, dim, vector,
                  [&](uint32_t i) { return Uniform(a, b, below_b, random.UnitFloat(i)); });
    }
    case InitializerKind::kNormal:
      return Fill(value_type, dim, vector,
                  [&](uint32_t i) { return Normal(a, b, random.UnitDouble(i)); });
  }
}

}  // namespace embank
