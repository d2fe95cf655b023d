#include "tiers/segment/log_record.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/support/random.h"

namespace embank::test::log_record_test {
namespace {

constexpr RecordPlace kPlace = {.store_id = 0x1122334455667788, .segment_id = 7, .slot = 3};
constexpr RecordHeader kHeader = {.crc = 0,
                                  .row_class = 2,
                                  .table = 4094,
                                  .key = 0xFEDCBA9876543210,
                                  .sequence = 1234567890123,
                                  .heat = 77,
                                  .checkpoint = 9};

std::vector<std::byte> Sealed(const RecordPlace& place, uint32_t bytes, uint64_t seed = 1) {
  std::vector<std::byte> record(bytes);
  Random random(seed);
  for (std::byte& byte : record) byte = static_cast<std::byte>(random.Bits());
  SealRecord(place, kHeader, record);
  return record;
}

TEST(LogRecord, IsTheRowWithALongerHeader) {
  for (const uint32_t dim : {1u, 16u, 64u, 4096u}) {
    for (const Optimizer optimizer : {Optimizer::kNone, Optimizer::kAdagrad, Optimizer::kAdam}) {
      const RowLayout layout = MakeRowLayout(dim, ValueType::kF32, optimizer);
      EXPECT_EQ(RecordBytesOf(layout.row_bytes), layout.row_bytes + 16);
      EXPECT_EQ(RecordBytesOf(layout.row_bytes) % 16, 0u);
      EXPECT_LE(RecordBytesOf(layout.row_bytes), kRecordBytesMax);
    }
  }
}

TEST(LogRecord, KeepsItsFieldsAndItsContents) {
  const std::vector<std::byte> record = Sealed(kPlace, 288);
  EXPECT_TRUE(RecordIsWhole(kPlace, record));
  const RecordHeader header = LoadRecordHeader(record);
  EXPECT_EQ(header.row_class, kHeader.row_class);
  EXPECT_EQ(header.table, kHeader.table);
  EXPECT_EQ(header.key, kHeader.key);
  EXPECT_EQ(header.sequence, kHeader.sequence);
  EXPECT_EQ(header.heat, kHeader.heat);
  EXPECT_EQ(header.checkpoint, kHeader.checkpoint);
  Random random(1);
  for (uint32_t i = 0; i < 288; ++i) {
    const auto byte = static_cast<std::byte>(random.Bits());
    if (i < 32) continue;
    ASSERT_EQ(record[i], byte) << i;
  }
}

// Byte by byte, as docs/file_formats.md has it; the checksum worked out apart from this library.
TEST(LogRecord, StandsOnTheDiskAsWrittenDown) {
  std::vector<std::byte> record(48);
  for (uint32_t i = 32; i < 48; ++i) record[i] = static_cast<std::byte>(i);
  SealRecord(kPlace, kHeader, record);
  const std::vector<uint8_t> expected = {0x02, 0x00, 0xFE, 0x0F, 0x10, 0x32, 0x54, 0x76, 0x98, 0xBA,
                                         0xDC, 0xFE, 0xCB, 0x04, 0xFB, 0x71, 0x1F, 0x01, 0x00, 0x00,
                                         0x4D, 0x00, 0x00, 0x00, 0x09, 0x00, 0x00, 0x00};
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(static_cast<uint8_t>(record[4 + i]), expected[i]) << "byte " << 4 + i;
  }
  EXPECT_EQ(LoadRecordHeader(record).crc, 0x7A722059u);
}

TEST(LogRecord, EveryFlippedBitIsSeen) {
  std::vector<std::byte> record = Sealed(kPlace, 80);
  for (size_t bit = 0; bit < 8 * record.size(); ++bit) {
    record[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    ASSERT_FALSE(RecordIsWhole(kPlace, record)) << "bit " << bit;
    record[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
  }
  EXPECT_TRUE(RecordIsWhole(kPlace, record));
}

TEST(LogRecord, IsWholeAtItsPlaceOnly) {
  const std::vector<std::byte> record = Sealed(kPlace, 288);
  RecordPlace other = kPlace;
  other.slot += 1;
  EXPECT_FALSE(RecordIsWhole(other, record)) << "misdirected within its segment";
  other = kPlace;
  other.segment_id += 1;
  EXPECT_FALSE(RecordIsWhole(other, record)) << "of another segment, or of a former use";
  other = kPlace;
  other.store_id += 1;
  EXPECT_FALSE(RecordIsWhole(other, record)) << "of another store";
}

TEST(LogRecord, ZerosAreNoRecord) {
  const std::vector<std::byte> zeros(288);
  EXPECT_FALSE(RecordIsWhole(kPlace, zeros));
  EXPECT_FALSE(RecordIsWhole({.store_id = 0, .segment_id = 0, .slot = 0}, zeros));
}

TEST(LogRecord, TornRecordsAreSeen) {
  const std::vector<std::byte> before = Sealed(kPlace, 288, 1);
  const std::vector<std::byte> after = Sealed(kPlace, 288, 2);
  for (size_t torn = 1; torn < after.size(); ++torn) {
    std::vector<std::byte> record = after;
    std::memcpy(record.data() + torn, before.data() + torn, before.size() - torn);
    const bool same = record == after || record == before;
    ASSERT_EQ(RecordIsWhole(kPlace, record), same) << torn;
  }
}

}  // namespace
}  // namespace embank::test::log_record_test
