#include "tests/support/oracle_packed.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/support/oracle_numbers.h"

namespace embank::oracle {
namespace {

// The positions [begin, end) of a bag, as its divisor sees them. 0: the bag gives zeros.
float DivisorOf(const Feature& feature, uint64_t begin, uint64_t end) {
  if (feature.pooling == EMBANK_POOL_SUM) return 1.0f;
  const bool has_weights = !feature.weights.empty();
  float n = 0.0f;
  for (uint64_t k = begin; k < end; ++k) {
    if (!feature.IsPadding(k)) n += has_weights ? feature.weights[k] : 1.0f;
  }
  return feature.pooling == EMBANK_POOL_SQRT_N ? std::sqrt(n) : n;
}

}  // namespace

void LookUpFeature(Table* table, const Feature& feature, int32_t missing,
                   std::vector<uint8_t>* rows, std::vector<uint8_t>* outcomes,
                   const uint8_t* store_outcomes) {
  const uint64_t row_bytes = table->row_bytes();
  const uint64_t n = feature.keys.size();
  const bool is_pooled = feature.pooling != EMBANK_POOL_NONE;
  std::vector<uint8_t> of_keys(n * row_bytes, 0);
  if (!is_pooled) of_keys = *rows;
  outcomes->assign(n, EMBANK_ROW_ABSENT);
  for (uint64_t i = 0; i < n; ++i) {
    uint8_t* const row = of_keys.data() + i * row_bytes;
    if (feature.IsPadding(i)) {
      std::memset(row, 0, row_bytes);
      continue;
    }
    table->Lookup(&feature.keys[i], 1, missing, row, 0, outcomes->data() + i,
                  store_outcomes == nullptr ? nullptr : store_outcomes + i);
  }
  if (!is_pooled) {
    *rows = of_keys;
    return;
  }
  const uint32_t dim = table->options().dim;
  const int32_t type = table->options().value_type;
  for (uint64_t bag = 0; bag < feature.bags(); ++bag) {
    const uint64_t begin = feature.offsets[bag];
    const uint64_t end = feature.offsets[bag + 1];
    const float divisor = DivisorOf(feature, begin, end);
    for (uint64_t i = 0; i < dim; ++i) {
      float sum = 0.0f;
      for (uint64_t k = begin; k < end; ++k) {
        if (feature.IsPadding(k)) continue;
        const float value = LoadValue(of_keys.data() + k * row_bytes + i * ValueBytes(type), type);
        sum += feature.weights.empty() ? value : feature.weights[k] * value;
      }
      sum = divisor == 0.0f ? 0.0f : sum / divisor;
      std::memcpy(rows->data() + (bag * dim + i) * sizeof sum, &sum, sizeof sum);
    }
  }
}

void AppendGradients(const Table& table, const Feature& feature, const float* gradients,
                     std::vector<uint64_t>* keys, std::vector<float>* of_keys) {
  const uint32_t dim = table.options().dim;
  const auto append = [&](uint64_t k, const float* gradient, float divisor) {
    if (feature.IsPadding(k)) return;
    keys->push_back(feature.keys[k]);
    for (uint64_t i = 0; i < dim; ++i) {
      const float shared = divisor == 0.0f ? 0.0f : gradient[i] / divisor;
      of_keys->push_back(feature.weights.empty() ? shared : shared * feature.weights[k]);
    }
  };
  if (feature.pooling == EMBANK_POOL_NONE) {
    for (uint64_t k = 0; k < feature.keys.size(); ++k) append(k, gradients + k * dim, 1.0f);
  }
  for (uint64_t bag = 0; bag < feature.bags(); ++bag) {
    const uint64_t end = feature.offsets[bag + 1];
    const float divisor = DivisorOf(feature, feature.offsets[bag], end);
    for (uint64_t k = feature.offsets[bag]; k < end; ++k) append(k, gradients + bag * dim, divisor);
  }
}

}  // namespace embank::oracle
