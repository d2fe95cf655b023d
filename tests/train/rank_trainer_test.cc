// Trainers of several ranks against one of one rank: losses, weights, rows and states, bit for bit;
// and what they do not accept.
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
#include "tests/train/rank_scene.h"
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
constexpr uint64_t kTieredSteps = 80;
constexpr uint32_t kTieredRanks[] = {2};
const std::vector<uint32_t> kWideRanks = {4};
#else
constexpr uint64_t kTieredSteps = 300;
constexpr uint32_t kTieredRanks[] = {1, 2, 4, 8};
const std::vector<uint32_t> kWideRanks = {1, 2, 4, 8};
#endif

TEST(RankTrainer, HasTheBitsOfOneRank) {
  const struct {
    const char* model;
    std::vector<uint32_t> ranks;
  } cases[] = {
      {"wide-deep", kWideRanks}, {"dlrm", {2}}, {"deep-fm", {4}}, {"ffnn", {2}}, {"mmoe", {2}}};
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
void ExpectTheseBitsWithAllTiers(uint32_t ranks, uint32_t staleness) {
  SCOPED_TRACE(StrCat(ranks, " ranks, staleness ", staleness));
  TrainerOptions options = OptionsOf("dlrm");
  options.model = ModelOfSums();
  options.dim = 96 * ranks;
  options.hybrid = {.staleness = staleness, .deterministic = true};
  const auto one = OpenTrainer(options);
  const std::vector<double> expected = Train(one.get(), kTieredSteps, 0, staleness);
  const ScratchDirectory directory;
  Job job(ranks);
  ASSERT_EQ(job.Open([&](uint32_t rank) {
    TrainerOptions of_rank = options;
    of_rank.micro_batches = std::min(2u, options.slices / ranks);
    of_rank.packs.warmup_steps = 7;
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
  EXPECT_EQ(job.TrainTo(kTieredSteps, 0, staleness), expected);
  job.ExpectState(one.get());
  for (const Tier tier : {Tier::kHbm, Tier::kDram, Tier::kPmem, Tier::kSsd}) {
    EXPECT_GT(AnswersOf(&job, ranks, tier), 0u) << static_cast<int>(tier);
  }
}

TEST(RankTrainer, HasTheseBitsWithAllTiers) {
  for (const uint32_t ranks : kTieredRanks) ExpectTheseBitsWithAllTiers(ranks, 0);
}

TEST(RankTrainer, HasTheseBitsWithAllTiersAndStaleRows) { ExpectTheseBitsWithAllTiers(2, 4); }

TEST(RankTrainer, LosesTheUpdatesThatOneRankLoses) {
  TrainerOptions options = OptionsOf("wide-deep");
  options.hybrid.drop_updates = 0.1;
  options.threads = 4;
  const auto one = OpenTrainer(options);
  const std::vector<double> expected = Train(one.get(), kSteps);
  EXPECT_NE(expected, Train(OpenTrainer(OptionsOf("wide-deep")).get(), kSteps));
  // The votes of a job come before the updates of their steps.
  const auto without_last = OpenTrainer(options);
  Train(without_last.get(), kSteps - 1);
  Job job(2);
  job.set_replicated({2, 28});
  ASSERT_EQ(job.Open([&](uint32_t) {
    TrainerOptions of_rank = OfRanks("wide-deep", 2);
    of_rank.hybrid.drop_updates = 0.1;
    of_rank.ranks.replicated = {"C3"};
    return of_rank;
  }),
            OkStatus());
  EXPECT_EQ(job.TrainTo(kSteps), expected);
  job.ExpectState(one.get());
  EXPECT_GT(one->pass()->lost_updates(), 10u * kSteps);
  EXPECT_EQ(job.trainer(1)->pass()->lost_updates(), without_last->pass()->lost_updates());
  EXPECT_EQ(job.trainer(1)->left_out().rows, 0u);
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
  options.ranks.sums_after_backward = true;
  Job after(2);
  ASSERT_EQ(after.Open([&](uint32_t) { return options; }), OkStatus());
  after.TrainTo(5);
  EXPECT_GT(after.trainer(0)->team()->dense_bytes().all, 0u);
  EXPECT_EQ(after.trainer(0)->team()->dense_bytes().early, 0u);
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
  EXPECT_THAT(message(2, [](TrainerOptions* o) { o->packs.groups = 3; }), HasSubstr("groups 3"));
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
void ExpectAFailureOfOneRankToBeThatOfAll(uint32_t staleness) {
  SCOPED_TRACE(staleness);
  Job job(2);
  ASSERT_EQ(job.Open([&](uint32_t) {
    TrainerOptions options = OptionsOf("dlrm");
    options.hybrid.staleness = staleness;
    return options;
  }),
            OkStatus());
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

TEST(RankTrainer, AFailureOfOneRankIsThatOfAll) {
  for (const uint32_t staleness : {0u, 4u}) ExpectAFailureOfOneRankToBeThatOfAll(staleness);
}

TEST(RankTrainer, AnotherBatchOnARankIsNamed) {
  // Each value of a batch counts.
  const std::function<void(ClickBatch*)> changes[] = {
      [](ClickBatch* batch) { batch->labels[7] = 1.0f - batch->labels[7]; },
      [](ClickBatch* batch) { batch->dense.back() += 1.0f; },
      [](ClickBatch* batch) { ++batch->features[25].ids[99]; }};
  for (const auto& change : changes) {
    Job of_others(2);
    ASSERT_EQ(of_others.Open([](uint32_t) { return OptionsOf("dlrm"); }), OkStatus());
    of_others.TrainTo(3);
    const Status other = of_others.OnRanks([&](uint32_t rank) {
      ClickBatch batch;
      EXPECT_TRUE(Data(100)->Next(100, &batch).ok());
      if (rank == 1) change(&batch);
      std::vector<float> logits;
      return of_others.trainer(rank)->Step(batch, &logits).status();
    });
    EXPECT_THAT(std::string(other.message()),
                HasSubstr("rank 1 has other samples behind step 3 than rank 0"));
    EXPECT_EQ(of_others.trainer(0)->steps(), 3u);
  }
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
