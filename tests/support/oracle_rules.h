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

// Optimizer state of a row that holds `values` and is new (or was upserted) under these options.
std::vector<float> InitialState(const embank_table_options& options,
                                const std::vector<uint8_t>& values);

// A gradient with each number clipped to max_gradient_value.
std::vector<float> Clipped(const embank_table_options& options, std::vector<float> gradient);

// One step with the summed gradient: scaling, decay, rule, rounding. `call` is the number of the
// gradient call. False: a value or a state would not be finite, and nothing was changed.
bool Step(const embank_table_options& options, uint64_t row_seed, uint64_t call,
          std::vector<float> gradient, std::vector<uint8_t>* values, std::vector<float>* state);

}  // namespace embank::oracle

#endif  // EMBANK_TESTS_SUPPORT_ORACLE_RULES_H_
