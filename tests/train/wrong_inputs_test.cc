// Wrong inputs of embank-train: each message names the file, column or option, the text that is
// wrong, and what to do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/scratch_directory.h"
#include "tests/train/train_program.h"

namespace embank::test::wrong_inputs_test {
namespace {

using std::string_literals::operator""s;
using ::testing::HasSubstr;
using Parts = std::vector<std::string>;

constexpr const char* kModel = "--model ffnn --dim 4 --batch 100 --dram-mib 48 ";

std::string Clicks(int lines = 300) {
  std::string text = "user,ad,price,click\n";
  for (int i = 0; i < lines; ++i) {
    for (const int number : {i % 40, i % 7, i % 90}) text += std::to_string(number) + ",";
    text += i % 7 < 2 ? "1\n" : "0\n";
  }
  return text;
}

std::string Repeated(const std::string& line, int times = 30) {
  std::string lines;
  for (int i = 0; i < times; ++i) lines += line;
  return lines;
}

// Clicks with another character between the fields.
std::string Separated(const std::string& separator) {
  std::string text;
  for (const char c : Clicks()) text += c == ',' ? separator : std::string(1, c);
  return text;
}

// The working directory has a log, its column file, and a trained model.
class WrongInputs : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::current_path(directory_.path());
    WriteFile("log.csv", Clicks());
    WriteFile("columns", "label click\ndense price log\nid user decimal\nid ad decimal\n");
  }
  void TearDown() override { std::filesystem::current_path(before_); }

  static void ExpectMessage(const std::string& arguments, const Parts& parts) {
    const Ended ended = Train(arguments);
    EXPECT_NE(ended.exit_code, 0) << arguments;
    for (const std::string& part : parts) {
      EXPECT_THAT(ended.output, HasSubstr(part)) << arguments;
    }
  }

 private:
  const std::filesystem::path before_ = std::filesystem::current_path();
  const ScratchDirectory directory_;
};

TEST_F(WrongInputs, ArePointedOutOnTheCommandLine) {
  struct Case {
    std::string arguments;
    Parts parts;
  };
  const std::string data = "--data log.csv --columns columns ";
  const std::string log = kModel + data;
  ASSERT_EQ(Train(log + "--path run").exit_code, 0);
  const std::string resumed = "--path run --resume --data log.csv ";
  const Parts leave_out = {"; leave --", " out, or give another --path"};
  const auto other = [&](Parts parts) {
    parts.insert(parts.end(), leave_out.begin(), leave_out.end());
    return parts;
  };
  for (const Case& one : {
           Case{"--modle ffnn --data log.csv", {"'--modle'", "Did you mean '--model'?"}},
           {"trian --data log.csv", {"'trian'", "predict", "evaluate", "describe"}},
           {"evaluate --path run --data log.csv --model dlrm", {"'--model'", "--help"}},
           {log + "--generate avazu", {"give either --data FILE or --generate SCHEMA"}},
           {data + "--dim 0", {"--dim", "is 0", "1 to 4096"}},
           {data + "--dim 4097", {"--dim", "is 4097", "1 to 4096"}},
           {data + "--dim large", {"--dim: large", "whole number of 0 or more"}},
           {log + "--steps -1", {"--steps: -1", "whole number of 0 or more"}},
           {log + "--row-rate fast", {"--row-rate: fast", "no number"}},
           {log + "--row-rate -1", {"--row-rate", "is -1", "at least 0"}},
           {data + "--batch 0", {"--batch", "is 0", "1 to 1048576"}},
           {log + "--broken-share 2", {"--broken-share is 2", "0 to 1"}},
           {data + "--model dlmr", {"--model", "\"dlmr\"", "dlrm", "deep-fm"}},
           {log + "--row-optimizer adamw", {"--row-optimizer is adamw", "one of sgd, adagrad"}},
           {log + "--schedule step", {"--schedule-steps", "0 steps", "at least 1"}},
           {log + "--schedule step --schedule-steps 9", {"--schedule-factor", "is 0", "above 0"}},
           {data + "--dram-mib 1", {"--dram-mib", "is 1048576", "at least 16777216"}},
           {log + "--exclude nobody", {"--exclude", "\"nobody\""}},
           {log + "--samples 5", {"--samples requires --generate"}},
           {log + "--eval-every 5", {"--eval-every needs --eval FILE"}},
           {log + "--eval none.csv", {"--eval: none.csv", "No such file"}},
           {"--data log.csv --columns none", {"--columns: none", "No such file"}},
           {log + "--data log.csv", {"--data: log.csv: is named twice", "name it once"}},
           {log + "--eval - -", {"--eval: -: is named twice", "name it once"}},
           {log + "--json /none/figures", {"--json", "/none/figures", "No such file"}},
           {log + "--path log.csv", {"--path", "log.csv", "Not a directory"}},
           {log + "--resume", {"--resume needs --path"}},
           {log + "--path run", {"--path", "step 3", "give --resume, or another directory"}},
           {resumed + "--model dlrm", other({"--path", "\"model ffnn\"", "\"model dlrm\""})},
           {resumed + "--dim 8", other({"--path", "user dim 4\"", "user dim 8\""})},
           {resumed + "--row-optimizer adam", other({"row optimizer adagrad", "optimizer adam"})},
           {resumed + "--seed 3", other({"--seed", "with 1, not 3"})},
           {resumed + "--shuffle 30", {"--shuffle is 30", "--shuffle 0", "leave it out"}},
           {"predict --path run --data log.csv", {"--out is required"}},
           {"predict --path run --data log.csv --out log.csv",
            {"--out: log.csv", "file of --data", "give another"}},
           {"evaluate --path log.csv --data log.csv", {"--path", "log.csv", "of a training"}},
           {"evaluate --path run --data log.csv --columns other",
            {"--columns", "other", "\"ad\"", "in their order"}},
       }) {
    WriteFile("other", "label click\ndense price log\nid ad decimal\nid user decimal\n");
    ExpectMessage(one.arguments, one.parts);
  }
  // It is no failure: who restarts a training always may give --resume.
  EXPECT_THAT(Train(log + "--resume --path new").output,
              HasSubstr("--resume: new has no checkpoint: a new training of model"));
}

TEST_F(WrongInputs, ArePointedOutInTheColumnFile) {
  struct Case {
    std::string columns;
    Parts parts;
  };
  const std::string id = "id user decimal\n";
  const std::string label = "label click\n";
  for (const Case& one : {
           Case{"lable click\n" + id, {"line 1", "'lable'", "label, dense, id, bag or field"}},
           {label + "label ad\n" + id, {"line 2", "'click' and 'ad'", "remove one"}},
           {label + id + id, {"log.csv", "'user' twice", "remove one"}},
           {label + "id usr decimal\n", {"log.csv", "'usr', but 'user'", "'ad', 'price'"}},
           {label + "id User decimal\n", {"log.csv", "'User', but 'user'"}},
           {"label klick\n" + id, {"log.csv", "'klick', but 'click'"}},
           {"separator pipe\n" + label + id, {"line 1", "'pipe'", "comma, tab, semicolon or"}},
           {"separator tab\n" + label + id, {"log.csv", "'user,ad,", "'separator comma'"}},
           {label + "id user octal\n", {"line 2", "'octal'", "decimal, hex or text"}},
           {label + "id user decimal below 0\n", {"line 2", "'0'", "above 0"}},
           {label + "id user decimal below 10\n",
            {"log.csv, line 12", "\"10\"", "'user'", "vocabulary", "--broken-share"}},
           {label + "dense price sqrt\n" + id, {"line 2", "'sqrt'", "log, flag or both"}},
           {label + "dense \"price\n", {"line 2", "\"price", "quotation mark"}},
           {label + "bag user text separator ab\n", {"line 2", "'ab'", "comma, semicolon, tab"}},
           {"label click at-least x\n" + id, {"line 1", "'x'", "a number"}},
           {"header maybe\n" + label + id, {"line 1", "'maybe'", "header yes, or header no"}},
           {"header no\n" + label + id, {"log.csv", "'click'", "1 to 4", "by their numbers"}},
           {"label 4\nid 1 decimal\n", {"log.csv", "'4'", "'user', 'ad'", "'header no'"}},
           {id, {"no label", "add a statement label COLUMN"}},
           {label + "dense price\n", {"--columns", "no id features", "id or bag COLUMN"}},
           {"format parquet\n", {"line 1", "'parquet'", "csv, libsvm or libffm"}},
           {"rules 3\n" + label + id, {"line 1", "'3'", "rules 1, or rules 2"}},
       }) {
    WriteFile("wrong", one.columns);
    Parts parts = one.parts;
    // The column file is named where it is wrong by itself.
    if (parts[0].starts_with("line")) parts.push_back("--columns: wrong");
    ExpectMessage(kModel + "--data log.csv --columns wrong"s, parts);
  }
}

TEST_F(WrongInputs, ArePointedOutInData) {
  struct Case {
    const char* name;
    std::string text;
    Parts parts;
  };
  const std::string gzip = "\x1f\x8b\x08\0\0\0\0\0\0\x03"s;
  const std::string zstd = "\x28\xb5\x2f\xfd\x04\x68\x6d\0\0"s;
  const std::string broken = "of 330 lines are broken";
  const auto line = [&](const Parts& parts) {
    Parts all = {"wrong, line 302", broken, "--broken-share"};
    all.insert(all.end(), parts.begin(), parts.end());
    return all;
  };
  for (const Case& one : {
           Case{"an empty file", "", {"wrong", "is empty", "give a log"}},
           {"a header alone", Clicks(0), {"--data: wrong", "no sample", "behind its header"}},
           {"a cut .gz", gzip, {"wrong", "truncated .gz", "copy the file anew"}},
           {"a damaged .gz", gzip + "\xFF\xFF", {"wrong", "damaged .gz", "copy the file anew"}},
           {"a cut .zst", zstd, {"wrong", "truncated .zst", "copy the file anew"}},
           {"a damaged .zst",
            zstd + Repeated("x"),
            {"wrong", "damaged .zst", "copy the file anew"}},
           {"Parquet", "PAR1\x15\x04"s, {"wrong", "Parquet", "pandas.read_parquet(path).to_csv"}},
           {"Excel", "PK\x03\x04"s, {"wrong", "Excel", "save it as CSV"}},
           {"bzip2", "BZh91AY&SY\x01", {"wrong", "bzip2", "bunzip2"}},
           {"JSON", Repeated("{\"user\":1,\"click\":0}\n"), {"wrong", "JSON", "write them as CSV"}},
           {"no text", "\x80\x04\x95\0\0\0"s, {"wrong", "no text", "write it as CSV"}},
           {"semicolons", Separated(";"), {"wrong", "'user;ad;", "'separator semicolon'"}},
           {"bars", Separated("|"), {"wrong", "'user|ad|", "tr '|' '\\t'"}},
           {"Hive", Separated("\x01"), {"wrong", "\\x01", "tr '\\001' '\\t'"}},
           {"no price", "user,ad,click\n1,2,0\n", {"wrong", "'price'", "'user', 'ad', 'click'"}},
           {"no labels",
            "user,ad,price\n1,2,3\n",
            {"wrong", "'click'", "prediction alone needs no"}},
           {"a column twice",
            "user,user,ad,price,click\n",
            {"wrong", "'user' twice", "another name"}},
           {"a bad number", Clicks() + Repeated("1,2,cheap,1\n"), line({"\"cheap\"", "'price'"})},
           {"a bad id", Clicks() + Repeated("x7,2,3,1\n"), line({"\"x7\"", "'user'"})},
           {"a bad label", Clicks() + Repeated("1,2,3,yes\n"), line({"\"yes\"", "'click'"})},
           {"few columns", Clicks() + Repeated("1,2\n"), line({"too few columns", "\"1,2\""})},
           {"many columns", Clicks() + Repeated("1,2,3,1,9\n"),
            line({"too many", "\"1,2,3,1,9\""})},
           {"an open mark", Clicks() + Repeated("\"1,2,3,1\n"),
            line({"quotation mark is missing"})},
           {"only broken lines",
            Clicks(0) + Repeated("a,b,c,d\n"),
            {"wrong, line 2", "30 of 30 lines are broken", "\"a\"", "'user'", "--broken-share"}},
       }) {
    SCOPED_TRACE(one.name);
    WriteFile("wrong", one.text);
    ExpectMessage(kModel + "--data wrong --columns columns"s, one.parts);
  }
  std::filesystem::create_directory("empty");
  WriteFile("empty/_SUCCESS", "");
  ExpectMessage("--columns columns --data none.csv", {"--data: none.csv", "No such file"});
  ExpectMessage("--columns columns --data 'day_*'", {"--data: day_*", "no file fits the pattern"});
  ExpectMessage("--columns columns --data empty", {"--data: empty", "begin with . or _"});
  ExpectMessage("--data log.csv", {"log.csv", "\"user,ad,price,click\"", "--columns FILE"});
}

}  // namespace
}  // namespace embank::test::wrong_inputs_test
