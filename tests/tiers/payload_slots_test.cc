// Slots of device memory: each has a place of its own, and pages serve other sizes when they are
// empty.
#include "tiers/hbm/payload_slots.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "tests/support/random.h"

namespace embank::test::payload_slots_test {
namespace {

constexpr uint64_t kPageBytes = PayloadSlots::kBytesMin;

TEST(PayloadSlots, FillTheirMemory) {
  PayloadSlots slots(4 * kPageBytes);
  uint64_t taken = 0;
  while (slots.Take(256).has_value()) ++taken;
  EXPECT_EQ(taken, 4 * kPageBytes / 256);
  EXPECT_EQ(slots.taken_bytes(), slots.bytes());
  EXPECT_EQ(slots.FreeSlots(256), 0u);
}

TEST(PayloadSlots, ThePayloadOfTheLargestRowFitsOnce) {
  PayloadSlots slots(PayloadSlots::kBytesMin);
  EXPECT_EQ(slots.Take(49'168), 0u);
  EXPECT_FALSE(slots.Take(49'168).has_value());
  EXPECT_FALSE(slots.Take(16).has_value()) << "the page serves one size";
}

TEST(PayloadSlots, SlotsOfAPageServeAnotherSizeWhenAllAreFree) {
  PayloadSlots slots(kPageBytes);
  const uint64_t first = *slots.Take(1024);
  const uint64_t second = *slots.Take(1024);
  slots.Free(first);
  EXPECT_FALSE(slots.Take(512).has_value());
  slots.Free(second);
  EXPECT_EQ(slots.FreeSlots(512), kPageBytes / 512);
  EXPECT_TRUE(slots.Take(512).has_value());
}

TEST(PayloadSlots, HavePagesOfAnEighthOfAPercentAtMostUpToALimit) {
  EXPECT_EQ(PayloadSlots::PageBytesOf(1), PayloadSlots::kBytesMin);
  EXPECT_EQ(PayloadSlots::PageBytesOf(uint64_t{1} << 28), uint64_t{1} << 20);
  EXPECT_EQ(PayloadSlots::PageBytesOf(uint64_t{1} << 40), PayloadSlots::kPageBytesMax);
}

// Random sizes come and go: no two taken slots overlap, and all of them end.
TEST(PayloadSlots, NeverOverlap) {
  Random random(7);
  PayloadSlots slots(16 * kPageBytes);
  std::map<uint64_t, uint32_t> taken;  // bytes by offset
  uint64_t refused = 0;
  for (int i = 0; i < 50'000; ++i) {
    if (random.OneIn(2) || taken.empty()) {
      const auto bytes = static_cast<uint32_t>(16 * random.Between(1, 6) * random.Between(1, 40));
      const auto offset = slots.Take(bytes);
      if (!offset.has_value()) {
        ++refused;
        continue;
      }
      ASSERT_EQ(*offset % 16, 0u);
      ASSERT_LE(*offset + bytes, slots.bytes());
      const auto [at, is_new] = taken.emplace(*offset, bytes);
      ASSERT_TRUE(is_new);
      if (at != taken.begin()) {
        ASSERT_LE(std::prev(at)->first + std::prev(at)->second, *offset);
      }
      if (std::next(at) != taken.end()) {
        ASSERT_LE(*offset + bytes, std::next(at)->first);
      }
    } else {
      auto at = taken.lower_bound(random.Below(slots.bytes()));
      if (at == taken.end()) at = taken.begin();
      slots.Free(at->first);
      taken.erase(at);
    }
  }
  for (const auto& [offset, bytes] : taken) slots.Free(offset);
  EXPECT_EQ(slots.taken_bytes(), 0u);
  EXPECT_GT(refused, 0u);
}

}  // namespace
}  // namespace embank::test::payload_slots_test
