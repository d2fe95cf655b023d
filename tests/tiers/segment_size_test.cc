// How large segments are, and how much space they take ahead.
#include "tiers/space/segment_size.h"

#include <gtest/gtest.h>

#include "base/files/file_system.h"

namespace embank::test::segment_size_test {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr SegmentLimits kLimits = {kMiB / 4, 64 * kMiB};

uint64_t BytesFor(uint64_t written_bytes, uint64_t class_bytes, uint32_t record_bytes = 96) {
  return SegmentBytesFor(kLimits, record_bytes, written_bytes, class_bytes);
}

TEST(SegmentSize, IsHalfOfWhatWasWritten) {
  constexpr uint64_t kClass = 127 * kMiB;
  EXPECT_EQ(BytesFor(0, kClass), kMiB / 4);
  EXPECT_EQ(BytesFor(kMiB, kClass), kMiB / 2);
  EXPECT_EQ(BytesFor(2 * kMiB - 1, kClass), kMiB / 2);
  EXPECT_EQ(BytesFor(32 * kMiB, kClass), 16 * kMiB);
  EXPECT_EQ(BytesFor(UINT64_MAX, UINT64_MAX), 64 * kMiB);
}

TEST(SegmentSize, IsAQuarterOfItsClass) {
  EXPECT_EQ(BytesFor(UINT64_MAX, 0), kMiB / 4);
  EXPECT_EQ(BytesFor(UINT64_MAX, 100 * kMiB), 16 * kMiB);
  EXPECT_EQ(BytesFor(UINT64_MAX, 256 * kMiB), 64 * kMiB);
}

TEST(SegmentSize, HoldsSomeOfTheLargestRecords) {
  EXPECT_EQ(BytesFor(0, 0, 49'232), kMiB / 2);
  EXPECT_EQ(SegmentBytesFor({kMiB / 4, kMiB / 4}, 49'232, 0, 0), kMiB / 4) << "the most counts";
}

TEST(SegmentSize, StepsAreFewInALargeSessionAndSmallInASmallOne) {
  EXPECT_EQ(StepBytesFor(64 * kMiB, 0), 8 * kBlockBytes);
  EXPECT_EQ(StepBytesFor(64 * kMiB, 8 * kMiB + 1), kMiB);
  EXPECT_EQ(StepBytesFor(64 * kMiB, UINT64_MAX), 16 * kMiB);
  EXPECT_EQ(StepBytesFor(3 * kBlockBytes, UINT64_MAX), kBlockBytes);
}

// A log has places for 65,536 segments.
TEST(SegmentSize, SessionsThatOnlyAddRowsFillFewSegments) {
  uint64_t segments = 0;
  for (uint64_t class_bytes = 0; class_bytes < 65536 * kMiB;) {
    for (uint64_t written_bytes = 0; written_bytes < 10 * kMiB; ++segments) {
      const uint64_t bytes = BytesFor(written_bytes, class_bytes);
      written_bytes += bytes;
      class_bytes += bytes;
    }
  }
  EXPECT_LT(segments, 4096u);
}

// Against the log's writes, which are 1 MiB each.
TEST(SegmentSize, ALongSessionTakesSpaceSeldom) {
  uint64_t written_bytes = 0;
  uint64_t segments = 0;
  uint64_t steps = 0;
  for (; written_bytes < 4096 * kMiB; ++segments) {
    const uint64_t segment_bytes = BytesFor(written_bytes, written_bytes);
    for (uint64_t taken_bytes = 0; taken_bytes < segment_bytes; ++steps) {
      taken_bytes += StepBytesFor(segment_bytes, written_bytes + taken_bytes);
    }
    written_bytes += segment_bytes;
  }
  EXPECT_LT(segments, 200u) << "64 of the largest size";
  EXPECT_LT(steps, 450u);
}

}  // namespace
}  // namespace embank::test::segment_size_test
