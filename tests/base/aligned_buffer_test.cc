#include "base/memory/aligned_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "base/memory/scratch.h"
#include "tests/support/failing_memory.h"

namespace embank::test::aligned_buffer_test {
namespace {

class AlignedBufferTest : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_EQ(budget_.used_bytes(), 0u) << "a charge was not given back";
    EXPECT_EQ(memory_.outstanding(), 0u) << "a mapping was not given back";
    EXPECT_EQ(memory_.misuses(), 0u);
  }
  AlignedBuffer Make(uint64_t bytes) {
    StatusOr<AlignedBuffer> buffer = AlignedBuffer::Create(&memory_, &budget_, bytes);
    EXPECT_TRUE(buffer.ok()) << buffer.status();
    return *std::move(buffer);
  }

  FailingMemory memory_;
  MemoryBudget budget_{64 << 20};
};

TEST_F(AlignedBufferTest, IsZeroedAlignedAndChargedInWholePages) {
  const std::pair<uint64_t, uint64_t> sizes[] = {
      {1, kSmallPageBytes},
      {kSmallPageBytes, kSmallPageBytes},
      {kSmallPageBytes + 1, 2 * kSmallPageBytes},
      {kHugePageBytes - 1, kHugePageBytes},
      {kHugePageBytes, kHugePageBytes},
      {kHugePageBytes + 1, 2 * kHugePageBytes},
  };
  for (const auto& [bytes, charged] : sizes) {
    const AlignedBuffer buffer = Make(bytes);
    EXPECT_EQ(AlignedBuffer::ChargedBytes(bytes), charged);
    EXPECT_EQ(buffer.size_bytes(), charged);
    EXPECT_EQ(budget_.used_bytes(), charged);
    const uint64_t alignment = charged >= kHugePageBytes ? kHugePageBytes : kSmallPageBytes;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % alignment, 0u) << bytes;
    const std::span<uint64_t> words = buffer.As<uint64_t>();
    EXPECT_EQ(words.size(), charged / sizeof(uint64_t));
    EXPECT_EQ(std::count(words.begin(), words.end(), 0u), std::ssize(words));
    std::fill(words.begin(), words.end(), ~uint64_t{0});
  }
}

TEST_F(AlignedBufferTest, MovesItsMemoryAndLeavesNothingBehind) {
  AlignedBuffer first = Make(10);
  std::byte* const data = first.data();
  AlignedBuffer second = std::move(first);
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(first.data(), nullptr);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(first.size_bytes(), 0u);
  EXPECT_TRUE(first.As<int>().empty());
  EXPECT_EQ(budget_.used_bytes(), kSmallPageBytes);
  second = Make(kHugePageBytes);
  EXPECT_EQ(budget_.used_bytes(), kHugePageBytes) << "the old memory was not given back";
  second = std::move(first);
  EXPECT_EQ(second.data(), nullptr);
  EXPECT_EQ(budget_.used_bytes(), 0u);
}

TEST_F(AlignedBufferTest, SurvivesBeingAssignedToItself) {
  AlignedBuffer buffer = Make(10);
  AlignedBuffer* const same = &buffer;
  buffer = std::move(*same);
  ASSERT_NE(buffer.data(), nullptr);
  EXPECT_EQ(buffer.size_bytes(), kSmallPageBytes);
}

TEST_F(AlignedBufferTest, WithoutAddressesGivesItsChargeBack) {
  memory_.FailCall(1);
  const auto buffer = AlignedBuffer::Create(&memory_, &budget_, 10);
  EXPECT_EQ(buffer.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(budget_.used_bytes(), 0u);
}

TEST_F(AlignedBufferTest, WithoutBudgetMapsNothing) {
  const auto buffer = AlignedBuffer::Create(&memory_, &budget_, (64 << 20) + 1);
  EXPECT_EQ(buffer.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(memory_.calls(), 0u);
}

TEST_F(AlignedBufferTest, TakesTheWholeBudgetAndNotAPageMore) {
  const AlignedBuffer all = Make(64 << 20);
  EXPECT_FALSE(AlignedBuffer::Create(&memory_, &budget_, 1).ok());
}

TEST(Scratch, HasSpaceInlineAndInTheHeap) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{8}, size_t{9}, size_t{10'000}}) {
    Scratch<uint32_t, 8> scratch;
    ASSERT_TRUE(scratch.Allocate(count).ok());
    const std::span<uint32_t> values = scratch.values();
    ASSERT_EQ(values.size(), count);
    const auto* const begin = reinterpret_cast<const std::byte*>(&scratch);
    const auto* const data = reinterpret_cast<const std::byte*>(values.data());
    EXPECT_EQ(data >= begin && data < begin + sizeof scratch, count <= 8) << count;
    std::fill(values.begin(), values.end(), 7u);
    EXPECT_EQ(std::count(values.begin(), values.end(), 7u), std::ssize(values));
  }
}

TEST(Scratch, IsEmptyBeforeItIsAllocated) {
  Scratch<uint32_t, 8> scratch;
  EXPECT_TRUE(scratch.values().empty());
}

// Not inlined: a compiler that saw nobody read the memory would leave the allocation out, and with
// it the failure.
__attribute__((noinline)) Status AllocateIn(Scratch<uint64_t, 8>* scratch, size_t count) {
  return scratch->Allocate(count);
}

TEST(Scratch, SaysWhenTheMachineHasNoMemory) {
  Scratch<uint64_t, 8> scratch;
  // A petabyte and more, which no heap hands out.
  EXPECT_EQ(AllocateIn(&scratch, size_t{1} << 56).code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(scratch.values().empty());
}

}  // namespace
}  // namespace embank::test::aligned_buffer_test

// Sanitizers stop at a failed malloc unless told that it is expected.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
  return "allocator_may_return_null=1";
}
