// A store with the checkpoint of a trainer: another trainer goes on, or only predicts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/scratch_directory.h"
#include "tests/train/train_program.h"
#include "tests/train/trainer_scene.h"

namespace embank::test::trained_store_test {
namespace {

using ::testing::ElementsAre;

TEST(TrainedStore, GoesOnWithOtherRatesAndAnotherBatch) {
  const ScratchDirectory directory;
  TrainerOptions options = OptionsOf("dlrm", directory.path() + "/store");
  Train(OpenTrainer(options).get(), 10, 10);
  const auto first_row = [](const Trainer& trainer) {
    const Key key = 7;
    return RowsOf(trainer.tables()[0], {&key, 1});
  };
  ClickBatch batch;
  const auto data = Data(2000);
  ASSERT_TRUE(data->SkipTo(1000).ok());
  ASSERT_TRUE(data->Next(200, &batch).ok());
  std::ranges::fill(batch.features[0].ids, 7);
  options.batch = 200;
  options.dense.rule.learning_rate = 1e-30f;
  options.row.rule.learning_rate = 0.5f;
  {
    const auto trainer = OpenTrainer(options);
    EXPECT_THAT(trainer->changes(),
                ElementsAre("batch 100 -> 200", "learning rate of rows 0.02 -> 0.5",
                            "learning rate of dense parameters 0.01 -> 1e-30"));
    const std::vector<float> weights(trainer->weights().begin(), trainer->weights().end());
    const std::vector<float> row = first_row(*trainer);
    std::vector<float> logits;
    ASSERT_TRUE(trainer->Step(batch, &logits).ok());
    EXPECT_TRUE(std::ranges::equal(trainer->weights(), weights)) << "of a rate of almost 0";
    const std::vector<float> stepped = first_row(*trainer);
    float most = 0.0f;
    for (size_t i = 0; i < row.size(); ++i) most = std::max(most, std::fabs(stepped[i] - row[i]));
    EXPECT_GT(most, 0.1f) << "a first step of Adagrad is as long as the rate";
    ASSERT_TRUE(trainer->Checkpoint(1200).ok());
  }
  // The checkpoint has the settings of its run.
  EXPECT_TRUE(OpenTrainer(options)->changes().empty());
}

TEST(TrainedStore, GoesOnAtTheBeginOfOtherData) {
  const ScratchDirectory directory;
  const TrainerOptions options = OptionsOf("dlrm", directory.path() + "/store");
  ClickColumns columns = Data(1)->columns();
  const auto open = [&](const char* data) {
    columns.data.words = data;
    StatusOr<std::unique_ptr<Trainer>> trainer = Trainer::Open(options, columns);
    EXPECT_TRUE(trainer.ok()) << trainer.status();
    return *std::move(trainer);
  };
  Train(open("Monday").get(), 3, 3);
  EXPECT_EQ(open("Monday")->position(), 300u);
  {
    const auto trainer = open("Tuesday");
    EXPECT_EQ(trainer->position(), 0u);
    EXPECT_EQ(trainer->steps(), 3u);
    EXPECT_THAT(trainer->changes(), ElementsAre("data Monday -> Tuesday"));
    ASSERT_TRUE(trainer->Checkpoint(50).ok());
  }
  EXPECT_EQ(open("Tuesday")->position(), 50u);
}

// The bits are those of the trainer's own predictions, also for ids that it has never seen. Nothing
// is created.
TEST(TrainedStore, AReadOnlyStorePredictsAlone) {
  const ScratchDirectory directory;
  for (const char* model : {"dlrm", "wide-deep", "deep-fm", "ffnn", "mmoe"}) {
    SCOPED_TRACE(model);
    TrainerOptions options = OptionsOf(model, directory.path() + "/" + model);
    std::vector<ClickBatch> batches(3);
    std::vector<std::vector<float>> expected(batches.size());
    std::vector<uint64_t> rows;
    {
      const auto trainer = OpenTrainer(options);
      Train(trainer.get(), 20, 20);
      const auto data = Data(3000);
      ASSERT_TRUE(data->SkipTo(1950).ok());
      for (size_t i = 0; i < batches.size(); ++i) {
        ASSERT_TRUE(data->Next(i + 1 < batches.size() ? 100 : 37, &batches[i]).ok());
        for (uint64_t& id : batches[i].features[i].ids) id += i << 50;
        ASSERT_TRUE(trainer->Predict(batches[i], &expected[i]).ok());
      }
      for (const Table* table : trainer->tables()) rows.push_back(table->rows());
    }
    const auto files = FilesIn(options.store.path);
    options.store.read_only = true;
    {
      const auto reader = OpenTrainer(options);
      const auto beside = OpenTrainer(options);
      EXPECT_EQ(reader->steps(), 20u);
      std::vector<float> logits;
      for (size_t i = 0; i < batches.size(); ++i) {
        for (Trainer* const one : {reader.get(), beside.get()}) {
          ASSERT_TRUE(one->Prefetch(batches[i]).ok());
          ASSERT_TRUE(one->Predict(batches[i], &logits).ok());
          EXPECT_EQ(logits, expected[i]);
        }
      }
      for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(reader->tables()[i]->rows(), rows[i]);
      EXPECT_TRUE(IsFailedPrecondition(reader->Step(batches[0], &logits).status()));
      EXPECT_TRUE(IsFailedPrecondition(reader->StartCheckpoint(0)));
    }
    EXPECT_TRUE(FilesIn(options.store.path) == files) << "it has written";
  }
  TrainerOptions options = OptionsOf("dlrm", directory.path() + "/none");
  options.store.read_only = true;
  EXPECT_TRUE(IsNotFound(Trainer::Open(options, Data(1)->columns()).status()));
}

}  // namespace
}  // namespace embank::test::trained_store_test
