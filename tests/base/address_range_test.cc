#include "base/memory/address_range.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <utility>

#include "tests/support/failing_memory.h"

namespace embank::test::address_range_test {
namespace {

constexpr uint64_t kBytes = 4 * kHugePageBytes;

TEST(AddressRange, HoldsAddressesUntilItsEnd) {
  FailingMemory memory;
  {
    const StatusOr<AddressRange> range = AddressRange::Reserve(&memory, kBytes);
    ASSERT_TRUE(range.ok());
    EXPECT_NE(range->data(), nullptr);
    EXPECT_EQ(range->bytes(), kBytes);
    EXPECT_EQ(memory.outstanding(), 1u);
  }
  EXPECT_EQ(memory.outstanding(), 0u);
  EXPECT_EQ(memory.misuses(), 0u);
}

TEST(AddressRange, CommitsPartsThatComeZeroedAndGoOneByOne) {
  FailingMemory memory;
  const StatusOr<AddressRange> range = AddressRange::Reserve(&memory, kBytes);
  ASSERT_TRUE(range.ok());
  ASSERT_TRUE(range->Commit(kHugePageBytes, 2 * kHugePageBytes).ok());
  std::byte* const part = range->data() + kHugePageBytes;
  EXPECT_EQ(part[2 * kHugePageBytes - 1], std::byte{0});
  std::memset(part, 0x5A, 2 * kHugePageBytes);
  range->Decommit(kHugePageBytes, kHugePageBytes);
  EXPECT_EQ(part[kHugePageBytes], std::byte{0x5A}) << "the other page stays";
  ASSERT_TRUE(range->Commit(kHugePageBytes, kHugePageBytes).ok());
  EXPECT_EQ(part[0], std::byte{0});
  EXPECT_EQ(memory.misuses(), 0u);
}

TEST(AddressRange, AMovedOneIsGivenBackOnceByItsNewOwner) {
  FailingMemory memory;
  std::optional<AddressRange> owner;
  {
    StatusOr<AddressRange> range = AddressRange::Reserve(&memory, kBytes);
    ASSERT_TRUE(range.ok());
    const std::byte* const data = range->data();
    owner.emplace(*std::move(range));
    EXPECT_EQ(owner->data(), data);
    EXPECT_EQ(owner->bytes(), kBytes);
  }
  EXPECT_EQ(memory.outstanding(), 1u) << "the former owner's end gives nothing back";
  owner.reset();
  EXPECT_EQ(memory.outstanding(), 0u);
  EXPECT_EQ(memory.misuses(), 0u);
}

TEST(AddressRange, FailuresAreToldAndChangeNothing) {
  FailingMemory memory;
  memory.FailCall(1);
  EXPECT_EQ(AddressRange::Reserve(&memory, kBytes).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(memory.outstanding(), 0u);
  const StatusOr<AddressRange> range = AddressRange::Reserve(&memory, kBytes);
  ASSERT_TRUE(range.ok());
  memory.FailCall(1);
  EXPECT_EQ(range->Commit(0, kHugePageBytes).code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(range->Commit(0, kHugePageBytes).ok());
}

}  // namespace
}  // namespace embank::test::address_range_test
