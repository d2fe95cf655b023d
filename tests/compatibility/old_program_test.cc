// A program that was compiled with the header of an older version runs with this library.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

#include "bindings/c/embank.h"
#include "tests/support/scratch_directory.h"

extern "C" {
int RunSourceOf01(const char* directory, uint32_t sizes[4]);
#if defined(EMBANK_HAS_OBJECT_OF_0_1)
int RunObjectOf01(const char* directory, uint32_t sizes[4]);
#endif
}

namespace embank::test::old_program_test {
namespace {

using Sizes = std::array<uint32_t, 4>;

TEST(OldProgram, RunsAsASource) {
  const ScratchDirectory scratch;
  Sizes sizes = {};
  EXPECT_EQ(RunSourceOf01((scratch.path() + "/store").c_str(), sizes.data()), 0)
      << "the line of program_0_1.c; the last error: " << embank_last_error();
}

TEST(OldProgram, RunsAsTheObjectThatWasCompiledThen) {
#if defined(EMBANK_HAS_OBJECT_OF_0_1)
  const ScratchDirectory scratch;
  Sizes sizes = {};
  EXPECT_EQ(RunObjectOf01((scratch.path() + "/store").c_str(), sizes.data()), 0)
      << "the line of program_0_1.c; the last error: " << embank_last_error();
  EXPECT_EQ(sizes, (Sizes{88, 64, 72, 72})) << "it was compiled anew";
#else
  GTEST_SKIP() << "the object is for x86-64";
#endif
}

}  // namespace
}  // namespace embank::test::old_program_test
