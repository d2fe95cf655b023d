// The model of the link, on a clock that goes on by itself.
#include "gpu/twin_link.h"

#include <gtest/gtest.h>

#include "gpu/twin.h"
#include "tests/gpu/device_arrays.h"
#include "tests/support/manual_clock.h"

namespace embank::test::twin_link_test {
namespace {

constexpr uint64_t kTickNs = 1000;  // of the clock, with each reading

TEST(TwinLink, MovesBytesOneAfterTheOther) {
  ManualClock clock(kTickNs);
  TwinLink link(&clock, 1e9, 10'000);
  EXPECT_EQ(link.Send(5'000), 15'000u);   // sent at 0 us
  EXPECT_EQ(link.Send(50'000), 65'000u);  // sent at 1 us: behind the first
  EXPECT_EQ(link.Send(0), 0u);
  EXPECT_EQ(link.Send(1'000), 66'000u);
  link.WaitUntil(66'000);
  EXPECT_GE(clock.NowNs(), 66'000u);
  // The latency, when the link is idle.
  const uint64_t now_ns = clock.NowNs();
  EXPECT_EQ(link.Send(1'000), now_ns + kTickNs + 10'000 + 1'000);
}

TEST(TwinLink, TakesNoTimeWithoutAModel) {
  ManualClock clock(kTickNs);
  TwinLink link(&clock, 0, 10'000);
  EXPECT_EQ(link.Send(1'000'000), 0u);
  link.WaitUntil(0);
  EXPECT_EQ(clock.NowNs(), 0u);
}

TEST(TwinLink, IsUsedByBytesBetweenHostAndDeviceAlone) {
  ManualClock clock(kTickNs);
  Twin twin({.link_bytes_per_second = 1e9, .clock = &clock});
  DeviceArrays arrays(&twin);
  std::byte* const memory = arrays.Memory(200'000);
  const std::span<std::byte> pinned = arrays.Pinned<std::byte>(100'000);
  uint64_t before = clock.NowNs();
  twin.Copy(memory, memory + 100'000, 100'000);
  ASSERT_TRUE(twin.Wait(twin.Record()).ok());
  EXPECT_LT(clock.NowNs(), before + 10'000);
  before = clock.NowNs();
  twin.Copy(memory, pinned.data(), 100'000);
  ASSERT_TRUE(twin.Wait(twin.Record()).ok());
  EXPECT_GE(clock.NowNs(), before + 100'000);
  before = clock.NowNs();
  twin.Gather({memory, arrays.PinnedCopy<DeviceRow>({{0, 0}})}, {}, {0, 50'000},
              {pinned.data(), 50'000});
  ASSERT_TRUE(twin.Wait(twin.Record()).ok());
  EXPECT_GE(clock.NowNs(), before + 50'000 + 16);
}

}  // namespace
}  // namespace embank::test::twin_link_test
