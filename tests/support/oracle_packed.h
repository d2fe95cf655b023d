// The packed calls of the oracle: docs/arithmetic.md, "Pooling", one position after the other.
#ifndef EMBANK_TESTS_SUPPORT_ORACLE_PACKED_H_
#define EMBANK_TESTS_SUPPORT_ORACLE_PACKED_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/support/oracle.h"

namespace embank::oracle {

// A feature as its caller means it, whatever types and places its arrays have.
struct Feature {
  int32_t pooling = 0;  // EMBANK_POOL_*
  std::vector<uint64_t> keys;
  std::vector<uint64_t> offsets;  // from 0 on; empty without pooling
  std::vector<float> weights;     // one for each key, or empty
  std::optional<uint64_t> padding;

  uint64_t bags() const { return offsets.empty() ? 0 : offsets.size() - 1; }
  bool IsPadding(uint64_t position) const {
    return padding.has_value() && keys[position] == *padding;
  }
};

// Looks a feature up. `rows`, packed, are those of the caller before the call, and become those
// after it: values of the table, or dim floats for each bag. `store_outcomes` as of Table::Lookup.
void LookUpFeature(Table* table, const Feature& feature, int32_t missing,
                   std::vector<uint8_t>* rows, std::vector<uint8_t>* outcomes,
                   const uint8_t* store_outcomes = nullptr);

// Appends the keys that are no padding, and dim floats for each: its gradient. `gradients` are
// packed rows: dim floats for each bag, or for each key without pooling.
void AppendGradients(const Table& table, const Feature& feature, const float* gradients,
                     std::vector<uint64_t>* keys, std::vector<float>* of_keys);

}  // namespace embank::oracle

#endif  // EMBANK_TESTS_SUPPORT_ORACLE_PACKED_H_
