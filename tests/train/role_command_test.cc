// embank-train --roles: threads of one process, and ranks of a job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/str_cat.h"
#include "tests/support/scratch_directory.h"
#include "tests/train/mpi_job.h"
#include "tests/train/train_program.h"
#include "tests/train/trained_rows.h"

namespace embank::test::role_command_test {
namespace {

using ::testing::HasSubstr;

const std::string kData =
    "--generate criteo-kaggle --divisor 3000 --batch 100 --dim 4 --model wide-deep "
    "--samples 6050 --dram-mib 64 ";

class Trainings {
 protected:
  // Trains with these options into a directory, and returns the figures without the roles.
  std::string Train(const std::string& name, const std::string& options, uint32_t mpi_ranks = 0) {
    const std::string at = directory_.path() + "/" + name;
    const std::string words = StrCat(kData, options, " --path ", at, " --json ", at, ".json ",
                                     "--weights ", at, ".weights");
    const Ended ended = mpi_ranks == 0
                            ? test::Train(words)
                            : RunMpiJob(mpi_ranks, StrCat(std::getenv("EMBANK_TRAIN"), " ", words));
    EXPECT_EQ(ended.exit_code, 0) << ended.output;
    return TextIn(at + ".json");
  }
  // Expects losses, weights, rows and states of one process.
  void ExpectAsOneProcess(const std::string& name, const std::string& json) {
    const std::string at = directory_.path() + "/";
    const std::string one = TextIn(at + "one.json");
    EXPECT_EQ(NumberOf(json, "steps"), NumberOf(one, "steps"));
    EXPECT_EQ(NumberOf(json, "logloss"), NumberOf(one, "logloss"));
    EXPECT_EQ(NumberOf(json, "auc"), NumberOf(one, "auc"));
    EXPECT_TRUE(TextIn(at + name + ".weights") == TextIn(at + "one.weights"));
    ExpectSameRows(at + name, at + "one", 2 * 26 + 1);
  }

  const ScratchDirectory directory_;
};

class RoleCommand : public testing::Test, protected Trainings {};
class MpiRoles : public MpiTest, protected Trainings {};

TEST_F(RoleCommand, HasTheBitsOfOneProcess) {
  Train("one", "");
  uint32_t run = 0;
  for (const char* const options : {"--roles 1,2,2", "--roles 2,1,4 --buffer-samples 100",
                                    "--roles 1,1,2 --ranks 4", "--roles 2,1,1 --ranks 4"}) {
    SCOPED_TRACE(options);
    const std::string name = StrCat("roles", ++run);
    const std::string json = Train(name, options);
    ExpectAsOneProcess(name, json);
    EXPECT_EQ(NumberOf(json, "samples_applied"), 6050);
    EXPECT_EQ(NumberOf(json, "samples_lost"), 0);
    EXPECT_GT(NumberOf(json, "vector_bytes"), 0);
  }
}

TEST_F(MpiRoles, HaveTheBitsOfOneProcess) {
  Train("one", "");
  ExpectAsOneProcess("mpi", Train("mpi", "--roles 1,1,2", 4));
}

// The checkpoint is that of one process, and each way of training goes on where the other ended.
TEST_F(RoleCommand, GoesOnAtACheckpoint) {
  Train("one", "--eval-samples 500");
  Train("roles", "--eval-samples 500 --roles 1,2,2 --steps 20");
  Train("roles", "--ranks 4 --roles 2,1,1 --resume --steps 30");
  Train("roles", "--eval-samples 500 --resume --steps 40");
  const std::string json = Train("roles", "--eval-samples 500 --roles 2,1,2 --resume");
  EXPECT_EQ(NumberOf(json, "eval_logloss"),
            NumberOf(TextIn(directory_.path() + "/one.json"), "eval_logloss"));
  EXPECT_TRUE(TextIn(directory_.path() + "/roles.weights") ==
              TextIn(directory_.path() + "/one.weights"));
  ExpectSameRows(directory_.path() + "/roles", directory_.path() + "/one", 2 * 26 + 1);
}

TEST_F(RoleCommand, WrongInputsAreNamed) {
  const struct {
    const char* options;
    const char* words;
  } cases[] = {
      {"--roles 1,2", "--roles is 1,2; it must be the numbers of"},
      {"--roles 1,2,x", "--roles is 1,2,x"},
      {"--roles 1,2,2,", "--roles is 1,2,2,"},
      {"--roles 0,1,1", "there are 0 loaders"},
      {"--roles 1,1,3", "3 NN workers for 8 slices"},
      {"--roles 1,1,1 --buffer-samples 0", "it holds 0; it must hold a batch, which has 100"},
      {"--buffer-samples 100", "--buffer-samples needs --roles"},
      {"--roles 1,1,1 --replicate C3", "--roles goes without --replicate"},
      {"--roles 1,1,1 --pool-at-owner C3", "--roles goes without --pool-at-owner"},
      {"--roles 1,1,1 --wire-type f16", "--roles goes without --wire-type"},
      {"--roles 1,1,1 --micro-batches 2", "--roles goes without --micro-batches"},
      {"--roles 1,1,1 --path x --checkpoint-every 5", "--roles goes without --checkpoint-every"},
      {"--roles 1,1,1 --staleness 4", "--roles goes without --staleness"},
      {"--roles 1,1,1 --drop-updates 0.1", "--roles goes without --drop-updates"},
      {"--roles 1,1,1 --emulate Gather=1", "--roles goes without --emulate"},
      {"--roles 1,1,1 --sums-after-backward", "--roles goes without --sums-after-backward"},
      {"--roles 1,1,1 --ablation", "--roles goes without --ablation"},
      {"--roles 1,1,1 --rank-seconds 0", "--rank-seconds is 0"},
      {"--roles 1,1,1 --ranks 2", "needs 3 ranks, one for each role; there are 2"},
      {"--roles 1,2,1 --ranks 4", "as ranks there may be one"},
      {"--roles 1,1,1 --ranks 3 --eval-samples 9", "an evaluation goes in one process"},
  };
  for (const auto& [options, words] : cases) {
    const Ended ended = test::Train(StrCat(kData, options));
    EXPECT_EQ(ended.exit_code, 2) << options;
    EXPECT_THAT(ended.output, HasSubstr(words)) << options;
  }
}

// A role that is a rank and fails: all ranks end, and its name is told.
TEST_F(MpiRoles, ARoleThatFailsIsNamed) {
  const std::string log = directory_.path() + "/log";
  WriteFile(log, CriteoLog(3000));
  const Ended ended = RunMpiJob(3, StrCat(std::getenv("EMBANK_TRAIN"), " --data ", log,
                                          " --roles 1,1,1 --model deep-fm --dim 4 --batch 100 "
                                          "--row-optimizer sgd --row-rate 1e30"));
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_THAT(ended.output, HasSubstr("NN worker 0: the loss of step "));
}

// The batches before the broken line are trained and saved; then the failure is told.
TEST_F(MpiRoles, DataThatFailLeaveACheckpoint) {
  const std::string log = directory_.path() + "/log";
  const std::string path = directory_.path() + "/model";
  WriteFile(log, CriteoLog(3000, 1500));
  const Ended ended = RunMpiJob(3, StrCat(std::getenv("EMBANK_TRAIN"), " --data ", log,
                                          " --roles 1,1,1 --model ffnn --dim 4 --batch 100 "
                                          "--broken-share 0 --path ",
                                          path));
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_THAT(ended.output, HasSubstr("line 1500"));
  EXPECT_EQ(NumberOf(test::Train("describe --path " + path).output, "steps"), 14);
}

}  // namespace
}  // namespace embank::test::role_command_test
