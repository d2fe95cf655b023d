// The switches of a trainer, its micro-batches, threads and tiers: none of them changes a bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <vector>

#include "base/str_cat.h"
#include "tests/support/scratch_directory.h"
#include "train/generator/click_generator.h"
#include "train/models/model_table.h"
#include "train/trainer.h"

namespace embank::test::train_switches_test {
namespace {

constexpr uint32_t kBatch = 64;
#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kSteps = 150;
#else
constexpr uint64_t kSteps = 1000;
#endif
// Twice the steps after which packs are split, and more.
constexpr uint64_t kStepsOfOthers = std::min<uint64_t>(kSteps, 250);

TrainerOptions Options(const std::string& model = "wide-deep") {
  TrainerOptions options;
  options.model = *FindModel(model);
  options.dim = 8;
  options.batch = kBatch;
  options.threads = 1;
  options.packs.warmup_steps = 50;
  options.store.worker_threads = 1;
  return options;
}

struct Result {
  std::vector<double> losses;
  std::vector<float> weights;
  uint64_t payload_lookups = 0;
  bool operator==(const Result& other) const {
    return losses == other.losses && weights == other.weights;
  }
};

Result Train(const TrainerOptions& options, uint64_t steps = kSteps) {
  ClickGeneratorOptions of_data;
  of_data.samples = steps * kBatch;
  const auto data = *ClickGenerator::Create(*MakeClickSchema("criteo-kaggle", {.divisor = 2000}),
                                            of_data, nullptr);
  StatusOr<std::unique_ptr<Trainer>> trainer = Trainer::Open(options, data->columns());
  Result result;
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  if (!trainer.ok()) return result;
  ClickBatch batch;
  std::vector<float> logits;
  for (uint64_t step = 0; step < steps; ++step) {
    EXPECT_TRUE(data->Next(kBatch, &batch).ok());
    EXPECT_TRUE((*trainer)->Prefetch(batch).ok());
    const StatusOr<double> loss = (*trainer)->Step(batch, &logits);
    EXPECT_TRUE(loss.ok()) << loss.status();
    if (!loss.ok()) return result;
    result.losses.push_back(*loss);
  }
  result.weights.assign((*trainer)->weights().begin(), (*trainer)->weights().end());
  for (Table* const table : (*trainer)->tables()) {
    result.payload_lookups += table->counters().payload_lookups.load();
  }
  return result;
}

// Packing, interleaving, caching; each switch is on and off with one thread and with two.
TEST(TrainSwitches, AreBitIdenticalOverAThousandSteps) {
  const Result expected = Train(Options());
  ASSERT_EQ(expected.losses.size(), kSteps);
  EXPECT_LT(expected.losses.back(), expected.losses.front());
  for (uint32_t bits = 0; bits < 8; ++bits) {
    TrainerOptions options = Options();
    options.packs.rule = (bits & 1) != 0 ? PackRule::kMean : PackRule::kNone;
    options.micro_batches = (bits & 2) != 0 ? 2 : 1;
    options.packs.groups = options.micro_batches;
    options.store.hbm_bytes = (bits & 4) != 0 ? uint64_t{64} << 10 : 0;
    options.threads = options.store.worker_threads = 1 + std::popcount(bits) % 2;
    const Result result = Train(options);
    EXPECT_TRUE(result == expected) << "switches " << bits;
    EXPECT_EQ(result.payload_lookups > 0, (bits & 4) != 0);
  }
}

#if defined(__SANITIZE_ADDRESS__)
constexpr const char* kOtherModels[] = {"mmoe"};
#else
constexpr const char* kOtherModels[] = {"dlrm", "deep-fm", "ffnn", "mmoe"};
#endif

TEST(TrainSwitches, ChangeNoBitOfTheOtherModels) {
  for (const char* const model : kOtherModels) {
    TrainerOptions options = Options(model);
    const Result expected = Train(options, kStepsOfOthers);
    EXPECT_LT(expected.losses.back(), expected.losses.front());
    options.packs.rule = PackRule::kNone;
    options.micro_batches = options.packs.groups = 3;
    options.store.hbm_bytes = uint64_t{64} << 10;
    options.threads = options.store.worker_threads = 2;
    EXPECT_TRUE(Train(options, kStepsOfOthers) == expected) << model;
  }
}

TEST(TrainSwitches, MicroBatchesAndFourTiersChangeNoBit) {
  const Result expected = Train(Options());
  const ScratchDirectory directory;
  for (const uint32_t micro_batches : {3u, 4u}) {
    TrainerOptions options = Options();
    options.micro_batches = micro_batches;
    options.packs.groups = 3;
    options.packs.excluded = {"C3", "C7"};
    options.threads = options.store.worker_threads = 2;
    options.store.path = directory.path() + StrCat("/store", micro_batches);
    options.store.pmem_path = directory.path() + StrCat("/pmem", micro_batches);
    options.store.pmem_bytes = uint64_t{16} << 20;
    options.store.dram_bytes = uint64_t{40} << 20;
    options.store.hbm_bytes = uint64_t{64} << 10;
    const Result result = Train(options);
    EXPECT_TRUE(result == expected) << micro_batches << " micro-batches";
    EXPECT_GT(result.payload_lookups, 0u);
  }
}

}  // namespace
}  // namespace embank::test::train_switches_test
