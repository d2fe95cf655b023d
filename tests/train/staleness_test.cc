// Training with rows that miss the updates of some steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/str_cat.h"
#include "base/threads/clock.h"
#include "tests/support/scratch_directory.h"
#include "tests/train/rank_scene.h"
#include "tests/train/trained_rows.h"
#include "tests/train/trainer_scene.h"

namespace embank::test::staleness_test {
namespace {

using ::testing::HasSubstr;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint32_t kStaleness[] = {0, 1, 4, 16};
#else
constexpr uint32_t kStaleness[] = {0, 1, 4, 16, 50};
#endif

TrainerOptions Stale(uint32_t staleness, uint32_t threads = 1) {
  TrainerOptions options = OptionsOf("dlrm");
  options.hybrid.staleness = staleness;
  options.hybrid.deterministic = true;
  options.threads = options.store.worker_threads = threads;
  options.packs.warmup_steps = 7;  // plans change while steps are under way
  return options;
}

std::vector<TableRows> RowsOfAll(Trainer* trainer) {
  std::vector<TableRows> rows;
  for (Table* const table : trainer->tables()) rows.push_back(RowsIn(table));
  return rows;
}

// Each step begins when the one before it has ended.
TEST(Staleness, WithoutStepsThatOverlapItChangesNothing) {
  const auto one = OpenTrainer(Stale(0));
  TrainerOptions options = Stale(4);
  // An update takes so long that a lookup that does not wait for it would not see it.
  options.experiments.before_operation = [](const OperationLabel& label, uint32_t) {
    const bool is_update = label.kind == OperationKind::kUpdate;
    for (int i = is_update ? 500 : 0; i > 0; --i) std::this_thread::yield();
  };
  const auto stale = OpenTrainer(options);
  const std::vector<double> expected = Train(one.get(), kSteps);
  EXPECT_EQ(Train(stale.get(), kSteps, 0, /*staleness=*/0), expected);
  EXPECT_EQ(RowsOfAll(stale.get()), RowsOfAll(one.get()));
  EXPECT_TRUE(std::ranges::equal(stale->weights(), one->weights()));
}

TEST(Staleness, IsAFunctionOfTheOptions) {
  std::map<uint32_t, std::vector<double>> losses;
  for (const uint32_t staleness : kStaleness) {
    SCOPED_TRACE(staleness);
    // Each place of the ring is used twice and more.
    const uint64_t steps = std::max<uint64_t>(kSteps, 2 * (staleness + 1));
    const auto first = OpenTrainer(Stale(staleness));
    losses[staleness] = Train(first.get(), steps, 0, staleness);
    const std::vector<TableRows> rows = RowsOfAll(first.get());
    {
      TrainerOptions options = Stale(staleness, /*threads=*/3);
      options.micro_batches = 3;
      const auto again = OpenTrainer(options);
      EXPECT_EQ(Train(again.get(), steps, 0, staleness), losses[staleness]);
      EXPECT_EQ(RowsOfAll(again.get()), rows);
      EXPECT_TRUE(std::ranges::equal(again->weights(), first->weights()));
      if (staleness == 0) continue;
      EXPECT_EQ(again->pass()->rows().ring_counts().staleness_max, staleness);
    }
    for (const uint32_t ranks : {2u, 4u}) {
      if (ranks == 4 && staleness != 4) continue;
      SCOPED_TRACE(ranks);
      Job job(ranks);
      ASSERT_EQ(job.Open([&](uint32_t) { return Stale(staleness); }), OkStatus());
      EXPECT_EQ(job.TrainTo(steps, 0, staleness), losses[staleness]);
      job.ExpectState(first.get());
    }
  }
  for (const auto& [staleness, of_one] : losses) {
    if (staleness == 0) continue;
    // The first `staleness` + 1 steps see no update at all; the first loss is that of new rows.
    EXPECT_EQ(of_one[0], losses[0][0]);
    EXPECT_NE(of_one[1], losses[0][1]) << staleness;
  }
}

// Rows of the first steps are all new: their losses are those of a model whose rows never change,
// but whose dense parameters do.
TEST(Staleness, TheFirstStepsMissAllUpdates) {
  constexpr uint32_t kFour = 4;
  TrainerOptions frozen = Stale(0);
  frozen.row.optimizer = Optimizer::kSgd;
  frozen.row.rule.learning_rate = 0.0f;
  TrainerOptions stale = Stale(kFour);
  stale.row.optimizer = Optimizer::kSgd;
  stale.row.rule.learning_rate = 1.0f;
  const std::vector<double> expected = Train(OpenTrainer(frozen).get(), kFour + 2);
  const std::vector<double> losses = Train(OpenTrainer(stale).get(), kFour + 2, 0, kFour);
  for (uint32_t step = 0; step <= kFour; ++step) EXPECT_EQ(losses[step], expected[step]);
  EXPECT_NE(losses[kFour + 1], expected[kFour + 1]) << "it sees the first update";
}

TEST(Staleness, AStoppedUpdateLetsSoManyLookupsGoOn) {
  constexpr uint32_t kFour = 4;
  std::promise<void> go, stopped;
  const std::future<void> gone = go.get_future();
  std::atomic<uint64_t> lookups = 0;
  TrainerOptions options = Stale(kFour);
  options.hybrid.deterministic = false;
  options.experiments.before_operation = [&](const OperationLabel& label, uint32_t part) {
    if (label.kind == OperationKind::kGather && part == 0) ++lookups;
    if (label.kind != OperationKind::kUpdate || label.batch > 0) return;
    stopped.set_value();
    gone.wait();
  };
  const auto trainer = OpenTrainer(options);
  ASSERT_EQ(trainer->pass()->plan().packs().size(), 1u);
  const auto data = Data(1000);
  std::vector<ClickBatch> batches(kFour + 2);
  std::vector<float> logits;
  for (ClickBatch& batch : batches) ASSERT_TRUE(data->Next(100, &batch).ok());
  for (uint32_t i = 0; i <= kFour; ++i) EXPECT_EQ(trainer->BeginStep(batches[i]), OkStatus());
  const Status refused = trainer->BeginStep(batches.back());
  EXPECT_THAT(refused.message(), HasSubstr("staleness is 4, and 5 steps are begun"));
  EXPECT_TRUE(trainer->EndStep(&logits).ok());
  stopped.get_future().wait();
  EXPECT_EQ(trainer->BeginStep(batches.back()), OkStatus());
  for (uint32_t i = 0; i < kFour; ++i) EXPECT_TRUE(trainer->EndStep(&logits).ok());
  EXPECT_EQ(lookups.load(), 1 + kFour) << "the batch whose update stands, and those behind it";
  EXPECT_EQ(trainer->pass()->rows().ring_counts().updates, 0u);
  go.set_value();
  EXPECT_TRUE(trainer->EndStep(&logits).ok());
  EXPECT_EQ(trainer->DropSteps(), OkStatus());
  EXPECT_EQ(trainer->pass()->rows().ring_counts().updates, kFour + 2);
}

// When each operation of a kind began first, by batch.
std::map<uint64_t, uint64_t> BeginsOf(OperationKind kind, Trainer* trainer) {
  std::map<uint64_t, uint64_t> begins;
  for (const OperationInterval& interval : trainer->pass()->trace()->intervals()) {
    if (interval.label.kind != kind) continue;
    uint64_t& begin = begins.emplace(interval.label.batch, interval.begin_ns).first->second;
    begin = std::min(begin, interval.begin_ns);
  }
  return begins;
}

// Where dense work takes as long as a lookup needs to begin, no update comes before it.
TEST(Staleness, ATraceShowsLookupsBeforeUpdates) {
  constexpr uint32_t kFour = 4;
  std::atomic<uint64_t> lookups = 0;
  TrainerOptions options = Stale(kFour);
  options.hybrid.deterministic = false;
  options.experiments.before_operation = [&](const OperationLabel& label, uint32_t part) {
    if (part > 0) return;
    if (label.kind == OperationKind::kGather) lookups = label.batch + 1;
    if (label.kind != OperationKind::kDense) return;
    const uint64_t wanted = std::min<uint64_t>(kSteps, label.batch + 1 + kFour);
    const uint64_t begin_ns = SteadyClock()->NowNs();
    while (lookups < wanted && SteadyClock()->NowNs() - begin_ns < 10'000'000'000) {
      std::this_thread::yield();
    }
  };
  const auto trainer = OpenTrainer(options);
  trainer->pass()->trace()->KeepIntervals(1'000'000);
  Train(trainer.get(), kSteps, 0, kFour);
  const auto looked_up = BeginsOf(OperationKind::kGather, trainer.get());
  const auto updates = BeginsOf(OperationKind::kUpdate, trainer.get());
  ASSERT_EQ(looked_up.size(), kSteps);
  ASSERT_EQ(updates.size(), kSteps);
  for (uint64_t step = 0; step + kFour < kSteps; ++step) {
    EXPECT_LT(looked_up.at(step + kFour), updates.at(step)) << step;
  }
}

// Lookups and updates of a store beside each other, as they come, in all tiers.
TEST(Staleness, LookupsAndUpdatesOfAStoreOverlap) {
  for (const uint32_t ranks : {1u, 2u}) {
    SCOPED_TRACE(ranks);
    const ScratchDirectory directory;
    Job job(ranks);
    ASSERT_EQ(job.Open([&](uint32_t rank) {
      TrainerOptions options = Stale(4, /*threads=*/2);
      options.hybrid.deterministic = false;
      options.model = ModelOfSums();
      options.dim = 96 * ranks;
      options.store.path = StrCat(directory.path(), "/", rank);
      options.store.dram_bytes = kDramBytesMin;
      options.store.hbm_bytes = uint64_t{256} << 10;
      options.store.warmup_iters = 3;
      options.store.flush_iters = 5;
      options.experiments.before_operation = [](const OperationLabel& label, uint32_t) {
        const bool is_row =
            label.kind == OperationKind::kGather || label.kind == OperationKind::kUpdate;
        for (uint64_t i = is_row ? label.batch % 40 : 0; i > 0; --i) std::this_thread::yield();
      };
      return options;
    }),
              OkStatus());
    const std::vector<double> losses = job.TrainTo(2 * kSteps, kSteps, 4);
    for (const double loss : losses) EXPECT_TRUE(std::isfinite(loss));
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const RowRingCounts counts = job.trainer(rank)->pass()->rows().ring_counts();
      EXPECT_EQ(counts.updates, 2 * kSteps);
      EXPECT_LE(counts.staleness_max, 4u);
      EXPECT_GT(counts.staleness_sum, kSteps);
    }
  }
}

TEST(Staleness, ACheckpointIsBetweenSteps) {
  for (const uint32_t ranks : {1u, 2u}) {
    SCOPED_TRACE(ranks);
    constexpr uint32_t kThree = 3;
    constexpr uint64_t kCheckpoint = 6;
    const auto options_in = [](const ScratchDirectory& directory, uint32_t rank) {
      TrainerOptions options = Stale(kThree);
      options.store.path = StrCat(directory.path(), "/", rank);
      return options;
    };
    const ScratchDirectory whole, killed;
    Job one(ranks);
    ASSERT_EQ(one.Open([&](uint32_t rank) { return options_in(whole, rank); }), OkStatus());
    const std::vector<double> expected = one.TrainTo(10, kCheckpoint, kThree);
    {
      Job first(ranks);
      ASSERT_EQ(first.Open([&](uint32_t rank) { return options_in(killed, rank); }), OkStatus());
      first.TrainTo(8, kCheckpoint, kThree);  // two steps are lost
    }
    Job second(ranks);
    ASSERT_EQ(second.Open([&](uint32_t rank) { return options_in(killed, rank); }), OkStatus());
    EXPECT_EQ(second.trainer(0)->steps(), kCheckpoint);
    EXPECT_EQ(second.TrainTo(10, 0, kThree),
              std::vector<double>(expected.begin() + kCheckpoint, expected.end()));
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(RowsOfAll(second.trainer(rank)), RowsOfAll(one.trainer(rank)));
    }
  }
}

TEST(Staleness, CallsBetweenStepsAreRefusedWhileOneIsBegun) {
  const ScratchDirectory directory;
  TrainerOptions options = Stale(2);
  options.store.path = directory.path() + "/store";
  const auto trainer = OpenTrainer(options);
  const auto data = Data(300);
  ClickBatch first, second;
  std::vector<float> logits;
  ASSERT_TRUE(data->Next(100, &first).ok());
  ASSERT_TRUE(data->Next(100, &second).ok());
  EXPECT_EQ(trainer->EndStep(&logits).status(), FailedPreconditionError("no step is begun"));
  ASSERT_EQ(trainer->BeginStep(first), OkStatus());
  ASSERT_EQ(trainer->BeginStep(second), OkStatus());
  EXPECT_THAT(trainer->StartCheckpoint({}).message(), HasSubstr("2 steps are begun"));
  EXPECT_THAT(trainer->Predict(first, &logits).message(), HasSubstr("2 steps are begun"));
  EXPECT_TRUE(trainer->EndStep(&logits).ok());
  EXPECT_EQ(trainer->DropSteps(), OkStatus());
  EXPECT_EQ(trainer->steps(), 1u);
  EXPECT_TRUE(trainer->Predict(first, &logits).ok());
  EXPECT_EQ(trainer->Checkpoint({}), OkStatus());
}

TEST(Staleness, BeyondItsLimitsIsNamed) {
  const auto message = [](const std::function<void(TrainerOptions*)>& change) {
    TrainerOptions options = Stale(4);
    change(&options);
    return std::string(Trainer::Open(options, DataColumns()).status().message());
  };
  EXPECT_THAT(message([](TrainerOptions* o) { o->hybrid.staleness = 65; }),
              HasSubstr("staleness is 65; it must be 0 to 64"));
  EXPECT_THAT(message([](TrainerOptions* o) { o->store.pin_batches = 10; }),
              HasSubstr("pinned for 11 lookup batches, and pin_batches is 10; leave it 0"));
  EXPECT_THAT(message([](TrainerOptions* o) {
                o->micro_batches = 4;
                o->hybrid.staleness = 16;
                o->store.pin_batches = 139;
              }),
              HasSubstr("with 4 micro-batches: rows must stay pinned for 140"));
}

// Rows that a table forgets between their lookup and their step are counted.
TEST(Staleness, ForgottenRowsAreCounted) {
  TrainerOptions options = Stale(16);
  options.model = ModelOfSums();
  options.dim = 1024;
  options.on_full = OnFull::kForget;
  options.store.dram_bytes = kDramBytesMin;
  const auto trainer = OpenTrainer(options);
  Train(trainer.get(), kSteps, 0, 16);
  uint64_t forgotten = 0;
  for (Table* const table : trainer->tables()) {
    forgotten += table->counters().forgotten_rows.load();
  }
  EXPECT_GT(trainer->pass()->rows().counts().forgotten, 0u) << forgotten << " rows were forgotten";
}

}  // namespace
}  // namespace embank::test::staleness_test
