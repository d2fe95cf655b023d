// Checkpoints of several ranks: how jobs begin, go on and end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/str_cat.h"
#include "tests/support/environment.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/threads.h"
#include "tests/train/rank_scene.h"
#include "tests/train/trainer_scene.h"

namespace embank::test::rank_checkpoints_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Opens jobs on directories below one path.
class RankCheckpoints : public testing::Test {
 protected:
  TrainerOptions Options(uint32_t rank, uint32_t ranks) const {
    TrainerOptions options = OfRanks("dlrm", ranks);
    options.store.path = StrCat(directory_.path(), "/", rank);
    options.store.dram_bytes = uint64_t{40} << 20;
    return options;
  }
  Status Open(Job* job, uint32_t ranks) const {
    return job->Open([&](uint32_t rank) { return Options(rank, ranks); });
  }

  ScratchDirectory directory_;
};

TEST_F(RankCheckpoints, AJobGoesOnAsIfItHadNotEnded) {
  const auto one = OpenTrainer(OptionsOf("dlrm"));
  const std::vector<double> expected = Train(one.get(), kSteps);
  constexpr uint64_t kSaved = kSteps / 2;
  {
    Job job(2);
    ASSERT_EQ(Open(&job, 2), OkStatus());
    job.TrainTo(kSteps * 3 / 4, kSaved);
  }
  Job job(2);
  ASSERT_EQ(Open(&job, 2), OkStatus());
  EXPECT_EQ(job.trainer(1)->steps(), kSaved);
  const std::vector<double> rest(expected.begin() + kSaved, expected.end());
  EXPECT_EQ(job.TrainTo(kSteps), rest);
  job.ExpectState(one.get());
}

// A rank that was killed before its last checkpoint was durable has those of two former steps.
TEST_F(RankCheckpoints, AJobGoesOnAtTheNewestStepOfAllRanks) {
  uint64_t steps = 0;
  std::vector<double> losses;
  // Opens a job, which goes on at `steps`, makes two steps more and a checkpoint of each.
  const auto run = [&] {
    Job job(2);
    ASSERT_EQ(Open(&job, 2), OkStatus());
    EXPECT_EQ(job.trainer(0)->steps(), steps);
    EXPECT_EQ(job.trainer(1)->steps(), steps);
    losses.clear();
    for (const uint64_t end = steps + 2; steps < end;) {
      const std::vector<double> of_step = job.TrainTo(++steps);
      ASSERT_EQ(of_step.size(), 1u);
      losses.push_back(of_step[0]);
      EXPECT_EQ(job.OnRanks([&](uint32_t r) { return job.trainer(r)->Checkpoint(steps * 100); }),
                OkStatus());
    }
  };
  ASSERT_NO_FATAL_FAILURE(run());
  for (const uint32_t late : {0u, 1u}) {
    const std::string of_late = StrCat(directory_.path(), "/", late);
    const std::string before = StrCat(directory_.path(), "/before");
    std::filesystem::copy(of_late, before, std::filesystem::copy_options::recursive);
    {
      Job job(2);
      ASSERT_EQ(Open(&job, 2), OkStatus());
      losses = job.TrainTo(steps + 1);
      EXPECT_EQ(job.OnRanks([&](uint32_t r) { return job.trainer(r)->Checkpoint(1); }), OkStatus());
    }
    std::filesystem::remove_all(of_late);
    std::filesystem::rename(before, of_late);
    // The other rank goes back to its checkpoint but one, and numbers the next ones otherwise.
    const std::vector<double> expected = losses;
    ASSERT_NO_FATAL_FAILURE(run());
    ASSERT_EQ(losses.size(), 2u);
    EXPECT_EQ(losses[0], expected[0]);
  }
}

// A rank that was killed before its first checkpoint was durable has that of an empty store.
TEST_F(RankCheckpoints, AJobWithoutACommonStepBeginsAnew) {
  const std::string late = StrCat(directory_.path(), "/1");
  const std::string before = StrCat(directory_.path(), "/before");
  {
    Job job(2);
    ASSERT_EQ(Open(&job, 2), OkStatus());
    std::filesystem::copy(late, before, std::filesystem::copy_options::recursive);
    job.TrainTo(2, 2);
  }
  std::filesystem::remove_all(late);
  std::filesystem::rename(before, late);
  const auto one = OpenTrainer(OptionsOf("dlrm"));
  Job job(2);
  ASSERT_EQ(Open(&job, 2), OkStatus());
  EXPECT_EQ(job.trainer(0)->steps(), 0u);
  EXPECT_EQ(job.TrainTo(4, 4), Train(one.get(), 4));
  job.ExpectState(one.get());
}

// A rank that went back to a step, and was killed before its next checkpoint was durable, still has
// one of the start before, of the same step.
TEST_F(RankCheckpoints, StepsOfTwoStartsAreNotMixed) {
  const auto directory = [&](uint32_t rank) { return StrCat(directory_.path(), "/", rank); };
  const auto keep = [&](uint32_t rank) {
    std::filesystem::copy(directory(rank), directory(rank) + ".kept",
                          std::filesystem::copy_options::recursive);
  };
  const auto restore = [&](uint32_t rank) {
    std::filesystem::remove_all(directory(rank));
    std::filesystem::rename(directory(rank) + ".kept", directory(rank));
  };
  float rate = 0.02f;
  const auto run = [&](uint64_t from, uint64_t to) {
    Job job(2);
    ASSERT_EQ(job.Open([&](uint32_t rank) {
      TrainerOptions options = Options(rank, 2);
      options.row.rule.learning_rate = rate;
      return options;
    }),
              OkStatus());
    EXPECT_EQ(job.trainer(0)->steps(), from);
    EXPECT_EQ(job.trainer(1)->steps(), from);
    job.TrainTo(to, to);
  };
  ASSERT_NO_FATAL_FAILURE(run(0, 2));
  keep(1);
  ASSERT_NO_FATAL_FAILURE(run(2, 4));
  keep(0);
  restore(1);  // rank 0 has {4, 2}, and rank 1 {2}
  rate = 0.5f;
  ASSERT_NO_FATAL_FAILURE(run(2, 4));
  restore(0);  // rank 0 has the 4 of the first rate, and rank 1 that of the other one
  ASSERT_NO_FATAL_FAILURE(run(2, 3));
}

// The other ranks go back to the step before, too.
TEST_F(RankCheckpoints, ADamagedManifestOfARankIsNoLossOfTheOthers) {
  {
    Job job(2);
    ASSERT_EQ(Open(&job, 2), OkStatus());
    job.TrainTo(2, 2);
    job.TrainTo(4, 4);
  }
  std::ofstream(directory_.path() + "/1/MANIFEST-00000002") << "damaged";
  Job job(2);
  ASSERT_EQ(Open(&job, 2), OkStatus());
  EXPECT_EQ(job.trainer(0)->steps(), 2u);
  EXPECT_EQ(job.trainer(1)->steps(), 2u);
}

// Each rank is once the first, and once the last but one, to finish a checkpoint before all are
// killed; the others are behind its barrier.
TEST_F(RankCheckpoints, AKillBetweenTheEndsOfTwoRanksLosesNoStepOfAll) {
  constexpr uint32_t kRanks = 4;
  uint64_t step = 0;
  const auto kill = [&](uint32_t first, uint32_t finished) {
    Job job(kRanks);
    if (!Open(&job, kRanks).ok() || job.trainer(0)->steps() != step) return;
    job.TrainTo(step + 3, step + 2);
    const Status done = job.OnRanks([&](uint32_t rank) {
      Trainer* const trainer = job.trainer(rank);
      if ((rank + kRanks - first) % kRanks >= finished) return trainer->team()->AgreeOnSuccess();
      const Status started = trainer->StartCheckpoint((step + 3) * 100);
      return started.ok() ? trainer->store().started_checkpoint()->Finish().status() : started;
    });
    if (done.ok()) raise(SIGKILL);
  };
  for (uint32_t first = 0; first < kRanks; ++first) {
    for (const uint32_t finished : {1u, kRanks - 1}) {
      if (TestScale() == 1 && finished % kRanks == 1 + first % 2 * 2) continue;
      EXPECT_EXIT(kill(first, finished), testing::KilledBySignal(SIGKILL), "") << first;
      step += 2;
    }
  }
  const auto one = OpenTrainer(OptionsOf("dlrm"));
  const std::vector<double> expected = Train(one.get(), step + 5);
  Job job(kRanks);
  ASSERT_EQ(Open(&job, kRanks), OkStatus());
  EXPECT_EQ(job.TrainTo(step + 5), std::vector<double>(expected.end() - 5, expected.end()));
  job.ExpectState(one.get());
}

// A rank without space for a row, and one whose checkpoint has no place.
TEST_F(RankCheckpoints, AFailureOfARankStopsAllAndTheCheckpointBeforeGoesOn) {
  TrainerOptions options = Options(0, 2);
  options.dim = 1024;
  options.model = ModelOfSums();
  const auto open = [&](Job* job, uint64_t ssd_bytes) {
    return job->Open([&](uint32_t rank) {
      TrainerOptions of_rank = options;
      of_rank.store.path = Options(rank, 2).store.path;
      of_rank.store.dram_bytes = kDramBytesMin;
      of_rank.store.ssd_bytes = rank == 1 ? ssd_bytes : 0;
      return of_rank;
    });
  };
  uint64_t steps = 4;
  {
    Job job(2);
    ASSERT_EQ(open(&job, uint64_t{12} << 20), OkStatus());
    job.TrainTo(steps, steps);
    Status stopped;
    for (const auto data = Data(10'000); stopped.ok() && steps < 100; ++steps) {
      ClickBatch batch;
      ASSERT_TRUE(data->SkipTo(steps * 100).ok() && data->Next(100, &batch).ok());
      stopped = job.OnRanks([&](uint32_t rank) {
        std::vector<float> logits;
        return job.trainer(rank)->Step(batch, &logits).status();
      });
    }
    EXPECT_EQ(stopped.code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(stopped.message()),
                AllOf(testing::StartsWith("rank 1: "), HasSubstr("no space")));
    EXPECT_EQ(job.trainer(0)->steps(), job.trainer(1)->steps());
  }
  const std::string of_rank = Options(1, 2).store.path;
  {
    Job job(2);
    ASSERT_EQ(open(&job, 0), OkStatus());
    EXPECT_EQ(job.trainer(0)->steps(), 4u);
    job.TrainTo(5);
    std::filesystem::copy(of_rank, of_rank + ".kept", std::filesystem::copy_options::recursive);
    std::filesystem::remove_all(of_rank);
    const Status lost = job.OnRanks([&](uint32_t r) { return job.trainer(r)->Checkpoint(500); });
    EXPECT_THAT(std::string(lost.message()), testing::StartsWith("rank 1: "));
  }
  std::filesystem::remove_all(of_rank);
  std::filesystem::rename(of_rank + ".kept", of_rank);
  options.store = {.worker_threads = 1, .path = {}, .pmem_path = {}};
  const auto one = OpenTrainer(options);
  const std::vector<double> expected = Train(one.get(), steps);
  Job job(2);
  ASSERT_EQ(open(&job, 0), OkStatus());
  EXPECT_EQ(job.TrainTo(steps), std::vector<double>(expected.begin() + 4, expected.end()));
  job.ExpectState(one.get());
}

// Else a rank could keep the next two, and another one the last two.
TEST_F(RankCheckpoints, NoneBeginsWithoutTheOtherRanks) {
  Job job(2);
  ASSERT_EQ(Open(&job, 2), OkStatus());
  job.TrainTo(1);
  Status started;
  OnThreads(2, [&](uint64_t rank) {
    if (rank == 0) started = job.trainer(0)->StartCheckpoint(100);
    if (rank == 1) job.exchange(1)->Abort("it was killed");
  });
  EXPECT_EQ(started, CancelledError("rank 1: it was killed"));
  EXPECT_EQ(job.trainer(0)->store().checkpoints()->Blob().status().code(), StatusCode::kNotFound);
}

TEST_F(RankCheckpoints, WrongDirectoriesAreNamed) {
  {
    Job job(2);
    ASSERT_EQ(Open(&job, 2), OkStatus());
    job.TrainTo(3, 3);
  }
  const auto message = [&](uint32_t ranks, const std::vector<uint32_t>& directories) {
    Job job(ranks);
    const Status status =
        job.Open([&](uint32_t rank) { return Options(directories[rank], ranks); });
    return std::string(status.message());
  };
  EXPECT_THAT(message(2, {1, 0}), AllOf(HasSubstr("rank 0: "), HasSubstr("of rank 1")));
  EXPECT_THAT(message(2, {0, 0}), AllOf(HasSubstr("rank 1: "), HasSubstr("of rank 0")));
  EXPECT_THAT(message(2, {0, 7}),
              AllOf(HasSubstr("rank 1 has no checkpoint"), HasSubstr("step 3")));
  EXPECT_THAT(message(4, {0, 1, 2, 3}),
              AllOf(HasSubstr("of 2 ranks"), HasSubstr("has 4"), HasSubstr("embank reshard")));
  TrainerOptions alone = Options(0, 1);
  EXPECT_THAT(std::string(Trainer::Open(alone, DataColumns()).status().message()),
              HasSubstr("rank 0 of 2 alone"));
  {
    Job other(2);
    ASSERT_EQ(other.Open([&](uint32_t rank) { return Options(rank + 8, 2); }), OkStatus());
    other.TrainTo(3, 3);
  }
  EXPECT_THAT(message(2, {0, 9}), HasSubstr("rank 1 are of another job"));
  EXPECT_EQ(message(2, {0, 1}), "");
}

}  // namespace
}  // namespace embank::test::rank_checkpoints_test
