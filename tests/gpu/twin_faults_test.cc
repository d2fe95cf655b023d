// A device that is lost.
#include <gtest/gtest.h>

#include <vector>

#include "gpu/twin.h"
#include "tests/gpu/device_arrays.h"

namespace embank::test::twin_faults_test {
namespace {

TEST(LostDevice, DoesNothingFromTheNthWorkOnAndSaysSo) {
  for (uint32_t lost_at = 1; lost_at <= 3; ++lost_at) {
    Twin twin({});
    DeviceArrays arrays(&twin);
    const std::vector<std::byte> bytes(3, std::byte{9});
    const std::span<std::byte> copy = arrays.PinnedCopy<std::byte>(std::vector<std::byte>(3));
    twin.LoseAt(lost_at);
    std::vector<DeviceEvent> events;
    for (uint32_t i = 0; i < 3; ++i) {
      twin.Copy(&copy[i], &bytes[i], 1);
      events.push_back(twin.Record());
    }
    for (uint32_t i = 0; i < 3; ++i) {
      const Status status = twin.Wait(events[i]);
      EXPECT_EQ(status.code(), i + 1 < lost_at ? StatusCode::kOk : StatusCode::kUnavailable);
      EXPECT_EQ(copy[i], i + 1 < lost_at ? std::byte{9} : std::byte{0});
    }
  }
}

TEST(LostDevice, StaysLost) {
  Twin twin({});
  DeviceArrays arrays(&twin);
  std::byte* const memory = arrays.Memory(64);
  const DeviceEvent before = twin.Record();
  twin.LoseAt(1);
  twin.Copy(memory, memory + 32, 32);
  EXPECT_EQ(twin.Wait(twin.Record()).code(), StatusCode::kUnavailable);
  EXPECT_EQ(twin.Wait(before).code(), StatusCode::kUnavailable);
  EXPECT_EQ(twin.Join(nullptr).code(), StatusCode::kUnavailable);
  EXPECT_EQ(twin.Release(nullptr).code(), StatusCode::kUnavailable);
  EXPECT_EQ(twin.Allocate(64).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(twin.AllocatePinned(64).status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(twin.Owns(memory, 64));
}

}  // namespace
}  // namespace embank::test::twin_faults_test
