// embank-train with a file of hot and cold batches: the same model with and without the bag, with
// several ranks, and where it was stopped; and options that do not go with such a file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/str_cat.h"
#include "tests/support/scratch_directory.h"
#include "tests/train/train_program.h"
#include "tests/train/trained_rows.h"

namespace embank::test::hot_train_command_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A log, samples for the evaluation, and the batches of the log.
struct Files {
  explicit Files(const std::string& directory)
      : log(StrCat(directory, "/log.txt")),
        eval(StrCat(directory, "/eval.txt")),
        batches(StrCat(directory, "/log.fae")) {
    const std::string schema = "--generate criteo-kaggle --divisor 1000 ";
    Check(StrCat(schema, "--samples 12000 --write-log ", log));
    Check(StrCat(schema, "--samples 1000 --seed 2 --write-log ", eval));
    Check(StrCat("calibrate ", log, " --budget 4MiB --model ffnn --dim 64 --out ", batches));
  }

  static void Check(const std::string& arguments) {
    const Ended ended = Train(arguments);
    EXPECT_EQ(ended.exit_code, 0) << arguments << "\n" << ended.output;
  }

  std::string log;
  std::string eval;
  std::string batches;
};

class HotTrainCommand : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new ScratchDirectory();
    files_ = new Files(directory_->path());
  }
  static void TearDownTestSuite() {
    delete files_;
    delete directory_;
  }

  static const Files& files() { return *files_; }
  // A place of its own in the directory.
  static std::string Place(const std::string& name) {
    return StrCat(directory_->path(), "/", name);
  }
  // Trains one epoch of the batches, and returns the figures.
  static std::string Figures(const std::string& more) {
    const std::string json = Place("figures.json");
    Files::Check(StrCat("--data ", files().batches, " --model ffnn --batch 100 --eval ",
                        files().eval, " --json ", json, " ", more));
    return TextIn(json);
  }

 private:
  static inline ScratchDirectory* directory_ = nullptr;
  static inline Files* files_ = nullptr;
};

// The parts of the figures that do not depend on where hot rows are.
std::vector<double> ResultsOf(const std::string& json) {
  std::vector<double> results;
  for (const char* const name : {"steps", "samples", "logloss", "auc", "weights_crc32c",
                                 "eval_logloss", "eval_auc", "rate"}) {
    results.push_back(NumberOf(json, name));
    EXPECT_GE(results.back(), 0.0) << name;
  }
  return results;
}

TEST_F(HotTrainCommand, TrainsTheSameModelWithTheBagAndWithout) {
  const std::string bag = Figures(StrCat("--path ", Place("bag")));
  const std::string store = Figures(StrCat("--no-bag --path ", Place("store")));
  EXPECT_EQ(ResultsOf(bag), ResultsOf(store));
  ExpectSameRows(Place("bag"), Place("store"), 27);
  EXPECT_EQ(NumberOf(bag, "samples"), 12000.0);
  // Both classes are in the log, and phases alternate.
  const double hot = NumberOf(bag.substr(bag.find("\"hot\"")), "samples");
  EXPECT_GT(hot, 1200.0);
  EXPECT_LT(hot, 10800.0);
  EXPECT_GT(NumberOf(bag, "swaps_to_hot"), 1.0);
  EXPECT_LT(NumberOf(bag, "swapped_bytes"), NumberOf(bag, "swapped_bytes_of_all_rows"));
  // Vectors of cold samples alone cross the link, and their gradients; and the rows of swaps.
  const double vectors = 26 * 64 * 4;
  EXPECT_EQ(NumberOf(store, "bytes_to_device"), 12000 * vectors);
  EXPECT_EQ(NumberOf(store, "bytes_to_host"), 12000 * vectors);
  EXPECT_EQ(NumberOf(bag, "bytes_to_device") + NumberOf(bag, "bytes_to_host"),
            2 * (12000 - hot) * vectors + NumberOf(bag, "swapped_bytes"));
  const std::string ranks = Figures("--ranks 2");
  EXPECT_EQ(ResultsOf(ranks), ResultsOf(bag));
}

TEST_F(HotTrainCommand, GoesOnWhereItWasStopped) {
  const std::string whole = Figures(StrCat("--epochs 2 --path ", Place("whole")));
  constexpr int kEvery = 17;
  const std::string path = Place("parts");
  std::string json = Figures(StrCat("--epochs 2 --steps ", kEvery, " --path ", path));
  for (int step = 2 * kEvery; NumberOf(json, "steps") < NumberOf(whole, "steps"); step += kEvery) {
    json = Figures(StrCat("--epochs 2 --resume --steps ", step, " --path ", path));
    ASSERT_GE(NumberOf(json, "steps"), step < NumberOf(whole, "steps") ? step : 0);
  }
  EXPECT_EQ(NumberOf(json, "weights_crc32c"), NumberOf(whole, "weights_crc32c"));
  EXPECT_EQ(NumberOf(json, "rate"), NumberOf(whole, "rate"));
  EXPECT_EQ(NumberOf(json, "eval_logloss"), NumberOf(whole, "eval_logloss"));
  ExpectSameRows(path, Place("whole"), 27);
}

TEST_F(HotTrainCommand, LeavesColdBatchesOut) {
  const std::string hot = Figures("--hot-only");
  EXPECT_EQ(NumberOf(hot, "samples"), NumberOf(hot.substr(hot.find("\"hot\"")), "samples"));
  EXPECT_LT(NumberOf(hot, "samples"), 12000.0);
}

TEST_F(HotTrainCommand, NamesOptionsThatDoNotGoWithIt) {
  const std::string data = StrCat("--data ", files().batches, " ");
  const std::string log = StrCat("--data ", files().log, " ");
  const std::pair<std::string, const char*> cases[] = {
      {data + "--shuffle 100", "--shuffle: hot and cold batches have their order"},
      {data + "--columns " + files().log, "--columns: the file of hot and cold batches has them"},
      {data + "--dim 16", "--dim: "},
      {data + "--model ffnn --row-optimizer sgd", "was made for adagrad, and not for sgd"},
      {data + "--model wide-deep", "--model: "},
      {data + "--staleness 2", "--staleness: staleness is 2; with hot batches it must be 0"},
      {data + "--forget", "leave --forget out"},
      {data + "--pool-at-owner C3", "--pool-at-owner: pool at owner: with hot batches"},
      {data + "--roles 1,1,1", "--roles: roles read logs"},
      {data + files().log, "--data: a file of hot and cold batches is given alone"},
      {log + "--no-bag", "--no-bag needs --data with a file of hot and cold batches"},
      {log + "--hot-only", "--hot-only needs --data"},
      {log + "--eval " + files().batches, "which only a training reads"},
      {log + "--emulate-link fast", "--emulate-link is \"fast\"; it must be GB/S,US"},
      {log + "--emulate-link 0,10", "above 0"},
      {log + "--emulate-link 12", "GB/S,US"}};
  for (const auto& [arguments, message] : cases) {
    const Ended ended = Train(arguments);
    EXPECT_EQ(ended.exit_code, 2) << arguments;
    EXPECT_THAT(ended.output, HasSubstr(message)) << arguments;
  }
}

TEST_F(HotTrainCommand, OnlyATrainingReadsIt) {
  const std::string path = Place("model");
  Figures(StrCat("--path ", path));
  for (const std::string use : {"evaluate", "predict --out -"}) {
    const Ended ended = Train(StrCat(use, " --path ", path, " --data ", files().batches));
    EXPECT_EQ(ended.exit_code, 2);
    EXPECT_THAT(ended.output,
                AllOf(HasSubstr("--data: "), HasSubstr("which only a training reads")));
  }
  // It predicts for the lines of a log.
  Files::Check(StrCat("evaluate --path ", path, " --data ", files().eval));
}

}  // namespace
}  // namespace embank::test::hot_train_command_test
