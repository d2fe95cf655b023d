// When compaction begins, and how much it does for each change.
#include "tiers/space/compaction_pace.h"

#include <gtest/gtest.h>

namespace embank::test::compaction_pace_test {
namespace {

constexpr int64_t kSegmentBytes = 1 << 20;
constexpr int64_t kSegments = 100;
constexpr uint64_t kSsdBytes = kSegments * kSegmentBytes;
constexpr uint32_t kOneForEach = CompactionPace::kChangedRows;
constexpr int64_t kPlenty = 20;

// The pace with so many finished segments, of which so many percent live.
CompactionPace PaceAt(uint64_t ssd_bytes, int64_t segments, int64_t live_percent) {
  CompactionPace pace(ssd_bytes, kSegmentBytes, ssd_bytes == 0);
  pace.SetSpare(kPlenty);
  for (int64_t i = 0; i < segments; ++i) {
    pace.AddFinished(kSegmentBytes, kSegmentBytes * live_percent / 100);
  }
  return pace;
}

TEST(CompactionPace, NothingMovesWhileTheLogHasSpaceForIt) {
  EXPECT_EQ(PaceAt(kSsdBytes, 54, 10).pace(), 0u);
  EXPECT_GT(PaceAt(kSsdBytes, 56, 10).pace(), 0u);
}

TEST(CompactionPace, GrowsWithWhatItIsBehind) {
  EXPECT_NEAR(PaceAt(kSsdBytes, 60, 60).pace(), kOneForEach / 2, 1);
  EXPECT_NEAR(PaceAt(kSsdBytes, 65, 60).pace(), kOneForEach, 1);
  EXPECT_EQ(PaceAt(kSsdBytes, 90, 60).pace(), CompactionPace::kPaceMax);
}

TEST(CompactionPace, LeavesWhatIsNearlyAllLiving) {
  EXPECT_GT(PaceAt(kSsdBytes, 80, 79).pace(), 0u);
  EXPECT_EQ(PaceAt(kSsdBytes, 80, 81).pace(), 0u);
}

TEST(CompactionPace, WaitsWhereThereIsNoSpaceToMoveTo) {
  CompactionPace pace = PaceAt(kSsdBytes, 80, 60);
  pace.SetSpare(0);
  EXPECT_EQ(pace.pace(), 0u);
  pace.SetSpare(1);
  EXPECT_GT(pace.pace(), 0u);
}

TEST(CompactionPace, WithoutALimitOnlyLivingRowsCount) {
  EXPECT_EQ(PaceAt(0, 1000, 60).pace(), 0u);
  EXPECT_NEAR(PaceAt(0, 1000, 55).pace(), kOneForEach, 2);
  EXPECT_EQ(PaceAt(0, 1000, 20).pace(), CompactionPace::kPaceMax);
  EXPECT_EQ(PaceAt(0, 1, 20).pace(), CompactionPace::kPaceMax);
}

// A 64th of a segment of 1 MiB is left to each class, and twice that until it is too much.
TEST(CompactionPace, WithoutALimitTheSizeFollowsTheRows) {
  EXPECT_TRUE(PaceAt(0, 1, 20).HasWaste(/*is_begun=*/false));
  EXPECT_FALSE(PaceAt(0, 1, 49).HasWaste(/*is_begun=*/false));
  EXPECT_TRUE(PaceAt(0, 1, 49).HasWaste(/*is_begun=*/true));
  EXPECT_FALSE(PaceAt(0, 100, 50).HasWaste(/*is_begun=*/false));
  EXPECT_TRUE(PaceAt(0, 100, 49).HasWaste(/*is_begun=*/false));
  EXPECT_TRUE(PaceAt(0, 100, 59).HasWaste(/*is_begun=*/true));
  EXPECT_FALSE(PaceAt(0, 100, 60).HasWaste(/*is_begun=*/true));
  EXPECT_FALSE(PaceAt(kSsdBytes, 100, 1).HasWaste(/*is_begun=*/true)) << "the limit counts";
  CompactionPace pace = PaceAt(0, 10, 30);
  EXPECT_TRUE(pace.HasWaste(/*is_begun=*/false));
  pace.SetClasses(129);
  EXPECT_FALSE(pace.HasWaste(/*is_begun=*/false));
}

// Dirty rows will live in the log again.
TEST(CompactionPace, WithoutALimitDirtyRowsCountAsLiving) {
  CompactionPace pace = PaceAt(0, 100, 30);
  const uint32_t whole = pace.pace();
  EXPECT_GT(whole, 0u);
  pace.SetDirty(uint64_t{kSegmentBytes} * 29);
  EXPECT_GT(pace.pace(), 0u);
  EXPECT_LT(pace.pace(), whole);
  pace.SetDirty(uint64_t{kSegmentBytes} * 30);
  EXPECT_EQ(pace.pace(), 0u);
  EXPECT_TRUE(pace.HasWaste(/*is_begun=*/false)) << "a checkpoint bounds the size";
  EXPECT_TRUE(pace.HasWaste(/*is_begun=*/true)) << "a checkpoint bounds the size";
  pace.SetDirty(0);
  EXPECT_EQ(pace.pace(), whole);
}

TEST(CompactionPace, WithALimitDirtyRowsDoNotCount) {
  CompactionPace pace = PaceAt(kSsdBytes, 65, 60);
  pace.SetDirty(kSsdBytes);
  EXPECT_NEAR(pace.pace(), kOneForEach, 1);
}

TEST(CompactionPace, CountsWhatDies) {
  CompactionPace pace = PaceAt(kSsdBytes, 60, 85);
  EXPECT_EQ(pace.pace(), 0u);
  pace.AddFinished(0, -kSegmentBytes * 60 * 10 / 100);
  EXPECT_GT(pace.pace(), 0u);
  for (int i = 0; i < 6; ++i) pace.AddFinished(-kSegmentBytes, 0);
  EXPECT_EQ(pace.pace(), 0u);
}

class Begin : public testing::Test {
 protected:
  void EndIntervals(int count, int64_t spare_at_least, bool works) {
    for (int i = 0; i < count; ++i) {
      pace_.SetSpare(spare_at_least);
      pace_.SetSpare(kPlenty);
      if (works) pace_.NoteWork();
      pace_.EndInterval();
    }
  }

  CompactionPace pace_{kSsdBytes, kSegmentBytes, false};
  const double first_ = pace_.begin();
};

TEST_F(Begin, ComesLaterWhereMuchStaysSpareWhileItWorks) {
  EndIntervals(3, 9, true);
  EXPECT_EQ(pace_.begin(), first_) << "what was emptied first is not free yet";
  EndIntervals(1, 9, true);
  EXPECT_GT(pace_.begin(), first_);
  EndIntervals(1000, 9, true);
  EXPECT_GT(pace_.begin(), 0.8);
  EXPECT_LT(pace_.begin(), 0.9);
}

TEST_F(Begin, StaysWhereNothingIsMovedOrLittleIsSpareAtTimes) {
  EndIntervals(3, 9, true);
  EndIntervals(1, 9, false);
  EndIntervals(3, 9, true);
  EndIntervals(10, 8, true);
  EndIntervals(10, 4, true);
  EXPECT_EQ(pace_.begin(), first_);
}

TEST_F(Begin, ComesEarlierAgainAndFaster) {
  EndIntervals(20, 9, true);
  const double later = pace_.begin();
  EndIntervals(1, 3, true);
  EXPECT_LT(pace_.begin(), later);
  const double step = later - pace_.begin();
  const double earlier = pace_.begin();
  EndIntervals(1, 9, true);
  EXPECT_LT(pace_.begin() - earlier, step);
  EndIntervals(1000, 0, true);
  EXPECT_EQ(pace_.begin(), first_);
}

TEST_F(Begin, GoesBySegmentsInASmallLog) {
  CompactionPace pace(10 * kSegmentBytes, kSegmentBytes, false);
  for (int i = 0; i < 10; ++i) {
    pace.SetSpare(2);
    pace.NoteWork();
    pace.EndInterval();
  }
  EXPECT_EQ(pace.begin(), first_);
  for (int i = 0; i < 10; ++i) {
    pace.SetSpare(3);
    pace.NoteWork();
    pace.EndInterval();
  }
  EXPECT_GT(pace.begin(), first_);
}

}  // namespace
}  // namespace embank::test::compaction_pace_test
