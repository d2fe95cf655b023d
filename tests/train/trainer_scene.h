// A small trainer on generated data.
#ifndef EMBANK_TESTS_TRAIN_TRAINER_SCENE_H_
#define EMBANK_TESTS_TRAIN_TRAINER_SCENE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/threads/mutex.h"
#include "store/batch/lookup.h"
#include "train/batch_ahead.h"
#include "train/generator/click_generator.h"
#include "train/models/model_table.h"
#include "train/trainer.h"

namespace embank::test {

// From their beginning. They take long to make, and hardly anything to copy.
inline std::unique_ptr<ClickGenerator> Data(uint64_t samples) {
  static Mutex mutex;
  static std::map<uint64_t, std::unique_ptr<const ClickGenerator>> made;
  MutexLock lock(&mutex);
  std::unique_ptr<const ClickGenerator>& data = made[samples];
  if (data == nullptr) {
    ClickGeneratorOptions options;
    options.samples = samples;
    data = *ClickGenerator::Create(*MakeClickSchema("criteo-kaggle", {.divisor = 2000}), options,
                                   nullptr);
  }
  return std::make_unique<ClickGenerator>(*data);
}

inline const ClickColumns& DataColumns() {
  static const ClickColumns columns = Data(1)->columns();
  return columns;
}

inline TrainerOptions OptionsOf(const std::string& model, const std::string& path = "") {
  TrainerOptions options;
  options.model = *FindModel(model);
  options.dim = 8;
  options.batch = 100;
  options.threads = 1;
  options.store.worker_threads = 1;
  options.store.path = path;
  return options;
}

inline std::unique_ptr<Trainer> OpenTrainer(const TrainerOptions& options) {
  StatusOr<std::unique_ptr<Trainer>> trainer = Trainer::Open(options, DataColumns());
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  return trainer.ok() ? *std::move(trainer) : nullptr;
}

// Trains up to a step, and returns the losses. As many steps are under way as may be, but at the
// checkpoint there is none.
inline std::vector<double> Train(Trainer* trainer, uint64_t last_step, uint64_t checkpoint_at = 0,
                                 uint32_t staleness = 0) {
  const auto data = Data(last_step * 100);
  EXPECT_TRUE(data->SkipTo(trainer->position()).ok());
  BatchAhead batches(data.get(), trainer, 100, staleness + 1);
  std::vector<double> losses;
  std::vector<float> logits;
  while (trainer->steps() < last_step) {
    const uint64_t end = trainer->steps() < checkpoint_at ? checkpoint_at : last_step;
    while (trainer->pass()->rows().under_way() <= staleness &&
           trainer->steps() + trainer->pass()->rows().under_way() < end) {
      const auto batch = batches.Next();
      EXPECT_TRUE(batch.ok() && *batch != nullptr) << batch.status();
      EXPECT_EQ(trainer->BeginStep(**batch), OkStatus());
    }
    const StatusOr<double> loss = trainer->EndStep(&logits);
    EXPECT_TRUE(loss.ok()) << loss.status();
    if (!loss.ok()) break;
    losses.push_back(*loss);
    if (trainer->steps() == checkpoint_at) {
      EXPECT_TRUE(trainer->Checkpoint(batches.position()).ok());
    }
  }
  EXPECT_EQ(trainer->DropSteps(), OkStatus()) << "the updates of the last steps";
  return losses;
}

// The rows of a few ids of a table.
inline std::vector<float> RowsOf(Table* table, std::span<const Key> keys) {
  const uint32_t dim = table->layout().dim;
  std::vector<float> rows(keys.size() * dim);
  EXPECT_TRUE(Lookup(table, keys, MissingRule::kZero,
                     {reinterpret_cast<std::byte*>(rows.data()), dim * sizeof(float)}, {})
                  .ok());
  return rows;
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_TRAIN_TRAINER_SCENE_H_
