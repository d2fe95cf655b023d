#include "bench/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/bench/temporary_file.h"

namespace embank::trace_test {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Key kLargest = std::numeric_limits<Key>::max();
constexpr char kTextLines[] = "7\n18446744073709551615\n0\n";

// kTextLines, by the zstd program: one frame with a checksum.
const std::string& CompressedLines() {
  static const unsigned char kBytes[] = {0x28, 0xb5, 0x2f, 0xfd, 0x24, 0x19, 0xc9, 0x00, 0x00, 0x37,
                                         0x0a, 0x31, 0x38, 0x34, 0x34, 0x36, 0x37, 0x34, 0x34, 0x30,
                                         0x37, 0x33, 0x37, 0x30, 0x39, 0x35, 0x35, 0x31, 0x36, 0x31,
                                         0x35, 0x0a, 0x30, 0x0a, 0x05, 0x0d, 0x5b, 0x32};
  static const std::string frame(reinterpret_cast<const char*>(kBytes), sizeof(kBytes));
  return frame;
}

// 1, 2^64 - 1 and 0x0123456789ABCDEF in 8 bytes each, by the zstd program.
const std::string& CompressedWords() {
  static const unsigned char kBytes[] = {0x28, 0xb5, 0x2f, 0xfd, 0x24, 0x18, 0x9d, 0x00,
                                         0x00, 0x60, 0x00, 0x00, 0x01, 0xff, 0x01, 0x23,
                                         0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x02, 0x00,
                                         0x20, 0x71, 0x0b, 0xb0, 0x69, 0xac, 0x7c, 0xee};
  static const std::string frame(reinterpret_cast<const char*>(kBytes), sizeof(kBytes));
  return frame;
}

std::string BigEndian(uint64_t word, size_t bytes) {
  std::string text;
  for (size_t i = bytes; i-- > 0;) text.push_back(static_cast<char>(word >> (8 * i)));
  return text;
}

// The whole trace, read a few keys at a time.
StatusOr<std::vector<Key>> ReadAll(const TemporaryFile& file, size_t keys_at_once = 3,
                                   std::optional<TraceFormat> format = std::nullopt) {
  StatusOr<std::unique_ptr<TraceReader>> reader = TraceReader::Open(file.path(), format);
  if (!reader.ok()) return reader.status();
  std::vector<Key> all;
  std::vector<Key> part(keys_at_once);
  for (;;) {
    const StatusOr<size_t> count = (*reader)->Read(part);
    if (!count.ok()) return count.status();
    if (*count == 0) return all;
    all.insert(all.end(), part.begin(), part.begin() + static_cast<ptrdiff_t>(*count));
  }
}

std::string FailureOf(const TemporaryFile& file) {
  const StatusOr<std::vector<Key>> keys = ReadAll(file);
  EXPECT_EQ(keys.status().code(), StatusCode::kDataLoss);
  return std::string(keys.status().message());
}

TEST(Trace, ReadsBigEndianWordsOf64Bits) {
  const TemporaryFile file(".trace", BigEndian(1, 8) + BigEndian(kLargest, 8) +
                                         BigEndian(0x0123456789ABCDEF, 8) + BigEndian(0, 8));
  EXPECT_THAT(*ReadAll(file), ElementsAre(1, kLargest, 0x0123456789ABCDEF, 0));
}

TEST(Trace, ReadsBigEndianWordsOf32Bits) {
  const std::string contents =
      BigEndian(1, 4) + BigEndian(0xFFFFFFFF, 4) + BigEndian(0x01234567, 4);
  EXPECT_THAT(*ReadAll(TemporaryFile(".trc.bin", contents)),
              ElementsAre(1, 0xFFFFFFFF, 0x01234567));
  EXPECT_THAT(*ReadAll(TemporaryFile(".bin", contents)), ElementsAre(1, 0xFFFFFFFF, 0x01234567));
}

TEST(Trace, ReadsLinesWithAndWithoutTheLastNewline) {
  EXPECT_THAT(*ReadAll(TemporaryFile(".txt", kTextLines)), ElementsAre(7, kLargest, 0));
  EXPECT_THAT(*ReadAll(TemporaryFile(".txt", "5\n007")), ElementsAre(5, 7));
}

TEST(Trace, ReadsCompressedFiles) {
  EXPECT_THAT(*ReadAll(TemporaryFile(".txt.zst", CompressedLines())), ElementsAre(7, kLargest, 0));
  EXPECT_THAT(*ReadAll(TemporaryFile(".trace.zst", CompressedWords())),
              ElementsAre(1, kLargest, 0x0123456789ABCDEF));
}

TEST(Trace, IsEmptyWhenTheFileIs) {
  EXPECT_THAT(*ReadAll(TemporaryFile(".txt")), IsEmpty());
  EXPECT_THAT(*ReadAll(TemporaryFile(".trace")), IsEmpty());
  EXPECT_THAT(*ReadAll(TemporaryFile(".bin")), IsEmpty());
}

// 30,000 frames hold 720,000 bytes of text: several buffers, whose ends fall into lines.
TEST(Trace, ReadsFilesLargerThanItsBuffers) {
  constexpr size_t kFrames = 30000;
  std::string frames;
  std::string words;
  for (size_t i = 0; i < kFrames; ++i) {
    frames += CompressedLines();
    words += BigEndian(i, 8);
  }
  for (const size_t keys_at_once : {1u, 1000u, 1000000u}) {
    const std::vector<Key> lines = *ReadAll(TemporaryFile(".txt.zst", frames), keys_at_once);
    ASSERT_EQ(lines.size(), 3 * kFrames);
    for (size_t i = 0; i < lines.size(); i += 3) {
      ASSERT_THAT(std::vector<Key>(lines.begin() + static_cast<ptrdiff_t>(i),
                                   lines.begin() + static_cast<ptrdiff_t>(i + 3)),
                  ElementsAre(7, kLargest, 0));
    }
  }
  const std::vector<Key> keys = *ReadAll(TemporaryFile(".trace", words), 777);
  ASSERT_EQ(keys.size(), kFrames);
  for (size_t i = 0; i < kFrames; ++i) ASSERT_EQ(keys[i], i);
}

TEST(Trace, NamesTheBrokenLine) {
  EXPECT_THAT(FailureOf(TemporaryFile(".txt", "1\n2\n3x\n4\n")),
              HasSubstr(".txt:3: 'x' in column 2, a decimal key expected"));
  EXPECT_THAT(FailureOf(TemporaryFile(".txt", "-1\n")), HasSubstr(".txt:1: '-' in column 1"));
  EXPECT_THAT(FailureOf(TemporaryFile(".txt", "1\r\n")),
              HasSubstr(".txt:1: byte 0x0D in column 2"));
  EXPECT_THAT(FailureOf(TemporaryFile(".txt", "1\n\n2\n")), HasSubstr(".txt:2: empty line"));
  EXPECT_THAT(FailureOf(TemporaryFile(".txt", "1\n18446744073709551616\n")),
              HasSubstr(".txt:2: key above 18446744073709551615"));
  EXPECT_THAT(FailureOf(TemporaryFile(".txt", "99999999999999999999999\n")),
              HasSubstr(".txt:1: key above"));
}

TEST(Trace, NamesTheOffsetOfACutOffRecord) {
  EXPECT_THAT(FailureOf(TemporaryFile(".trace", BigEndian(1, 8) + BigEndian(2, 8) + "abc")),
              EndsWith(".trace: byte 16: the last record has 3 bytes instead of 8"));
  EXPECT_THAT(FailureOf(TemporaryFile(".bin", BigEndian(1, 4) + "a")),
              EndsWith(".bin: byte 4: the last record has 1 bytes instead of 4"));
}

TEST(Trace, NamesTheDamageOfACompressedFile) {
  std::string rotten = CompressedLines();
  rotten[20] = static_cast<char>(rotten[20] ^ 1);  // a digit: only the checksum tells
  EXPECT_THAT(FailureOf(TemporaryFile(".txt.zst", rotten)),
              HasSubstr("damaged .zst: Restored data doesn't match checksum"));
  EXPECT_THAT(FailureOf(TemporaryFile(".txt.zst", "plain text")),
              HasSubstr(":1: 'p' in column 1, a decimal key expected"));
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{9}, CompressedLines().size() - 1}) {
    EXPECT_THAT(FailureOf(TemporaryFile(".txt.zst", CompressedLines().substr(0, bytes))),
                HasSubstr("truncated .zst: frame incomplete"))
        << bytes;
  }
}

TEST(Trace, RepeatsItsFailure) {
  const TemporaryFile file(".txt", "1\nx\n2\n");
  const std::unique_ptr<TraceReader> reader = *TraceReader::Open(file.path(), std::nullopt);
  std::vector<Key> keys(1);
  EXPECT_EQ(*reader->Read(keys), 1u);
  const Status failure = reader->Read(keys).status();
  EXPECT_EQ(failure.code(), StatusCode::kDataLoss);
  EXPECT_EQ(reader->Read(keys).status(), failure);
}

TEST(Trace, KnowsHowFarItIs) {
  const TemporaryFile file(".txt", "1\n2\n");
  const std::unique_ptr<TraceReader> reader = *TraceReader::Open(file.path(), std::nullopt);
  EXPECT_EQ(reader->FractionRead(), 0.0);
  std::vector<Key> keys(8);
  EXPECT_EQ(*reader->Read(keys), 2u);
  EXPECT_EQ(reader->FractionRead(), 1.0);
}

TEST(Trace, TakesTheFormatThatItIsTold) {
  const TemporaryFile file(".keys", "12\n");
  EXPECT_THAT(*ReadAll(file, 3, TraceFormat::kText), ElementsAre(12));
  const Status status = ReadAll(file).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--trace-format"));
  EXPECT_EQ(*ParseTraceFormat("be64"), TraceFormat::kBigEndian64);
  EXPECT_EQ(*ParseTraceFormat("u32"), TraceFormat::kBigEndian32);
  EXPECT_EQ(*ParseTraceFormat("text"), TraceFormat::kText);
  EXPECT_FALSE(ParseTraceFormat("be32").ok());
}

TEST(Trace, NamesAFileThatIsNotThere) {
  const Status status = TraceReader::Open("/no/such/keys.txt", std::nullopt).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/no/such/keys.txt: cannot open"));
}

TEST(Trace, CannotReadAFolder) {
  const std::unique_ptr<TraceReader> reader =
      *TraceReader::Open(testing::TempDir(), TraceFormat::kText);
  std::vector<Key> keys(1);
  EXPECT_THAT(std::string(reader->Read(keys).status().message()), HasSubstr("cannot read"));
}

}  // namespace
}  // namespace embank::trace_test
