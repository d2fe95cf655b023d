// Batches that are read ahead, but for one that depends on a loss.
#include "train/batch_ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace embank::test::batch_ahead_test {
namespace {

// Every third batch ends a phase; its loss is the id of the batches behind it.
class Phases final : public ClickSource {
 public:
  static constexpr uint32_t kBatches = 300;

  const ClickColumns& columns() const override { return columns_; }
  StatusOr<uint32_t> Next(uint32_t, ClickBatch* batch) override {
    batch->Clear(1);
    const uint32_t number = read_;
    if (number == kBatches) return 0u;
    AppendRow({.label = 0.0f, .ids = {loss_}}, batch);
    batch->ends_phase = number % 3 == 2;
    read_ = number + 1;
    return 1u;
  }
  DataPosition position() const override { return uint64_t{read_}; }
  Status SkipTo(DataPosition) override { return OkStatus(); }
  double FractionRead() const override { return static_cast<double>(read_) / kBatches; }

  void ApplyLoss(uint64_t loss) { loss_ = loss; }
  uint32_t read() const { return read_; }

 private:
  const ClickColumns columns_ = {.dense = {}, .ids = {"loss"}};
  std::atomic<uint32_t> read_ = 0;
  std::atomic<uint64_t> loss_ = 0;
};

TEST(BatchAhead, WaitsForTheLossOfAPhase) {
  Phases source;
  BatchAhead batches(&source, nullptr, 1);
  for (uint32_t i = 0; i < Phases::kBatches; ++i) {
    const StatusOr<const ClickBatch*> batch = batches.Next();
    ASSERT_TRUE(batch.ok() && *batch != nullptr);
    ASSERT_EQ((*batch)->features[0].ids[0], i / 3) << "read before its loss was told";
    EXPECT_EQ(batches.position().place, i + 1);
    if (!(*batch)->ends_phase) {
      // The others are read ahead.
      while (source.read() < i + 2) std::this_thread::yield();
      continue;
    }
    // A thread that read ahead would do so now.
    for (int k = 0; k < 100; ++k) std::this_thread::yield();
    ASSERT_EQ(source.read(), i + 1);
    source.ApplyLoss(i / 3 + 1);
  }
  EXPECT_EQ(*batches.Next(), nullptr);
}

}  // namespace
}  // namespace embank::test::batch_ahead_test
