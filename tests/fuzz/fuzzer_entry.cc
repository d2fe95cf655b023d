// Where libFuzzer calls a target.
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  embank::test::FuzzOne(std::as_bytes(std::span(data, bytes)));
  return 0;
}
