// Trainers of several ranks against one of one rank: losses, weights, rows and states, bit for bit;
// and how jobs begin, go on and end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/str_cat.h"
#include "tests/support/environment.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/threads.h"
#include "tests/train/trained_rows.h"
#include "tests/train/trainer_scene.h"
#include "train/model_text.h"
#include "train/rank_start.h"
#include "train/ranks/local_exchange.h"
#include "train/ranks/rank_team.h"

namespace embank::test::rank_trainer_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kSteps = 10;  // each takes up to ten times as long
constexpr uint64_t kTieredSteps = 80;
constexpr uint32_t kTieredRanks[] = {2};
#else
constexpr uint64_t kSteps = 40;
constexpr uint64_t kTieredSteps = 300;
constexpr uint32_t kTieredRanks[] = {1, 2, 4, 8};
#endif

// The trainers of all ranks of a job, each on a thread of its own.
class Job {
 public:
  using OptionsOfRank = std::function<TrainerOptions(uint32_t rank)>;

  explicit Job(uint32_t ranks) : trainers_(ranks), exchanges_(MakeLocalExchanges(ranks)) {}

  // Returns the status of all ranks.
  Status Open(const OptionsOfRank& options_of) {
    return OnRanks([&](uint32_t rank) {
      StatusOr<std::unique_ptr<Trainer>> trainer =
          Trainer::Open(options_of(rank), DataColumns(), exchanges_[rank].get());
      if (!trainer.ok()) return trainer.status();
      trainers_[rank] = *std::move(trainer);
      return OkStatus();
    });
  }

  // Returns the status of all ranks for call(rank).
  Status OnRanks(const std::function<Status(uint32_t)>& call) {
    std::vector<Status> statuses(trainers_.size());
    OnThreads(trainers_.size(),
              [&](uint64_t rank) { statuses[rank] = call(static_cast<uint32_t>(rank)); });
    for (const Status& status : statuses) EXPECT_EQ(status, statuses[0]);
    return statuses[0];
  }

  // Returns the losses of all ranks.
  std::vector<double> TrainTo(uint64_t step, uint64_t checkpoint_at = 0) {
    std::vector<std::vector<double>> losses(trainers_.size());
    OnThreads(trainers_.size(), [&](uint64_t rank) {
      losses[rank] = Train(trainers_[rank].get(), step, checkpoint_at);
    });
    for (const std::vector<double>& of_rank : losses) EXPECT_EQ(of_rank, losses[0]);
    return losses[0];
  }

  // Expects the weights of a trainer of one rank, and all of its rows, each on its owner or, if the
  // table is replicated, on all ranks.
  void ExpectState(Trainer* one) {
    for (const auto& trainer : trainers_) {
      EXPECT_TRUE(std::ranges::equal(trainer->weights(), one->weights()));
    }
    for (size_t i = 0; i < one->tables().size(); ++i) {
      const TableRows expected = RowsIn(one->tables()[i]);
      TableRows all;
      uint64_t rows = 0;
      for (const auto& trainer : trainers_) {
        const TableRows of_rank = RowsIn(trainer->tables()[i]);
        rows += of_rank.size();
        all.insert(of_rank.begin(), of_rank.end());
        if (!replicated_.contains(i)) continue;
        EXPECT_EQ(of_rank, expected) << one->tables()[i]->name();
      }
      EXPECT_TRUE(all == expected) << one->tables()[i]->name();
      EXPECT_EQ(rows, expected.size() * (replicated_.contains(i) ? trainers_.size() : 1));
    }
  }

  void set_replicated(std::set<size_t> tables) { replicated_ = std::move(tables); }
  Trainer* trainer(uint32_t rank) { return trainers_[rank].get(); }
  Exchange* exchange(uint32_t rank) { return exchanges_[rank].get(); }

 private:
  std::vector<std::unique_ptr<Trainer>> trainers_;
  std::vector<std::unique_ptr<Exchange>> exchanges_;
  std::set<size_t> replicated_;
};

TrainerOptions OfRanks(const std::string& model, uint32_t ranks) {
  TrainerOptions options = OptionsOf(model);
  options.micro_batches = std::min(2u, options.slices / ranks);
  options.warmup_steps = 7;
  return options;
}

TEST(RankTrainer, HasTheBitsOfOneRank) {
  const struct {
    const char* model;
    std::vector<uint32_t> ranks;
  } cases[] = {
      {"wide-deep", {1, 2, 4, 8}}, {"dlrm", {2}}, {"deep-fm", {4}}, {"ffnn", {2}}, {"mmoe", {2}}};
  for (const auto& one_case : cases) {
    const std::string model = one_case.model;
    const auto one = OpenTrainer(OptionsOf(model));
    const std::vector<double> expected = Train(one.get(), kSteps);
    for (const uint32_t ranks : one_case.ranks) {
      SCOPED_TRACE(StrCat(model, " on ", ranks));
      Job job(ranks);
      ASSERT_EQ(job.Open([&](uint32_t) { return OfRanks(model, ranks); }), OkStatus());
      EXPECT_EQ(job.TrainTo(kSteps), expected);
      job.ExpectState(one.get());
      const RankTeam::DenseBytes bytes = job.trainer(0)->team()->dense_bytes();
      EXPECT_EQ(bytes.all > 0, ranks > 1);
    }
  }
}

// A model whose rows cost little beside their way through the tiers.
ClickModel ModelOfSums() {
  const auto make = [](const ModelInputs& inputs) {
    LayerGraph graph(inputs);
    graph.Linear(graph.Concat({graph.Dense(), graph.Sum(graph.Features())}), 1);
    return graph;
  };
  return {.name = "sums", .make = make, .dim_min = 2};
}

// How often a job found rows in a tier, or fetched them from it for the next step.
uint64_t AnswersOf(Job* job, uint32_t ranks, Tier tier) {
  uint64_t count = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    for (Table* const table : job->trainer(rank)->tables()) {
      const auto& counters = table->counters();
      count += counters.calls.Counts(TableVerb::kLookup).found_in[static_cast<size_t>(tier)];
      count += counters.prefetched_from[static_cast<size_t>(tier)].load();
    }
  }
  return count;
}

// Rows of all tiers, with other plans and threads. Only rows that are as large fill them in a run
// as short.
TEST(RankTrainer, HasTheseBitsWithAllTiers) {
  for (const uint32_t ranks : kTieredRanks) {
    SCOPED_TRACE(ranks);
    TrainerOptions options = OptionsOf("dlrm");
    options.model = ModelOfSums();
    options.dim = 96 * ranks;
    const auto one = OpenTrainer(options);
    const std::vector<double> expected = Train(one.get(), kTieredSteps);
    const ScratchDirectory directory;
    Job job(ranks);
    ASSERT_EQ(job.Open([&](uint32_t rank) {
      TrainerOptions of_rank = options;
      of_rank.micro_batches = std::min(2u, options.slices / ranks);
      of_rank.warmup_steps = 7;
      of_rank.threads = ranks < 4 ? 2 : 1;
      of_rank.store.worker_threads = of_rank.threads;
      of_rank.store.path = StrCat(directory.path(), "/", rank);
      of_rank.store.dram_bytes = kDramBytesMin;
      of_rank.store.pmem_path = StrCat(directory.path(), "/pmem-", rank);
      of_rank.store.pmem_bytes = std::max(kPmemBytesMin, (uint64_t{8} << 20) / ranks);
      of_rank.store.hbm_bytes = uint64_t{256} << 10;
      of_rank.store.warmup_iters = 3;
      of_rank.store.flush_iters = 5;
      return of_rank;
    }),
              OkStatus());
    EXPECT_EQ(job.TrainTo(kTieredSteps), expected);
    job.ExpectState(one.get());
    for (const Tier tier : {Tier::kHbm, Tier::kDram, Tier::kPmem, Tier::kSsd}) {
      EXPECT_GT(AnswersOf(&job, ranks, tier), 0u) << static_cast<int>(tier);
    }
  }
}

TEST(RankTrainer, ReplicatesTables) {
  const auto one = OpenTrainer(OptionsOf("wide-deep"));
  const std::vector<double> expected = Train(one.get(), kSteps);
  Job job(4);
  job.set_replicated({2, 8, 28, 34});  // vectors and weights
  ASSERT_EQ(job.Open([&](uint32_t) {
    TrainerOptions options = OfRanks("wide-deep", 4);
    options.ranks.replicated = {"C3", "C9"};
    return options;
  }),
            OkStatus());
  EXPECT_EQ(job.TrainTo(kSteps), expected);
  job.ExpectState(one.get());
}

TEST(RankTrainer, BucketsAreSentBesideTheBackwardPass) {
  // 13 x 1024 + 1024 x 1024 + ... floats: several buckets.
  TrainerOptions options = OptionsOf("rmc3");
  options.dim = 0;
  Job job(2);
  ASSERT_EQ(job.Open([&](uint32_t) { return options; }), OkStatus());
  // The link's thread mostly begins in time, and must do so once.
  for (uint64_t step = 5; step <= 50; step += 5) {
    job.TrainTo(step);
    if (job.trainer(0)->team()->dense_bytes().early > 0 &&
        job.trainer(1)->team()->dense_bytes().early > 0) {
      break;
    }
  }
  for (const uint32_t rank : {0u, 1u}) {
    const RankTeam::DenseBytes bytes = job.trainer(rank)->team()->dense_bytes();
    EXPECT_GT(bytes.early, 0u);
    EXPECT_LE(bytes.early, bytes.all);
  }
}

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

TEST(RankTrainer, RanksThatDifferAreNamed) {
  const auto message = [](uint32_t ranks, const std::function<void(TrainerOptions*)>& change) {
    Job job(ranks);
    const Status status = job.Open([&](uint32_t rank) {
      TrainerOptions options = OptionsOf("dlrm");
      if (rank == ranks - 1) change(&options);
      return options;
    });
    return std::string(status.message());
  };
  EXPECT_THAT(message(2, [](TrainerOptions* o) { o->seed = 7; }),
              AllOf(HasSubstr("rank 1 has \"seed 7\""), HasSubstr("rank 0 \"seed 1\"")));
  EXPECT_THAT(message(4, [](TrainerOptions* o) { o->slices = 16; }),
              AllOf(HasSubstr("rank 3 has \"slices 16\""), HasSubstr("rank 0 \"slices 8\"")));
  EXPECT_THAT(message(2, [](TrainerOptions* o) { o->row.rule.learning_rate = 0.5f; }),
              HasSubstr("row learning rate 0.5"));
  EXPECT_THAT(message(2, [](TrainerOptions* o) { o->groups = 3; }), HasSubstr("groups 3"));
  EXPECT_THAT(message(2, [](TrainerOptions* o) { o->dim = 4; }), HasSubstr("C1 dim 4"));
  EXPECT_THAT(message(2, [](TrainerOptions* o) { o->batch = 0; }), HasSubstr("rank 1: batch is 0"));
  EXPECT_THAT(message(3, [](TrainerOptions*) {}),
              AllOf(HasSubstr("slices is 8, and there are 3 ranks"), HasSubstr("power of two")));
  EXPECT_THAT(message(1, [](TrainerOptions* o) { o->slices = 6; }), HasSubstr("power of two"));
  EXPECT_THAT(message(2, [](TrainerOptions* o) { o->store.path = "/no/such/place"; }),
              HasSubstr("rank 1 has \"path given\""));
}

TEST(RankTrainer, AnotherSchemaOrBuildOnARankIsNamed) {
  const auto message = [](const ClickColumns& of_last, const std::string& how_of_last) {
    const TrainerOptions options = OptionsOf("dlrm");
    const auto exchanges = MakeLocalExchanges(2);
    std::vector<std::string> messages(2);
    OnThreads(2, [&](uint64_t rank) {
      const ClickColumns& columns = rank == 1 ? of_last : DataColumns();
      const ModelText text = DescribeModel(options, columns, *MakeModel(options, columns));
      const Status status =
          AgreeOnStart(exchanges[rank].get(), text, rank == 1 ? how_of_last : "build 1\n", "")
              .status();
      messages[rank] = status.message();
    });
    EXPECT_EQ(messages[1], messages[0]);
    return messages[0];
  };
  ClickColumns columns = DataColumns();
  EXPECT_EQ(message(columns, "build 1\n"), "");
  EXPECT_THAT(message(columns, "build 2\n"),
              AllOf(HasSubstr("rank 1 has \"build 2\""), HasSubstr("rank 0 \"build 1\"")));
  columns.ids[2] = "user";
  EXPECT_THAT(message(columns, "build 1\n"),
              AllOf(HasSubstr("rank 1 has \""), HasSubstr("user"), HasSubstr("rank 0 \"")));
}

// All ranks stop at one step with one message.
TEST(RankTrainer, AFailureOfOneRankIsThatOfAll) {
  Job job(2);
  ASSERT_EQ(job.Open([](uint32_t) { return OptionsOf("dlrm"); }), OkStatus());
  job.TrainTo(2);
  const auto step = [&](const std::function<void(uint32_t, ClickBatch*)>& change) {
    return job.OnRanks([&](uint32_t rank) {
      ClickBatch batch;
      EXPECT_TRUE(Data(100)->Next(100, &batch).ok());
      change(rank, &batch);
      std::vector<float> logits;
      return job.trainer(rank)->Step(batch, &logits).status();
    });
  };
  const std::vector<float> weights(job.trainer(0)->weights().begin(),
                                   job.trainer(0)->weights().end());
  // The last sample is in a slice of rank 1.
  const Status not_finite = step([](uint32_t, ClickBatch* batch) {
    batch->dense.back() = std::numeric_limits<float>::quiet_NaN();
  });
  EXPECT_THAT(not_finite.ToString(), HasSubstr("the loss of step 3 is not finite"));
  EXPECT_TRUE(std::ranges::equal(job.trainer(1)->weights(), weights));
  EXPECT_EQ(step([](uint32_t, ClickBatch*) {}), OkStatus());
  job.trainer(1)->team()->Keep(UnavailableError("no such row"));
  EXPECT_EQ(job.OnRanks([&](uint32_t r) { return job.trainer(r)->team()->AgreeOnSuccess(); }),
            UnavailableError("rank 1: no such row"));
  const Status kept = step([](uint32_t, ClickBatch*) {});
  EXPECT_EQ(kept, UnavailableError("rank 1: no such row"));
}

TEST(RankTrainer, AnotherBatchOnARankIsNamed) {
  Job job(2);
  ASSERT_EQ(job.Open([](uint32_t) { return OptionsOf("dlrm"); }), OkStatus());
  const Status other = job.OnRanks([&](uint32_t rank) {
    ClickBatch batch;
    EXPECT_TRUE(Data(100)->Next(rank == 0 ? 100 : 96, &batch).ok());
    std::vector<float> logits;
    return job.trainer(rank)->Step(batch, &logits).status();
  });
  EXPECT_FALSE(other.ok());
}

// A wish of one rank is known to all after the next step.
TEST(RankTrainer, AWishToEndIsThatOfAll) {
  Job job(2);
  ASSERT_EQ(job.Open([](uint32_t) { return OptionsOf("dlrm"); }), OkStatus());
  job.TrainTo(1);
  job.trainer(1)->team()->set_wants_end();
  EXPECT_FALSE(job.trainer(0)->team()->verdict().wants_end);
  job.TrainTo(2);
  EXPECT_TRUE(job.trainer(0)->team()->verdict().wants_end);
  EXPECT_TRUE(job.trainer(1)->team()->verdict().wants_end);
}

}  // namespace
}  // namespace embank::test::rank_trainer_test
