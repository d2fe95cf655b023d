#include "gtest/gtest.h"

namespace embank::canary_test {
namespace {

TEST(Canary, FailsSoThatAFailureIsSeen) { EXPECT_EQ(1 + 1, 3); }

}  // namespace
}  // namespace embank::canary_test
