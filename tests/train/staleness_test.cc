// Training with rows that miss the updates of some steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/str_cat.h"
#include "tests/support/scratch_directory.h"
#include "tests/train/rank_scene.h"
#include "tests/train/trained_rows.h"
#include "tests/train/trainer_scene.h"

namespace embank::test::staleness_test {
namespace {

using ::testing::HasSubstr;

TrainerOptions Stale(uint32_t staleness, uint32_t threads = 1) {
  TrainerOptions options = OptionsOf("dlrm");
  options.hybrid.staleness = staleness;
  options.hybrid.deterministic = true;
  options.threads = options.store.worker_threads = threads;
  options.warmup_steps = 7;  // plans change while steps are under way
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
  const auto stale = OpenTrainer(Stale(4));
  const std::vector<double> expected = Train(one.get(), kSteps);
  EXPECT_EQ(Train(stale.get(), kSteps, 0, /*staleness=*/0), expected);
  EXPECT_EQ(RowsOfAll(stale.get()), RowsOfAll(one.get()));
  EXPECT_TRUE(std::ranges::equal(stale->weights(), one->weights()));
}

TEST(Staleness, IsAFunctionOfTheOptions) {
  std::map<uint32_t, std::vector<double>> losses;
  for (const uint32_t staleness : {0u, 1u, 4u, 16u, 50u}) {
    SCOPED_TRACE(staleness);
    const auto first = OpenTrainer(Stale(staleness));
    losses[staleness] = Train(first.get(), kSteps, 0, staleness);
    const std::vector<TableRows> rows = RowsOfAll(first.get());
    {
      TrainerOptions options = Stale(staleness, /*threads=*/3);
      options.micro_batches = 3;
      const auto again = OpenTrainer(options);
      EXPECT_EQ(Train(again.get(), kSteps, 0, staleness), losses[staleness]);
      EXPECT_EQ(RowsOfAll(again.get()), rows);
      EXPECT_TRUE(std::ranges::equal(again->weights(), first->weights()));
      if (staleness == 0) continue;
      EXPECT_EQ(again->rows().ring_counts().staleness_max,
                std::min<uint64_t>(staleness, kSteps - 1));
    }
    for (const uint32_t ranks : {2u, 4u}) {
      if (ranks == 4 && staleness != 4) continue;
      SCOPED_TRACE(ranks);
      Job job(ranks);
      ASSERT_EQ(job.Open([&](uint32_t) { return Stale(staleness); }), OkStatus());
      EXPECT_EQ(job.TrainTo(kSteps, 0, staleness), losses[staleness]);
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
  constexpr uint32_t kStaleness = 4;
  TrainerOptions frozen = Stale(0);
  frozen.row.optimizer = Optimizer::kSgd;
  frozen.row.rule.learning_rate = 0.0f;
  TrainerOptions stale = Stale(kStaleness);
  stale.row.optimizer = Optimizer::kSgd;
  stale.row.rule.learning_rate = 1.0f;
  const std::vector<double> expected = Train(OpenTrainer(frozen).get(), kStaleness + 2);
  const std::vector<double> losses = Train(OpenTrainer(stale).get(), kStaleness + 2, 0, kStaleness);
  for (uint32_t step = 0; step <= kStaleness; ++step) EXPECT_EQ(losses[step], expected[step]);
  EXPECT_NE(losses[kStaleness + 1], expected[kStaleness + 1]) << "it sees the first update";
}

TEST(Staleness, AStoppedUpdateLetsSoManyLookupsGoOn) {
  constexpr uint32_t kStaleness = 4;
  std::promise<void> go, stopped;
  const std::future<void> gone = go.get_future();
  std::atomic<uint64_t> lookups = 0;
  TrainerOptions options = Stale(kStaleness);
  options.hybrid.deterministic = false;
  options.before_operation = [&](const OperationLabel& label, uint32_t part) {
    if (label.kind == OperationKind::kGather && part == 0) ++lookups;
    if (label.kind != OperationKind::kUpdate || label.batch > 0) return;
    stopped.set_value();
    gone.wait();
  };
  const auto trainer = OpenTrainer(options);
  ASSERT_EQ(trainer->pass()->plan().packs().size(), 1u);
  const auto data = Data(1000);
  std::vector<ClickBatch> batches(kStaleness + 2);
  std::vector<float> logits;
  for (ClickBatch& batch : batches) ASSERT_TRUE(data->Next(100, &batch).ok());
  for (uint32_t i = 0; i <= kStaleness; ++i) EXPECT_EQ(trainer->BeginStep(batches[i]), OkStatus());
  const Status refused = trainer->BeginStep(batches.back());
  EXPECT_THAT(refused.message(), HasSubstr("staleness is 4, and 5 steps are begun"));
  EXPECT_TRUE(trainer->EndStep(&logits).ok());
  stopped.get_future().wait();
  EXPECT_EQ(trainer->BeginStep(batches.back()), OkStatus());
  for (uint32_t i = 0; i < kStaleness; ++i) EXPECT_TRUE(trainer->EndStep(&logits).ok());
  EXPECT_EQ(lookups.load(), 1 + kStaleness) << "the batch whose update stands, and those behind it";
  EXPECT_EQ(trainer->rows().ring_counts().updates, 0u);
  go.set_value();
  EXPECT_TRUE(trainer->EndStep(&logits).ok());
  EXPECT_EQ(trainer->DropSteps(), OkStatus());
  EXPECT_EQ(trainer->rows().ring_counts().updates, kStaleness + 2);
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

TEST(Staleness, ATraceShowsLookupsBeforeUpdates) {
  constexpr uint32_t kStaleness = 4;
  const auto trainer = OpenTrainer(Stale(kStaleness));
  trainer->pass()->trace()->KeepIntervals(1'000'000);
  Train(trainer.get(), kSteps, 0, kStaleness);
  const auto lookups = BeginsOf(OperationKind::kGather, trainer.get());
  const auto updates = BeginsOf(OperationKind::kUpdate, trainer.get());
  ASSERT_EQ(lookups.size(), kSteps);
  ASSERT_EQ(updates.size(), kSteps);
  for (uint64_t step = 0; step + kStaleness < kSteps; ++step) {
    EXPECT_LT(lookups.at(step + kStaleness), updates.at(step)) << step;
  }
}

TEST(Staleness, ACheckpointIsBetweenSteps) {
  for (const uint32_t ranks : {1u, 2u}) {
    SCOPED_TRACE(ranks);
    constexpr uint32_t kStaleness = 3;
    constexpr uint64_t kCheckpoint = 6;
    const auto options_in = [](const ScratchDirectory& directory, uint32_t rank) {
      TrainerOptions options = Stale(kStaleness);
      options.store.path = StrCat(directory.path(), "/", rank);
      return options;
    };
    const ScratchDirectory whole, killed;
    Job one(ranks);
    ASSERT_EQ(one.Open([&](uint32_t rank) { return options_in(whole, rank); }), OkStatus());
    const std::vector<double> expected = one.TrainTo(10, kCheckpoint, kStaleness);
    {
      Job first(ranks);
      ASSERT_EQ(first.Open([&](uint32_t rank) { return options_in(killed, rank); }), OkStatus());
      first.TrainTo(8, kCheckpoint, kStaleness);  // two steps are lost
    }
    Job second(ranks);
    ASSERT_EQ(second.Open([&](uint32_t rank) { return options_in(killed, rank); }), OkStatus());
    EXPECT_EQ(second.trainer(0)->steps(), kCheckpoint);
    EXPECT_EQ(second.TrainTo(10, 0, kStaleness),
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
  EXPECT_THAT(message([](TrainerOptions* o) { o->store.pin_batches = 5; }),
              HasSubstr("pin_batches is 5, and rows must stay pinned for 12"));
  EXPECT_THAT(
      message([](TrainerOptions* o) {
        o->micro_batches = 4;
        o->hybrid.staleness = 16;
        o->store.pin_batches = 71;
      }),
      HasSubstr("with 4 micro-batches: pin_batches is 71, and rows must stay pinned for 72"));
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
  EXPECT_GT(trainer->rows().counts().forgotten, 0u) << forgotten << " rows were forgotten";
  EXPECT_GE(forgotten, trainer->rows().counts().forgotten);
}

}  // namespace
}  // namespace embank::test::staleness_test
