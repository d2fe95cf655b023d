// CSV files by a column file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/hash.h"
#include "tests/bench/temporary_file.h"
#include "train/data/click_reader.h"
#include "train/data/click_text.h"
#include "train/data/column_file.h"
#include "train/data/csv_parser.h"

namespace embank::test::csv_test {
namespace {

using testing::HasSubstr;

constexpr char kRatings[] =
    "# ratings of films\n"
    "label rating at-least 4\n"
    "dense timestamp log\n"
    "id userId decimal\n"
    "\n"
    "  id  movieId\tdecimal\n";

// Opens a CSV file, each of whose lines may be broken, and reads it as one batch.
StatusOr<ClickBatch> ReadCsv(const std::string& columns, const std::string& text,
                             BrokenLines* broken = nullptr) {
  const TemporaryFile file(".csv", text);
  StatusOr<ColumnFile> parsed = ParseColumnFile(columns);
  if (!parsed.ok()) return parsed.status();
  StatusOr<std::unique_ptr<ClickReader>> reader = ClickReader::OpenCsv(file.path(), *parsed, 1.0);
  if (!reader.ok()) return reader.status();
  ClickBatch batch;
  const StatusOr<uint32_t> samples = (*reader)->Next(1000, &batch);
  if (!samples.ok()) return samples.status();
  if (broken != nullptr) *broken = (*reader)->broken_lines();
  return batch;
}

std::string MessageOf(const Status& status) { return std::string(status.message()); }

TEST(Csv, TakesTheColumnsThatTheColumnFileNames) {
  const ClickBatch batch = *ReadCsv(kRatings,
                                    "userId,movieId,rating,unused,timestamp\n"
                                    "1,31,4.0,x,964982703\n"
                                    "18446744073709551614,2,3.5,,0\n"
                                    ",7,5,y,-5\n");
  EXPECT_EQ(batch.labels, (std::vector<float>{1.0f, 0.0f, 1.0f}));
  EXPECT_FLOAT_EQ(batch.dense[0], std::log(964982704.0f));
  EXPECT_EQ(batch.dense[1], 0.0f);
  EXPECT_EQ(batch.dense[2], 0.0f);
  EXPECT_EQ(batch.features[0].ids, (std::vector<uint64_t>{1, kMissingId - 1, kMissingId}));
  EXPECT_EQ(batch.features[1].ids, (std::vector<uint64_t>{31, 2, 7}));
}

TEST(Csv, WithoutAHeaderHasColumnsByNumber) {
  const ClickBatch batch =
      *ReadCsv("separator tab\nheader no\nlabel 3\nid 1 hex\nid 2 text\ndense 4\n",
               "ff\tblue\t1\t-1.5e3\n7FffFFffFFffFFff\t\t0\t\n");
  EXPECT_EQ(batch.labels, (std::vector<float>{1.0f, 0.0f}));
  EXPECT_EQ(batch.dense, (std::vector<float>{-1500.0f, 0.0f}));
  EXPECT_EQ(batch.features[0].ids, (std::vector<uint64_t>{255, 0x7FFFFFFFFFFFFFFF}));
  EXPECT_EQ(batch.features[1].ids, (std::vector<uint64_t>{TableHash("blue"), kMissingId}));
}

TEST(Csv, HasSeparatorsInsideOfQuotationMarks) {
  const ClickBatch batch = *ReadCsv("label click\nid name text\n",
                                    "\"click\",name\n"
                                    "1,\"a,b\"\n"
                                    "\"0\",\"say \"\"yes\"\"\"\n"
                                    "1,\"\"\n");
  EXPECT_EQ(batch.labels, (std::vector<float>{1.0f, 0.0f, 1.0f}));
  EXPECT_EQ(batch.features[0].ids,
            (std::vector<uint64_t>{TableHash("a,b"), TableHash("say \"yes\""), kMissingId}));
}

TEST(Csv, NamesBrokenLines) {
  BrokenLines broken;
  const ClickBatch batch = *ReadCsv("label click\ndense age\nid user decimal\nid ad hex\n",
                                    "click,age,user,ad\n"
                                    "1,30,5,ff\n"
                                    "1,30,5\n"
                                    "1,30,5,ff,\n"
                                    "2,30,5,ff\n"
                                    ",30,5,ff\n"
                                    "1,inf,5,ff\n"
                                    "1,1e39,5,ff\n"
                                    "1,30,-5,ff\n"
                                    "1,30,18446744073709551616,ff\n"
                                    "1,30,5,fg\n"
                                    "1,30,\"5,ff\n"
                                    "0,31,6,fe\n",
                                    &broken);
  EXPECT_EQ(batch.features[0].ids, (std::vector<uint64_t>{5, 6}));
  EXPECT_EQ(batch.labels, (std::vector<float>{1.0f, 0.0f}));
  EXPECT_EQ(broken.count, 10u);
  const std::vector<LineDefect> expected = {LineDefect::kTooFewColumns, LineDefect::kTooManyColumns,
                                            LineDefect::kBadLabel,      LineDefect::kBadLabel,
                                            LineDefect::kBadNumber,     LineDefect::kBadNumber,
                                            LineDefect::kBadId,         LineDefect::kBadId,
                                            LineDefect::kBadId,         LineDefect::kOpenQuote};
  ASSERT_EQ(broken.first.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(broken.first[i].number, i + 3) << "the header is line 1";
    EXPECT_EQ(broken.first[i].defect, expected[i]) << i;
  }
}

TEST(Csv, HasIdsOfADeclaredVocabulary) {
  BrokenLines broken;
  const ClickBatch batch =
      *ReadCsv("label click\nid user decimal below 611\nid ad hex below 16\nid site text\n",
               "click,user,ad,site\n"
               "1,610,f,a\n"
               "1,611,f,a\n"
               "1,610,10,a\n"
               "0,18446744073709551615,f,a\n"
               "0,,,\n",
               &broken);
  EXPECT_EQ(batch.features[0].ids, (std::vector<uint64_t>{610, kMissingId}));
  EXPECT_EQ(batch.features[1].ids, (std::vector<uint64_t>{15, kMissingId}));
  EXPECT_EQ(broken.count, 3u);
  for (const BrokenLine& line : broken.first) {
    EXPECT_STREQ(DefectText(line.defect), "an id is outside of its vocabulary") << line.number;
  }
}

TEST(Csv, HasBagsOfIds) {
  BrokenLines broken;
  const ClickBatch batch =
      *ReadCsv("label click\nbag genres text\nid user hex\nbag items decimal below 100\n",
               "click,user,items,genres\n"
               "1,a,5|99|5,Comedy|Drama\n"
               "0,b,,\n"
               "1,c,7,\"Drama\"\n"
               "1,d,5||6,Drama\n"
               "1,d,5|,Drama\n"
               "1,d,|,Drama\n"
               "1,d,5|100,Drama\n"
               "1,d,5|x,Drama\n"
               "1,e,1,|\n",
               &broken);
  EXPECT_EQ(batch.samples, 3u);
  EXPECT_EQ(batch.features[0].ids,
            (std::vector<uint64_t>{TableHash("Comedy"), TableHash("Drama"), TableHash("Drama")}));
  EXPECT_EQ(batch.features[0].offsets, (std::vector<uint32_t>{0, 2, 2, 3}));
  EXPECT_EQ(batch.features[1].ids, (std::vector<uint64_t>{10, 11, 12}));
  EXPECT_TRUE(batch.features[1].offsets.empty());
  EXPECT_EQ(batch.features[2].ids, (std::vector<uint64_t>{5, 99, 5, 7}));
  EXPECT_EQ(batch.features[2].offsets, (std::vector<uint32_t>{0, 3, 3, 4}));
  EXPECT_EQ(broken.count, 6u);
  for (const BrokenLine& line : broken.first) {
    EXPECT_EQ(line.defect, line.number == 8 ? LineDefect::kUnknownId : LineDefect::kBadId);
  }
}

TEST(Csv, ABagHasALimit) {
  std::string most = "1";
  for (size_t i = 1; i < CsvParser::kBagIdsMax; ++i) most += "|2";
  BrokenLines broken;
  const ClickBatch batch = *ReadCsv("header no\nlabel 1\nbag 2 decimal\n",
                                    "1," + most + "\n0," + most + "|2\n", &broken);
  EXPECT_EQ(batch.features[0].ids.size(), CsvParser::kBagIdsMax);
  ASSERT_EQ(broken.count, 1u);
  EXPECT_STREQ(DefectText(broken.first[0].defect), "a bag has too many ids");
}

TEST(Csv, NamesAColumnThatIsNotThere) {
  const Status status = ReadCsv("label click\nid usr decimal\n", "click,user\n1,2\n").status();
  EXPECT_TRUE(IsNotFound(status));
  EXPECT_THAT(MessageOf(status), HasSubstr("the file has no column 'usr'"));
  EXPECT_TRUE(IsNotFound(ReadCsv("header no\nlabel 3\n", "1,2\n").status()));
}

TEST(Csv, RefusesAColumnThatIsTwice) {
  EXPECT_TRUE(IsInvalidArgument(ReadCsv("label a\nid b text\n", "a,b,b\n1,2,3\n").status()));
  EXPECT_TRUE(IsInvalidArgument(ReadCsv("label a\nid a text\n", "a,b\n1,2\n").status()));
  EXPECT_TRUE(IsInvalidArgument(ReadCsv("label a\n", "").status()));
  EXPECT_TRUE(IsInvalidArgument(ReadCsv("label a\n", "\"a,b\n").status()));
}

TEST(Csv, ReadsTheTextOfABatchBackWithTheSameBits) {
  ClickBatch batch;
  batch.Clear(3);
  AppendRow({1.0f, {0.1f, 1234.5678f, -0.0f}, {5, kMissingId, 0}, {{2, {8, kMissingId, 8}}}},
            &batch);
  AppendRow({0.0f, {0x1p-149f, 0x1.fffffep127f, 1.0f / 3.0f}, {kMissingId - 1, 0, 0}, {{2, {}}}},
            &batch);
  const ClickBatch back = *ReadCsv(TextOf(ColumnsOf(batch)), TextOf(batch));
  EXPECT_EQ(back.labels, batch.labels);
  ASSERT_EQ(back.dense.size(), batch.dense.size());
  for (size_t i = 0; i < batch.dense.size(); ++i) {
    EXPECT_EQ(std::bit_cast<uint32_t>(back.dense[i]), std::bit_cast<uint32_t>(batch.dense[i])) << i;
  }
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(back.features[i].ids, batch.features[i].ids);
    EXPECT_EQ(back.features[i].offsets, batch.features[i].offsets);
  }
  EXPECT_EQ(back.features[2].offsets, (std::vector<uint32_t>{0, 3, 3}));
}

TEST(ColumnFileText, IsOfAllStatements) {
  const std::string text =
      "separator semicolon\nheader no\nlabel 1 at-least 0.1\ndense 2\ndense 3 log\n"
      "id 4 decimal below 611\nid 5 hex\nid 6 text\nbag 7 text\nbag 8 hex below 5\n";
  EXPECT_EQ(TextOf(*ParseColumnFile(text)), text);
  EXPECT_EQ(TextOf(*ParseColumnFile("# none\n  label   a\n")),
            "separator comma\nheader yes\nlabel a\n");
}

TEST(ColumnFileText, NamesTheLineAndTheWordThatAreWrong) {
  struct Case {
    std::string text, message;
  };
  for (const Case& c : {Case{"label a\n\nnumber b\n", "line 3: 'number' is not understood"},
                        Case{"label a at-least x\n", "line 1: 'x' is not understood: a number"},
                        Case{"label a above 4\n", "line 1: '4' is not understood"},
                        Case{"label a\nid b octal\n", "line 2: 'octal' is not understood"},
                        Case{"label a\nid b hex under 5\n", "line 2: '5' is not understood"},
                        Case{"label a\nid b hex below\n", "line 2: 'below' is not understood"},
                        Case{"label a\nid b hex below ff\n", "line 2: 'ff' is not understood"},
                        Case{"label a\nid b hex below 0\n", "line 2: '0' is not understood"},
                        Case{"label a\nid b text below 5\n", "text has no vocabulary"},
                        Case{"label a\nid b\n", "line 2: 'b' is not understood"},
                        Case{"label a\nbag b\n", "line 2: 'b' is not understood"},
                        Case{"label a\nbag b text below 5\n", "text has no vocabulary"},
                        Case{"label a\ndense b root\n", "line 2: 'root' is not understood"},
                        Case{"separator dot\n", "line 1: 'dot' is not understood"},
                        Case{"header maybe\n", "line 1: 'maybe' is not understood"},
                        Case{"label a\nlabel b\n", "line 2: there are two labels"},
                        Case{"# nothing\n", "there is no label"}}) {
    const Status status = ParseColumnFile(c.text).status();
    EXPECT_TRUE(IsInvalidArgument(status)) << c.text;
    EXPECT_THAT(MessageOf(status), HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace embank::test::csv_test
