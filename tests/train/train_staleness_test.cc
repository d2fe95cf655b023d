// embank-train with rows that miss the updates of some steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/str_cat.h"
#include "tests/support/scratch_directory.h"
#include "tests/train/train_program.h"

namespace embank::test::train_staleness_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class TrainStaleness : public testing::Test {
 protected:
  // Trains generated data, of which all runs have the same.
  Ended Run(const std::string& options) const {
    return Train(StrCat("--generate criteo-kaggle --divisor 3000 --samples 6000 --batch 100 ",
                        "--dim 4 --model ffnn --threads 2 ", options));
  }
  // Returns the dense parameters at the end.
  std::string WeightsOf(const std::string& options) const {
    const Ended ended = Run(StrCat(options, " --weights ", Path("weights")));
    EXPECT_EQ(ended.exit_code, 0) << ended.output;
    return TextIn(Path("weights"));
  }
  std::string Path(const std::string& name) const { return StrCat(directory_.path(), "/", name); }

  const ScratchDirectory directory_;
};

// A checkpoint and an evaluation stand between steps: a run that goes on there has the bits of one
// that made them, too.
TEST_F(TrainStaleness, GoesOnAtACheckpoint) {
  const std::string options =
      "--staleness 4 --deterministic --checkpoint-every 20 --eval-every 15 --eval-samples 500 "
      "--dram-mib 48 ";
  const std::string whole = WeightsOf(StrCat(options, "--path ", Path("whole")));
  EXPECT_TRUE(WeightsOf("") != whole);
  const std::string parts = StrCat(options, "--path ", Path("parts"));
  WeightsOf(parts + " --steps 40");
  EXPECT_TRUE(WeightsOf(StrCat("--resume --checkpoint-every 20 --eval-every 15 ",
                               "--eval-samples 500 --dram-mib 48 --path ", Path("parts"))) ==
              whole);
}

TEST_F(TrainStaleness, MayChangeOnResumeAndIsSaid) {
  const std::string path = StrCat("--dram-mib 48 --path ", Path("store"));
  EXPECT_EQ(Run(path + " --steps 20 --staleness 4 --deterministic").exit_code, 0);
  const Ended other = Run(path + " --steps 40 --resume --staleness 1");
  EXPECT_EQ(other.exit_code, 0) << other.output;
  EXPECT_THAT(other.output, HasSubstr("staleness 4, deterministic -> 1, deterministic"));
  const Ended same = Run(path + " --resume");
  EXPECT_THAT(same.output, AllOf(HasSubstr("staleness      1: "), Not(HasSubstr(" -> "))));
}

TEST_F(TrainStaleness, IsReported) {
  const std::string json = Path("json");
  const Ended ended = Run(StrCat("--staleness 4 --deterministic --drop-updates 0.1 --json ", json));
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("staleness      4: lookups missed the updates of 3.8"),
                    HasSubstr("of 4 at most; deterministic"), HasSubstr("lost updates   ")));
  const std::string text = TextIn(json);
  EXPECT_EQ(NumberOf(text, "bound"), 4.0);
  EXPECT_EQ(NumberOf(text, "max"), 4.0);
  EXPECT_EQ(NumberOf(text, "lookups"), 60.0);
  EXPECT_EQ(NumberOf(text, "updates"), 60.0);
  EXPECT_GT(NumberOf(text, "lost_updates"), 100.0);
  EXPECT_THAT(Run("").output, Not(HasSubstr("staleness")));
}

// The steps before a line that cannot be read are trained, and have a checkpoint.
TEST_F(TrainStaleness, ALogThatBreaksLaterLeavesACheckpoint) {
  std::string text = CriteoLog(2000);
  for (int line = 0; line < 50; ++line) text += "x\n";
  WriteFile(Path("log"), text);
  const Ended ended =
      Train(StrCat("--staleness 4 --dim 4 --batch 100 --model ffnn --dram-mib 48 --data ",
                   Path("log"), " --path ", Path("store")));
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("its label is no label: \"x\" in column 1"),
                                  HasSubstr("/store, at step 20")));
}

// Also where all data are under way at the first step.
TEST_F(TrainStaleness, ALossThatIsNotFiniteIsTold) {
  std::string columns = "label y\nid u decimal\n", head = "y,u", line = "1,7";
  for (int i = 0; i < 16; ++i) {
    columns += StrCat("dense x", i, "\n");
    head += StrCat(",x", i);
    line += ",3e38";
  }
  WriteFile(Path("columns"), columns);
  WriteFile(Path("log"), StrCat(head, "\n", line, "\n", line, "\n"));
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory_.path());
  const Ended ended =
      Train("--staleness 4 --dim 4 --batch 1 --model ffnn --data log --columns columns");
  std::filesystem::current_path(before);
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("the loss of step 1 is not finite; its batch is in"));
}

TEST_F(TrainStaleness, WaitsAreEmulated) {
  const std::string json = Path("json");
  const Ended ended = Run(StrCat("--steps 20 --emulate Gather=5,Update=5 --json ", json));
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  const std::string text = TextIn(json);
  EXPECT_GE(NumberOf(text, "lookup"), 20 * 0.005);
  EXPECT_GE(NumberOf(text, "gradients"), 20 * 0.005);
}

}  // namespace
}  // namespace embank::test::train_staleness_test
