// The work of a step with packing and without, counted where it is done: PICASSO (Zhang et al.
// 2022), table V.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/allocation_faults.h"
#include "train/generator/click_generator.h"
#include "train/models/model_table.h"
#include "train/trainer.h"

namespace embank::test::step_work_test {
namespace {

constexpr uint32_t kBatch = 64;
constexpr uint64_t kWarmupSteps = 4;
constexpr uint64_t kCountedSteps = 4;

struct StepWork {
  double operations = 0;  // that the scheduler began
  double table_batches = 0;
  double index_walks = 0;
  double allocations = 0;
};

StepWork WorkUntilNow(const Trainer& trainer, uint64_t operations) {
  StepWork work = {.operations = static_cast<double>(operations)};
  for (Table* const table : trainer.tables()) {
    for (uint32_t verb = 0; verb < kTableVerbs; ++verb) {
      const CallDurations durations = table->counters().calls.Durations(TableVerb{verb});
      work.table_batches += static_cast<double>(durations.count());
    }
    work.index_walks += static_cast<double>(table->counters().calls.IndexWalks());
  }
  return work;
}

// Returns the work of one step after the warm-up, the mean of some.
StepWork WorkOfAStep(const std::string& schema_name, bool packing) {
  const ClickSchema schema = *MakeClickSchema(schema_name, {.divisor = 5000});
  ClickGeneratorOptions of_data;
  of_data.samples = (kWarmupSteps + kCountedSteps) * kBatch;
  const auto data = *ClickGenerator::Create(schema, of_data, nullptr);
  TrainerOptions options;
  options.model = *FindModel("ffnn");
  for (const IdFieldSchema& field : schema.fields) options.dims.push_back(field.dim);
  options.batch = kBatch;
  options.threads = options.store.worker_threads = 1;
  options.packs.warmup_steps = kWarmupSteps;
  options.packs.rule = packing ? PackRule::kMean : PackRule::kNone;
  const auto trainer = *Trainer::Open(options, data->columns());
  StepWork work;
  ClickBatch batch;
  std::vector<float> logits;
  for (uint64_t step = 0; step < kWarmupSteps + kCountedSteps; ++step) {
    EXPECT_TRUE(data->Next(kBatch, &batch).ok());
    const StepWork before = WorkUntilNow(*trainer, trainer->pass()->trace()->operations());
    const AllocationFaults none(uint64_t{1} << 40, FaultKind::kOnce);
    EXPECT_TRUE(trainer->Step(batch, &logits).ok());
    const uint64_t allocations = AllocationFaults::Seen();
    const StepWork after = WorkUntilNow(*trainer, trainer->pass()->trace()->operations());
    if (step < kWarmupSteps) continue;
    work.operations += (after.operations - before.operations) / kCountedSteps;
    work.table_batches += (after.table_batches - before.table_batches) / kCountedSteps;
    work.index_walks += (after.index_walks - before.index_walks) / kCountedSteps;
    work.allocations += static_cast<double>(allocations) / kCountedSteps;
  }
  return work;
}

// Packing leaves each table its own lookup and its own update: what becomes less are operations
// between threads, and what each of them allocates.
TEST(StepWork, PackingQuartersOperationsAndLeavesBatchesAsTheyAre) {
  for (const char* const schema : {"product-1", "product-3"}) {
    const StepWork packed = WorkOfAStep(schema, /*packing=*/true);
    const StepWork apart = WorkOfAStep(schema, /*packing=*/false);
    std::printf(
        "%s: operations %.0f of %.0f, table batches %.0f of %.0f, index walks %.0f of %.0f, "
        "allocations %.0f of %.0f\n",
        schema, packed.operations, apart.operations, packed.table_batches, apart.table_batches,
        packed.index_walks, apart.index_walks, packed.allocations, apart.allocations);
    EXPECT_LE(packed.operations, 0.25 * apart.operations) << schema;
    EXPECT_LE(packed.allocations, 0.5 * apart.allocations) << schema;
    EXPECT_GT(packed.table_batches, 0.0);
    EXPECT_EQ(packed.table_batches, apart.table_batches) << schema;
    EXPECT_GT(packed.index_walks, 0.0);
    EXPECT_EQ(packed.index_walks, apart.index_walks) << schema;
  }
}

}  // namespace
}  // namespace embank::test::step_work_test
