#include "tiers/space/log_memory.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

namespace embank::test::log_memory_test {
namespace {

constexpr uint64_t kSegmentBytes = uint64_t{1} << 20;
const SegmentGeometry kNarrow = SegmentGeometry::Of(48, kSegmentBytes);
const SegmentGeometry kWide = SegmentGeometry::Of(4096, kSegmentBytes);

// A budget that others fill to the last byte once the classes are there.
class FullBudget {
 public:
  FullBudget() : budget_(uint64_t{64} << 20), memory_(SystemMemorySource(), &budget_) {
    EXPECT_TRUE(memory_.AddClass(kNarrow).ok());
    EXPECT_TRUE(memory_.AddClass(kWide).ok());
    Fill();
  }
  ~FullBudget() { budget_.Release(others_bytes_); }
  void Fill() {
    const uint64_t left = budget_.free_bytes();
    EXPECT_TRUE(budget_.Charge(left).ok());
    others_bytes_ += left;
  }
  // The other classes release this much.
  void Give(uint64_t bytes) {
    budget_.Release(bytes);
    others_bytes_ -= bytes;
  }
  LogMemory& memory() { return memory_; }
  MemoryBudget& budget() { return budget_; }

 private:
  MemoryBudget budget_;
  uint64_t others_bytes_ = 0;
  LogMemory memory_;
};

TEST(LogMemory, ASegmentOfEachClassAndOneOfCompactionIsReserved) {
  FullBudget full;
  const auto narrow = full.memory().Owners(LogStream::kUser, kNarrow);
  const auto wide = full.memory().Owners(LogStream::kUser, kWide);
  const auto compaction = full.memory().Owners(LogStream::kCompaction, kNarrow);
  const auto footer = full.memory().Footer(kNarrow);
  EXPECT_TRUE(narrow.ok() && wide.ok() && compaction.ok() && footer.ok());
  EXPECT_FALSE(full.memory().Owners(LogStream::kUser, kNarrow).ok()) << "a second one of its class";
  EXPECT_FALSE(full.memory().Owners(LogStream::kCompaction, kWide).ok());
  EXPECT_FALSE(full.memory().Footer(kWide).ok());
}

TEST(LogMemory, FreeMemoryServesMoreSegments) {
  FullBudget full;
  full.Give(uint64_t{1} << 20);
  std::vector<AlignedBuffer> owners;
  for (int i = 0; i < 2; ++i) {
    auto more = full.memory().Owners(LogStream::kUser, kNarrow);
    ASSERT_TRUE(more.ok()) << i;
    owners.push_back(*std::move(more));
  }
  owners.clear();
  EXPECT_EQ(full.budget().free_bytes(), uint64_t{1} << 20) << "it was given back";
}

TEST(LogMemory, BitsThatAreReservedAreThereWhateverFillsTheBudget) {
  FullBudget full;
  const uint64_t bytes = 3 * LogMemory::BitBytes(kNarrow);
  EXPECT_FALSE(full.memory().ReserveBits(bytes));
  EXPECT_FALSE(full.memory().Bits(LogStream::kUser, kNarrow).ok());
  full.Give(bytes);
  ASSERT_TRUE(full.memory().ReserveBits(bytes));
  EXPECT_EQ(full.budget().free_bytes(), 0u);
  EXPECT_FALSE(full.memory().Bits(LogStream::kCompaction, kNarrow).ok()) << "not compaction's";
  {
    std::vector<ChargedWords> bits;
    for (int i = 0; i < 3; ++i) {
      auto one = full.memory().Bits(LogStream::kUser, kNarrow);
      ASSERT_TRUE(one.ok()) << i;
      bits.push_back(*std::move(one));
    }
    EXPECT_FALSE(full.memory().Bits(LogStream::kUser, kNarrow).ok());
  }
  EXPECT_EQ(full.budget().free_bytes(), bytes) << "segments give theirs back";
}

TEST(LogMemory, MemoryThatBitsNoLongerNeedGoesBack) {
  FullBudget full;
  full.Give(uint64_t{1} << 20);
  ASSERT_TRUE(full.memory().ReserveBits(uint64_t{1} << 20));
  EXPECT_EQ(full.budget().free_bytes(), 0u);
  ASSERT_TRUE(full.memory().ReserveBits(0));
  EXPECT_GE(full.budget().free_bytes(), (uint64_t{1} << 20) - (uint64_t{32} << 10));
}

TEST(LogMemory, AClassForWhichThereIsNoMemoryIsRefused) {
  MemoryBudget budget(uint64_t{1} << 16);
  LogMemory memory(SystemMemorySource(), &budget);
  EXPECT_TRUE(IsResourceExhausted(memory.AddClass(kNarrow)));
  EXPECT_EQ(budget.used_bytes(), 0u);
  EXPECT_TRUE(memory.AddClass(kWide).ok());
  EXPECT_LE(budget.used_bytes(), LogMemory::ClassBytesMax(kWide));
}

TEST(LogMemory, WithoutALimitNothingIsReserved) {
  MemoryBudget budget(0);
  LogMemory memory(SystemMemorySource(), &budget);
  EXPECT_TRUE(memory.AddClass(kNarrow).ok());
  EXPECT_TRUE(memory.ReserveBits(uint64_t{1} << 40));
  EXPECT_EQ(budget.used_bytes(), 0u);
  EXPECT_TRUE(memory.Owners(LogStream::kUser, kNarrow).ok());
  EXPECT_TRUE(memory.Bits(LogStream::kUser, kNarrow).ok());
}

}  // namespace
}  // namespace embank::test::log_memory_test
