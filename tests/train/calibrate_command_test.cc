// embank-train calibrate and info: a log becomes a file of hot and cold batches, which says what it
// was made of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/scratch_directory.h"
#include "tests/train/train_program.h"
#include "train/fae/fae_file.h"

namespace embank::test::calibrate_command_test {
namespace {

using std::string_literals::operator""s;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Parts = std::vector<std::string>;

constexpr uint64_t kSamples = 20'000;
constexpr const char* kLayout = " --dim 64";  // some tables of the log are large then, others small
constexpr uint32_t kRowBytes = 2 * 64 * 4;    // values and Adagrad's state

// A CSV file, in which a few users and ads are popular.
std::string Clicks(int lines) {
  std::string text = "user,ad,price,click\n";
  for (int i = 0; i < lines; ++i) {
    const int user = i % 3 == 0 ? i : i % 7;
    for (const int number : {user, i % 11, i % 90}) text += std::to_string(number) + ",";
    text += i % 7 < 2 ? "1\n" : "0\n";
  }
  return text;
}
constexpr const char* kColumns = "label click\ndense price log\nid user decimal\nid ad decimal\n";

// A zstd frame of blocks that are not compressed (RFC 8878, 3.1.1).
std::string Zstd(const std::string& text) {
  constexpr size_t kBlockBytes = 50'000;
  std::string frame = "\x28\xb5\x2f\xfd\0\x58"s;
  for (size_t begin = 0; begin < text.size(); begin += kBlockBytes) {
    const std::string block = text.substr(begin, kBlockBytes);
    const size_t head = block.size() << 3 | (begin + kBlockBytes >= text.size() ? 1 : 0);
    for (const int shift : {0, 8, 16}) frame += static_cast<char>(head >> shift & 255);
    frame += block;
  }
  return frame;
}

// The working directory has a generated log.
class Calibrating : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    logs_ = std::make_unique<ScratchDirectory>();
    const Ended ended = Train("--generate criteo-kaggle --divisor 2000 --samples " +
                              std::to_string(kSamples) + " --write-log " + logs_->path() + "/log");
    ASSERT_EQ(ended.exit_code, 0) << ended.output;
  }
  static void TearDownTestSuite() { logs_.reset(); }

  void SetUp() override {
    std::filesystem::current_path(directory_.path());
    std::filesystem::copy_file(logs_->path() + "/log", "log");
  }
  void TearDown() override { std::filesystem::current_path(before_); }

  static std::string Calibrate(const std::string& arguments) {
    const Ended ended = Train("calibrate " + arguments);
    EXPECT_EQ(ended.exit_code, 0) << arguments << "\n" << ended.output;
    return ended.output;
  }

  static std::shared_ptr<const FaeFile> Open(const std::string& path) {
    const auto file = FaeFile::Open(path);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.value_or(nullptr);
  }

  static void ExpectRefusal(const std::string& arguments, int exit_code, const Parts& parts) {
    const Ended ended = Train("calibrate " + arguments);
    EXPECT_EQ(ended.exit_code, exit_code) << arguments << "\n" << ended.output;
    for (const std::string& part : parts) {
      EXPECT_THAT(ended.output, HasSubstr(part)) << arguments;
    }
  }

 private:
  static inline std::unique_ptr<ScratchDirectory> logs_;
  const std::filesystem::path before_ = std::filesystem::current_path();
  const ScratchDirectory directory_;
};

// Returns the samples of a class, whose ids are all hot, or one of which is not.
uint64_t CheckClass(const FaeFile& file, bool is_hot) {
  uint64_t samples = 0;
  ClickBatch batch;
  for (size_t block = 0; block < file.blocks(is_hot); ++block) {
    const Status status = file.ReadBlock(is_hot, block, &batch);
    EXPECT_TRUE(status.ok()) << status;
    samples += batch.samples;
    for (uint32_t i = 0; i < batch.samples; ++i) {
      bool has_cold = false;
      for (uint32_t column = 0; column < batch.features.size(); ++column) {
        const uint64_t id = batch.features[column].ids[i];
        has_cold |= file.hot_ids()->OfColumn(column).PlaceOf(id) == IdPlaces::kNone;
      }
      // The ids of small tables become hot where they first occur, so that each sample before is
      // judged as at the end.
      EXPECT_EQ(has_cold, !is_hot) << "sample " << i << " of block " << block;
      if (has_cold == is_hot) return samples;
    }
  }
  return samples;
}

TEST_F(Calibrating, HotRowsFillTheBudgetAndHotInputsHaveThemAlone) {
  struct Case {
    const char* budget;
    uint64_t bytes;
    bool has_all;
  };
  uint64_t hot_before = 0;
  for (const Case& one :
       {Case{"2560KiB", 2560 << 10, false}, {"4MiB", 4 << 20, false}, {"1GiB", 1 << 30, true}}) {
    const std::string text =
        Calibrate("log --out batches.fae"s + kLayout + " --budget " + one.budget);
    const auto file = Open("batches.fae");
    ASSERT_NE(file, nullptr);
    const FaeHeader& header = file->header();
    EXPECT_EQ(header.budget_bytes, one.bytes);
    EXPECT_EQ(header.dims, std::vector<uint32_t>(26, 64));
    EXPECT_EQ(header.row_bytes, std::vector<uint32_t>(26, kRowBytes));
    EXPECT_EQ(header.samples, kSamples);
    uint64_t rows = 0;
    for (const IdPlaces& places : file->hot_ids()->tables) rows += places.size();
    EXPECT_EQ(header.hot_bytes, rows * kRowBytes);
    EXPECT_LE(header.hot_bytes, one.bytes) << text;
    EXPECT_GE(header.hot_bytes, one.has_all ? 0 : one.bytes / 10 * 9) << text;
    const uint64_t hot = CheckClass(*file, /*is_hot=*/true);
    EXPECT_EQ(hot + CheckClass(*file, /*is_hot=*/false), kSamples);
    EXPECT_EQ(hot == kSamples, one.has_all) << hot;
    EXPECT_GT(hot, hot_before);
    hot_before = hot;
    EXPECT_THAT(text, HasSubstr(std::to_string(hot) + " of " + std::to_string(kSamples)));
    EXPECT_THAT(text, HasSubstr("embank-train --data batches.fae --dim 64 --path DIR"));
    EXPECT_FALSE(std::filesystem::exists("batches.fae.unfinished"));
  }
}

// The log has more ids than are counted without a sample.
TEST_F(Calibrating, ASampleOfALargerLogIsEnough) {
  const std::string log = TextIn("log");
  for (int i = 0; i < 2; ++i) WriteFile("log" + std::to_string(i), log);
  const std::string text = Calibrate(
      "log log0 log1 --sample 0.3 --budget 4MiB --out batches.fae --json figures.json"s + kLayout);
  EXPECT_THAT(text, HasSubstr("30.0 % of 60000 inputs"));
  EXPECT_THAT(text, HasSubstr("30.0 % of the inputs counted, by seed 1"));
  EXPECT_THAT(text, HasSubstr("by the estimate"));
  const auto file = Open("batches.fae");
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->header().files.size(), 3u);
  EXPECT_LE(file->header().hot_bytes, uint64_t{4} << 20);
  const auto json = nlohmann::json::parse(TextIn("figures.json"));
  EXPECT_EQ(json["estimate"]["counted_share"], 0.3);
  EXPECT_LE(json["estimate"]["hot_bytes"], json["estimate"]["bound_bytes"]);
  EXPECT_LE(json["hot_bytes"], 4 << 20);
  const double share = json["hot_input_share"];
  EXPECT_NEAR(json["estimate"]["hot_input_share"], share, 0.02);
  ExpectRefusal("log log0 log1 --sample 1e-7 --budget 4MiB --out none.fae", 2,
                {"--sample: ", "none of the log's 60000 samples"});
}

TEST_F(Calibrating, GivesTheSameBytesAgain) {
  const std::string calibrate = "log --budget 3MiB --out batches.fae"s + kLayout;
  Calibrate(calibrate);
  const std::string bytes = TextIn("batches.fae");
  ASSERT_GT(bytes.size(), 1'000'000u);
  for (const char* const more : {"", " --threads 1", " --threads 2"}) {
    Calibrate(calibrate + more);
    EXPECT_TRUE(TextIn("batches.fae") == bytes) << more;
  }
}

TEST_F(Calibrating, AFileOfTheSameIsReused) {
  const std::string same = "log --budget 3MiB --out batches.fae --reuse"s + kLayout;
  EXPECT_THAT(Calibrate(same), Not(HasSubstr("reused")));
  const std::string bytes = TextIn("batches.fae");
  const auto time = std::filesystem::last_write_time("batches.fae");
  EXPECT_THAT(Calibrate(same + " --json figures.json"), HasSubstr("batches.fae is reused"));
  EXPECT_TRUE(nlohmann::json::parse(TextIn("figures.json"))["is_reused"]);
  WriteFile("other", TextIn("log") + CriteoLog(1));
  std::string changed = TextIn("log");
  changed[changed.size() / 2] ^= 1;
  WriteFile("changed", changed);
  struct Case {
    std::string arguments;
    const char* difference;
  };
  const std::string begin = " --out batches.fae --reuse ";
  const std::string dim = kLayout;
  for (const Case& one :
       {Case{"other --budget 3MiB" + dim, "file 1 of the log has "},
        {"changed --budget 3MiB" + dim, "file 1 of the log has other contents"},
        {"log other --budget 3MiB" + dim, "the log has 1 files, and not 2"},
        {"log --budget 4MiB" + dim, "the budget is 3145728 bytes, and not 4194304"},
        {"log --budget 3MiB --sample 0.1" + dim, "the sampled share is 0.05, and not 0.1"},
        {"log --budget 3MiB --seed 2" + dim, "the seed of the sample is 1, and not 2"},
        {"log --budget 3MiB --dim 32", "the dim of id feature \"C1\" is 64, and not 32"},
        {"log --budget 3MiB --model rmc3", "the model is dlrm, and not rmc3"},
        {"log --budget 3MiB --model wide-deep" + dim, "the model is dlrm, and not wide-deep"},
        {"log --budget 3MiB --row-optimizer ftrl" + dim, "the size of a hot row in bytes"}}) {
    ExpectRefusal(one.arguments + begin, 1,
                  {"--reuse", "batches.fae", one.difference, "leave --reuse out"});
  }
  EXPECT_TRUE(TextIn("batches.fae") == bytes);
  EXPECT_THAT(Calibrate(same + " --picture picture.svg"),
              HasSubstr("--picture: picture.svg is not made"));
  EXPECT_FALSE(std::filesystem::exists("picture.svg"));
  EXPECT_EQ(std::filesystem::last_write_time("batches.fae"), time) << "it was written again";
  Calibrate("log --budget 4MiB --out batches.fae"s + kLayout);
  EXPECT_FALSE(TextIn("batches.fae") == bytes);
  WriteFile("none.fae", "something else, of more than the bytes of a head");
  ExpectRefusal("log --budget 3MiB --out none.fae --reuse"s + kLayout, 1,
                {"--reuse: ", "none.fae", "leave --reuse out"});
}

TEST_F(Calibrating, RowsAreThoseOfTheModelAndItsOptimizer) {
  struct Case {
    const char* options;
    uint32_t dim;
    uint32_t row_bytes;  // units of 16 bytes for each table
  };
  WriteFile("few", CriteoLog(100));
  for (const Case& one : {Case{"", 16, 2 * 64},
                          {" --row-optimizer sgd", 16, 64},
                          {" --row-optimizer rowwise-adagrad", 16, 64 + 16},
                          {" --row-optimizer adam --dim 5", 5, 64},
                          {" --model wide-deep", 16, 2 * 64 + 16},
                          {" --model rmc3", 64, 2 * 256}}) {
    Calibrate("few --budget 1GiB --out batches.fae"s + one.options);
    const auto file = Open("batches.fae");
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(file->header().dims[0], one.dim) << one.options;
    EXPECT_EQ(file->header().row_bytes[0], one.row_bytes) << one.options;
  }
}

TEST_F(Calibrating, LogsMayBeCsvPackedOrHaveBrokenLines) {
  WriteFile("columns", kColumns);
  // There are 1,000 users of 4 KiB, and 11 ads, whose table is small.
  const std::string budget = " --budget 1MiB --dim 512 --model ffnn --out ";
  const std::string of_csv = budget + "csv.fae --columns columns ";
  WriteFile("log.csv", Clicks(3000));
  Calibrate("log.csv" + of_csv);
  const auto file = Open("csv.fae");
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->header().samples, 3000u);
  EXPECT_EQ(file->header().columns.ids, (Parts{"user", "ad"}));
  const uint64_t hot = file->samples(/*is_hot=*/true);
  EXPECT_GT(hot, 2000u) << "two in three clicks are those of seven users";
  EXPECT_LT(hot, 2500u);
  EXPECT_EQ(CheckClass(*file, /*is_hot=*/true), hot);

  WriteFile("log.csv.zst", Zstd(Clicks(3000)));
  Calibrate("log.csv.zst" + budget + "zst.fae --columns columns");
  const auto packed = Open("zst.fae");
  ASSERT_NE(packed, nullptr);
  EXPECT_EQ(packed->samples(/*is_hot=*/true), hot);
  EXPECT_EQ(packed->header().files[0].bytes, std::filesystem::file_size("log.csv.zst"));

  WriteFile("log.csv", Clicks(3000) + "1,2,no");
  const std::string told = Calibrate("log.csv" + of_csv);
  EXPECT_THAT(told, AllOf(HasSubstr("1 broken lines were left out"), HasSubstr("line 3002")));
  EXPECT_EQ(Open("csv.fae")->header().samples, 3000u);
}

TEST_F(Calibrating, InfoIsThatOfTheFile) {
  Calibrate("log --budget 3MiB --out batches.fae --json figures.json"s + kLayout);
  const auto file = Open("batches.fae");
  ASSERT_NE(file, nullptr);
  const Ended text = Train("info batches.fae");
  EXPECT_EQ(text.exit_code, 0) << text.output;
  const std::string hot = std::to_string(file->samples(/*is_hot=*/true));
  const std::string cold = std::to_string(file->samples(/*is_hot=*/false));
  for (const std::string& part :
       {"1 file of "s, "13 dense, 26 of ids in 26 tables"s,
        "model dlrm, dim 64, optimizer adagrad"s, "all inputs counted"s, "the budget of 3.0 MiB"s,
        hot + " of 20000, ", "cold inputs    " + cold + "\n", "16 more"s}) {
    EXPECT_THAT(text.output, HasSubstr(part));
  }
  const Ended as_json = Train("info --json batches.fae");
  EXPECT_EQ(as_json.exit_code, 0) << as_json.output;
  const auto json = nlohmann::json::parse(as_json.output);
  EXPECT_EQ(json["log_files"][0]["bytes"], std::filesystem::file_size("log"));
  EXPECT_EQ(json["hot_inputs"].dump(), hot);
  EXPECT_EQ(json["cold_inputs"].dump(), cold);
  EXPECT_EQ(json["hot_bytes"], file->header().hot_bytes);
  EXPECT_EQ(json["threshold"], file->header().threshold);
  EXPECT_EQ(json["sampled_share"], 0.05);
  EXPECT_EQ(json["counted_share"], 1.0);
  EXPECT_EQ(json["seed"], 1);
  EXPECT_EQ(json["id_features"].size(), 26u);
  EXPECT_EQ(json["id_features"][2]["hot_rows_of_table"], file->hot_ids()->OfColumn(2).size());
  // That of the calibration has all of it.
  const auto figures = nlohmann::json::parse(TextIn("figures.json"));
  for (const auto& [name, value] : json.items()) EXPECT_EQ(figures[name], value) << name;
  EXPECT_EQ(figures["file_bytes"], std::filesystem::file_size("batches.fae"));
  EXPECT_EQ(figures["estimate"]["tables"].size(), 26u) << "the text has ten";
  EXPECT_EQ(Train("info log").exit_code, 1);
  EXPECT_EQ(Train("info nothing").exit_code, 1);
}

TEST_F(Calibrating, WithoutLargeTablesAllRowsAreHotAndThereIsNoThreshold) {
  const std::string text = Calibrate(
      "log --dim 1 --row-optimizer sgd --budget 1GiB --out batches.fae --json figures.json "
      "--picture picture.svg");
  EXPECT_THAT(text, AllOf(HasSubstr("none: all tables are small"),
                          HasSubstr("all rows, since all tables are small")));
  EXPECT_THAT(TextIn("picture.svg"), HasSubstr("All tables are small"));
  const auto figures = nlohmann::json::parse(TextIn("figures.json"));
  EXPECT_TRUE(figures["threshold"].is_null());
  EXPECT_TRUE(figures["estimate"]["threshold"].is_null());
  EXPECT_EQ(figures["hot_inputs"], kSamples);
  const Ended info = Train("info batches.fae");
  EXPECT_EQ(info.exit_code, 0);
  EXPECT_THAT(info.output, HasSubstr("none: all tables are small"));
}

// A log of one class trains: where the one hot batch has no slice for each rank, and where no batch
// is hot.
TEST_F(Calibrating, ALogMayHaveOneClass) {
  WriteFile("columns", kColumns);
  WriteFile("hot.csv", Clicks(40));
  const std::string options = " --model ffnn --columns columns --dim 512 --out ";
  Calibrate("hot.csv --budget 1MiB" + options + "hot.fae");
  EXPECT_EQ(Open("hot.fae")->samples(/*is_hot=*/true), 40u);
  const Ended hot = Train("--data hot.fae --model ffnn --ranks 4 --batch 64");
  EXPECT_EQ(hot.exit_code, 0) << hot.output;
  EXPECT_THAT(hot.output, AllOf(HasSubstr("1, 40 samples"), HasSubstr("1 of 1, 1.000")));

  // Each line has a user of its own, and the budget is that of the eleven ads.
  std::string text = "user,ad,price,click\n";
  for (int i = 0; i < 500; ++i) {
    text += std::to_string(i) + "," + std::to_string(i % 11) + ",1," + (i % 3 == 0 ? "1\n" : "0\n");
  }
  WriteFile("cold.csv", text);
  Calibrate("cold.csv --budget 44KiB" + options + "cold.fae");
  EXPECT_EQ(Open("cold.fae")->samples(/*is_hot=*/false), 500u);
  const Ended cold = Train("--data cold.fae --model ffnn --ranks 4 --batch 64");
  EXPECT_EQ(cold.exit_code, 0) << cold.output;
  EXPECT_THAT(cold.output, AllOf(HasSubstr("8, 500 samples"), HasSubstr("0 of 8, 0.000")));
  const Ended none = Train("--data cold.fae --model ffnn --hot-only");
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.output, HasSubstr("--hot-only: cold.fae has no hot input"));
}

TEST_F(Calibrating, ThePictureHasTheChoice) {
  Calibrate("log --budget 3MiB --out batches.fae --picture picture.svg"s + kLayout);
  const std::string picture = TextIn("picture.svg");
  EXPECT_THAT(picture, AllOf(HasSubstr("<svg"), HasSubstr("</svg>"), HasSubstr("chosen")));
  EXPECT_GT(CountOf(picture, "<polyline") + CountOf(picture, "<path"), 1u) << "rows and inputs";
}

TEST_F(Calibrating, WrongUseIsNamed) {
  WriteFile("empty", "");
  WriteFile("broken", CriteoLog(100) + "x\nx\nx\n");
  WriteFile("none.csv", "user,ad,price,click\n");
  WriteFile("columns", kColumns);
  ASSERT_EQ(mkfifo("pipe", 0600), 0);
  std::filesystem::create_directory("directory");
  struct Case {
    std::string arguments;
    int exit_code;
    Parts parts;
  };
  const std::string out = " --out batches.fae";
  const std::string log = "log --budget 1MiB" + out;
  const std::string units = "whole number of B, KiB, MiB or GiB";
  const std::string whole = "need ";  // the bytes of the small tables
  for (const Case& one :
       {Case{"log" + out, 2, {"--budget is required"}},
        {"log --budget 1MiB", 2, {"--out is required"}},
        {"--budget 1MiB" + out, 2, {"LOG is required"}},
        {"log --budget 1MB" + out, 2, {"--budget is 1MB", units}},
        {"log --budget 1.5GiB" + out, 2, {"--budget is 1.5GiB", units}},
        {"log --budget -1" + out, 2, {units}},
        {"log --budget GiB" + out, 2, {"--budget is GiB", units}},
        {"log --budget 99999999999999999999" + out, 2, {units}},
        {"log --budget 0" + out, 2, {"--budget is 0", "1 to "}},
        {"log --budget 1073741825GiB" + out, 2, {"1 to 1073741824GiB"}},
        {"log --budget 100" + out, 2, {"--budget: ", "is 100 bytes", whole}},
        {log + " --sample 0", 2, {"--sample is 0", "above 0 and at most 1"}},
        {log + " --sample 1.01", 2, {"--sample is 1.01", "above 0 and at most 1"}},
        {log + " --sample nan", 2, {"--sample is "}},
        {log + " --dim 0", 2, {"--dim", "1 to 4096"}},
        {log + " --dim 8 --model rmc2", 2, {"the dim of id feature \"C1\" is 8", "dim 16"}},
        {log + " --model none", 2, {"dlrm", "mmoe"}},
        {log + " --row-optimizer none", 2, {"--row-optimizer is none", "rowwise-adagrad"}},
        {log + " --buget 1", 2, {"no option '--buget'", "--budget"}},
        {"- --budget 1MiB" + out, 2, {"LOG: - can be read once", "twice"}},
        {"pipe --budget 1MiB" + out, 2, {"LOG: pipe can be read once", "twice"}},
        {"nothing --budget 1MiB" + out, 1, {"LOG: nothing: cannot open"}},
        {"log log --budget 1MiB" + out, 2, {"LOG: log: is named twice"}},
        {"empty --budget 1MiB" + out,
         1,
         {"LOG: empty: the data of the calibration have no sample"}},
        {"none.csv --columns columns --model ffnn --budget 1MiB" + out,
         1,
         {"LOG: none.csv: the data of the calibration have no sample"}},
        {"broken --budget 1MiB" + out, 1, {"lines are broken"}},
        {"log --columns nothing --budget 1MiB" + out, 2, {"--columns: nothing: cannot"}},
        {"log --budget 1MiB --out log", 2, {"--out: log is a file of the log"}},
        {"log --budget 1MiB --out directory", 2, {"--out: directory is a directory"}},
        {"log --budget 1MiB --out pipe", 2, {"--out: pipe is no file"}},
        {"log --budget 1MiB --out nowhere/batches.fae", 1, {"--out: ", "nowhere/batches.fae"}},
        {log + " --json nowhere/x", 2, {"--json: cannot write nowhere/x"}},
        {log + " --picture nowhere/x", 2, {"--picture: cannot write nowhere/x"}}}) {
    ExpectRefusal(one.arguments, one.exit_code, one.parts);
    EXPECT_FALSE(std::filesystem::exists("batches.fae")) << one.arguments;
    EXPECT_FALSE(std::filesystem::exists("batches.fae.unfinished")) << one.arguments;
  }
  Calibrate("log --budget 1GiB" + out);
  ExpectRefusal("batches.fae --budget 1MiB --out other", 2, {"LOG: batches.fae", "give the log"});
}

// Each pair of a result with another one, or with a file that is read.
TEST_F(Calibrating, NoFileIsLostToAResult) {
  WriteFile("columns", kColumns);
  WriteFile("clicks", Clicks(10));
  WriteFile("unfinished.fae.unfinished", TextIn("clicks"));
  std::filesystem::create_hard_link("clicks", "linked");
  std::filesystem::create_symlink("clicks", "pointing");
  std::filesystem::create_directory("directory");
  std::filesystem::create_directory_symlink("directory", "there");
  const auto files_before = FilesIn(".");
  struct Case {
    std::string arguments;
    std::string refusal;
  };
  const std::string of_log = " is a file of the log; give another one";
  const std::string begin = "clicks --columns columns --model ffnn --budget 1MiB ";
  const std::string begins = "--out, before it is whole";
  for (const Case& one :
       {Case{begin + "--out clicks", "--out: clicks" + of_log},
        {begin + "--out linked", "--out: linked" + of_log},
        {begin + "--out pointing", "--out: pointing" + of_log},
        {begin + "--out directory/../clicks", "--out: directory/../clicks" + of_log},
        {"unfinished.fae.unfinished --columns columns --model ffnn --budget 1MiB --out "
         "unfinished.fae",
         begins + ": unfinished.fae.unfinished" + of_log},
        {begin + "--out a --json clicks", "--json: clicks" + of_log},
        {begin + "--out a --json linked", "--json: linked" + of_log},
        {begin + "--out a --picture clicks", "--picture: clicks" + of_log},
        {begin + "--out columns", "--out: columns is the file of --columns"},
        {begin + "--out a --json columns", "--json: columns is the file of --columns"},
        {begin + "--out a --picture columns", "--picture: columns is the file of --columns"},
        {begin + "--out a --json a", "--json: a is --out"},
        {begin + "--out a --json ./a", "--json: ./a is --out"},
        {begin + "--out directory/a --json there/a", "--json: there/a is --out"},
        {begin + "--out a --picture $PWD/a", "/a is --out"},
        {begin + "--out a --json a.unfinished", "--json: a.unfinished is " + begins},
        {begin + "--out a --picture a.unfinished", "--picture: a.unfinished is " + begins},
        {begin + "--out a --json b --picture b", "--picture: b is --json"}}) {
    ExpectRefusal(one.arguments, 2, {one.refusal});
    EXPECT_EQ(FilesIn("."), files_before) << one.arguments;
    EXPECT_EQ(std::filesystem::is_empty("directory"), true) << one.arguments;
  }
  // A device keeps nothing.
  Calibrate(begin + "--out a --json /dev/null --picture /dev/null");
}

// The number that a refusal names is enough, and one byte less is not.
TEST_F(Calibrating, ARefusedBudgetNamesWhatSmallTablesNeed) {
  const std::string begin = "log --out batches.fae"s + kLayout + " --budget ";
  const Ended refused = Train("calibrate " + begin + "1");
  EXPECT_EQ(refused.exit_code, 2);
  const size_t at = refused.output.find(" need ");
  ASSERT_NE(at, std::string::npos) << refused.output;
  const uint64_t needed = std::stoull(refused.output.substr(at + 6));
  ASSERT_GT(needed, 1000u);
  ExpectRefusal(begin + std::to_string(needed - 1), 2, {"--budget: ", std::to_string(needed)});
  Calibrate(begin + std::to_string(needed));
}

// Many names of one file make a log of which the writing takes a while: returns what calibrate says
// when a command is run meanwhile, for its process $!.
Ended Interrupted(const std::string& command) {
  std::string files;
  for (int i = 0; i < 100; ++i) {
    const std::string name = "log" + std::to_string(i);
    std::filesystem::create_hard_link("log", name);
    files += " " + name;
  }
  const std::string program = std::string(std::getenv("EMBANK_TRAIN")) + " calibrate" + files +
                              kLayout + " --budget 4MiB --out batches.fae";
  WriteFile("interrupt.sh", program +
                                " > output 2>&1 &\n"
                                "until grep -q 'hot inputs' output && "
                                "[ -e batches.fae.unfinished ]\n"
                                "do kill -0 $! || break; sleep 0.01; done\n" +
                                command + "\nwait $!\n");
  const int status = std::system("sh interrupt.sh");
  return {.exit_code = WEXITSTATUS(status), .output = TextIn("output")};
}

TEST_F(Calibrating, ASignalLeavesTheFileThatWasThere) {
  WriteFile("batches.fae", "that of yesterday");
  const Ended ended = Interrupted("kill -TERM $!");
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.output, HasSubstr("SIGTERM: batches.fae was not written"));
  EXPECT_FALSE(std::filesystem::exists("batches.fae.unfinished"));
  EXPECT_EQ(TextIn("batches.fae"), "that of yesterday");
}

// A byte of the label of the first line, which leaves the log as long as it was.
TEST_F(Calibrating, ALogThatChangesInPlaceMeanwhileIsFound) {
  const Ended ended = Interrupted("printf 1 | dd of=log conv=notrunc 2> /dev/null");
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("LOG: log"), HasSubstr("has changed while it was read")));
  EXPECT_FALSE(std::filesystem::exists("batches.fae.unfinished"));
  EXPECT_FALSE(std::filesystem::exists("batches.fae"));
}

}  // namespace
}  // namespace embank::test::calibrate_command_test
