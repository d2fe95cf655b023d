#include "tiers/segment/segment_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/random.h"

namespace embank::test::segment_format_test {
namespace {

constexpr uint64_t kSegmentBytes = uint64_t{64} << 20;

SegmentHeader HeaderOf(uint32_t record_bytes, uint64_t segment_bytes) {
  return {.store_id = 0x1122334455667788,
          .segment_id = 9,
          .row_class = 3,
          .record_bytes = record_bytes,
          .segment_bytes = segment_bytes};
}

// Aligned as the spans of a decoded footer need it.
using Words = std::vector<uint64_t>;
std::span<std::byte> BytesOf(Words* words) { return std::as_writable_bytes(std::span(*words)); }

// ---- geometry ----

TEST(SegmentGeometry, SlotsLieBetweenHeaderAndFooterAndFillThePlace) {
  for (const uint64_t segment_bytes : {uint64_t{12288}, uint64_t{65536}, kSegmentBytes}) {
    for (const uint32_t record_bytes : {48u, 64u, 288u, 544u, 2080u, 4112u, 49232u}) {
      const SegmentGeometry geometry = SegmentGeometry::Of(record_bytes, segment_bytes);
      if (record_bytes + 2 * kBlockBytes > segment_bytes) {
        EXPECT_EQ(geometry.slots, 0u);
        continue;
      }
      ASSERT_GT(geometry.slots, 0u) << record_bytes << " in " << segment_bytes;
      EXPECT_EQ(geometry.footer_offset % kBlockBytes, 0u);
      EXPECT_EQ(geometry.footer_offset + geometry.footer_bytes, segment_bytes);
      EXPECT_LE(geometry.OffsetOf(geometry.slots), geometry.footer_offset);
      // One more slot would need more than is left.
      const uint64_t one_more = geometry.slots + uint64_t{1};
      const uint64_t footer = (one_more * 10 + 32 + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
      EXPECT_GT(geometry.OffsetOf(geometry.slots + 1) + footer, segment_bytes);
    }
  }
}

TEST(SegmentGeometry, TooSmallASegmentHasNoSlot) {
  for (const uint64_t bytes : {uint64_t{0}, kBlockBytes, 2 * kBlockBytes}) {
    EXPECT_EQ(SegmentGeometry::Of(48, bytes).slots, 0u);
  }
}

TEST(SegmentGeometry, KnowsWhichBytesBeginASlot) {
  const SegmentGeometry geometry = SegmentGeometry::Of(288, 65536);
  for (uint32_t slot = 0; slot < geometry.slots; ++slot) {
    EXPECT_TRUE(geometry.IsSlotAt(geometry.OffsetOf(slot)));
    EXPECT_EQ(geometry.SlotAt(geometry.OffsetOf(slot)), slot);
    EXPECT_FALSE(geometry.IsSlotAt(geometry.OffsetOf(slot) + 16));
  }
  EXPECT_FALSE(geometry.IsSlotAt(0));
  EXPECT_FALSE(geometry.IsSlotAt(geometry.OffsetOf(geometry.slots)));
}

TEST(SegmentGeometry, AFreshBlockSharesNoByteWithWhatIsWritten) {
  for (const uint32_t record_bytes : {48u, 256u, 288u, 4096u, 4112u, 8192u}) {
    const SegmentGeometry geometry = SegmentGeometry::Of(record_bytes, kSegmentBytes);
    for (uint32_t used = 0; used < 300; ++used) {
      const uint32_t slot = geometry.SlotInFreshBlock(used);
      const uint64_t end = geometry.OffsetOf(used);
      const uint64_t end_of_block = (end + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
      ASSERT_GE(geometry.OffsetOf(slot), end_of_block);
      if (slot == used) continue;
      ASSERT_LT(geometry.OffsetOf(slot - 1), end_of_block) << "a slot too many is left out";
    }
  }
}

// ---- header ----

TEST(SegmentHeader, ComesBackAsItWas) {
  std::vector<std::byte> block(kBlockBytes, std::byte{0xA5});
  EncodeSegmentHeader(HeaderOf(288, kSegmentBytes), block);
  EXPECT_EQ(*DecodeSegmentHeader(block), HeaderOf(288, kSegmentBytes));
}

TEST(SegmentHeader, StandsOnTheDiskAsWrittenDown) {
  std::vector<std::byte> block(kBlockBytes);
  EncodeSegmentHeader(HeaderOf(288, kSegmentBytes), block);
  const char* const bytes = reinterpret_cast<const char*>(block.data());
  EXPECT_EQ(std::string_view(bytes, 8), std::string_view("EMBSEG1\0", 8));
  const std::vector<uint8_t> rest = {1,    0,    0,    0,    3, 0, 0, 0, 0x88, 0x77, 0x66, 0x55,
                                     0x44, 0x33, 0x22, 0x11, 9, 0, 0, 0, 0,    0,    0,    0,
                                     0,    0,    0,    4,    0, 0, 0, 0, 0x20, 1,    0,    0};
  EXPECT_TRUE(
      std::equal(rest.begin(), rest.end(), reinterpret_cast<const uint8_t*>(block.data()) + 8));
}

TEST(SegmentHeader, EveryFlippedBitIsSeen) {
  std::vector<std::byte> block(kBlockBytes);
  EncodeSegmentHeader(HeaderOf(288, kSegmentBytes), block);
  for (size_t bit = 0; bit < 8 * block.size(); ++bit) {
    block[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    ASSERT_EQ(DecodeSegmentHeader(block).status().code(), StatusCode::kDataLoss) << bit;
    block[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
  }
}

uint32_t PlainCrc32c(std::span<const std::byte> bytes) {
  uint32_t crc = ~0u;
  for (const std::byte byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc % 2 != 0 ? 0x82F63B78u : 0);
  }
  return ~crc;
}

// Puts the right checksum under a block that another program wrote.
void Reseal(std::span<std::byte> block) {
  const uint32_t crc = PlainCrc32c(block.first(block.size() - 4));
  std::memcpy(block.data() + block.size() - 4, &crc, 4);
}

TEST(SegmentHeader, ANewerFormatIsNamedAndNonsenseIsDamage) {
  std::vector<std::byte> block(kBlockBytes);
  EncodeSegmentHeader(HeaderOf(288, kSegmentBytes), block);
  std::vector<std::byte> newer = block;
  newer[8] = std::byte{2};
  Reseal(newer);
  const Status refused = DecodeSegmentHeader(newer).status();
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(refused.message().find("version 2"), std::string_view::npos) << refused;
  // Sizes that a writer may choose, and that none does, with the right checksum.
  const auto code_of = [&](uint32_t record_bytes, uint64_t segment_bytes) {
    std::memcpy(block.data() + 32, &segment_bytes, 8);
    std::memcpy(block.data() + 40, &record_bytes, 4);
    Reseal(block);
    return DecodeSegmentHeader(block).status().code();
  };
  const uint64_t segment_bytes_max = kSegmentBytesMax;
  const std::vector<std::pair<uint32_t, uint64_t>> sense = {
      {48, 12288}, {288, kSegmentBytes}, {49232, segment_bytes_max}};
  const std::vector<std::pair<uint32_t, uint64_t>> nonsense = {
      {0, kSegmentBytes},
      {32, kSegmentBytes},
      {264, kSegmentBytes},
      {49248, kSegmentBytes},
      {288, 0},
      {288, kSegmentBytes + 1},
      {288, segment_bytes_max + 4096},
      {49232, 49152},
  };
  for (const auto& [record_bytes, segment_bytes] : sense) {
    EXPECT_EQ(code_of(record_bytes, segment_bytes), StatusCode::kOk)
        << record_bytes << " in " << segment_bytes;
  }
  for (const auto& [record_bytes, segment_bytes] : nonsense) {
    EXPECT_EQ(code_of(record_bytes, segment_bytes), StatusCode::kDataLoss)
        << record_bytes << " in " << segment_bytes;
  }
}

// ---- footer ----

class SegmentFooterTest : public testing::Test {
 protected:
  explicit SegmentFooterTest() : words_(geometry_.footer_bytes / 8, ~uint64_t{0}) {
    Random random(5);
    for (Key& key : keys_) key = random.Bits();
    for (TableId& table : tables_) table = static_cast<TableId>(random.Below(kTablesMax + 1));
  }
  void Encode(size_t slots) {
    EncodeSegmentFooter(header_, {std::span(keys_).first(slots), std::span(tables_).first(slots)},
                        BytesOf(&words_));
  }
  StatusCode CodeOfDecode(const SegmentHeader& header) {
    return DecodeSegmentFooter(header, BytesOf(&words_)).status().code();
  }

  const SegmentHeader header_ = HeaderOf(288, 65536);
  const SegmentGeometry geometry_ = SegmentGeometry::Of(288, 65536);
  std::vector<Key> keys_ = std::vector<Key>(geometry_.slots);
  std::vector<TableId> tables_ = std::vector<TableId>(geometry_.slots);
  Words words_;
};

TEST_F(SegmentFooterTest, ComesBackAsItWas) {
  for (const size_t slots : {size_t{0}, size_t{1}, keys_.size() / 2, keys_.size()}) {
    Encode(slots);
    const auto footer = DecodeSegmentFooter(header_, BytesOf(&words_));
    ASSERT_TRUE(footer.ok()) << footer.status();
    ASSERT_EQ(footer->keys.size(), slots);
    EXPECT_TRUE(std::equal(footer->keys.begin(), footer->keys.end(), keys_.begin()));
    EXPECT_TRUE(std::equal(footer->tables.begin(), footer->tables.end(), tables_.begin()));
    EXPECT_EQ(footer->tables.size(), slots);
  }
}

TEST_F(SegmentFooterTest, EveryFlippedBitIsSeen) {
  Encode(keys_.size());
  for (size_t bit = 0; bit < 64 * words_.size(); ++bit) {
    words_[bit / 64] ^= uint64_t{1} << bit % 64;
    ASSERT_EQ(CodeOfDecode(header_), StatusCode::kDataLoss) << bit;
    words_[bit / 64] ^= uint64_t{1} << bit % 64;
  }
}

TEST_F(SegmentFooterTest, IsOfItsSegmentOnly) {
  Encode(7);
  SegmentHeader other = header_;
  other.segment_id += 1;
  EXPECT_EQ(CodeOfDecode(other), StatusCode::kDataLoss) << "swapped segments";
  other = header_;
  other.store_id += 1;
  EXPECT_EQ(CodeOfDecode(other), StatusCode::kDataLoss) << "another store's";
  EXPECT_EQ(CodeOfDecode(header_), StatusCode::kOk);
  words_.resize(words_.size() / 2);
  EXPECT_EQ(CodeOfDecode(header_), StatusCode::kDataLoss) << "truncated";
}

TEST_F(SegmentFooterTest, ATableThatNoWriterHasIsDamage) {
  const auto code_with = [&](TableId table) {
    Encode(7);
    const std::span<std::byte> bytes = BytesOf(&words_);
    std::memcpy(bytes.data() + 7 * sizeof(Key) + 6 * sizeof(TableId), &table, sizeof table);
    Reseal(bytes);
    return CodeOfDecode(header_);
  };
  EXPECT_EQ(code_with(kNoTable), StatusCode::kOk);
  EXPECT_EQ(code_with(kNoTable + 1), StatusCode::kDataLoss);
}

TEST_F(SegmentFooterTest, AFooterThatAReaderRefusesIsNotWritten) {
  tables_[6] = kNoTable + 1;
  EXPECT_DEATH(Encode(7), "broken");
  Encode(6);
  const SegmentHeader unsound = HeaderOf(288, 2 * kBlockBytes);
  EXPECT_DEATH(EncodeSegmentFooter(unsound, {}, {}), "broken");
  EXPECT_DEATH(DecodeSegmentFooter(unsound, {}).status().IgnoreError(), "broken");
}

TEST_F(SegmentFooterTest, AnUnwrittenPlaceIsNoFooter) {
  std::fill(words_.begin(), words_.end(), uint64_t{0});
  EXPECT_EQ(CodeOfDecode(header_), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace embank::test::segment_format_test
