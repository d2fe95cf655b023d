// One call with one bad argument: what it must answer, and what its message must name. The cases
// come in files by subject; bad_input_test.cc runs them all and checks that nothing changed.
#ifndef EMBANK_TESTS_BINDINGS_BAD_INPUT_H_
#define EMBANK_TESTS_BINDINGS_BAD_INPUT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bindings/c/embank.h"
#include "tests/support/c_api.h"

namespace embank::test {

// Everything that a call can write to, filled with a pattern before each case.
struct Outputs {
  embank_store* store;
  embank_table* table;
  embank_scan* scan;
  uint64_t n;
  uint64_t needed;
  uint64_t keys[8];
  uint32_t heat[8];
  float rows[64];
  uint8_t outcomes[8];
  char text[64];
};

// The objects of a case: a store with five tables of dim 3, an open scan, and two existing keys.
struct Scene {
  embank_store* store;
  embank_table* adagrad;
  embank_table* plain;  // no optimizer
  embank_table* sgd;
  embank_table* ftrl;
  embank_table* adam;
  embank_scan* scan;  // of adagrad
  uint64_t keys[2] = {11, 12};
  float values[6] = {1, 2, 3, 4, 5, 6};
  uint32_t heat[2] = {7, 8};
  Outputs* out;
};

struct BadInput {
  std::string name;
  std::function<embank_status(Scene&)> call;
  embank_status status;
  // Parts of the message: the argument, with which it begins when that is nonsense, and the limit.
  std::vector<std::string> mentions;
};

std::vector<BadInput> BadStoreInputs();
std::vector<BadInput> BadTableInputs();
std::vector<BadInput> BadDataInputs();
std::vector<BadInput> BadInsightInputs();
std::vector<BadInput> BadWholeRowInputs();

}  // namespace embank::test

#endif  // EMBANK_TESTS_BINDINGS_BAD_INPUT_H_
