#include "base/memory/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/failing_memory.h"

namespace embank::test::memory_test {
namespace {

TEST(MemoryBudget, IsChargedToTheByte) {
  MemoryBudget budget(100);
  EXPECT_EQ(budget.limit_bytes(), 100u);
  EXPECT_TRUE(budget.Charge(60).ok());
  EXPECT_TRUE(budget.Charge(40).ok());
  EXPECT_EQ(budget.used_bytes(), 100u);
  EXPECT_TRUE(budget.Charge(0).ok());
  EXPECT_EQ(budget.Charge(1).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(budget.used_bytes(), 100u) << "a refused charge takes nothing";
  budget.Release(1);
  EXPECT_EQ(budget.Charge(2).code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(budget.Charge(1).ok());
  budget.Release(100);
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(MemoryBudget, RefusesHugeChargesWithoutWrappingAround) {
  MemoryBudget budget(100);
  ASSERT_TRUE(budget.Charge(10).ok());
  for (const uint64_t bytes : {uint64_t{91}, uint64_t{101}, ~uint64_t{0}, ~uint64_t{0} - 9}) {
    EXPECT_FALSE(budget.Charge(bytes).ok()) << bytes;
  }
  EXPECT_EQ(budget.used_bytes(), 10u);
}

TEST(MemoryBudget, NotesRefusalsWhenItIsAskedTo) {
  MemoryBudget budget(100);
  ASSERT_TRUE(budget.Charge(10).ok());
  EXPECT_FALSE(budget.Charge(91).ok());
  EXPECT_EQ(budget.refused_bytes(), 0u);
  budget.NoteRefusals(true);
  EXPECT_FALSE(budget.Charge(90, 5).ok());
  EXPECT_EQ(budget.refused_bytes(), 95u);
  EXPECT_EQ(budget.used_when_refused(), 10u);
}

TEST(MemoryBudget, ABudgetOfZeroHasNoLimitAndStillCounts) {
  MemoryBudget budget(0);
  ASSERT_TRUE(budget.Charge(uint64_t{1} << 50).ok());
  EXPECT_EQ(budget.used_bytes(), uint64_t{1} << 50);
  budget.Release(uint64_t{1} << 50);
}

TEST(MemoryBudget, RefusesWithoutAMessageWhichWouldNeedMemory) {
  MemoryBudget budget(100);
  const Status refused = budget.Charge(101);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.message(), "");
}

TEST(MemoryBudget, ConcurrentChargesNeverPassTheLimit) {
  constexpr uint64_t kLimit = 1000;
  MemoryBudget budget(kLimit);
  std::atomic<uint64_t> highest{0};
  std::atomic<uint64_t> refused{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20'000; ++i) {
        const uint64_t bytes = 290 + 10 * t;  // three fit, four do not
        if (!budget.Charge(bytes).ok()) {
          refused.fetch_add(1);
          continue;
        }
        const uint64_t used = budget.used_bytes();
        uint64_t before = highest.load();
        while (used > before && !highest.compare_exchange_weak(before, used)) {
        }
        budget.Release(bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(highest.load(), kLimit);
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(MemoryBudgetDeathTest, ReleasingMoreThanWasChargedIsADefectOfOurs) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        MemoryBudget budget(100);
        static_cast<void>(budget.Charge(1));
        budget.Release(2);
      },
      "broken");
}

bool AllZero(const std::byte* begin, uint64_t bytes) {
  return std::all_of(begin, begin + bytes, [](std::byte b) { return b == std::byte{0}; });
}

TEST(SystemMemory, MapsZeroedPagesAlignedToTheirSize) {
  for (const uint64_t bytes : {kSmallPageBytes, 3 * kSmallPageBytes, kHugePageBytes,
                               kHugePageBytes + kSmallPageBytes, 2 * kHugePageBytes}) {
    const StatusOr<std::byte*> address = SystemMemorySource()->Map(bytes);
    ASSERT_TRUE(address.ok()) << address.status();
    const uint64_t alignment = bytes >= kHugePageBytes ? kHugePageBytes : kSmallPageBytes;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(*address) % alignment, 0u) << bytes;
    EXPECT_TRUE(AllZero(*address, bytes)) << bytes;
    std::fill_n(*address, bytes, std::byte{0xFF});
    SystemMemorySource()->Unmap(*address, bytes);
  }
}

TEST(SystemMemory, CommitsReservedPagesZeroedAndAgainAfterADecommit) {
  MemorySource* const source = SystemMemorySource();
  constexpr uint64_t kReserved = 4 * kHugePageBytes;
  const StatusOr<std::byte*> base = source->Reserve(kReserved);
  ASSERT_TRUE(base.ok()) << base.status();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(*base) % kHugePageBytes, 0u);
  std::byte* const page = *base + kHugePageBytes;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(source->Commit(page, kHugePageBytes).ok());
    EXPECT_TRUE(AllZero(page, kHugePageBytes)) << "round " << round;
    std::fill_n(page, kHugePageBytes, std::byte{0xAB});
    source->Decommit(page, kHugePageBytes);
  }
  source->Unmap(*base, kReserved);
}

TEST(SystemMemoryDeathTest, ReservedAddressesHaveNoMemoryBehindThem) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        const StatusOr<std::byte*> base = SystemMemorySource()->Reserve(kHugePageBytes);
        **base = std::byte{1};
      },
      "");
}

TEST(SystemMemory, RefusesWhatTheAddressSpaceCannotHold) {
  const StatusOr<std::byte*> mapped = SystemMemorySource()->Map(uint64_t{1} << 60);
  EXPECT_EQ(mapped.status().code(), StatusCode::kResourceExhausted) << mapped.status();
  const StatusOr<std::byte*> reserved = SystemMemorySource()->Reserve(uint64_t{1} << 60);
  EXPECT_EQ(reserved.status().code(), StatusCode::kResourceExhausted);
}

TEST(SystemMemory, KnowsTheMachine) {
  EXPECT_GE(PhysicalMemoryBytes(), uint64_t{64} << 20);
  EXPECT_EQ(PhysicalMemoryBytes() % kSmallPageBytes, 0u);
}

TEST(RoundUp, GivesTheNextMultiple) {
  EXPECT_EQ(RoundUp(0, 16), 0u);
  EXPECT_EQ(RoundUp(1, 16), 16u);
  EXPECT_EQ(RoundUp(16, 16), 16u);
  EXPECT_EQ(RoundUp(17, 16), 32u);
}

// The injected source of the other tests must itself be trusted.
TEST(FailingMemory, FailsTheCallItWasToldToAndKeepsCount) {
  FailingMemory memory;
  memory.FailCall(2);
  const StatusOr<std::byte*> first = memory.Map(kSmallPageBytes);
  ASSERT_TRUE(first.ok());
  EXPECT_FALSE(memory.Reserve(kHugePageBytes).ok());
  const StatusOr<std::byte*> base = memory.Reserve(kHugePageBytes);
  ASSERT_TRUE(base.ok());
  EXPECT_TRUE(memory.Commit(*base, kHugePageBytes).ok());
  EXPECT_EQ(memory.outstanding(), 2u);
  EXPECT_EQ(memory.committed_bytes(), kHugePageBytes);
  EXPECT_EQ(memory.calls(), 4u);
  EXPECT_EQ(memory.failures(), 1u);
  memory.Unmap(*first, kSmallPageBytes);
  memory.Unmap(*base, kHugePageBytes);
  EXPECT_EQ(memory.outstanding(), 0u);
  EXPECT_EQ(memory.committed_bytes(), 0u);
  EXPECT_EQ(memory.misuses(), 0u);
}

}  // namespace
}  // namespace embank::test::memory_test
