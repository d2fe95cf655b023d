// Order of work, and events.
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "gpu/twin.h"
#include "tests/gpu/device_arrays.h"
#include "tests/support/random.h"
#include "tests/support/threads.h"

namespace embank::test::twin_streams_test {
namespace {

TEST(TwinStreams, ShowOldBytesWhereAWaitIsMissing) {
  Twin twin({});
  DeviceArrays arrays(&twin);
  std::byte* const memory = arrays.Upload(std::vector<std::byte>(16, std::byte{1}));
  const std::span<std::byte> copy = arrays.Pinned<std::byte>(16);
  copy[0] = std::byte{77};
  twin.Copy(copy.data(), memory, 16);
  const DeviceEvent event = twin.Record();
  EXPECT_EQ(copy[0], std::byte{77});
  ASSERT_TRUE(twin.Wait(event).ok());
  EXPECT_EQ(copy[0], std::byte{1});
}

TEST(TwinStreams, ReadListsWhenTheWorkRuns) {
  Twin twin({});
  DeviceArrays arrays(&twin);
  std::vector<std::byte> payloads(32, std::byte{1});
  payloads[16] = std::byte{2};
  const std::span<DeviceRow> list = arrays.PinnedCopy<DeviceRow>({{0, 0}});
  const std::span<std::byte> rows = arrays.Pinned<std::byte>(16);
  twin.Gather({arrays.Upload(payloads), list}, {}, {0, 16}, {rows.data(), 16});
  list[0].offset_bytes = 16;  // a defect: nobody has waited
  ASSERT_TRUE(twin.Wait(twin.Record()).ok());
  EXPECT_EQ(rows[0], std::byte{2});
}

TEST(TwinStreams, RunWorkUpToTheEventAndNoFurther) {
  Twin twin({});
  DeviceArrays arrays(&twin);
  const std::vector<std::byte> bytes(2, std::byte{9});
  const std::span<std::byte> copy = arrays.PinnedCopy<std::byte>(std::vector<std::byte>(2));
  twin.Copy(copy.data(), bytes.data(), 1);
  const DeviceEvent first = twin.Record();
  twin.Copy(copy.data() + 1, bytes.data(), 1);
  const DeviceEvent second = twin.Record();
  EXPECT_LT(first, second);
  ASSERT_TRUE(twin.Wait(first).ok());
  EXPECT_EQ(copy[0], std::byte{9});
  EXPECT_EQ(copy[1], std::byte{0});
  ASSERT_TRUE(twin.Wait(second).ok());
  EXPECT_EQ(copy[1], std::byte{9});
  EXPECT_TRUE(twin.Wait(first).ok());
}

// Copies numbers into one place: the last one stays, whenever the work ran.
uint32_t LastOfMany(Twin* twin, uint32_t count) {
  DeviceArrays arrays(twin);
  std::vector<uint32_t> values(count);
  for (uint32_t i = 0; i < count; ++i) values[i] = i;
  const std::span<uint32_t> numbers = arrays.PinnedCopy(values);
  const std::span<uint32_t> last = arrays.Pinned<uint32_t>(1);
  for (uint32_t& number : numbers) {
    twin->Copy(reinterpret_cast<std::byte*>(last.data()), reinterpret_cast<std::byte*>(&number), 4);
  }
  EXPECT_TRUE(twin->Wait(twin->Record()).ok());
  return last[0];
}

TEST(TwinStreams, KeepTheOrderWithEverySeed) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Twin twin({.seed = seed});
    EXPECT_EQ(LastOfMany(&twin, 100), 99u);
    EXPECT_EQ(LastOfMany(&twin, 3 * TwinStreams::kPendingMax), 3 * TwinStreams::kPendingMax - 1);
  }
}

TEST(TwinStreams, RunAtOtherMomentsWithASeed) {
  Twin twin({.seed = 3});
  DeviceArrays arrays(&twin);
  const std::vector<std::byte> bytes(1, std::byte{9});
  const std::span<std::byte> copies = arrays.PinnedCopy<std::byte>(std::vector<std::byte>(64));
  for (std::byte& copy : copies) twin.Copy(&copy, bytes.data(), 1);
  EXPECT_EQ(copies[0], std::byte{9});
  EXPECT_TRUE(twin.Wait(twin.Record()).ok());
}

TEST(TwinStreams, OrderTheWorkOfManyThreads) {
  for (const uint64_t seed : {0, 5}) {
    Twin twin({.seed = seed});
    DeviceArrays arrays(&twin);
    constexpr uint32_t kThreads = 4;
    constexpr uint32_t kRounds = 200;
    std::byte* const memory = arrays.Memory(kThreads * 64);
    std::vector<std::span<uint64_t>> numbers;
    std::vector<std::span<DeviceRow>> lists;
    for (uint32_t t = 0; t < kThreads; ++t) {
      numbers.push_back(arrays.Pinned<uint64_t>(2));
      lists.push_back(arrays.PinnedCopy<DeviceRow>({{t * 64, 0}}));
    }
    std::atomic<uint32_t> wrong{0};
    OnThreads(kThreads, [&](uint64_t t) {
      auto* const sent = reinterpret_cast<std::byte*>(&numbers[t][0]);
      auto* const received = reinterpret_cast<std::byte*>(&numbers[t][1]);
      for (uint32_t round = 0; round < kRounds; ++round) {
        numbers[t][0] = t * kRounds + round;
        twin.Scatter(memory, lists[t], {8, 8}, {sent, 8});
        twin.Gather({memory, lists[t]}, {}, {8, 8}, {received, 8});
        if (!twin.Wait(twin.Record()).ok()) wrong.fetch_add(1);
        if (numbers[t][1] != t * kRounds + round) wrong.fetch_add(1);
      }
    });
    EXPECT_EQ(wrong.load(), 0u);
  }
}

}  // namespace
}  // namespace embank::test::twin_streams_test
