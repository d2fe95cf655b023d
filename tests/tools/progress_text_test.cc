#include "tools/progress_text.h"

#include <gtest/gtest.h>

namespace embank::test::progress_text_test {
namespace {

TEST(ProgressText, SaysTheShareAndTheTimeLeft) {
  EXPECT_EQ(ProgressText(0.25, 0.0, 10.0), "25.0 %, 0:30 left  ");
  EXPECT_EQ(ProgressText(0.5, 0.25, 100.0), "50.0 %, 3:20 left  ") << "a quarter was there before";
  EXPECT_EQ(ProgressText(0.01, 0.0, 72.0), "1.0 %, 1:58:48 left  ");
  EXPECT_EQ(ProgressText(1.0, 0.0, 72.0), "100.0 %, 0:00 left  ");
}

TEST(ProgressText, SaysNothingThatIsNotKnown) {
  EXPECT_EQ(ProgressText(0.0, 0.0, 10.0), "") << "a pipe";
  EXPECT_EQ(ProgressText(0.5, 0.5, 10.0), "50.0 %  ") << "no rate";
}

}  // namespace
}  // namespace embank::test::progress_text_test
