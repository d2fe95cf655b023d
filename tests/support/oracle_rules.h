// First values, first states and optimizer steps of docs/arithmetic.md, one row at a time.
#ifndef EMBANK_TESTS_SUPPORT_ORACLE_RULES_H_
#define EMBANK_TESTS_SUPPORT_ORACLE_RULES_H_

#include <cstdint>
#include <vector>

#include "bindings/c/embank.h"

namespace embank::oracle {

// Floats of optimizer state that one row of such a table carries.
uint64_t StateFloats(const embank_table_options& options);

// Seed of all draws of one row.
uint64_t RowSeed(uint64_t store_seed, uint64_t table_hash, uint64_t key);

// Value bytes of a new row.
std::vector<uint8_t> InitialValues(const embank_table_options& options, uint64_t row_seed);

// Optimizer state of a row that holds `values` and is new (or was upserted) at this learning rate.
std::vector<float> InitialState(const embank_table_options& options, float learning_rate,
                                const std::vector<uint8_t>& values);

// One step with the summed gradient: decay, rule, rounding.
void Step(const embank_table_options& options, float learning_rate, std::vector<float> gradient,
          std::vector<uint8_t>* values, std::vector<float>* state);

}  // namespace embank::oracle

#endif  // EMBANK_TESTS_SUPPORT_ORACLE_RULES_H_
