#include "train/ranks/part_buffer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace embank::test::part_buffer_test {
namespace {

TEST(PartBuffer, HasPartsOfWholeUnits) {
  PartBuffer buffer;
  for (const uint64_t bytes : {100, 3}) {
    buffer.Lay(std::vector<uint64_t>{bytes, 0, 16, bytes + 1});
    ASSERT_EQ(buffer.parts().size(), 4u);
    uint64_t end = 0;
    for (const ExchangePart& part : buffer.parts()) {
      EXPECT_EQ(part.begin, end);
      EXPECT_EQ(part.bytes % kExchangeUnitBytes, 0u);
      end += part.bytes;
    }
    EXPECT_EQ(buffer.parts()[1].bytes, 0u);
    EXPECT_EQ(buffer.parts()[2].bytes, 16u);
    std::memset(buffer.data(), 0xFF, end);
    buffer.ClearPadding(3, bytes + 1);
    for (uint64_t i = 0; i < end; ++i) {
      const bool is_padding = i > buffer.parts()[3].begin + bytes;
      EXPECT_EQ(buffer.data()[i], is_padding ? std::byte{0} : std::byte{0xFF}) << i;
    }
  }
}

TEST(PartBuffer, HasOnePartForAll) {
  PartBuffer buffer;
  buffer.LayOne(20, 3);
  ASSERT_EQ(buffer.parts().size(), 3u);
  for (const ExchangePart& part : buffer.parts()) {
    EXPECT_EQ(part.begin, 0u);
    EXPECT_EQ(part.bytes, 32u);
  }
}

}  // namespace
}  // namespace embank::test::part_buffer_test
