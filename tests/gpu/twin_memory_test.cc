// Tokens in place of addresses; limits and failures of allocation.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <vector>

#include "gpu/twin.h"
#include "tests/gpu/device_arrays.h"
#include "tests/support/failing_memory.h"

namespace embank::test::twin_memory_test {
namespace {

TEST(TwinMemory, IsAlignedTo256Bytes) {
  Twin twin({});
  DeviceArrays arrays(&twin);
  for (const uint64_t bytes : {1, 100, 4096, 5000}) {
    EXPECT_EQ(std::bit_cast<uintptr_t>(arrays.Memory(bytes)) % 256, 0u);
    EXPECT_EQ(std::bit_cast<uintptr_t>(arrays.Pinned<std::byte>(bytes).data()) % 256, 0u);
  }
}

TEST(TwinMemoryDeathTest, FaultsWhereTheHostDereferencesIt) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Twin twin({});
  DeviceArrays arrays(&twin);
  std::byte* const memory = arrays.Memory(64);
  EXPECT_DEATH(std::memset(memory, 1, 64), "");
}

TEST(TwinMemory, OwnsWhatIsInsideOneAllocation) {
  Twin twin({});
  std::byte* const memory = twin.Allocate(1000).value();
  EXPECT_TRUE(twin.Owns(memory, 1000));
  EXPECT_TRUE(twin.Owns(memory + 999, 1));
  EXPECT_TRUE(twin.Owns(memory, 0));
  EXPECT_FALSE(twin.Owns(memory, 1001));
  EXPECT_FALSE(twin.Owns(memory + 1000, 1));
  EXPECT_FALSE(twin.Owns(memory - 1, 1));
  EXPECT_FALSE(twin.Owns(memory, ~uint64_t{0}));
  EXPECT_FALSE(twin.Owns(nullptr, 1));
  std::vector<std::byte> host(16);
  EXPECT_FALSE(twin.Owns(host.data(), 16));
  std::byte* const pinned = twin.AllocatePinned(16).value();
  EXPECT_FALSE(twin.Owns(pinned, 16));
  twin.FreePinned(pinned);
  twin.Free(memory);
  EXPECT_FALSE(twin.Owns(memory, 1));
}

TEST(TwinMemory, MemoryOfAnotherTwinIsNotItsOwn) {
  Twin one({});
  Twin other({});
  DeviceArrays arrays(&one);
  EXPECT_FALSE(other.Owns(arrays.Memory(64), 64));
}

TEST(TwinMemoryDeathTest, AHostPointerWhereADevicePointerIsDueIsADefectOfOurs) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Twin twin({});
  DeviceArrays arrays(&twin);
  std::vector<std::byte> host(64);
  const std::span<DeviceRow> list = arrays.PinnedCopy<DeviceRow>({{0, 0}});
  const std::span<std::byte> pinned = arrays.Pinned<std::byte>(64);
  EXPECT_DEATH(twin.Gather({host.data(), list}, {}, {0, 16}, {pinned.data(), 16}), "broken");
  EXPECT_DEATH(
      twin.StepRows(pinned.data(), list, MakeRowLayout(4, ValueType::kF32, Optimizer::kSgd), {},
                    {pinned.data(), 16}, {}),
      "broken");
}

TEST(TwinMemoryDeathTest, APayloadBehindTheEndIsADefectOfOurs) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Twin twin({});
  DeviceArrays arrays(&twin);
  std::byte* const memory = arrays.Memory(64);
  const std::span<std::byte> pinned = arrays.Pinned<std::byte>(64);
  twin.Gather({memory, arrays.PinnedCopy<DeviceRow>({{48, 0}})}, {}, {0, 16}, {pinned.data(), 16});
  EXPECT_TRUE(twin.Wait(twin.Record()).ok());
  EXPECT_DEATH(
      {
        twin.Gather({memory, arrays.PinnedCopy<DeviceRow>({{48, 0}})}, {}, {0, 18},
                    {pinned.data(), 32});
        (void)twin.Wait(twin.Record());
      },
      "broken");
}

TEST(TwinMemory, HasALimitForDeviceMemoryAlone) {
  Twin twin({.memory_bytes = 10'000});
  EXPECT_EQ(twin.figures().total_bytes, 10'000u);
  std::byte* const memory = twin.Allocate(7'000).value();
  EXPECT_EQ(twin.figures().free_bytes, 3'000u);
  const Status status = twin.Allocate(3'001).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("3000"), std::string_view::npos) << status;
  EXPECT_NE(status.message().find("3001"), std::string_view::npos) << status;
  DeviceArrays arrays(&twin);
  EXPECT_EQ(arrays.Pinned<std::byte>(20'000).size(), 20'000u);
  EXPECT_TRUE(twin.Owns(arrays.Memory(3'000), 3'000));
  EXPECT_EQ(twin.figures().free_bytes, 0u);
  twin.Free(memory);
}

TEST(TwinMemory, FailsTheNthAllocation) {
  Twin twin({});
  twin.FailAllocation(2);
  std::byte* const memory = twin.Allocate(64).value();
  EXPECT_EQ(twin.AllocatePinned(64).status().code(), StatusCode::kResourceExhausted);
  std::byte* const pinned = twin.AllocatePinned(64).value();
  twin.FreePinned(pinned);
  twin.Free(memory);
}

TEST(TwinMemory, GivesEverythingBackToItsSource) {
  FailingMemory source;
  {
    Twin twin({.memory = &source});
    source.FailCall(2);
    std::byte* const memory = twin.Allocate(64).value();
    EXPECT_EQ(twin.Allocate(64).status().code(), StatusCode::kResourceExhausted);
    EXPECT_TRUE(twin.AllocatePinned(64).ok());  // freed by the twin's end
    EXPECT_EQ(source.outstanding(), 2u);
    twin.Free(memory);
    EXPECT_EQ(source.outstanding(), 1u);
    twin.Free(nullptr);
    twin.FreePinned(nullptr);
  }
  EXPECT_EQ(source.outstanding(), 0u);
  EXPECT_EQ(source.misuses(), 0u);
}

TEST(TwinMemory, IsFreedBehindTheWorkThatUsesIt) {
  Twin twin({});
  DeviceArrays arrays(&twin);
  const std::vector<std::byte> bytes(64, std::byte{7});
  const std::span<std::byte> copy = arrays.Pinned<std::byte>(64);
  std::byte* const memory = twin.Allocate(64).value();
  twin.Copy(memory, bytes.data(), 64);
  twin.Copy(copy.data(), memory, 64);
  twin.Free(memory);
  EXPECT_EQ(copy[63], std::byte{7});
}

TEST(TwinMemory, HasAnyContentsAtFirst) {
  Twin twin({});
  DeviceArrays arrays(&twin);
  EXPECT_NE(arrays.Download(arrays.Memory(64), 64), std::vector<std::byte>(64));
}

TEST(CudaDevice, IsNotInABuildWithoutCuda) {
  if (CudaBuildInfo() != nullptr) GTEST_SKIP() << "a build with CUDA: " << CudaBuildInfo();
  EXPECT_EQ(OpenCudaDevice(0).status().code(), StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace embank::test::twin_memory_test
