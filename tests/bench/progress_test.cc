#include "bench/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/bench/temporary_file.h"

namespace embank::progress_test {
namespace {

using testing::HasSubstr;
using testing::Not;

class SteppedClock final : public Clock {
 public:
  uint64_t NowNs() const override { return now_ns; }
  uint64_t now_ns = 0;
};

TEST(Progress, LineShowsBarNoteAndTheRestOfTheTime) {
  EXPECT_EQ(ProgressLine(0.5, 12.0, "fill"), "[##########..........]  50 %  fill  ETA 0:12");
  EXPECT_EQ(ProgressLine(0.25, 40.0, "x"), "[#####...............]  25 %  x  ETA 2:00");
  EXPECT_EQ(ProgressLine(1.0, 9.0, "x"), "[####################] 100 %  x  ETA 0:00");
}

TEST(Progress, LineDoesNotGuessAtTheBeginning) {
  EXPECT_THAT(ProgressLine(0.0, 5.0, "fill"), Not(HasSubstr("ETA")));
}

TEST(Progress, LineFitsATerminal) {
  const std::string line = ProgressLine(0.5, 36000.0, std::string(200, 'n'));
  EXPECT_EQ(line.size(), 79u);
  EXPECT_THAT(line, HasSubstr("ETA 600:00"));
  EXPECT_THAT(ProgressLine(7.0, 1.0, "x"), HasSubstr("100 %"));
  EXPECT_THAT(ProgressLine(-7.0, 1.0, "x"), HasSubstr("  0 %"));
}

TEST(Progress, WritesALineEveryTenSecondsWhereThereIsNoTerminal) {
  const TemporaryFile file(".log");
  std::FILE* out = std::fopen(file.path().c_str(), "wb");
  ASSERT_NE(out, nullptr);
  SteppedClock clock;
  {
    Progress progress(out, &clock);
    for (int second = 0; second < 25; ++second) {
      clock.now_ns = static_cast<uint64_t>(second) * 1'000'000'000;
      progress.Update(second / 25.0, "fill");
    }
  }
  std::fclose(out);
  EXPECT_EQ(file.Contents(),
            "[########............]  40 %  fill  ETA 0:15\n"
            "[################....]  80 %  fill  ETA 0:05\n");
}

}  // namespace
}  // namespace embank::progress_test
