// The micro-batches of a trainer's step overlap: the graph of the step on a simulated clock.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "train/generator/click_generator.h"
#include "train/models/model_table.h"
#include "train/trainer.h"

namespace embank::test::trainer_schedule_test {
namespace {

constexpr uint32_t kBatch = 40;
constexpr uint64_t kOperationNs = 10'000'000;

std::unique_ptr<ClickGenerator> Data() {
  ClickGeneratorOptions options;
  options.samples = kBatch;
  return *ClickGenerator::Create(*MakeClickSchema("criteo-kaggle", {.divisor = 2000}), options,
                                 nullptr);
}

// A trainer with one pack, whose micro-batches have one slice each.
std::unique_ptr<Trainer> OpenTrainer(uint32_t micro_batches) {
  TrainerOptions options;
  options.model = *FindModel("dlrm");
  options.dim = 8;
  options.batch = kBatch;
  options.threads = options.store.worker_threads = 1;
  options.micro_batches = options.slices = micro_batches;
  return *Trainer::Open(options, Data()->columns());
}

constexpr auto kTimeOf = [](const OperationLabel& label) {
  const bool takes_time =
      label.kind == OperationKind::kGather || label.kind == OperationKind::kDense;
  return takes_time ? kOperationNs : 0;
};

// PICASSO, section III-C. Two threads fetch rows and compute at once, so that m micro-batches take
// half of one thread's time; if each waited for the one before, they would take all of it.
TEST(TrainerSchedule, MicroBatchesOverlapExactly) {
  for (uint32_t m = 1; m <= 4; ++m) {
    const auto trainer = OpenTrainer(m);
    ASSERT_EQ(trainer->pass()->plan().packs().size(), 1u);
    for (const uint32_t threads : {1u, 2u}) {
      OperationGraph graph;
      trainer->pass()->AddBatch(&graph);
      const uint64_t operations = threads == 1 ? 2 * m : std::max(m, 2u);
      EXPECT_EQ(graph.Schedule(threads, kTimeOf), operations * kOperationNs)
          << m << " micro-batches, " << threads << " threads";
    }
  }
}

TEST(TrainerSchedule, AStepRunsItsMicroBatchesAsOneGraph) {
  constexpr uint32_t kMicroBatches = 3;
  const auto trainer = OpenTrainer(kMicroBatches);
  trainer->pass()->trace()->KeepIntervals(1);
  ClickBatch batch;
  std::vector<float> logits;
  ASSERT_TRUE(Data()->Next(kBatch, &batch).ok());
  ASSERT_TRUE(trainer->Step(batch, &logits).ok());
  std::set<uint32_t> computed;
  for (const OperationInterval& interval : trainer->pass()->trace()->intervals()) {
    if (interval.label.kind == OperationKind::kDense) computed.insert(interval.label.micro_batch);
  }
  EXPECT_EQ(computed.size(), kMicroBatches);
}

}  // namespace
}  // namespace embank::test::trainer_schedule_test
