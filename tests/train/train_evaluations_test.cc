// embank-train --eval-every: evaluations in a training, its best model, and its early end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/scratch_directory.h"
#include "tests/train/train_program.h"
#include "tests/train/trained_rows.h"

namespace embank::test::train_evaluations_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A model that learns its few samples by heart, so that it becomes worse on others.
constexpr const char* kModel = " --model ffnn --dim 4 --batch 100 --seed 3 ";
constexpr const char* kRates = " --row-rate 0.2 --dense-rate 0.05 ";

// The evaluations that a training told, by step.
struct Told {
  int step = 0;
  double loss = 0.0;
  bool is_best = false;
};

std::vector<Told> EvaluationsIn(const std::string& output) {
  std::vector<Told> all;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find("evaluation: logloss ");
    if (at == std::string::npos) continue;
    all.push_back({std::stoi(line.substr(5)), std::stod(line.substr(at + 20)),
                   line.find("the best so far") != std::string::npos});
  }
  return all;
}

class Evaluating : public testing::Test {
 protected:
  std::string At(const std::string& name) const { return directory_.path() + "/" + name; }

  // Writes the data of the training and of its evaluations.
  void SetUp() override {
    const Ended ended =
        Train("--generate criteo-kaggle --divisor 3000 --samples 2500 --write-log " + At("whole"));
    ASSERT_EQ(ended.exit_code, 0) << ended.output;
    const std::string text = TextIn(At("whole"));
    size_t end = 0;
    for (int line = 0; line < 1500; ++line) end = text.find('\n', end) + 1;
    WriteFile(At("log"), text.substr(0, end));
    WriteFile(At("others"), text.substr(end));
  }

  std::string Data() const { return " --data " + At("log") + " --eval " + At("others"); }

  std::string Run(const std::string& path, const std::string& options, int exit_code = 0,
                  const std::string& of_run = std::string(kRates) + "--epochs 4 ") const {
    const Ended ended = Train(Data() + kModel + of_run + " --path " + At(path) + " --json " +
                              At("json") + " " + options);
    EXPECT_EQ(ended.exit_code, exit_code) << ended.output;
    return ended.output;
  }

  const ScratchDirectory directory_;
};

TEST_F(Evaluating, TheModelOfTheLeastLossIsKept) {
  const std::string output = Run("run", "--eval-every 5");
  const std::vector<Told> told = EvaluationsIn(output);
  ASSERT_EQ(told.size(), 12u) << output;
  const auto best = std::ranges::min_element(told, {}, &Told::loss);
  EXPECT_LT(best->step, 60) << "it became worse: " << output;
  EXPECT_GT(best->step, 5) << "it became better first: " << output;
  double least = 1e9;
  for (const Told& one : told) {
    EXPECT_EQ(one.is_best, one.loss < least) << one.step;
    least = std::min(least, one.loss);
  }
  EXPECT_THAT(output, HasSubstr("The best one is in " + At("run.best") + ", at step " +
                                std::to_string(best->step)));
  const std::string json = TextIn(At("json"));
  EXPECT_EQ(NumberOf(json, "best_step"), best->step);
  EXPECT_NEAR(NumberOf(json, "best_logloss"), best->loss, 1e-5);
  EXPECT_NEAR(NumberOf(json, "eval_logloss"), told.back().loss, 1e-5);
  EXPECT_EQ(NumberOf(json, "eval_step"), 60.0);
  EXPECT_THAT(output, HasSubstr(" of 1000 samples behind step 60"));
  const Ended described = Train("describe --path " + At("run.best"));
  EXPECT_EQ(NumberOf(described.output, "steps"), best->step);
  // The same training up to there has the same model.
  Run("short", "--steps " + std::to_string(best->step));
  ExpectSameRows(At("run.best"), At("short"), 27);
  EXPECT_FALSE(std::filesystem::exists(At("short.best"))) << "it was not asked for";
}

TEST_F(Evaluating, AWorseModelNeverTakesThePlaceOfABetterOne) {
  Run("run", "--eval-every 5");
  const auto best = FilesIn(At("run.best"));
  const std::string worse = Run("run", "--eval-every 5 --resume", 0, "--epochs 5 --row-rate 3 ");
  EXPECT_THAT(worse, HasSubstr("the best model, in " + At("run.best")));
  EXPECT_FALSE(EvaluationsIn(worse).empty());
  EXPECT_TRUE(FilesIn(At("run.best")) == best);
  std::filesystem::remove_all(At("run"));
  EXPECT_THAT(Run("run", "--eval-every 5", 1), HasSubstr("has the best model of another training"));
  EXPECT_TRUE(FilesIn(At("run.best")) == best);
}

// The usual command line of a training that is started again, where its directory was removed.
TEST_F(Evaluating, TheBestModelOfAnotherTrainingIsRefused) {
  Run("run", "--eval-every 5");
  const auto best = FilesIn(At("run.best"));
  const std::string refusal = At("run.best") + " has the best model of another training, at step";
  std::filesystem::remove_all(At("run"));
  EXPECT_THAT(Run("run", "--eval-every 5 --resume", 1), HasSubstr(refusal));
  Run("run", "--resume");
  EXPECT_THAT(Run("run", "--eval-every 5 --resume", 1), HasSubstr(refusal));
  EXPECT_TRUE(FilesIn(At("run.best")) == best);
  std::filesystem::remove_all(At("run.best"));
  Run("run", "--eval-every 5 --resume");
}

// Evaluations that were not made, because --eval-every was another one, are none.
TEST_F(Evaluating, PatienceCountsEvaluationsThatWereMade) {
  Run("run", "--eval-every 20");
  const std::string output =
      Run("run", "--eval-every 1 --patience 3 --resume", 0, std::string(kRates) + "--epochs 5 ");
  EXPECT_THAT(output, HasSubstr("3 evaluations were no better"));
  EXPECT_EQ(EvaluationsIn(output).size(), 3u) << output;
  EXPECT_THAT(output, HasSubstr("200 samples in this run"))
      << "one of them is before its first step";
}

// Wherever the first part ends: at an evaluation, behind it, or where a better model was made and
// not kept yet.
TEST_F(Evaluating, ResumedRunsKeepTheModelOfOneRun) {
  const std::vector<Told> whole = EvaluationsIn(Run("run", "--eval-every 5 --patience 3"));
  const int best = std::ranges::min_element(whole, {}, &Told::loss)->step;
  EXPECT_EQ(whole.back().step, best + 15) << "it ended early";
  for (const int steps : {3, best - 2, best, best + 1, best + 5}) {
    const std::string path = "parts" + std::to_string(steps);
    const bool loses_best = steps == best;
    Run(path, "--eval-every " + std::string(loses_best ? "1000" : "5") + " --patience 3 --steps " +
                  std::to_string(steps));
    if (loses_best) std::filesystem::remove_all(At(path + ".best"));
    const std::string output = Run(path, "--eval-every 5 --patience 3 --resume");
    EXPECT_EQ(EvaluationsIn(output).back().step, best + 15) << output;
    EXPECT_THAT(output, HasSubstr("3 evaluations were no better"));
    ExpectSameRows(At(path + ".best"), At("run.best"), 27);
    ExpectSameRows(At(path), At("run"), 27);
  }
  // Each run has its own patience. The evaluation at its beginning is made anew.
  EXPECT_THAT(Run("run", "--eval-every 5 --patience 2 --resume"), HasSubstr("500 samples in this"));
}

// The evaluations of the next day count from its begin.
TEST_F(Evaluating, OtherDataHaveThePatienceOfTheirOwn) {
  WriteFile(At("monday"), CriteoLog(1000));
  WriteFile(At("tuesday"), CriteoLog(1200, 2));
  WriteFile(At("next"), CriteoLog(300, 7));
  const std::string run =
      "--eval-every 1 --patience 2 --model ffnn --dim 4 --batch 100 "
      "--row-rate 1 --dense-rate 1 --path " +
      At("run") + " --eval " + At("next") + " --data ";
  const Ended first = Train(run + At("monday"));
  EXPECT_EQ(first.exit_code, 0) << first.output;
  const Ended next = Train(run + At("tuesday") + " --resume");
  EXPECT_EQ(next.exit_code, 0) << next.output;
  EXPECT_THAT(next.output, Not(HasSubstr(" 0 samples in this run")));
  EXPECT_EQ(CountOf(next.output, "broken lines were left out"), 2u) << "each log once";
}

// The process was killed between two renames.
TEST_F(Evaluating, AnInterruptedReplacementIsEnded) {
  Run("run", "--eval-every 5");
  const auto best = FilesIn(At("run.best"));
  std::filesystem::rename(At("run.best"), At("run.best.old"));
  std::filesystem::create_directory(At("run.best.new"));
  WriteFile(At("run.best.new/part"), "x");
  Run("run", "--eval-every 5 --resume");
  EXPECT_TRUE(FilesIn(At("run.best")) == best);
  EXPECT_FALSE(std::filesystem::exists(At("run.best.old")));
  EXPECT_FALSE(std::filesystem::exists(At("run.best.new")));
}

TEST_F(Evaluating, ARunInMemoryEndsEarlyToo) {
  const Ended ended = Train(Data() + kModel + kRates + "--epochs 4 --eval-every 5 --patience 3");
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("3 evaluations were no better"));
  EXPECT_THAT(ended.output, HasSubstr("best of them"));
}

TEST_F(Evaluating, WrongUseIsNamed) {
  for (const auto& [options, message] : std::vector<std::pair<std::string, std::string>>{
           {"--generate avazu --eval-every 5", "--eval-every needs --eval FILE"},
           {"--generate avazu --eval-samples 10 --patience 5", "--patience needs --eval-every"},
           {"--data " + At("log") + " --eval - --eval-every 5", "--eval: a pipe or standard"}}) {
    const Ended ended = Train(options);
    EXPECT_EQ(ended.exit_code, 2) << options << ": " << ended.output;
    EXPECT_THAT(ended.output, HasSubstr(message));
  }
}

}  // namespace
}  // namespace embank::test::train_evaluations_test
