// Checkpoints of embank-train that `embank reshard` made for other numbers of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/str_cat.h"
#include "tests/support/scratch_directory.h"
#include "tests/train/train_program.h"
#include "tests/train/trained_rows.h"
#include "tools/job_text.h"
#include "train/model_text.h"
#include "train/models/model_table.h"

namespace embank::test::train_reshard_test {
namespace {

using ::testing::HasSubstr;

DataName Log() {
  DataName log;
  log.words = "a log";
  log.files = {{65536, 17}};
  log.shuffle = 250;
  return log;
}

// The text that the trainer of a rank writes in the first start of its job.
std::string TextOfRank(uint32_t rank, uint32_t ranks, uint64_t job,
                       const std::vector<std::string>& replicated) {
  TrainerOptions options;
  options.model = *FindModel("ffnn");
  options.dim = 4;
  options.slices = 8;
  options.ranks = {.replicated = replicated, .pooled = {"job 5"}, .wire = ValueType::kF16};
  const ClickColumns columns = {.dense = {"price", "job 5"},
                                .ids = {"user", "rank 1 of 2", "job 5"},
                                .data = Log(),
                                .format = "rank 3 of 4\njob 8"};
  ModelText text = DescribeModel(options, columns, *MakeModel(options, columns));
  text.steps = 1000;
  text.other_steps = 12;
  text.position.open_line_bytes = 120;
  text.rank = {.rank = rank, .ranks = ranks, .job = job, .start = job};
  return WriteModelText(text);
}

TEST(TrainReshard, TheTextOfARankIsThatOfItsTrainer) {
  const std::vector<std::string> replicated = {"user", "rank 1 of 2"};
  for (const uint32_t ranks : {1, 2, 8}) {
    const uint64_t job = ranks == 1 ? 0 : ~uint64_t{0};
    const StatusOr<JobText> text = ReadJobText(TextOfRank(ranks - 1, ranks, job, replicated));
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(text->steps, 1000u);
    EXPECT_EQ(text->slices, 8u);
    EXPECT_EQ(text->rank, ranks - 1);
    EXPECT_EQ(text->ranks, ranks);
    EXPECT_EQ(text->job, job);
    EXPECT_EQ(text->start, job);
    EXPECT_EQ(text->replicated, replicated);
    EXPECT_EQ(CheckSameTraining(*text, *ReadJobText(TextOfRank(3, 4, 5, replicated))), OkStatus());
    const JobText other = *ReadJobText(TextOfRank(3, 4, 5, {"user"}));
    EXPECT_THAT(CheckSameTraining(*text, other).message(), HasSubstr("replicated rank 1 of 2"));
    for (const uint32_t others : {1, 4, 256}) {
      EXPECT_EQ(BlobOfRank(*text, others - 1, others, 99),
                TextOfRank(others - 1, others, 99, replicated));
    }
  }
}

// Rows, states, dense parameters, rates, seeds and the place in the log: a run that goes on, and is
// trained on by each number of ranks, ends as a run that was never stopped.
TEST(TrainReshard, ATrainingGoesOnAfterItWasMadeIntoOtherNumbersOfRanks) {
  const ScratchDirectory directory;
  const std::string at = directory.path() + "/";
  WriteFile(at + "log", CriteoLog(3000));
  const std::string options = "--dram-mib 48 --data " + at + "log --dim 4 --batch 100 --slices 8 ";
  const std::string model = "--row-optimizer adam --seed 9 ";
  const std::string whole = " --path " + at + "whole --weights " + at + "whole.weights";
  ASSERT_EQ(Train(options + model + whole).exit_code, 0);
  ASSERT_EQ(Train(options + model + "--steps 3 --path " + at + "1").exit_code, 0);
  std::string from = at + "1";
  int step = 3;
  for (const int ranks : {4, 2, 8, 1}) {
    const std::string to = StrCat(from, "-", ranks);
    const Ended made =
        RunProgram("EMBANK_COMMAND", StrCat("reshard ", from, " --to ", ranks, " --out ", to));
    ASSERT_EQ(made.exit_code, 0) << made.output;
    EXPECT_THAT(made.output, HasSubstr(StrCat("at step ", step)));
    const std::string until = ranks == 1 ? "" : StrCat("--steps ", step + 6, " ");
    const Ended trained = Train(StrCat(options, until, "--ranks ", ranks, " --resume --path ", to,
                                       " --weights ", at, "weights"));
    ASSERT_EQ(trained.exit_code, 0) << trained.output;
    EXPECT_THAT(trained.output, HasSubstr(StrCat("goes on behind step ", step, "\n")));
    step += 6;
    from = to;
  }
  EXPECT_TRUE(TextIn(at + "weights") == TextIn(at + "whole.weights"));
  ExpectSameRows(from, at + "whole", 27);
}

}  // namespace
}  // namespace embank::test::train_reshard_test
