// Column files as text, and the lines of libsvm and libffm that they declare.
#include "train/data/column_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/bench/temporary_file.h"
#include "tests/train/read_csv.h"
#include "train/data/click_reader.h"

namespace embank::test::column_file_test {
namespace {

using testing::HasSubstr;

TEST(Sparse, ReadsLinesOfLibsvm) {
  BrokenLines broken;
  const ClickBatch batch = *ReadCsv("format libsvm\n",
                                    "1 3:0.5 18446744073709551615:-2e1\n"
                                    "-1\n"
                                    "+1\t7:1  8:1 # a remark 9:1\n"
                                    "0.0 \n"
                                    "2 3:1\n"
                                    "3:1 4:1\n"
                                    "1 3\n"
                                    "1 qid:3 4:1\n"
                                    "1 -1:1\n"
                                    "1 1:\n"
                                    "1 1:2:3\n",
                                    &broken);
  EXPECT_EQ(batch.labels, (std::vector<float>{1, 0, 1, 0}));
  ASSERT_EQ(batch.features.size(), 1u);
  EXPECT_EQ(batch.features[0].ids, (std::vector<uint64_t>{3, ~uint64_t{0}, 7, 8}));
  EXPECT_EQ(batch.features[0].weights, (std::vector<float>{0.5f, -20.0f, 1.0f, 1.0f}));
  EXPECT_EQ(batch.features[0].offsets, (std::vector<uint32_t>{0, 2, 2, 4, 4}));
  EXPECT_TRUE(CheckBatch(batch, {.dense = {}, .ids = {"features"}}).ok());
  const std::vector<std::string> expected = {
      ", line 5: its label is no label: \"2\" in column 1 (2 such lines)",
      ", line 7: a bag is not of its form: \"3\"",
      ", line 8: an id is not of its format: \"qid:3\" (2 such lines)",
      ", line 10: the weight of an id is no number: \"1:\" (2 such lines)"};
  ASSERT_EQ(broken.kinds.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(TextsOf(broken)[i], broken.kinds[i].file + expected[i]);
  }
}

TEST(Sparse, ReadsLinesOfLibffm) {
  BrokenLines broken;
  const ClickBatch batch =
      *ReadCsv("format libffm\nfield 3 user\nfield 0 \"my item\"\n",
               "1 0:5:1 3:6:0.5 0:7:2\n0 3:1:1\n1 1:5:1\n1 0:5\n1 x:5:1\n", &broken);
  EXPECT_EQ(batch.labels, (std::vector<float>{1, 0}));
  ASSERT_EQ(batch.features.size(), 2u);
  EXPECT_EQ(batch.features[0].ids, (std::vector<uint64_t>{6, 1}));
  EXPECT_EQ(batch.features[1].ids, (std::vector<uint64_t>{5, 7}));
  EXPECT_EQ(batch.features[1].weights, (std::vector<float>{1, 2}));
  EXPECT_EQ(batch.features[1].offsets, (std::vector<uint32_t>{0, 2, 2}));
  ASSERT_EQ(broken.kinds.size(), 2u);
  EXPECT_STREQ(DefectText(broken.kinds[0].defect), "a field is not declared");
  EXPECT_EQ(broken.kinds[0].count, 2u);
  EXPECT_EQ(broken.kinds[1].bad.text, "0:5");
}

TEST(Sparse, NeedsNoLabelsForAPrediction) {
  const TemporaryFile file(".txt", "1 3:1\n3:2\n?\n");
  auto reader = *ClickReader::Open(
      {file.path()}, {.columns = *ParseColumnFile("format libsvm\n"), .has_labels = false}, 0.0);
  ClickBatch batch;
  ASSERT_EQ(*reader->Next(9, &batch), 3u);
  EXPECT_TRUE(batch.labels.empty());
  EXPECT_EQ(batch.features[0].weights, (std::vector<float>{1, 2}));
}

TEST(ColumnFileText, IsOfAllStatements) {
  const std::string text =
      "rules 2\nseparator semicolon\nheader no\nlabel 1 at-least 0.1\ndense 2\ndense 3 log\n"
      "dense 9 log flag\ndense \"my \"\"age\"\"\" flag\nid x decimal below 5 missing 0,7\n"
      "id y text missing \"not known,NA\"\nbag z decimal separator semicolon weights :\n"
      "bag u text list table \"the y\"\nbag v text separator tab\n"
      "id 4 decimal below 611\nid 5 hex\nid 6 text\nbag 7 text\nbag 8 hex below 5\n";
  EXPECT_EQ(TextOf(*ParseColumnFile(text)), text);
  EXPECT_EQ(TextOf(*ParseColumnFile("# none\n  label   a\n")),
            "rules 2\nseparator comma\nheader yes\nlabel a\n");
  EXPECT_EQ(TextOf(*ParseColumnFile("rules 1\nlabel a\nbag b text\n")),
            "separator comma\nheader yes\nlabel a\nbag b text\n")
      << "the text of older models";
  const std::string ffm = "rules 2\nformat libffm\nfield 0 user\nfield 12 \"my item\"\n";
  EXPECT_EQ(TextOf(*ParseColumnFile(ffm)), ffm);
  EXPECT_EQ(TextOf(*ParseColumnFile("format libsvm\n")), "rules 2\nformat libsvm\n");
}

TEST(ColumnFileText, NamesTheLineAndTheWordThatAreWrong) {
  struct Case {
    std::string text, message;
  };
  for (const Case& c :
       {Case{"label a\n\nnumber b\n", "line 3: 'number' is not understood"},
        Case{"label a at-least x\n", "line 1: 'x' is not understood: a number"},
        Case{"label a above 4\n", "line 1: '4' is not understood"},
        Case{"label a\nid b octal\n", "line 2: 'octal' is not understood"},
        Case{"label a\nid b hex under 5\n", "line 2: 'under' is not understood"},
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
        Case{"label a\nlabel b\n", "line 2: there are two labels, 'a' and 'b'; remove"},
        Case{"rules 3\n", "line 1: '3' is not understood: rules 1, or rules 2"},
        Case{"label a\ndense b log log\n", "line 2: 'log' is not understood"},
        Case{"label a\ndense \"b\n",
             "line 2: a quotation mark is missing, or a "
             "blank behind one, in \"b"},
        Case{"label a\ndense \"b\"c\n", "line 2: a quotation mark is missing"},
        Case{"label a\nid b text list\n", "line 2: 'list' is not understood"},
        Case{"label a\nid b text weights :\n", "'weights' is not understood"},
        Case{"label a\nbag b text weights x\n", "'x' is not understood"},
        Case{"label a\nbag b text weights |\n", "the same sign between them"},
        Case{"label a\nbag b text separator\n", "'separator' is not understood"},
        Case{"label a\nbag b text list separator ;\n", "a list has no separator"},
        Case{"format parquet\n", "format csv, libsvm or libffm"},
        Case{"format libsvm\nlabel a\n", "names its features itself"},
        Case{"format libffm\n", "has no field NUMBER NAME"},
        Case{"format libffm\nfield a b\n", "field NUMBER NAME"},
        Case{"format libffm\nfield 1 b\nfield 2 b\n", "is there twice"},
        Case{"label a\nfield 1 b\n", "fields are of format libffm"},
        Case{"# nothing \"\n", "there is no label; add a statement label COLUMN"}}) {
    const Status status = ParseColumnFile(c.text).status();
    EXPECT_TRUE(IsInvalidArgument(status)) << c.text;
    EXPECT_THAT(MessageOf(status), HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace embank::test::column_file_test
