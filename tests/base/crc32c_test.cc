#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/random.h"

namespace embank::test::crc32c_test {
namespace {

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

uint32_t Crc(const std::string& text) { return ExtendCrc32c(0, BytesOf(text)); }

// Bit by bit, from the definition of the polynomial.
uint32_t CrcByBits(std::span<const std::byte> data) {
  uint32_t state = 0xFFFFFFFFu;
  for (const std::byte byte : data) {
    state ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ (state & 1 ? 0x82F63B78u : 0u);
  }
  return ~state;
}

std::vector<std::byte> RandomBytes(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Below(256));
  return bytes;
}

TEST(Crc32c, GivesThePublishedCheckValue) { EXPECT_EQ(Crc("123456789"), 0xE3069283u); }

// RFC 3720, B.4.
TEST(Crc32c, GivesTheVectorsOfIscsi) {
  std::string rising(32, '\0');
  for (size_t i = 0; i < rising.size(); ++i) rising[i] = static_cast<char>(i);
  const std::string falling(rising.rbegin(), rising.rend());
  EXPECT_EQ(Crc(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(Crc(rising), 0x46DD794Eu);
  EXPECT_EQ(Crc(falling), 0x113FDB5Cu);
  const uint8_t scsi_read[48] = {0x01, 0xC0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0,
                                 0x14, 0,    0, 0, 0, 0, 4, 0, 0, 0, 0, 0x14, 0, 0, 0, 0x18,
                                 0x28, 0,    0, 0, 0, 0, 0, 0, 2, 0, 0, 0,    0, 0, 0, 0};
  EXPECT_EQ(ExtendCrc32c(0, std::as_bytes(std::span(scsi_read))), 0xD9963A56u);
}

TEST(Crc32c, TheCrcOfNothingIsZeroAndExtendingByNothingChangesNothing) {
  EXPECT_EQ(ExtendCrc32c(0, {}), 0u);
  EXPECT_EQ(ExtendCrc32c(0x12345678u, {}), 0x12345678u);
  EXPECT_EQ(ExtendCrc32cPortable(0x12345678u, {}), 0x12345678u);
}

TEST(Crc32c, InstructionAndTableAndBitsAgreeAtEveryLengthAndAlignment) {
  const std::vector<std::byte> bytes = RandomBytes(1400, 1);
  for (size_t length = 0; length <= 1390; ++length) {
    for (size_t offset = 0; offset < 8; ++offset) {
      const auto part = std::span(bytes).subspan(offset, length);
      const uint32_t expected = CrcByBits(part);
      ASSERT_EQ(ExtendCrc32c(0, part), expected) << length << " bytes at " << offset;
      ASSERT_EQ(ExtendCrc32cPortable(0, part), expected) << length << " bytes at " << offset;
    }
  }
}

TEST(Crc32c, ExtendedInPartsIsThatOfTheWhole) {
  const std::vector<std::byte> bytes = RandomBytes(200, 2);
  const uint32_t whole = CrcByBits(bytes);
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    const auto first = std::span(bytes).first(cut);
    const auto second = std::span(bytes).subspan(cut);
    ASSERT_EQ(ExtendCrc32c(ExtendCrc32c(0, first), second), whole) << "cut at " << cut;
    ASSERT_EQ(ExtendCrc32cPortable(ExtendCrc32cPortable(0, first), second), whole)
        << "cut at " << cut;
  }
}

TEST(Crc32c, EveryFlippedBitShows) {
  std::vector<std::byte> bytes = RandomBytes(67, 3);
  const uint32_t whole = ExtendCrc32c(0, bytes);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const auto mask = static_cast<std::byte>(1u << (bit % 8));
    bytes[bit / 8] ^= mask;
    ASSERT_NE(ExtendCrc32c(0, bytes), whole) << "bit " << bit;
    bytes[bit / 8] ^= mask;
  }
}

TEST(Crc32c, NamesItsImplementation) {
  const std::string name = Crc32cImplementation();
#if defined(__x86_64__)
  const bool has_instructions =
      __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
  EXPECT_EQ(name, has_instructions ? "sse4.2" : "table");
#else
  EXPECT_EQ(name, "table");
#endif
}

}  // namespace
}  // namespace embank::test::crc32c_test
