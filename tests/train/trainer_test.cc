#include "train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "store/batch/lookup.h"
#include "store/batch/write.h"
#include "tests/support/scratch_directory.h"
#include "tests/train/trainer_scene.h"
#include "train/batch_ahead.h"
#include "train/dense/auc.h"
#include "train/dense/loss.h"
#include "train/generator/click_generator.h"
#include "train/models/model_table.h"
#include "train/pipeline/capacity.h"

namespace embank::test::trainer_test {
namespace {

using ::testing::HasSubstr;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kComparedSteps = 15;  // each takes up to ten times as long
#else
constexpr int kComparedSteps = 60;
#endif

TEST(Trainer, LossesDoNotDependOnThreadsOrTiers) {
  const ScratchDirectory directory;
  for (const char* model : {"dlrm", "wide-deep", "deep-fm", "ffnn", "mmoe"}) {
    SCOPED_TRACE(model);
    const auto plain = OpenTrainer(OptionsOf(model));
    const std::vector<double> expected = Train(plain.get(), kComparedSteps);
    TrainerOptions threads = OptionsOf(model);
    threads.threads = 3;
    threads.store.worker_threads = 3;
    EXPECT_EQ(Train(OpenTrainer(threads).get(), kComparedSteps), expected);
    TrainerOptions tiers = OptionsOf(model, directory.path() + "/" + model);
    tiers.threads = 2;
    tiers.store.worker_threads = 2;
    tiers.store.dram_bytes = uint64_t{40} << 20;
    tiers.store.hbm_bytes = uint64_t{64} << 10;
    tiers.store.warmup_iters = 3;
    tiers.store.flush_iters = 5;
    const auto tiered = OpenTrainer(tiers);
    EXPECT_EQ(Train(tiered.get(), kComparedSteps), expected);
    EXPECT_TRUE(std::ranges::equal(tiered->weights(), plain->weights()));
    EXPECT_GT(tiered->store().topk_flush()->Report().flushes, 0u);
  }
}

TEST(Trainer, GoesOnAtItsCheckpointAsIfItHadNotEnded) {
  const ScratchDirectory directory;
  TrainerOptions options = OptionsOf("dlrm");
  options.hybrid.drop_updates = 0.1;  // the same ones, by the number of the step
  const auto whole = OpenTrainer(options);
  const std::vector<double> expected = Train(whole.get(), 50);
  options.store.path = directory.path() + "/store";
  // It ends behind step 35 without a checkpoint.
  Train(OpenTrainer(options).get(), 35, 20);
  const auto resumed = OpenTrainer(options);
  EXPECT_EQ(resumed->steps(), 20u);
  EXPECT_EQ(resumed->position(), 2000u);
  const std::vector<double> losses = Train(resumed.get(), 50);
  EXPECT_EQ(losses, std::vector<double>(expected.begin() + 20, expected.end()));
  EXPECT_TRUE(std::ranges::equal(resumed->weights(), whole->weights()));
}

TEST(Trainer, TheLossIsThatOfItsLogits) {
  const auto trainer = OpenTrainer(OptionsOf("dlrm"));
  const auto data = Data(1000);
  ClickBatch batch;
  std::vector<float> logits;
  for (int step = 0; step < 5; ++step) {
    ASSERT_TRUE(data->Next(100, &batch).ok());
    const double loss = *trainer->Step(batch, &logits);
    EXPECT_NEAR(loss, SumLogLoss(logits, batch.labels) / 100, 1e-6);
  }
}

TEST(Trainer, PlansPacksBehindItsWarmUp) {
  TrainerOptions options = OptionsOf("wide-deep");
  options.packs.warmup_steps = 5;
  options.packs.groups = 2;
  options.packs.excluded = {"C3"};
  const auto trainer = OpenTrainer(options);
  EXPECT_EQ(trainer->pass()->plan().packs().size(), 4u) << "dims 1 and 8, and C3 with both dims";
  Train(trainer.get(), 10);
  EXPECT_TRUE(trainer->pass()->plan().is_warm());
  EXPECT_EQ(trainer->pass()->plan().traffic()[0].ids, 500u);
  EXPECT_EQ(trainer->pass()->plan().packs().size(), 5u) << "dim 8 in two packs";
  const auto groups = trainer->pass()->plan().groups();
  EXPECT_EQ(std::ranges::count(groups, kNoGroup), 2);
  const uint64_t operations = trainer->pass()->trace()->operations();
  Train(trainer.get(), 11);
  EXPECT_EQ(trainer->pass()->trace()->operations() - operations, 5u * 5 + 1);
}

TEST(Trainer, MicroBatchesFollowFromTheirBytes) {
  TrainerOptions options = OptionsOf("dlrm");
  options.packs.warmup_steps = 3;
  // 26 features of 8 floats: rows, sums, vectors and gradients of a sample take 3,328 bytes.
  options.micro_batch_bytes = 34 * 3328;
  const auto trainer = OpenTrainer(options);
  EXPECT_EQ(trainer->pass()->plan().micro_batches().size(), 1u);
  Train(trainer.get(), 4);
  EXPECT_EQ(trainer->pass()->plan().micro_batches().size(), 3u);
  EXPECT_EQ(trainer->pass()->plan().micro_batches_wanted(), 3u);
}

TEST(Trainer, MoreMicroBatchesThanAStepHasAreTold) {
  TrainerOptions options = OptionsOf("dlrm");
  options.packs.warmup_steps = 3;
  options.micro_batch_bytes = 10 * 3328;
  const auto trainer = OpenTrainer(options);
  Train(trainer.get(), 4);
  EXPECT_EQ(trainer->pass()->plan().micro_batches().size(), kMicroBatchesMax);
  EXPECT_EQ(trainer->pass()->plan().micro_batches_wanted(), 10u);
}

TEST(Trainer, GroupsFollowFromTheirBytes) {
  TrainerOptions options = OptionsOf("dlrm");
  options.packs.rule = PackRule::kNone;
  options.packs.warmup_steps = 3;
  // A feature has 100 rows of 8 floats in a step: four of them are in a group, and two in the last.
  options.packs.group_bytes = 4 * 100 * 8 * sizeof(float);
  const auto trainer = OpenTrainer(options);
  EXPECT_EQ(std::ranges::max(trainer->pass()->plan().groups()), 0u);
  Train(trainer.get(), 4);
  EXPECT_EQ(std::ranges::max(trainer->pass()->plan().groups()), 6u);
  EXPECT_EQ(std::ranges::count(trainer->pass()->plan().groups(), 0u), 4);
}

// Steps behind the start are not in the checkpoint.
TEST(Trainer, TrainsBesideAStartedCheckpoint) {
  const ScratchDirectory directory;
  const auto whole = OpenTrainer(OptionsOf("dlrm"));
  const std::vector<double> expected = Train(whole.get(), 40);
  const TrainerOptions options = OptionsOf("dlrm", directory.path() + "/store");
  {
    const auto trainer = OpenTrainer(options);
    Train(trainer.get(), 10);
    ASSERT_TRUE(trainer->StartCheckpoint(1000).ok());
    const auto data = Data(4000);
    ASSERT_TRUE(data->SkipTo(1000).ok());
    ClickBatch batch;
    std::vector<float> logits;
    for (uint64_t step = 10; step < 20; ++step) {
      ASSERT_TRUE(data->Next(100, &batch).ok());
      EXPECT_EQ(*trainer->Step(batch, &logits), expected[step]);
    }
    EXPECT_EQ(trainer->position(), 0u) << "the checkpoint may not be durable yet";
    ASSERT_TRUE(trainer->FinishCheckpoint().ok());
    EXPECT_EQ(trainer->position(), 1000u);
  }
  const auto resumed = OpenTrainer(options);
  EXPECT_EQ(resumed->steps(), 10u);
  EXPECT_EQ(Train(resumed.get(), 40), std::vector<double>(expected.begin() + 10, expected.end()));
}

uint64_t RowsRead(const Trainer& trainer) {
  return trainer.store().logs()->lowest().counters().read_rows;
}

// Writes so many other rows that all that can leave memory leaves it. A lookup would age pins.
void FillMemory(const Trainer& trainer, Key first_key) {
  constexpr uint64_t kRows = 5000;
  const uint32_t dim = trainer.tables()[0]->layout().dim;
  const std::vector<float> rows(kRows * dim, 1.0f);
  std::vector<Key> keys(kRows);
  for (int i = 0; i < 8; ++i) {
    for (Key& key : keys) key = first_key++;
    const ConstRowSpan from = {reinterpret_cast<const std::byte*>(rows.data()),
                               dim * sizeof(float)};
    EXPECT_TRUE(Upsert(trainer.tables()[0], keys, from, {}).ok());
  }
}

// BatchAhead prefetches a batch before the step of the one before it.
TEST(Trainer, PrefetchedRowsStayUntilTheStepBehindTheNext) {
  const ScratchDirectory directory;
  TrainerOptions options = OptionsOf("ffnn", directory.path() + "/store");
  options.dim = 64;
  options.micro_batches = kMicroBatchesMax;
  options.store.dram_bytes = uint64_t{16} << 20;
  const auto trainer = OpenTrainer(options);
  const auto data = Data(200);
  ClickBatch batch, next;
  ASSERT_TRUE(data->Next(30, &batch).ok() && data->Next(30, &next).ok());
  // The update of a row ends its pin.
  for (FeatureIds& feature : batch.features) {
    for (uint64_t& id : feature.ids) id += uint64_t{1} << 33;
  }
  std::vector<float> logits;
  ASSERT_TRUE(trainer->Step(next, &logits).ok());
  FillMemory(*trainer, Key{1} << 40);
  ASSERT_TRUE(trainer->Prefetch(next).ok());
  EXPECT_GT(RowsRead(*trainer), 200u) << "they were in the log";
  ASSERT_TRUE(trainer->Step(batch, &logits).ok());
  FillMemory(*trainer, Key{1} << 50);
  const uint64_t before = RowsRead(*trainer);
  ASSERT_TRUE(trainer->Step(next, &logits).ok());
  EXPECT_EQ(RowsRead(*trainer), before);
}

TEST(Trainer, LearnsThePlantedModel) {
  const auto trainer = OpenTrainer(OptionsOf("dlrm"));
  Train(trainer.get(), 400);
  const auto data = Data(60'000);
  ASSERT_TRUE(data->SkipTo(40'000).ok());
  ClickBatch batch;
  std::vector<float> logits, all, labels;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(data->Next(100, &batch).ok());
    ASSERT_TRUE(trainer->Predict(batch, &logits).ok());
    all.insert(all.end(), logits.begin(), logits.end());
    labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
  }
  EXPECT_GT(*Auc(all, labels), 0.65) << "the best is 0.80";
}

TEST(Trainer, PredictionsChangeNothing) {
  const auto once = OpenTrainer(OptionsOf("dlrm"));
  const auto twice = OpenTrainer(OptionsOf("dlrm"));
  Train(once.get(), 10);
  Train(twice.get(), 10);
  const auto data = Data(10'000);
  ASSERT_TRUE(data->SkipTo(5000).ok());
  ClickBatch batch;
  ASSERT_TRUE(data->Next(100, &batch).ok());
  std::vector<float> logits;
  const uint64_t rows = twice->tables()[2]->rows();
  ASSERT_TRUE(twice->Predict(batch, &logits).ok());
  EXPECT_EQ(twice->tables()[2]->rows(), rows);
  EXPECT_EQ(*once->Step(batch, &logits), *twice->Step(batch, &logits));
}

TEST(Trainer, PredictionsNeedNoLabels) {
  const auto trainer = OpenTrainer(OptionsOf("dlrm"));
  Train(trainer.get(), 10);
  ClickBatch batch;
  ASSERT_TRUE(Data(1000)->Next(100, &batch).ok());
  std::vector<float> logits, without;
  ASSERT_TRUE(trainer->Predict(batch, &logits).ok());
  batch.labels.clear();
  ASSERT_TRUE(trainer->Predict(batch, &without).ok());
  EXPECT_EQ(without, logits);
  const Status status = trainer->Step(batch, &logits).status();
  EXPECT_TRUE(IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("has no labels"));
  EXPECT_EQ(trainer->steps(), 10u);
}

TEST(Trainer, ALossThatIsNotFiniteStopsItBeforeTheUpdate) {
  const auto trainer = OpenTrainer(OptionsOf("dlrm"));
  Train(trainer.get(), 5);
  const std::vector<float> before(trainer->weights().begin(), trainer->weights().end());
  const auto data = Data(1000);
  ClickBatch batch;
  ASSERT_TRUE(data->Next(100, &batch).ok());
  batch.dense[7] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> logits;
  const Status status = trainer->Step(batch, &logits).status();
  EXPECT_TRUE(IsOutOfRange(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("step 6"));
  EXPECT_TRUE(std::ranges::equal(trainer->weights(), before));
  EXPECT_EQ(trainer->steps(), 5u);
}

// Makes the first dense feature of all samples as large as finite logits allow, and labels wrong.
void MakeHuge(Trainer* trainer, ClickBatch* batch) {
  const auto fill = [&](float value) {
    for (uint32_t i = 0; i < batch->samples; ++i) batch->dense[i * 13] = value;
  };
  std::vector<float> logits;
  const auto are_finite = [&](float value) {
    fill(value);
    EXPECT_TRUE(trainer->Predict(*batch, &logits).ok());
    return std::ranges::all_of(logits, [](float x) { return std::isfinite(x); });
  };
  float value = std::numeric_limits<float>::max();
  while (!are_finite(value)) value /= 1.1f;
  for (uint32_t i = 0; i < batch->samples; ++i) batch->labels[i] = logits[i] > 0.0f ? 0.0f : 1.0f;
}

// Terms of both signs cancel in a logit, and not in the gradient of one weight: with some seeds
// only the gradient is too large.
TEST(Trainer, DenseParametersWhoseGradientsAreNotFiniteStayAsTheyAre) {
  bool was_left_out = false;
  for (uint64_t seed = 1; seed <= 30 && !was_left_out; ++seed) {
    TrainerOptions options = OptionsOf("dlrm");
    options.dense.rule.learning_rate = 0.1f;
    options.seed = seed;
    const auto trainer = OpenTrainer(options);
    Train(trainer.get(), 4);
    EXPECT_EQ(trainer->left_out().dense_steps, 0u);
    const auto data = Data(1000);
    ASSERT_TRUE(data->SkipTo(900).ok());
    ClickBatch batch;
    ASSERT_TRUE(data->Next(100, &batch).ok());
    MakeHuge(trainer.get(), &batch);
    const std::vector<float> before(trainer->weights().begin(), trainer->weights().end());
    std::vector<float> logits;
    const Status status = trainer->Step(batch, &logits).status();
    if (!status.ok() || trainer->left_out().dense_steps == 0) continue;
    was_left_out = true;
    EXPECT_EQ(trainer->left_out().dense_steps, 1u);
    EXPECT_TRUE(std::ranges::equal(trainer->weights(), before));
    EXPECT_EQ(trainer->steps(), 5u);
    // It goes on.
    ASSERT_TRUE(Data(1000)->Next(100, &batch).ok());
    EXPECT_TRUE(trainer->Step(batch, &logits).ok());
    EXPECT_FALSE(std::ranges::equal(trainer->weights(), before));
  }
  EXPECT_TRUE(was_left_out);
}

// The third id feature has a large row, and the second one a row of zeros in bags of `bag` ids: the
// gradients of all other features are large, and that row's is the sum of `bag` of these for each
// sample. Its square may be too large, and all else is finite. Returns how many steps of rows were
// left out.
uint64_t StepWithALargeRow(uint32_t bag) {
  TrainerOptions options = OptionsOf("dlrm");
  options.dim = 2;
  options.packs.rule = PackRule::kNone;
  const auto trainer = OpenTrainer(options);
  Train(trainer.get(), 1);
  const auto data = Data(200);
  ClickBatch batch;
  EXPECT_TRUE(data->Next(100, &batch).ok());
  std::ranges::fill(batch.features[2].ids, 7);
  batch.features[1].ids.assign(100 * bag, 7);
  for (uint32_t i = 0; i <= 100; ++i) batch.features[1].offsets.push_back(i * bag);
  const Key key = 7;
  const float large[] = {1e18f, 1e18f};
  const float zeros[] = {0.0f, 0.0f};
  const auto upsert = [&](size_t table, const float* row) {
    const ConstRowSpan rows = {reinterpret_cast<const std::byte*>(row), 2 * sizeof(float)};
    EXPECT_TRUE(Upsert(trainer->tables()[table], {&key, 1}, rows, {}).ok());
  };
  upsert(2, large);
  upsert(1, zeros);
  const std::vector<Key>& others = batch.features[0].ids;
  const std::vector<float> others_before = RowsOf(trainer->tables()[0], others);
  const std::vector<float> weights_before(trainer->weights().begin(), trainer->weights().end());
  std::vector<float> logits;
  EXPECT_TRUE(trainer->Predict(batch, &logits).ok());
  for (uint32_t i = 0; i < 100; ++i) batch.labels[i] = logits[i] > 0.0f ? 0.0f : 1.0f;
  EXPECT_TRUE(trainer->Step(batch, &logits).ok());
  EXPECT_EQ(trainer->steps(), 2u);
  const uint64_t left_out = trainer->left_out().rows;
  if (left_out == 0) return 0;
  EXPECT_EQ(RowsOf(trainer->tables()[1], {&key, 1}), std::vector<float>(2, 0.0f));
  // All else has stepped.
  EXPECT_NE(RowsOf(trainer->tables()[0], others), others_before);
  EXPECT_FALSE(std::ranges::equal(trainer->weights(), weights_before));
  EXPECT_EQ(trainer->left_out().dense_steps, 0u);
  return left_out;
}

TEST(Trainer, ARowWhoseGradientIsTooLargeStaysAsItIs) {
  uint64_t left_out = 0;
  for (uint32_t bag = 100; bag <= 10'000 && left_out == 0; bag *= 10) {
    left_out = StepWithALargeRow(bag);
  }
  EXPECT_EQ(left_out, kSlicesDefault) << "the row is in each slice";
}

TEST(Trainer, ABatchWhosePartsDoNotGoTogetherIsRefused) {
  const auto trainer = OpenTrainer(OptionsOf("dlrm"));
  ClickBatch whole;
  ASSERT_TRUE(Data(50)->Next(50, &whole).ok());
  const auto refused = [&](auto change, const char* what) {
    ClickBatch batch = whole;
    change(&batch);
    std::vector<float> logits;
    for (const Status& status : {trainer->Step(batch, &logits).status(),
                                 trainer->Predict(batch, &logits), trainer->Prefetch(batch)}) {
      EXPECT_TRUE(IsInvalidArgument(status)) << what << ": " << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(what));
    }
  };
  refused([](ClickBatch* b) { b->samples = 0; }, "0 samples; it must have 1 to 100");
  refused([](ClickBatch* b) { b->samples = 101; }, "101 samples");
  refused([](ClickBatch* b) { b->labels.pop_back(); }, "49 labels; there must be 50");
  refused([](ClickBatch* b) { b->dense.pop_back(); }, "649 dense numbers");
  refused([](ClickBatch* b) { b->features.pop_back(); }, "25 id features");
  refused([](ClickBatch* b) { b->features[2].ids.pop_back(); }, "49 ids of id feature \"C3\"");
  const auto with_offsets = [&](auto change, const char* what) {
    refused(
        [&](ClickBatch* b) {
          std::vector<uint32_t>& offsets = b->features[2].offsets;
          for (uint32_t i = 0; i <= 50; ++i) offsets.push_back(i);
          change(&offsets);
        },
        what);
  };
  refused([](ClickBatch* b) { b->features[2].weights.resize(50); }, "weights without offsets");
  refused(
      [](ClickBatch* b) {
        FeatureIds& feature = b->features[2];
        feature.weights.resize(49);
        for (uint32_t i = 0; i <= 50; ++i) feature.offsets.push_back(i);
      },
      "49 weights of id feature \"C3\"; there must be 50");
  using Offsets = std::vector<uint32_t>;
  with_offsets([](Offsets* o) { o->pop_back(); }, "50 offsets of id feature \"C3\"");
  with_offsets([](Offsets* o) { (*o)[9] = 11; }, "the offsets of id feature \"C3\" must not fall");
  with_offsets([](Offsets* o) { (*o)[50] = 49; }, "must not fall from 0 to 50");
  with_offsets([](Offsets* o) { (*o)[0] = 1; }, "must not fall from 0 to 50");
  EXPECT_EQ(trainer->steps(), 0u);
  EXPECT_EQ(trainer->tables()[0]->rows(), 0u);
}

TEST(Trainer, DeepFmHasALinearPart) {
  const auto trainer = OpenTrainer(OptionsOf("deep-fm"));
  ASSERT_EQ(trainer->tables().size(), 2u * 26);
  Train(trainer.get(), 5);
  EXPECT_EQ(trainer->tables()[26]->name(), "wide C1");
  EXPECT_GT(trainer->tables()[26]->rows(), 0u);
}

// A model that no file of train/models has: the id features' sum beside the dense features, and a
// linear part.
ClickModel ModelOfSums(uint32_t width) {
  const auto make = [width](const ModelInputs& inputs) {
    LayerGraph graph(inputs);
    const std::vector<NodeId> features = graph.Features();
    const NodeId sum = graph.Sum({features.begin(), features.begin() + 26});
    const NodeId layer = graph.LinearRelu(graph.Concat({graph.Dense(), sum}), width);
    std::vector<NodeId> parts(features.begin() + 26, features.end());
    parts.push_back(graph.Linear(layer, 1));
    graph.Sum(parts);
    return graph;
  };
  return {.name = "sums", .make = make, .has_linear_part = true, .dim_min = 2};
}

TEST(Trainer, TrainsAModelOfItsCaller) {
  const ScratchDirectory directory;
  TrainerOptions options = OptionsOf("dlrm", directory.path() + "/store");
  options.model = ModelOfSums(12);
  {
    const auto trainer = OpenTrainer(options);
    ASSERT_NE(trainer, nullptr);
    EXPECT_EQ(trainer->weights().size(), 12u * (13 + 8 + 1) + 13);
    EXPECT_EQ(trainer->tables().size(), 2u * 26);
    const std::vector<double> losses = Train(trainer.get(), 200, 200);
    const auto mean = [](auto begin, auto end) { return std::accumulate(begin, end, 0.0) / 50; };
    EXPECT_LT(mean(losses.end() - 50, losses.end()), mean(losses.begin(), losses.begin() + 50));
  }
  EXPECT_EQ(OpenTrainer(options)->steps(), 200u);
  // Its name is the same, and its graph is another one.
  options.model = ModelOfSums(13);
  const Status status = Trainer::Open(options, Data(1)->columns()).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr(" linear relu width 12 "));
}

TEST(Trainer, RefusesAModelThatHasNotOneLogit) {
  TrainerOptions options = OptionsOf("dlrm");
  const auto message = [&](auto make) {
    options.model = {.name = "mine", .make = make};
    return std::string(Trainer::Open(options, Data(1)->columns()).status().message());
  };
  EXPECT_EQ(message([](const ModelInputs& inputs) {
              LayerGraph graph(inputs);
              graph.Linear(graph.Dense(), 2);
              return graph;
            }),
            "model mine has 2 logits for a sample; a trainer takes one");
  EXPECT_THAT(message([](const ModelInputs& inputs) { return LayerGraph(inputs); }),
              HasSubstr("has 0 logits"));
  options.dim = 1;
  EXPECT_EQ(message([](const ModelInputs& inputs) {
              LayerGraph graph(inputs);
              graph.Feature(0);
              return graph;
            }),
            "model mine ends in a feature; its last node must be a layer");
}

TEST(Trainer, ACheckpointOfAnotherModelIsNamed) {
  const ScratchDirectory directory;
  TrainerOptions options = OptionsOf("dlrm", directory.path() + "/store");
  Train(OpenTrainer(options).get(), 3, 3);
  options.model = *FindModel("ffnn");
  const Status status = Trainer::Open(options, Data(1)->columns()).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("it has \"model dlrm\", and this one"));
}

// Tables of the other model are not made first: they may be refused, or want memory.
TEST(Trainer, ACheckpointOfAnotherModelIsNamedBeforeTablesAreMade) {
  const ScratchDirectory directory;
  const TrainerOptions options = OptionsOf("ffnn", directory.path() + "/store");
  Train(OpenTrainer(options).get(), 3, 3);
  ClickColumns columns = Data(1)->columns();
  columns.ids[4] = std::string(1000, 'x');
  const Status status = Trainer::Open(options, columns).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("it has \"id feature C5 dim 8\", and this"));
}

TEST(Trainer, WrongOptionsAreNamed) {
  const auto data = Data(1);
  const auto refused = [&](auto change, const char* what) {
    TrainerOptions options = OptionsOf("dlrm");
    change(&options);
    const Status status = Trainer::Open(options, data->columns()).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << what;
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
  };
  refused([](TrainerOptions* o) { o->model = {}; }, "there is no model");
  refused([](TrainerOptions* o) { o->model.name = "two\nlines"; }, "has two lines");
  refused([](TrainerOptions* o) { o->dim = 5000; }, "dim is 5000");
  refused([](TrainerOptions* o) { o->dims.assign(26, 8), o->dims[3] = 0; }, "dim is 0");
  refused([](TrainerOptions* o) { o->model = *FindModel("rmc3"); },
          "the dim of id feature \"C1\" is 8; model rmc3 has dim 64");
  refused([](TrainerOptions* o) { o->batch = 0; }, "batch is 0");
  refused([](TrainerOptions* o) { o->slices = 0; }, "slices is 0");
  refused([](TrainerOptions* o) { o->micro_batches = 5; }, "micro_batches is 5");
  refused([](TrainerOptions* o) { o->packs.groups = 0; }, "groups is 0");
  refused([](TrainerOptions* o) { o->hybrid.drop_updates = std::nan(""); }, "drop_updates is nan");
  refused([](TrainerOptions* o) { o->packs.excluded = {"C99"}; }, "\"C99\"");
  refused([](TrainerOptions* o) { o->ranks.replicated = {"C98"}; }, "\"C98\"");
  refused([](TrainerOptions* o) { o->dims = {8, 8}; }, "there are 2 dims");
  refused([](TrainerOptions* o) { o->dims.assign(26, 8), o->dims[3] = 4; }, "needs one dim");
  for (const char* const model : {"wide-deep", "deep-fm", "ffnn", "mmoe"}) {
    refused([&](TrainerOptions* o) { o->model = *FindModel(model), o->dim = 1; }, "\"C1\" is 1");
  }
  refused(
      [](TrainerOptions* o) {
        o->model = *FindModel("ffnn"), o->dims.assign(26, 8), o->dims[3] = 1;
      },
      "\"C4\" is 1");
  refused([](TrainerOptions* o) { o->row.rule.learning_rate = -1.0f; }, "the rule of rows: ");
  refused([](TrainerOptions* o) { o->dense.rule.learning_rate = std::nanf(""); },
          "the rule of dense parameters: ");
  refused([](TrainerOptions* o) { o->store.hbm_bytes = 5; }, "hbm_bytes");
}

}  // namespace
}  // namespace embank::test::trainer_test
