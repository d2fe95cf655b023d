// The streams of callers: what waits for what.
#include "gpu/twin_callers.h"

#include <gtest/gtest.h>

#include "gpu/twin.h"
#include "tests/gpu/device_arrays.h"

namespace embank::test::twin_callers_test {
namespace {

TEST(TwinCallers, AreReadBehindJoinOnly) {
  for (const bool joins : {false, true}) {
    Twin twin({});
    DeviceArrays arrays(&twin);
    void* const stream = twin.callers().Add();
    const std::span<uint32_t> number = arrays.PinnedCopy<uint32_t>({1});
    const std::span<uint32_t> copy = arrays.PinnedCopy<uint32_t>({0});
    twin.callers().Enqueue(stream, [number] { number[0] = 2; });
    if (joins) {
      ASSERT_TRUE(twin.Join(stream).ok());
    }
    twin.Copy(reinterpret_cast<std::byte*>(copy.data()),
              reinterpret_cast<std::byte*>(number.data()), 4);
    ASSERT_TRUE(twin.Wait(twin.Record()).ok());
    EXPECT_EQ(copy[0], joins ? 2u : 1u);
    twin.callers().WaitFor(stream);
  }
}

TEST(TwinCallers, SeeResultsBehindReleaseOnly) {
  for (const bool releases : {false, true}) {
    Twin twin({});
    DeviceArrays arrays(&twin);
    const std::span<uint32_t> number = arrays.PinnedCopy<uint32_t>({2});
    const std::span<uint32_t> copy = arrays.PinnedCopy<uint32_t>({1});
    uint32_t seen = 0;
    twin.Copy(reinterpret_cast<std::byte*>(copy.data()),
              reinterpret_cast<std::byte*>(number.data()), 4);
    if (releases) {
      ASSERT_TRUE(twin.Release(nullptr).ok());
    }
    twin.callers().Enqueue(nullptr, [copy, &seen] { seen = copy[0]; });
    twin.callers().WaitFor(nullptr);
    EXPECT_EQ(seen, releases ? 2u : 1u);
  }
}

TEST(TwinCallers, ManyJoinsAndReleasesEnd) {
  Twin twin({});
  DeviceArrays arrays(&twin);
  const std::span<uint32_t> number = arrays.PinnedCopy<uint32_t>({0});
  const std::span<uint32_t> copy = arrays.Pinned<uint32_t>(1);
  void* const stream = twin.callers().Add();
  for (uint32_t i = 0; i < 3000; ++i) {
    twin.callers().Enqueue(stream, [number] { ++number[0]; });
    ASSERT_TRUE(twin.Join(stream).ok());
    twin.Copy(reinterpret_cast<std::byte*>(copy.data()),
              reinterpret_cast<std::byte*>(number.data()), 4);
    ASSERT_TRUE(twin.Release(stream).ok());
    ASSERT_TRUE(twin.Release(nullptr).ok());  // nobody ever waits for this one
  }
  ASSERT_TRUE(twin.Wait(twin.Record()).ok());
  EXPECT_EQ(copy[0], 3000u);
}

TEST(TwinCallers, CallersOfAnotherDeviceAreRefused) {
  Twin twin({});
  Twin other({});
  void* const stream = other.callers().Add();
  EXPECT_EQ(twin.Join(stream).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(twin.Release(stream).code(), StatusCode::kInvalidArgument);
}

TEST(TwinCallers, ThatAreCapturingAreRefused) {
  Twin twin({});
  void* const stream = twin.callers().Add();
  twin.callers().SetCapturing(stream, true);
  EXPECT_EQ(twin.Join(stream).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(twin.Release(stream).code(), StatusCode::kFailedPrecondition);
  twin.callers().SetCapturing(stream, false);
  EXPECT_TRUE(twin.Join(stream).ok());
  twin.callers().SetCapturing(nullptr, true);
  EXPECT_EQ(twin.Join(nullptr).code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace embank::test::twin_callers_test
