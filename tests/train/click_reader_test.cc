// Click logs in Criteo's format, whole and with every defect.
#include "train/data/click_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/str_cat.h"
#include "tests/bench/temporary_file.h"
#include "train/data/criteo_parser.h"
#include "train/data/log_value.h"

namespace embank::test::click_reader_test {
namespace {

using testing::HasSubstr;

constexpr double kAnyShare = 1.0;

// A line with the label, I1 = `number`, I2 = 0, I3 empty, I4 = -3, and ids that follow from
// `number`; C2 is empty.
std::string CriteoLine(uint32_t label, uint32_t number) {
  std::string line = StrCat(label, "\t", number, "\t0\t\t-3");
  for (uint32_t i = 5; i <= 13; ++i) line += StrCat("\t", i);
  for (uint32_t i = 1; i <= 26; ++i) line += i == 2 ? "\t" : StrCat("\t", Hex(number + i, 8));
  return line + "\n";
}

std::string CriteoLines(uint32_t count) {
  std::string lines;
  for (uint32_t i = 0; i < count; ++i) lines += CriteoLine(i % 2, i);
  return lines;
}

// All I1, which tell the samples of CriteoLines apart, in batches of `samples_max`.
StatusOr<std::vector<float>> ReadNumbers(ClickReader* reader, uint32_t samples_max) {
  std::vector<float> numbers;
  ClickBatch batch;
  for (;;) {
    StatusOr<uint32_t> samples = reader->Next(samples_max, &batch);
    if (!samples.ok()) return samples.status();
    EXPECT_EQ(*samples, batch.samples);
    EXPECT_EQ(batch.labels.size(), batch.samples);
    if (*samples == 0) return numbers;
    for (uint32_t s = 0; s < batch.samples; ++s) numbers.push_back(batch.dense[13 * s]);
  }
}

// 1,500 lines with the label 0 and nothing else, by the zstd program: one frame with a checksum.
std::string CompressedLines() {
  constexpr char kBytes[] =
      "\x28\xb5\x2f\xfd\x04\x68\x6d\x00\x00\x18\x30\x09\x0a\x02\x00\x10\x70\xa6\x74\xf1"
      "\x01\x58\x91\x47\x28\x26";
  return std::string(kBytes, sizeof kBytes - 1);
}

std::vector<float> NumbersUpTo(uint32_t count) {
  std::vector<float> numbers;
  for (uint32_t i = 0; i < count; ++i) numbers.push_back(LogOfCount(i));
  return numbers;
}

TEST(CriteoReader, GivesLabelsDenseFeaturesAndIds) {
  const TemporaryFile file(".txt", CriteoLine(1, 300) + CriteoLine(0, 0xABCDEF0));
  auto reader = *ClickReader::OpenCriteo(file.path());
  EXPECT_EQ(reader->columns().dense.size(), 13u);
  EXPECT_EQ(reader->columns().ids[25], "C26");
  ClickBatch batch;
  ASSERT_EQ(*reader->Next(10, &batch), 2u);
  EXPECT_EQ(batch.labels, (std::vector<float>{1.0f, 0.0f}));
  ASSERT_EQ(batch.dense.size(), 26u);
  EXPECT_FLOAT_EQ(batch.dense[0], std::log(301.0f));
  EXPECT_EQ(batch.dense[1], 0.0f);
  EXPECT_EQ(batch.dense[2], 0.0f);
  EXPECT_EQ(batch.dense[3], 0.0f);
  EXPECT_FLOAT_EQ(batch.dense[4], std::log(6.0f));
  EXPECT_FLOAT_EQ(batch.dense[13], std::log(180'150'001.0f));
  ASSERT_EQ(batch.features.size(), 26u);
  EXPECT_EQ(batch.features[0].ids, (std::vector<uint64_t>{301, 0xABCDEF1}));
  EXPECT_EQ(batch.features[1].ids, (std::vector<uint64_t>{kMissingId, kMissingId}));
  EXPECT_EQ(batch.features[25].ids, (std::vector<uint64_t>{326, 0xABCDF0A}));
  EXPECT_TRUE(batch.features[25].offsets.empty());
  EXPECT_EQ(*reader->Next(10, &batch), 0u);
  EXPECT_EQ(batch.samples, 0u);
}

TEST(CriteoReader, TakesHexadecimalDigitsAndNoOtherByteAtEachPlace) {
  const CriteoParser parser(1, 1, kNewestRules, CriteoLabel::kNone);
  ClickRow row;
  BadField bad;
  for (size_t place = 0; place < 8; ++place) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string id = "9a8B7c6F";
      id[place] = static_cast<char>(byte);
      const LineDefect defect = parser.Parse("7\t" + id, &row, &bad);
      const bool is_digit = byte < 128 && std::isxdigit(byte);
      ASSERT_EQ(defect == LineDefect::kNone, is_digit) << place << " " << byte;
      if (!is_digit) continue;
      ASSERT_EQ(row.ids[0], std::stoull(id, nullptr, 16));
    }
  }
}

TEST(CriteoReader, GivesEachSampleOnceForAnyBatchSize) {
  // More than one buffer of the reader.
  constexpr uint32_t kLines = 3000;
  const TemporaryFile file(".txt", CriteoLines(kLines));
  for (const uint32_t samples_max : {1u, 7u, 1024u, kLines, kLines + 1}) {
    auto reader = *ClickReader::OpenCriteo(file.path());
    EXPECT_EQ(*ReadNumbers(reader.get(), samples_max), NumbersUpTo(kLines)) << samples_max;
    EXPECT_EQ(reader->position(), kLines);
    EXPECT_EQ(reader->broken_lines().count, 0u);
  }
}

TEST(CriteoReader, TakesLinesThatEndAsOnWindows) {
  std::string lines = CriteoLines(3);
  for (size_t at = 0; (at = lines.find('\n', at)) != std::string::npos; at += 2) {
    lines.insert(at, "\r");
  }
  const TemporaryFile file(".txt", lines);
  EXPECT_EQ(*ReadNumbers(ClickReader::OpenCriteo(file.path())->get(), 5), NumbersUpTo(3));
}

TEST(CriteoReader, GoesOnAtAPosition) {
  const TemporaryFile file(".txt", CriteoLine(0, 0) + "broken\n" + CriteoLine(0, 1) +
                                       CriteoLine(0, 2) + CriteoLine(0, 3));
  auto first = *ClickReader::OpenCriteo(file.path(), kAnyShare);
  ClickBatch batch;
  ASSERT_EQ(*first->Next(2, &batch), 2u);
  EXPECT_EQ(first->position(), 3u);
  auto second = *ClickReader::OpenCriteo(file.path(), kAnyShare);
  ASSERT_TRUE(second->SkipTo(first->position()).ok());
  EXPECT_EQ(*ReadNumbers(second.get(), 9), (std::vector<float>{LogOfCount(2), LogOfCount(3)}));
  EXPECT_EQ(second->broken_lines().count, 1u);
  const Status behind = (*ClickReader::OpenCriteo(file.path(), kAnyShare))->SkipTo(6);
  EXPECT_TRUE(IsOutOfRange(behind));
  EXPECT_THAT(std::string(behind.message()),
              HasSubstr("the data end behind line 5, and go on behind line 6 of the checkpoint; "
                        "give all files that were trained, or other data"));
}

struct BrokenCase {
  LineDefect defect;
  std::string line;
};

std::vector<BrokenCase> BrokenCases() {
  const std::string whole = CriteoLine(1, 5).substr(0, CriteoLine(1, 5).size() - 1);
  auto With = [&](const std::string& from, const std::string& to) {
    std::string line = whole;
    return line.replace(line.find(from), from.size(), to);
  };
  return {{LineDefect::kBlank, ""},
          {LineDefect::kBadLabel, "2" + whole.substr(1)},
          {LineDefect::kBadLabel, "11" + whole.substr(1)},
          {LineDefect::kBadLabel, whole.substr(1)},
          {LineDefect::kTooFewColumns, "1"},
          {LineDefect::kTooFewColumns, whole.substr(0, 20)},
          {LineDefect::kTooFewColumns, whole.substr(0, whole.rfind('\t'))},
          {LineDefect::kTooManyColumns, whole + "\t"},
          {LineDefect::kTooManyColumns, whole + "\t00000001"},
          {LineDefect::kBadNumber, With("\t-3\t", "\t-\t")},
          {LineDefect::kBadNumber, With("\t-3\t", "\t--3\t")},
          {LineDefect::kBadNumber, With("\t-3\t", "\t3.5\t")},
          {LineDefect::kBadNumber, With("\t-3\t", "\t 3\t")},
          {LineDefect::kBadNumber, With("\t-3\t", "\t1234567890123456789\t")},
          {LineDefect::kBadId, With("\t00000006\t", "\t0000006\t")},
          {LineDefect::kBadId, With("\t00000006\t", "\t000000006\t")},
          {LineDefect::kBadNumber, With("\t-3\t", "\t1.5e1.0\t")},
          {LineDefect::kBadNumber, With("\t-3\t", "\tN\t")},
          {LineDefect::kBadId, With("\t00000006\t", "\t-\t")},
          {LineDefect::kBadId, With("\t00000006\t", "\t0000000g\t")},
          {LineDefect::kBadId, whole.substr(0, whole.size() - 1)}};
}

TEST(CriteoReader, NamesEachBrokenLineAndLeavesItOut) {
  const std::vector<BrokenCase> cases = BrokenCases();
  for (size_t i = 0; i < cases.size(); ++i) {
    const TemporaryFile file(".txt", CriteoLine(0, 0) + cases[i].line + "\n" + CriteoLine(0, 1));
    auto reader = *ClickReader::OpenCriteo(file.path(), kAnyShare);
    EXPECT_EQ(*ReadNumbers(reader.get(), 4), NumbersUpTo(2)) << i;
    ASSERT_EQ(reader->broken_lines().count, 1u) << i;
    EXPECT_EQ(reader->broken_lines().kinds[0].number, 2u) << i;
    EXPECT_EQ(reader->broken_lines().kinds[0].defect, cases[i].defect) << i;
  }
}

TEST(CriteoReader, UnderstandsWhatDataFramesWrite) {
  std::string line = CriteoLine(1, 5);
  using Change = std::pair<std::string, std::string>;
  for (const auto& [from, to] :
       {Change("\t-3\t", "\tNaN\t"), Change("\t6\t", "\t12.0\t"), Change("\t9\t", "\t-1.0\t"),
        Change("\t10\t", "\t+7\t"), Change("\t00000006\t", "\tNULL\t")}) {
    line.replace(line.find(from), from.size(), to);
  }
  const TemporaryFile file(".txt", line);
  auto reader = *ClickReader::OpenCriteo(file.path(), 0.0);
  ClickBatch batch;
  ASSERT_EQ(*reader->Next(9, &batch), 1u);
  EXPECT_EQ(batch.dense[3], 0.0f);
  EXPECT_EQ(batch.dense[5], LogOfCount(12));
  EXPECT_EQ(batch.features[0].ids[0], kMissingId);
  EXPECT_EQ(batch.dense[8], 0.0f) << "-1.0";
  EXPECT_EQ(batch.dense[9], LogOfCount(7));
  auto first = *ClickReader::Open({file.path()}, {.rules = LogRules::kFirst}, kAnyShare);
  EXPECT_EQ(*first->Next(9, &batch), 0u) << "by the first rules the line is broken";
}

TEST(CriteoReader, NeedsNoLabelsForAPrediction) {
  std::string lines = CriteoLines(3), without;
  for (size_t begin = 0, end; begin < lines.size(); begin = end + 1) {
    end = lines.find('\n', begin);
    without += lines.substr(begin + 2, end - begin - 1);
  }
  const ClickLogFormat format = {.has_labels = false};
  for (const std::string& text : {lines, without, "?" + lines.substr(1), lines.substr(1)}) {
    const TemporaryFile file(".txt", text);
    auto reader = *ClickReader::Open({file.path()}, format, 0.0);
    ClickBatch batch;
    ASSERT_EQ(*reader->Next(9, &batch), 3u) << text.substr(0, 9);
    EXPECT_TRUE(batch.labels.empty());
    EXPECT_EQ(batch.dense[13], LogOfCount(1));
    EXPECT_EQ(batch.features[0].ids, (std::vector<uint64_t>{1, 2, 3}));
    EXPECT_TRUE(CheckBatch(batch, reader->columns()).ok());
  }
  const TemporaryFile file(".txt", without);
  auto reader = *ClickReader::OpenCriteo(file.path(), kAnyShare);
  EXPECT_EQ(*ReadNumbers(reader.get(), 9), std::vector<float>()) << "a training needs them";
}

TEST(CriteoReader, TakesALastLineWithoutAnEnd) {
  const std::string lines = CriteoLines(2);
  const size_t second = lines.find('\n') + 1;
  for (size_t size = second + 1; size < lines.size(); ++size) {
    const TemporaryFile file(".txt", lines.substr(0, size));
    auto reader = *ClickReader::OpenCriteo(file.path(), kAnyShare);
    // Its last id may be missing.
    const bool is_whole = size + 1 == lines.size() || size + 9 == lines.size();
    ASSERT_EQ(*ReadNumbers(reader.get(), 4), NumbersUpTo(is_whole ? 2 : 1)) << size;
    ASSERT_EQ(reader->broken_lines().count, is_whole ? 0u : 1u);
    EXPECT_EQ(reader->position().place, 2u);
    EXPECT_EQ(reader->position().open_line_bytes, size - second);
    EXPECT_EQ(reader->broken_lines().kinds.size(), is_whole ? 0u : 1u);
    // By the first rules no such line is whole.
    auto first = *ClickReader::Open({file.path()}, {.rules = LogRules::kFirst}, kAnyShare);
    EXPECT_EQ(*ReadNumbers(first.get(), 4), NumbersUpTo(1)) << size;
    ASSERT_EQ(first->broken_lines().count, 1u);
    EXPECT_EQ(first->broken_lines().kinds[0].defect, LineDefect::kFileEnds);
  }
}

TEST(CriteoReader, TakesNoLastLineOfAPackedFileThatIsCutOff) {
  // Everything but the checksum is there.
  const std::string cut = CompressedLines().substr(0, CompressedLines().size() - 4);
  const TemporaryFile file(".zst", cut);
  auto reader = *ClickReader::OpenCriteo(file.path());
  EXPECT_TRUE(IsDataLoss(ReadNumbers(reader.get(), 4000).status()));
}

// They are no lines where nothing follows them, and broken ones otherwise.
TEST(CriteoReader, LeavesOutBlankLinesAtTheEnd) {
  for (const char* const end : {"", "\n", "\r\n", "\n\n\n", "\r\n\n"}) {
    const TemporaryFile file(".txt", CriteoLines(2) + end);
    auto reader = *ClickReader::OpenCriteo(file.path(), 0.0);
    EXPECT_EQ(*ReadNumbers(reader.get(), 9), NumbersUpTo(2));
    EXPECT_EQ(reader->broken_lines().count, 0u);
    auto again = *ClickReader::OpenCriteo(file.path(), 0.0);
    ASSERT_TRUE(again->SkipTo(reader->position()).ok());
    EXPECT_EQ(*ReadNumbers(again.get(), 9), std::vector<float>());
  }
  const TemporaryFile file(".txt", CriteoLine(0, 0) + "\n\n" + CriteoLine(0, 1) + "\n");
  auto reader = *ClickReader::OpenCriteo(file.path(), kAnyShare);
  EXPECT_EQ(*ReadNumbers(reader.get(), 9), NumbersUpTo(2));
  ASSERT_EQ(reader->broken_lines().kinds.size(), 1u);
  EXPECT_EQ(TextsOf(reader->broken_lines())[0],
            file.path() + ", line 2: it is blank (2 such lines)");
  auto first = *ClickReader::Open({file.path()}, {.rules = LogRules::kFirst}, kAnyShare);
  EXPECT_EQ(*ReadNumbers(first.get(), 9), NumbersUpTo(2));
  EXPECT_EQ(first->broken_lines().count, 3u) << "by the first rules that at the end, too";
}

TEST(CriteoReader, LeavesOutALineThatIsTooLong) {
  for (const uint32_t size : {LineReader::kLineBytesMax, 5 * LineReader::kLineBytesMax + 17}) {
    for (const bool has_end : {true, false}) {
      const std::string huge(size, '1');
      const TemporaryFile file(
          ".txt", CriteoLine(0, 0) + huge + (has_end ? "\n" + CriteoLine(0, 1) : std::string()));
      auto reader = *ClickReader::OpenCriteo(file.path(), kAnyShare);
      EXPECT_EQ(*ReadNumbers(reader.get(), 4), NumbersUpTo(has_end ? 2 : 1)) << size;
      ASSERT_EQ(reader->broken_lines().count, 1u);
      EXPECT_EQ(reader->broken_lines().kinds[0].number, 2u);
      EXPECT_EQ(reader->broken_lines().kinds[0].defect, LineDefect::kTooLong);
    }
  }
}

// `broken` of `lines` lines are broken, the last ones.
StatusOr<std::vector<float>> ReadWithBroken(uint32_t lines, uint32_t broken) {
  std::string text = CriteoLines(lines - broken);
  for (uint32_t i = 0; i < broken; ++i) text += "x\n";
  const TemporaryFile file(".txt", text);
  return ReadNumbers(ClickReader::OpenCriteo(file.path(), 0.01)->get(), 512);
}

TEST(CriteoReader, StopsAboveAShareOfBrokenLines) {
  EXPECT_TRUE(ReadWithBroken(100, 1).ok());
  EXPECT_TRUE(ReadWithBroken(5000, 50).ok());
  const Status status = ReadWithBroken(5000, 51).status();
  EXPECT_TRUE(IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("50 of 4999 lines are broken"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(", line 4950: its label is no label: \"x\" in column 1 (50 such lines)"));
  EXPECT_TRUE(IsInvalidArgument(ReadWithBroken(100, 2).status()));
}

// A reader that skips judges as one that has read up to there.
TEST(CriteoReader, CountsBrokenLinesThatItSkips) {
  std::string broken;
  for (int i = 0; i < 30; ++i) broken += "x\n";
  const TemporaryFile file(".txt", broken + CriteoLines(5000) + broken);
  const auto open = [&](double share) { return *ClickReader::OpenCriteo(file.path(), share); };
  auto whole = open(0.03);
  EXPECT_EQ(ReadNumbers(whole.get(), 512)->size(), 5000u);
  for (const uint64_t position : {10u, 30u, 4000u, 5040u}) {
    auto resumed = open(0.03);
    ASSERT_TRUE(resumed->SkipTo(position).ok());
    EXPECT_EQ(resumed->position(), position);
    ASSERT_TRUE(ReadNumbers(resumed.get(), 512).ok()) << position;
    EXPECT_EQ(resumed->broken_lines().count, 60u);
    EXPECT_EQ(resumed->broken_lines().kinds[0].count, 60u);
  }
  // 60 of 5,060 lines are too many at the end alone.
  auto resumed = open(0.0115);
  ASSERT_TRUE(resumed->SkipTo(4900).ok());
  EXPECT_THAT(std::string(ReadNumbers(resumed.get(), 512).status().message()),
              HasSubstr("59 of 5059 lines are broken"));
}

TEST(CriteoReader, DoesNotReadOnWhenManyLinesAreBroken) {
  std::string broken;
  for (uint64_t i = 0; i < 2 * ClickReader::kJudgedLines; ++i) broken += "x\n";
  const TemporaryFile file(".txt", broken + CriteoLines(100));
  auto reader = *ClickReader::OpenCriteo(file.path(), 0.5);
  ClickBatch batch;
  EXPECT_TRUE(IsInvalidArgument(reader->Next(10, &batch).status()));
  EXPECT_EQ(reader->position(), ClickReader::kJudgedLines);
}

std::vector<std::string> PathsOf(const std::vector<std::unique_ptr<TemporaryFile>>& files) {
  std::vector<std::string> paths;
  for (const auto& file : files) paths.push_back(file->path());
  return paths;
}

// CriteoLines(10) in files; an empty one has none, and one has a broken line.
std::vector<std::unique_ptr<TemporaryFile>> CriteoFiles() {
  std::vector<std::string> texts(4);
  for (uint32_t i = 0; i < 10; ++i) texts[i < 3 ? 0 : i < 4 ? 2 : 3] += CriteoLine(i % 2, i);
  texts[3].insert(texts[3].find('\n') + 1, "x\n\n");
  texts[0] += "\n\n";
  std::vector<std::unique_ptr<TemporaryFile>> files;
  for (std::string& text : texts) {
    if (text.ends_with('\n')) text.pop_back();
    files.push_back(std::make_unique<TemporaryFile>(".txt", text));
  }
  return files;
}

TEST(ClickReader, ReadsSeveralFilesAsOne) {
  const auto files = CriteoFiles();
  for (const uint32_t samples_max : {1u, 3u, 4u, 100u}) {
    auto reader = *ClickReader::Open(PathsOf(files), {}, kAnyShare);
    EXPECT_LT(reader->FractionRead(), 0.5);
    EXPECT_EQ(*ReadNumbers(reader.get(), samples_max), NumbersUpTo(10));
    EXPECT_EQ(reader->FractionRead(), 1.0);
    ASSERT_EQ(reader->broken_lines().kinds.size(), 2u) << "blank lines end a file";
    EXPECT_EQ(TextsOf(reader->broken_lines())[0],
              files[3]->path() + ", line 2: its label is no label: \"x\" in column 1");
    EXPECT_EQ(reader->broken_lines().kinds[1].number, 3u);
  }
}

TEST(ClickReader, HasPositionsOverAllFiles) {
  const auto files = CriteoFiles();
  auto reader = *ClickReader::Open(PathsOf(files), {}, kAnyShare);
  ClickBatch batch;
  for (uint32_t count = 1; *reader->Next(1, &batch) > 0; ++count) {
    auto other = *ClickReader::Open(PathsOf(files), {}, kAnyShare);
    ASSERT_TRUE(other->SkipTo(reader->position()).ok());
    EXPECT_EQ(other->position(), reader->position());
    EXPECT_EQ(ReadNumbers(other.get(), 4)->size(), 10 - count) << count;
    EXPECT_EQ(other->broken_lines().count, 2u);
  }
  EXPECT_EQ(reader->position().place, 13u);
  auto other = *ClickReader::Open(PathsOf(files), {}, kAnyShare);
  EXPECT_TRUE(other->SkipTo(13).ok());
  EXPECT_EQ(other->SkipTo(14).code(), StatusCode::kOutOfRange);
}

// A small file with one broken line is a small part of the data.
TEST(ClickReader, JudgesTheShareOfBrokenLinesOfAllFiles) {
  const TemporaryFile bad(".txt", CriteoLines(9) + "x\n"), good(".txt", CriteoLines(200));
  EXPECT_TRUE(ReadNumbers(ClickReader::Open({bad.path(), good.path()}, {}, 0.01)->get(), 64).ok());
  EXPECT_FALSE(ReadNumbers(ClickReader::OpenCriteo(bad.path(), 0.01)->get(), 64).ok());
}

TEST(ClickReader, OpensEachFileBeforeTheFirstIsRead) {
  const TemporaryFile good(".txt", CriteoLines(2)), parquet(".parquet", "PAR1\x15\x04");
  EXPECT_TRUE(IsInvalidArgument(ClickReader::Open({good.path(), parquet.path()}, {}).status()));
  EXPECT_TRUE(IsNotFound(ClickReader::Open({good.path(), "no-such-file.txt"}, {}).status()));
}

TEST(ClickReader, ReadsAPipeOnce) {
  const TemporaryFile pipe(".pipe");
  std::remove(pipe.path().c_str());
  ASSERT_EQ(mkfifo(pipe.path().c_str(), 0600), 0);
  const TemporaryFile good(".txt", CriteoLine(0, 2));
  std::thread writer([&] { std::ofstream(pipe.path()) << CriteoLines(2); });
  auto reader = *ClickReader::Open({pipe.path(), good.path()}, {}, 0.0);
  EXPECT_EQ(reader->FractionRead(), 0.0) << "it has no size";
  EXPECT_EQ(*ReadNumbers(reader.get(), 9), NumbersUpTo(3));
  writer.join();
}

TEST(CriteoReader, AnEmptyFileHasNoSamples) {
  const TemporaryFile file(".txt");
  EXPECT_EQ(*ReadNumbers(ClickReader::OpenCriteo(file.path())->get(), 4), std::vector<float>());
}

TEST(CriteoReader, NamesAFileThatIsNotThere) {
  const Status status = ClickReader::OpenCriteo("no-such-file.txt").status();
  EXPECT_TRUE(IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("no-such-file.txt"));
}

TEST(CriteoReader, ReadsZstd) {
  const TemporaryFile file(".txt.zst", CompressedLines());
  EXPECT_EQ(*ReadNumbers(ClickReader::OpenCriteo(file.path())->get(), 1000),
            std::vector<float>(1500, 0.0f));
}

TEST(CriteoReader, TellsAFrameThatIsCutOff) {
  for (size_t size = 0; size < CompressedLines().size(); ++size) {
    const TemporaryFile file(".txt.zst", CompressedLines().substr(0, size));
    const Status status = ReadNumbers(ClickReader::OpenCriteo(file.path())->get(), 100).status();
    EXPECT_TRUE(IsDataLoss(status)) << size;
    EXPECT_THAT(std::string(status.message()), HasSubstr(file.path()));
  }
}

TEST(LogOfCount, IsTheRoundedLogarithm) {
  for (const int64_t count : {0l, 1l, 2l, 4095l, 4096l, 2'655'388l, 999'999'999'999'999'999l}) {
    EXPECT_EQ(LogOfCount(count), static_cast<float>(std::log1p(static_cast<double>(count))));
    EXPECT_EQ(LogOfCount(count), LogOfNumber(static_cast<double>(count)));
  }
  EXPECT_EQ(LogOfCount(-1), 0.0f);
  EXPECT_EQ(LogOfCount(INT64_MIN), 0.0f);
}

}  // namespace
}  // namespace embank::test::click_reader_test
