#include "base/utf8.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

namespace embank::test::utf8_test {
namespace {

std::string Encode(uint32_t character) {
  const auto byte = [](uint32_t value) { return static_cast<char>(value); };
  const auto rest = [&](int shift) { return byte(0x80 | (character >> shift & 0x3F)); };
  if (character < 0x80) return {byte(character)};
  if (character < 0x800) return {byte(0xC0 | character >> 6), rest(0)};
  if (character < 0x10000) return {byte(0xE0 | character >> 12), rest(6), rest(0)};
  return {byte(0xF0 | character >> 18), rest(12), rest(6), rest(0)};
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint32_t kStep = 105;
#else
constexpr uint32_t kStep = 5;
#endif

TEST(Utf8, EveryCharacterIsAndNothingElseOfUpToThreeBytes) {
  std::set<std::string> characters;
  for (uint32_t character = 0; character < 0x110000; ++character) {
    const std::string text = Encode(character);
    const bool is_half = character >= 0xD800 && character < 0xE000;
    ASSERT_EQ(Utf8CharacterBytes(text), is_half ? 0 : text.size()) << character;
    if (text.size() <= 3 && !is_half) characters.insert(text);
  }
  for (uint32_t bytes = 0; bytes < 1u << 24; bytes += kStep) {
    const std::string text = {static_cast<char>(bytes >> 16), static_cast<char>(bytes >> 8),
                              static_cast<char>(bytes)};
    const size_t count = Utf8CharacterBytes(text);
    for (size_t n = 1; n <= 3; ++n) {
      ASSERT_EQ(characters.contains(text.substr(0, n)), count == n) << bytes;
    }
  }
}

TEST(Utf8, NothingBehindTheLastCharacterIsOneNorAnythingCutOff) {
  EXPECT_EQ(Utf8CharacterBytes(Encode(0x10FFFF)), 4u);
  EXPECT_EQ(Utf8CharacterBytes("\xF4\x90\x80\x80"), 0u);
  EXPECT_EQ(Utf8CharacterBytes("\xF0\x8F\xBF\xBF"), 0u);
  EXPECT_EQ(Utf8CharacterBytes("\xF5\x80\x80\x80"), 0u);
  EXPECT_EQ(Utf8CharacterBytes(""), 0u);
  EXPECT_EQ(Utf8CharacterBytes(Encode(0x10FFFF).substr(0, 3)), 0u);
}

TEST(Utf8, TellsWhereTheFirstWrongByteIs) {
  EXPECT_EQ(FirstNotUtf8(""), 0u);
  EXPECT_EQ(FirstNotUtf8("items"), 5u);
  EXPECT_EQ(FirstNotUtf8("caf\xC3\xA9"), 5u);
  EXPECT_EQ(FirstNotUtf8("caf\xE9 noir"), 3u);
}

}  // namespace
}  // namespace embank::test::utf8_test
