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
#include "tests/train/read_csv.h"
#include "train/data/click_reader.h"
#include "train/data/click_text.h"
#include "train/data/column_file.h"
#include "train/data/id_reader.h"

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
  const ClickBatch batch = *ReadCsv("label click\ndense age\nid user decimal\nid \"ad id\" hex\n",
                                    "click,age,user,ad id\n"
                                    "1,30,5,ff\n"
                                    "1,30,5\n"
                                    "1,30,5,ff,\n"
                                    "2,30,5,ff\n"
                                    ",30,5,ff\n"
                                    "1,inf,5,ff\n"
                                    "1,1e39,5,ff\n"
                                    "1,30,1.5,ff\n"
                                    "1,30,18446744073709551616,ff\n"
                                    "1,30,5,fg\n"
                                    "1,30,\"5,ff\n"
                                    "0,31,6,fe\n"
                                    "1,\"3\t\x01\xFF\"\"5\",5,ff\n",
                                    &broken);
  EXPECT_EQ(batch.features[0].ids, (std::vector<uint64_t>{5, 6}));
  EXPECT_EQ(batch.labels, (std::vector<float>{1.0f, 0.0f}));
  EXPECT_EQ(broken.count, 11u);
  const std::vector<std::string> expected = {
      ", line 3: it has too few columns: \"1,30,5\"",
      ", line 4: it has too many columns: \"1,30,5,ff,\"",
      ", line 5: its label is no label: \"2\" in column 'click' (2 such lines)",
      ", line 7: a dense feature is no number: \"inf\" in column 'age' (3 such lines)",
      ", line 9: an id is not of its format: \"1.5\" in column 'user' (2 such lines)",
      ", line 11: an id is not of its format: \"fg\" in column 'ad id'",
      ", line 12: a quotation mark is missing: \"1,30,\\\"5,ff\""};
  ASSERT_EQ(broken.kinds.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(TextsOf(broken)[i], broken.kinds[i].file + expected[i]);
  }
}

TEST(Csv, ShowsTheBeginOfATextThatWasNotUnderstood) {
  const auto shown = [](const std::string& text) {
    const BrokenKind kind = {.defect = LineDefect::kBadId, .bad = {"7", text}, .file = "f"};
    return TextsOf({.count = 1, .kinds = {kind}})[0];
  };
  const std::string e = "\xC3\xA9";
  std::string many;
  for (int i = 0; i < 41; ++i) many += e;
  EXPECT_EQ(shown(many),
            "f, line 0: an id is not of its format: \"" + many.substr(0, 80) + "...\" in column 7");
  EXPECT_THAT(shown("a\tb\"\\\x01\xFF"), HasSubstr("\"a\\tb\\\"\\\\\\x01\\xff\" in column 7"));
  BrokenLines broken;
  for (uint32_t i = 0; i < 2 * BrokenLines::kNamedMax; ++i) {
    BadField bad;
    broken.Add(bad.Set(LineDefect::kBadId, std::to_string(i), std::string(1000, 'a')), bad, "f", i);
    broken.Add(LineDefect::kBadId, bad, "g", i + 100);
  }
  EXPECT_EQ(broken.count, 4 * BrokenLines::kNamedMax);
  ASSERT_EQ(broken.kinds.size(), BrokenLines::kNamedMax);
  EXPECT_EQ(broken.kinds[3].count, 2u);
  EXPECT_EQ(broken.kinds[3].file, "f") << "the first one";
  const std::vector<std::string> texts = TextsOf(broken);
  ASSERT_EQ(texts.size(), BrokenLines::kNamedMax + 1);
  EXPECT_EQ(texts.back(), "20 lines of other kinds");
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
  for (const BrokenKind& kind : broken.kinds) {
    EXPECT_STREQ(DefectText(kind.defect), "an id is outside of its vocabulary") << kind.number;
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
  ASSERT_EQ(broken.kinds.size(), 3u);
  EXPECT_EQ(broken.kinds[0].defect, LineDefect::kBadId);
  EXPECT_EQ(broken.kinds[0].count, 4u);
  EXPECT_EQ(broken.kinds[1].defect, LineDefect::kUnknownId);
  EXPECT_EQ(broken.kinds[1].bad.text, "100");
  EXPECT_EQ(broken.kinds[2].bad.column, "genres");
}

TEST(Csv, ABagHasALimit) {
  std::string most = "1";
  for (size_t i = 1; i < kBagIdsMax; ++i) most += "|2";
  BrokenLines broken;
  const ClickBatch batch = *ReadCsv("header no\nlabel 1\nbag 2 decimal\n",
                                    "1," + most + "\n0," + most + "|2\n", &broken);
  EXPECT_EQ(batch.features[0].ids.size(), kBagIdsMax);
  ASSERT_EQ(broken.count, 1u);
  EXPECT_STREQ(DefectText(broken.kinds[0].defect), "a bag has too many ids");
}

// A batch of a file whose columns are the label, which is 1, and one other.
ClickBatch ReadColumn(const std::string& statement, const std::vector<std::string>& fields,
                      BrokenLines* broken = nullptr) {
  std::string text;
  for (const std::string& field : fields) text += "1\t" + field + "\n";
  return *ReadCsv("separator tab\nheader no\nlabel 1\n" + statement, text, broken);
}

// The number of fields that break their line.
uint64_t BrokenAmong(const std::string& statement, const std::vector<std::string>& fields) {
  BrokenLines broken;
  ReadColumn(statement, fields, &broken);
  return broken.count;
}

const std::vector<std::string> kMissingFields = {"",         "NA",   "N/A",  "n/a",  "#NA",  "#N/A",
                                                 "#N/A N/A", "<NA>", "NaN",  "nan",  "NAN",  "-nan",
                                                 "-NaN",     "null", "NULL", "None", "none", "\\N"};

TEST(Csv, UnderstandsTheWordsForMissingNumbers) {
  const std::vector<float> zeros(kMissingFields.size(), 0.0f);
  const std::vector<uint64_t> missing(kMissingFields.size(), kMissingId);
  EXPECT_EQ(ReadColumn("dense 2\n", kMissingFields).dense, zeros);
  EXPECT_EQ(ReadColumn("dense 2 log\n", kMissingFields).dense, zeros);
  EXPECT_EQ(ReadColumn("id 2 decimal below 5\n", kMissingFields).features[0].ids, missing);
  EXPECT_EQ(ReadColumn("id 2 hex\n", kMissingFields).features[0].ids, missing);
  const ClickBatch bags = ReadColumn("bag 2 decimal\n", kMissingFields);
  EXPECT_EQ(bags.samples, kMissingFields.size());
  EXPECT_TRUE(bags.features[0].ids.empty());
  for (const char* const statement : {"dense 2\n", "id 2 decimal\n", "id 2 hex\n"}) {
    EXPECT_EQ(BrokenAmong(statement, {"-", "N", "nil", "NAN0", "?", " ", "NA "}), 7u) << statement;
    EXPECT_EQ(BrokenAmong(std::string("rules 1\n") + statement, kMissingFields),
              kMissingFields.size() - 1);
  }
}

// NA is a country.
TEST(Csv, TakesNoWordForAMissingTextThatIsNotListed) {
  const ClickBatch batch = ReadColumn("id 2 text\n", kMissingFields);
  for (size_t i = 1; i < kMissingFields.size(); ++i) {
    EXPECT_EQ(batch.features[0].ids[i], TableHash(kMissingFields[i])) << kMissingFields[i];
  }
  EXPECT_EQ(batch.features[0].ids[0], kMissingId);
  const std::vector<std::string> fields = {"NA", "not known", "nan", "not"};
  EXPECT_EQ(ReadColumn("id 2 text missing \"nan,not known\"\n", fields).features[0].ids,
            (std::vector<uint64_t>{TableHash("NA"), kMissingId, kMissingId, TableHash("not")}));
  const ClickBatch bags = ReadColumn("bag 2 text missing none\n", {"none", "a|none", "nan"});
  EXPECT_EQ(bags.features[0].offsets, (std::vector<uint32_t>{0, 0, 2, 3}));
  EXPECT_EQ(ReadColumn("id 2 decimal missing 0,-999\n", {"0", "-999", "00"}).features[0].ids,
            (std::vector<uint64_t>{kMissingId, kMissingId, 0}));
}

TEST(Csv, HasAFlagForMissingNumbersOnRequest) {
  const ClickBatch batch = *ReadCsv("label a\ndense b log flag\ndense c\ndense d flag\n",
                                    "a,b,c,d\n1,0,2,NA\n0,,3,4\n0,null,5,-1\n");
  EXPECT_EQ(batch.dense, (std::vector<float>{0, 0, 2, 0, 1, 0, 1, 3, 4, 0, 0, 1, 5, -1, 0}));
  const TemporaryFile file(".csv", "a,b\n");
  const ColumnFile columns = *ParseColumnFile("label a\ndense b flag\n");
  EXPECT_EQ((*ClickReader::OpenCsv(file.path(), columns))->columns().dense,
            (std::vector<std::string>{"b", "b.missing"}));
}

TEST(Csv, ReadsWholeNumbersAsDataFramesWriteThem) {
  struct Case {
    std::string text;
    uint64_t id;
  };
  for (const Case& c :
       {Case{"12", 12}, Case{"12.0", 12}, Case{"1e5", 100000}, Case{"+12", 12}, Case{"1.2e3", 1200},
        Case{"12.", 12}, Case{"-0", 0}, Case{"-0.0", 0}, Case{"-1", ~uint64_t{0}},
        Case{"-12", ~uint64_t{11}}, Case{"-12.0", ~uint64_t{11}},
        Case{"9007199254740991.0", (1ull << 53) - 1}, Case{"9007199254740993", (1ull << 53) + 1},
        Case{"-9223372036854775808", 1ull << 63}, Case{"18446744073709551615", ~uint64_t{0}}}) {
    const ClickBatch batch = ReadColumn("id 2 decimal\n", {c.text});
    ASSERT_EQ(batch.samples, 1u) << c.text;
    EXPECT_EQ(batch.features[0].ids[0], c.id) << c.text;
  }
  EXPECT_EQ(
      BrokenAmong("id 2 decimal\n", {"1.5", "9007199254740993.0", "1e300", "-9223372036854775809",
                                     "+-1", "++1", "12,0", "1 2", "0x1f", "inf", "1e-5"}),
      11u);
  EXPECT_EQ(BrokenAmong("id 2 decimal below 50\n", {"49.0", "-1", "-0", "50.0", "-49", "5e1"}), 4u);
  EXPECT_EQ(BrokenAmong("rules 1\nid 2 decimal\n", {"12.0", "1e5", "+12", "-1", "12"}), 4u);
}

TEST(Csv, ReadsNumbersWithAPlusSignAndNoDecimalCommas) {
  EXPECT_EQ(ReadColumn("dense 2\n", {"+1.5", "1e3", "-0.5", ".5"}).dense,
            (std::vector<float>{1.5f, 1000.0f, -0.5f, 0.5f}));
  BrokenLines broken;
  ReadColumn("dense 2\n", {"+", "+-1", "inf", "-inf", "1,2,3", "x"}, &broken);
  ASSERT_EQ(broken.kinds.size(), 1u);
  EXPECT_EQ(broken.kinds[0].count, 6u);
  ReadColumn("dense 2\n", {"1,5", "-1,5e3", "+0,5"}, &broken);
  ASSERT_EQ(broken.kinds.size(), 1u);
  EXPECT_THAT(TextsOf(broken)[0],
              HasSubstr("a number has a decimal comma in place of a point: \"1,5\" in column 2"));
  EXPECT_EQ(broken.count, 3u);
}

TEST(Csv, ReadsLabelsAsDataFramesWriteThem) {
  const std::string text = "True\nfalse\n1.0\n0\n+1\n1e0\nFALSE\n";
  EXPECT_EQ(ReadCsv("header no\nlabel 1\n", text)->labels,
            (std::vector<float>{1, 0, 1, 0, 1, 1, 0}));
  BrokenLines broken;
  EXPECT_EQ(ReadCsv("rules 1\nheader no\nlabel 1\n", text, &broken)->samples, 3u);
  EXPECT_EQ(ReadCsv("header no\nlabel 1\n", "NA\nyes\n2\n-1\nTRUe\n", &broken)->samples, 0u);
  EXPECT_EQ(broken.count, 5u);
}

TEST(Csv, HasBagsWithDeclaredSeparatorsAndWeights) {
  const ClickBatch batch = *ReadCsv(
      "label a\nbag b text separator semicolon\nbag c decimal weights :\n"
      "bag d text separator space weights = missing none\nbag e hex separator , below 100\n",
      "a,b,c,d,e\n"
      "1,x;y|z,5:0.5|6:-2e1,u=1 v=w=2,\"a,b\"\n"
      "0,,,none,\n"
      "1,x,7.0:1,u=+3,F\n");
  ASSERT_EQ(batch.samples, 3u);
  EXPECT_EQ(batch.features[0].ids,
            (std::vector<uint64_t>{TableHash("x"), TableHash("y|z"), TableHash("x")}));
  EXPECT_TRUE(batch.features[0].weights.empty());
  EXPECT_EQ(batch.features[1].ids, (std::vector<uint64_t>{5, 6, 7}));
  EXPECT_EQ(batch.features[1].weights, (std::vector<float>{0.5f, -20.0f, 1.0f}));
  EXPECT_EQ(batch.features[1].offsets, (std::vector<uint32_t>{0, 2, 2, 3}));
  EXPECT_EQ(batch.features[2].ids,
            (std::vector<uint64_t>{TableHash("u"), TableHash("v=w"), TableHash("u")}));
  EXPECT_EQ(batch.features[2].weights, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(batch.features[3].ids, (std::vector<uint64_t>{10, 11, 15}));
  EXPECT_TRUE(CheckBatch(batch, {.dense = {}, .ids = {"b", "c", "d", "e"}}).ok());
}

TEST(Csv, HasBagsThatAreLists) {
  const std::vector<std::string> numbers = {"[1, 2, 3]",    "[]",    "[ ]", "",
                                            "['4', \"5\"]", "[6.0]", "null"};
  const ClickBatch batch = ReadColumn("bag 2 decimal list\n", numbers);
  ASSERT_EQ(batch.samples, numbers.size());
  EXPECT_EQ(batch.features[0].ids, (std::vector<uint64_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(batch.features[0].offsets, (std::vector<uint32_t>{0, 3, 3, 3, 3, 5, 6, 6}));
  const ClickBatch texts =
      ReadColumn("bag 2 text list\n", {R"(['a', 'b, c'])", R"(["it's", 'a\'\\n'])", "[d, e ]"});
  EXPECT_EQ(texts.features[0].ids,
            (std::vector<uint64_t>{TableHash("a"), TableHash("b, c"), TableHash("it's"),
                                   TableHash("a'\\n"), TableHash("d"), TableHash("e")}));
}

// Never one id in silence.
TEST(Csv, BreaksALineWhoseBagIsNotOfItsForm) {
  struct Case {
    std::string statement;
    std::vector<std::string> fields;
    LineDefect defect;
  };
  for (const Case& c :
       {Case{"bag 2 text\n", {"['a', 'b']", "[a]", "[]"}, LineDefect::kBadBag},
        Case{"bag 2 text separator ;\n", {"a;;b", ";a", "a;"}, LineDefect::kBadId},
        Case{"bag 2 decimal separator ;\n", {"1,2", "1|2", "1 2"}, LineDefect::kBadId},
        Case{"bag 2 text weights :\n", {"a", "a|b:1", "a:1|b"}, LineDefect::kBadBag},
        Case{"bag 2 text weights :\n", {"a:", "a:b", "a:1|b:nan", "a:inf"}, LineDefect::kBadWeight},
        Case{"bag 2 text weights :\n", {":1", "a:1|:2"}, LineDefect::kBadId},
        Case{"bag 2 text weights :\n", {"a:1e39", "a:1,5"}, LineDefect::kBadWeight},
        Case{"bag 2 decimal list\n",
             {"1", "[1", "1]", "[1,]", "[,1]", "[1 2", "1,2", "[1,,2]", "[1 2]"},
             LineDefect::kBadBag},
        Case{"bag 2 decimal list\n", {"[a]", "[1.5]", "['']"}, LineDefect::kBadId},
        Case{"bag 2 text list\n",
             {"['a]", "['a\\']", "['a' 'b']", "['\\n']", "['a'b]", "[a b]", "[1 2 3]", "[None]",
              "['a', null]", "[nan]"},
             LineDefect::kBadBag}}) {
    for (const std::string& field : c.fields) {
      BrokenLines broken;
      ReadColumn(c.statement, {field}, &broken);
      ASSERT_EQ(broken.count, 1u) << c.statement << field;
      EXPECT_EQ(broken.kinds[0].defect, c.defect) << c.statement << field;
    }
  }
  EXPECT_EQ(BrokenAmong("rules 1\nbag 2 text\n", {"[a]"}), 0u) << "it was an id";
}

TEST(Csv, HasAHeaderInEachFile) {
  const TemporaryFile first(".csv", "label,user,age\n1,5,30\n"), empty(".csv");
  const TemporaryFile second(".csv", "age,x,label,user\n31,?,0,6\n32,?,2,7\n");
  const TemporaryFile other(".csv", "label,usr,age\n1,5,30\n");
  const ClickLogFormat format = {.columns =
                                     *ParseColumnFile("label label\ndense age\nid user decimal\n")};
  auto reader =
      *ClickReader::Open({empty.path(), first.path(), empty.path(), second.path()}, format, 1.0);
  ClickBatch batch;
  ASSERT_EQ(*reader->Next(9, &batch), 2u);
  EXPECT_EQ(batch.labels, (std::vector<float>{1, 0}));
  EXPECT_EQ(batch.dense, (std::vector<float>{30, 31}));
  EXPECT_EQ(batch.features[0].ids, (std::vector<uint64_t>{5, 6}));
  EXPECT_EQ(reader->position(), 5u) << "headers are lines";
  EXPECT_EQ(TextsOf(reader->broken_lines())[0],
            second.path() + ", line 3: its label is no label: \"2\" in column 'label'");
  const Status status = ClickReader::Open({first.path(), other.path()}, format).status();
  EXPECT_TRUE(IsNotFound(status));
  EXPECT_THAT(MessageOf(status), HasSubstr(other.path() + ": the file has no column 'user'"));
  EXPECT_TRUE(IsInvalidArgument(ClickReader::Open({empty.path(), empty.path()}, format).status()));
}

// It is for Excel, and before the header.
TEST(Csv, LeavesOutALineThatNamesTheSeparator) {
  BrokenLines broken;
  const std::string columns = "separator semicolon\nlabel a\nid b decimal\n";
  const ClickBatch batch = *ReadCsv(columns, "sep=;\na;b\n1;5\n0;x\n1;7\n", &broken);
  EXPECT_EQ(batch.features[0].ids, (std::vector<uint64_t>{5, 7}));
  ASSERT_EQ(broken.count, 1u);
  EXPECT_EQ(broken.kinds[0].number, 4u);
  EXPECT_THAT(MessageOf(ReadCsv(columns, "sep=;\n").status()), HasSubstr(": is empty"));
  EXPECT_EQ(ReadCsv("header no\nlabel 1\nid 2 decimal\n", "sep=,\n1,5\n0,6\n")->features[0].ids,
            (std::vector<uint64_t>{5, 6}));
}

TEST(Csv, NamesAColumnThatIsNotThere) {
  const Status status = ReadCsv("label click\nid usr decimal\n", "click,user\n1,2\n").status();
  EXPECT_TRUE(IsNotFound(status));
  EXPECT_THAT(MessageOf(status),
              HasSubstr("the file has no column 'usr', but 'user': it has 'click', 'user'"));
  EXPECT_TRUE(IsNotFound(ReadCsv("header no\nlabel 3\n", "1,2\n").status()));
  EXPECT_THAT(MessageOf(ReadCsv("header no\nlabel 3\n", "1,2\n").status()),
              HasSubstr("no column '3': its first line has columns 1 to 2"));
  EXPECT_THAT(MessageOf(ReadCsv("label a\n", "a;b\n1;2\n").status()),
              HasSubstr("it has 'a;b'; the column file may lack 'separator semicolon'"));
  std::string many = "c1";
  for (int i = 2; i <= 23; ++i) many += ",c" + std::to_string(i);
  EXPECT_THAT(MessageOf(ReadCsv("label a\n", many + "\n").status()),
              HasSubstr("'c19', 'c20' and 3 more"));
}

TEST(Csv, SaysWhatToDoWithAFirstLineThatIsOfNoCsv) {
  struct Case {
    std::string columns, text, message;
  };
  const std::string named = "label a\nid b decimal\n";
  const std::string numbered = "header no\nlabel 2\nid 1 decimal\n";
  for (const Case& c :
       {Case{named, "a|b\n1|2\n", "it has 'a|b'; the separator '|' is not read: write tabs"},
        Case{named,
             "a\x01"
             "b\n",
             "it has 'a\\x01b'; Hive's separator is not read: write tabs"},
        Case{named, "a::b\n1::2\n", "the separator '::' is not read: write tabs in its place"},
        Case{numbered, "1::2::3|4\n", "columns 1 to 1; the separator '::' is not read"},
        Case{numbered, "1\t2\n", "columns 1 to 1; the column file may lack 'separator tab'"},
        Case{numbered, "1\n", "no column '2': its first line has columns 1 to 1"},
        Case{"header no\nlabel a\n", "a,b\n", "columns are named by their numbers"},
        Case{"label 2\nid 1 text\n", "1,5\n", "the column file may lack 'header no'"},
        Case{named, "\n1,2\n", "the first line is blank: remove it"},
        Case{named, "b,c\n1,2\n", "it has 'b', 'c'; a prediction alone needs no labels"},
        Case{named, "{\"a\": 1, \"b\": 2}\n", "lines of JSON are not read: write them as CSV"},
        Case{named, "{\"a\":1,\"b\":2}\n", "lines of JSON are not read: write them as CSV"},
        Case{named, "a,\"b\n1,2\n", "an open quotation mark: \"a,\\\"b\""},
        Case{named, std::string("a\0b\n", 4), "'a\\x00b'; the file is no text"},
        Case{named, "a,b,b\n1,2,3\n", "the header has column 'b' twice; give one of them another"},
        Case{named + "dense b\n", "a,b\n1,2\n",
             "the column file names column 'b' twice; remove"}}) {
    EXPECT_THAT(MessageOf(ReadCsv(c.columns, c.text).status()), HasSubstr(c.message));
  }
}

TEST(Csv, HasColumnsOfAnyName) {
  const ClickBatch batch = *ReadCsv(
      "label \"is it a \"\"click\"\"\"\nid \" a\" decimal\nid \"a,b\" decimal\nid # decimal\n"
      "id \"\" decimal\nid \xC3\xA9 decimal\n",
      "\"is it a \"\"click\"\"\", a,a ,\"a,b\",#,,\xC3\xA9\n1,2,3,4,5,6,7\n");
  ASSERT_EQ(batch.samples, 1u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(batch.features[i].ids[0], (std::vector<uint64_t>{2, 4, 5, 6, 7})[i]);
  }
}

TEST(Csv, NeedsNoLabelsForAPrediction) {
  const ColumnFile columns = *ParseColumnFile("label click\ndense age\nid user decimal\n");
  const ColumnFile without = *ParseColumnFile("dense age\nid user decimal\n", false);
  EXPECT_EQ(TextOf(without), "rules 2\nseparator comma\nheader yes\ndense age\nid user decimal\n");
  for (const ColumnFile& file : {columns, without}) {
    for (const char* const text :
         {"user,age\n5,30\n", "click,age,user\n,30,5\n", "age,click,user\n30,what,5\n"}) {
      const TemporaryFile csv(".csv", text);
      auto reader = *ClickReader::Open({csv.path()}, {.columns = file, .has_labels = false}, 0.0);
      ClickBatch batch;
      ASSERT_EQ(*reader->Next(9, &batch), 1u) << text;
      EXPECT_TRUE(batch.labels.empty());
      EXPECT_EQ(batch.dense, std::vector<float>{30.0f});
      EXPECT_EQ(batch.features[0].ids, std::vector<uint64_t>{5});
    }
  }
  const TemporaryFile csv(".csv", "user,age\n5,30\n");
  EXPECT_TRUE(IsNotFound(ClickReader::OpenCsv(csv.path(), columns).status()));
  EXPECT_TRUE(IsInvalidArgument(ClickReader::OpenCsv(csv.path(), without).status()));
}

TEST(Csv, RefusesAColumnThatIsTwice) {
  EXPECT_TRUE(IsInvalidArgument(ReadCsv("label a\nid b text\n", "a,b,b\n1,2,3\n").status()));
  EXPECT_TRUE(IsInvalidArgument(ReadCsv("label a\nid a text\n", "a,b\n1,2\n").status()));
  EXPECT_TRUE(IsInvalidArgument(ReadCsv("label a\n", "").status()));
  EXPECT_TRUE(IsInvalidArgument(ReadCsv("label a\n", "\"a,b\n").status()));
}

TEST(Csv, ReadsTheTextOfABatchBackWithTheSameBits) {
  ClickBatch batch;
  batch.Clear(4);
  AppendRow({1.0f,
             {0.1f, 1234.5678f, -0.0f},
             {5, kMissingId, 0, 0},
             {{2, {8, kMissingId, 8}}, {3, {7, 7}, {0.1f, -0x1p-149f}}}},
            &batch);
  AppendRow({0.0f,
             {0x1p-149f, 0x1.fffffep127f, 1.0f / 3.0f},
             {kMissingId - 1, 0, 0, 0},
             {{2, {}}, {3, {}}}},
            &batch);
  const ClickBatch back = *ReadCsv(TextOf(ColumnsOf(batch)), TextOf(batch));
  EXPECT_EQ(back.labels, batch.labels);
  ASSERT_EQ(back.dense.size(), batch.dense.size());
  for (size_t i = 0; i < batch.dense.size(); ++i) {
    EXPECT_EQ(std::bit_cast<uint32_t>(back.dense[i]), std::bit_cast<uint32_t>(batch.dense[i])) << i;
  }
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(back.features[i].weights, batch.features[i].weights);
    EXPECT_EQ(back.features[i].ids, batch.features[i].ids);
    EXPECT_EQ(back.features[i].offsets, batch.features[i].offsets);
  }
  EXPECT_EQ(back.features[2].offsets, (std::vector<uint32_t>{0, 3, 3}));
}

}  // namespace
}  // namespace embank::test::csv_test
