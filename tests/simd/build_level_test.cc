// Compiled as the cloned loops of this program are.
#include <gtest/gtest.h>

#include <string>

namespace embank::test::build_level_test {
namespace {

TEST(BuildLevel, IsTheOneThatTheProgramIsNamedAfter) {
#if defined(__AVX512F__)
  const std::string level = "x86-64-v4";
#elif defined(__AVX2__)
  const std::string level = "x86-64-v3";
#else
  const std::string level = "x86-64";
#endif
  EXPECT_EQ(level, EMBANK_CPU_LEVEL);
}

}  // namespace
}  // namespace embank::test::build_level_test
