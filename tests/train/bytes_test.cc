// The bytes and lines of files: packed ones, encodings, formats that are refused, ends of lines.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/str_cat.h"
#include "tests/bench/temporary_file.h"
#include "train/bytes/line_reader.h"
#include "train/bytes/text_source.h"

namespace embank::test::bytes_test {
namespace {

using std::string_literals::operator""s;
using testing::HasSubstr;
using Lines = std::vector<std::string>;

// All bytes of a source, in pieces of `piece`.
StatusOr<std::string> ReadAll(StatusOr<std::unique_ptr<ByteSource>> source, size_t piece = 1000) {
  if (!source.ok()) return source.status();
  std::string all;
  std::vector<std::byte> bytes(piece);
  for (;;) {
    const StatusOr<size_t> count = (*source)->Read(bytes);
    if (!count.ok()) return count.status();
    all.append(reinterpret_cast<const char*>(bytes.data()), *count);
    if (*count < piece) return all;
  }
}

StatusOr<std::string> TextOfFile(const std::string& contents, const std::string& ending = ".txt",
                                 size_t piece = 1000) {
  const TemporaryFile file(ending, contents);
  return ReadAll(OpenTextSource(file.path()), piece);
}

std::string MessageOf(const Status& status) { return std::string(status.message()); }

std::string Zeros() {
  std::string text;
  for (int i = 0; i < 1500; ++i) text += "0" + std::string(39, '\t') + "\n";
  return text;
}

// Zeros() by the gzip program, and by zstd.
std::string GzipOfZeros() {
  return "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xed\xca\x31\x0d\x00\x00\x08\x03\xb0\x1b"
         "\xd4\xcc\xbf\xba\x59\x20\xdc\xed\xdd\xcc\xcd\x46\x14\x45\x51\x14\x45\x51\x14\x45"
         "\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14"
         "\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51"
         "\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45"
         "\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14"
         "\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51"
         "\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45"
         "\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14"
         "\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x45\x51"
         "\x14\x45\x51\x14\x45\x51\x14\x45\x51\x14\x7f\xb1\xd7\x3f\x8a\x41\x3c\xf0\x00\x00"s;
}
std::string ZstdOfZeros() {
  return "\x28\xb5\x2f\xfd\x04\x68\x6d\x00\x00\x18\x30\x09\x0a\x02\x00\x10\x70\xa6\x74\xf1"
         "\x01\x58\x91\x47\x28\x26"s;
}

TEST(TextSource, UnpacksWhatTheFirstBytesSay) {
  const std::string skippable = "\x53\x2a\x4d\x18\x02\x00\x00\x00hi"s;
  for (const std::string& packed : {GzipOfZeros(), ZstdOfZeros(), skippable + ZstdOfZeros()}) {
    for (const char* const ending : {".txt", ".csv", ".gz", ".zst"}) {
      for (const size_t piece : {1u, 7u, 61'500u, 61'501u}) {
        EXPECT_EQ(*TextOfFile(packed, ending, piece), Zeros()) << ending << ", " << piece;
      }
    }
  }
  EXPECT_EQ(*TextOfFile("1,2\n", ".csv.gz"), "1,2\n") << "a download may have been unpacked";
  EXPECT_EQ(*TextOfFile("1,2\n", ".zst"), "1,2\n");
}

TEST(TextSource, UnpacksAllMembersOfAGzipFile) {
  EXPECT_EQ(*TextOfFile(GzipOfZeros() + GzipOfZeros()), Zeros() + Zeros());
  EXPECT_EQ(*TextOfFile(GzipOfZeros() + std::string(600, '\0')), Zeros()) << "blocks of a tape";
  const Status status = TextOfFile(GzipOfZeros() + "more").status();
  EXPECT_TRUE(IsDataLoss(status));
  EXPECT_THAT(MessageOf(status), HasSubstr("damaged .gz"));
}

TEST(TextSource, TellsAPackedFileThatIsCutOffOrDamaged) {
  for (const auto& [packed, ending] :
       {std::pair(GzipOfZeros(), ".gz"s), std::pair(GzipOfZeros() + GzipOfZeros(), ".gz"s),
        std::pair(ZstdOfZeros(), ".zst"s)}) {
    for (size_t size = 0; size < packed.size(); ++size) {
      if (size > 0 && size == packed.size() / 2 && ending == ".gz") continue;  // a whole member
      const Status status = TextOfFile(packed.substr(0, size), ending).status();
      EXPECT_TRUE(IsDataLoss(status)) << ending << ", " << size;
      EXPECT_THAT(MessageOf(status), HasSubstr(StrCat("truncated ", ending)));
    }
    std::string damaged = packed;
    damaged[packed.size() - 2] ^= 1;
    EXPECT_THAT(MessageOf(TextOfFile(damaged, ending).status()), HasSubstr("damaged " + ending));
  }
}

TEST(TextSource, RefusesOtherFormatsWithARemedy) {
  const std::string tar = std::string(257, 'a') + "ustar\0" + std::string(300, '\0');
  for (const auto& [head, name, remedy] :
       {std::tuple("PAR1\x15\x04"s, "a Parquet file", "pandas.read_parquet"),
        std::tuple("PK\x03\x04\x14"s, "an Excel or zip file", "save it as CSV"),
        std::tuple("BZh91AY&SY\x01"s, "a bzip2 file", "bunzip2"),
        std::tuple("\xFD"s + "7zXZ\0\0"s, "an xz file", "unxz"),
        std::tuple("ORC\x08\x03"s, "an ORC file", "pandas.read_orc"),
        std::tuple("Obj\x01\x04"s, "an Avro file", "write it as CSV"),
        std::tuple("\xFF\xFE\0\0a\0\0\0"s, "UTF-32", "UTF-8"),
        std::tuple(tar, "a tar file", "tar -xf")}) {
    const Status status = TextOfFile(head).status();
    EXPECT_TRUE(IsInvalidArgument(status)) << name;
    EXPECT_THAT(MessageOf(status), HasSubstr(name));
    EXPECT_THAT(MessageOf(status), HasSubstr(remedy));
  }
  for (const char* const text :
       {"ORC,PAR1\n1,2\n", "PAR1\tPAR2\r\n", "BZh\n", "PK,name\n", "ORC"}) {
    EXPECT_EQ(*TextOfFile(text), text) << "the header of a CSV file";
  }
}

TEST(TextSource, IsUtf8WithoutAMark) {
  // "a", e acute, the euro sign, and a musical sign, which takes two units.
  const std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9D\x84\x9E\n";
  const std::string little =
      "\xFF\xFE"
      "a\0\xE9\0\xAC\x20\x34\xD8\x1E\xDD\n\0"s;
  const std::string big = "\xFE\xFF\0a\0\xE9\x20\xAC\xD8\x34\xDD\x1E\0\n"s;
  for (const std::string& contents : {text, "\xEF\xBB\xBF" + text, little, big}) {
    for (const size_t piece : {1u, 2u, 5u, 100u}) {
      EXPECT_EQ(*TextOfFile(contents, ".csv", piece), text);
    }
  }
  // More than one buffer, in which units are cut by no border.
  std::string many = "\xFF\xFE"s, expected;
  for (int i = 0; i < 50'000; ++i) {
    many += "\x34\xD8\x1E\xDD"s + (i % 7 == 0 ? "x\0"s : ""s);
    expected += "\xF0\x9D\x84\x9E"s + (i % 7 == 0 ? "x" : "");
  }
  EXPECT_EQ(*TextOfFile(many), expected);
}

TEST(TextSource, ReplacesWhatIsNoCharacterOfUtf16) {
  const std::string mark = "\xFE\xFF", no = "\xEF\xBF\xBD";
  EXPECT_EQ(*TextOfFile(mark + "\xD8\x34\0a"s), no + "a") << "no second surrogate";
  EXPECT_EQ(*TextOfFile(mark + "\xDD\x1E\0a"s), no + "a") << "no first one";
  EXPECT_EQ(*TextOfFile(mark + "\xD8\x34\xD8\x34\xDD\x1E"s), no + "\xF0\x9D\x84\x9E");
  EXPECT_EQ(*TextOfFile(mark + "\0a\xD8\x34"s), "a" + no);
  EXPECT_EQ(*TextOfFile(mark + "\0a\0"s), "a" + no) << "half of a unit";
}

TEST(TextSource, MayBeStandardInput) {
  const TemporaryFile file(".txt", "\xEF\xBB\xBF" + Zeros());
  const int saved = dup(STDIN_FILENO);
  const int descriptor = open(file.path().c_str(), O_RDONLY);
  ASSERT_GE(dup2(descriptor, STDIN_FILENO), 0);
  EXPECT_EQ(*ReadAll(OpenTextSource("-")), Zeros());
  EXPECT_GE(fcntl(STDIN_FILENO, F_GETFD), 0) << "it stays open";
  dup2(saved, STDIN_FILENO);
  close(saved);
  close(descriptor);
}

TEST(TextSource, NamesAFileThatCannotBeRead) {
  EXPECT_TRUE(IsNotFound(OpenTextSource("no-such-file.txt").status()));
  EXPECT_THAT(MessageOf(ReadAll(OpenTextSource(testing::TempDir())).status()),
              HasSubstr(testing::TempDir() + ": cannot read"));
}

Lines LinesOf(const std::string& contents, bool takes_returns = true) {
  const TemporaryFile file(".txt", contents);
  LineReader reader(*OpenTextSource(file.path()), takes_returns);
  Lines lines;
  Line peeked, line;
  while (reader.Peek(&peeked)) {
    EXPECT_TRUE(reader.Peek(&peeked) && reader.Next(&line));
    EXPECT_EQ(peeked.text, line.text);
    EXPECT_EQ(line.number, lines.size() + 1);
    lines.emplace_back(line.text);
  }
  EXPECT_FALSE(reader.Next(&line));
  EXPECT_TRUE(reader.status().ok());
  return lines;
}

TEST(LineReader, TakesTheEndsOfLinesOfAnySystem) {
  const Lines two = {"a,b", "1,2"};
  for (const char* const text : {"a,b\n1,2\n", "a,b\r\n1,2\r\n", "a,b\r1,2\r", "a,b\n1,2",
                                 "a,b\r\n1,2", "a,b\r1,2", "a,b\r\n1,2\n", "a,b\n1,2\r\n"}) {
    EXPECT_EQ(LinesOf(text), two) << testing::PrintToString(text);
  }
  EXPECT_EQ(LinesOf("a\rb\n1\n"), (Lines{"a", "b\n1\n"})) << "the first end decides";
  EXPECT_EQ(LinesOf("a\n1\r2\n"), (Lines{"a", "1\r2"}));
  EXPECT_EQ(LinesOf("a\r1\r", false), Lines{"a\r1"});
  EXPECT_EQ(LinesOf("\r\r"), (Lines{"", ""}));
  EXPECT_EQ(LinesOf("a\r"), Lines{"a"});
  // The first one ends with the buffer.
  const std::string longest(LineReader::kLineBytesMax - 1, 'a');
  EXPECT_EQ(LinesOf(longest + "\r\nb\r\n"), (Lines{longest, "b"}));
  EXPECT_EQ(LinesOf(longest + "\rb\r"), (Lines{longest, "b"}));
  EXPECT_EQ(LinesOf(longest + "\r"), Lines{longest});
  EXPECT_EQ(LinesOf(""), Lines{});
}

}  // namespace
}  // namespace embank::test::bytes_test
