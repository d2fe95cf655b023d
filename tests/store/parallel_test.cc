// Batches large enough to be done in parallel: whatever the order of the shards, and with real
// threads, the store gives the same bits as one thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "store/batch/gradients.h"
#include "store/batch/lookup.h"
#include "store/batch/state.h"
#include "store/batch/write.h"
#include "store/scan/scan.h"
#include "tests/support/random.h"
#include "tests/support/store_world.h"

namespace embank::test::parallel_test {
namespace {

constexpr size_t kBatch = 8200;       // a little more than what is done in parallel
constexpr uint64_t kUniverse = 6000;  // so that batches have duplicates

// Everything that a run has let its caller see, in order.
using Transcript = std::vector<std::byte>;

// Runs random batches on one table and notes all answers.
class Run {
 public:
  Run(Table* table, uint64_t seed) : table_(table), random_(seed), outcomes_(kBatch) {}

  void Step() {
    std::vector<Key> keys(kBatch);
    for (Key& key : keys) key = random_.Below(kUniverse);
    const uint64_t row_bytes = table_->layout().vector_bytes;
    std::vector<std::byte> rows(kBatch * row_bytes);
    ASSERT_TRUE(
        Lookup(table_, keys, MissingRule::kCreate, {rows.data(), row_bytes}, outcomes_).ok());
    Write(rows);
    std::vector<float> gradients(kBatch * table_->layout().dim);
    for (float& g : gradients) g = random_.Signed();
    ASSERT_TRUE(
        ApplyGradients(table_, keys, RowsOf(gradients, table_->layout().dim), outcomes_).ok());
    Write({});
    std::reverse(keys.begin(), keys.end());
    ASSERT_TRUE(Upsert(table_, std::span(keys).first(kBatch - 7),
                       ConstRowSpan{rows.data(), row_bytes}, std::span(outcomes_).first(kBatch - 7))
                    .ok());
    Write({});
    for (Key& key : keys) key = random_.Below(kUniverse) * 2;
    ASSERT_TRUE(Erase(table_, keys, outcomes_).ok());
    Write({});
  }
  // Rows, states and heat of all keys that may be there, and the scan.
  Transcript Finish() {
    std::vector<Key> keys = KeysFrom(0, std::max<size_t>(kUniverse, kBatch));
    const uint64_t row_bytes = table_->layout().vector_bytes;
    std::vector<std::byte> rows(keys.size() * row_bytes);
    std::vector<uint32_t> heat(keys.size());
    std::vector<float> state(keys.size() * table_->layout().state_floats);
    EXPECT_TRUE(GetHeat(table_, keys, heat, outcomes_).ok());
    EXPECT_TRUE(
        GetState(table_, keys, RowsIn(&state, table_->layout().state_floats), outcomes_).ok());
    EXPECT_TRUE(Lookup(table_, keys, MissingRule::kZero, {rows.data(), row_bytes}, outcomes_).ok());
    Write(rows);
    Write(std::as_bytes(std::span(heat)));
    Write(std::as_bytes(std::span(state)));
    WriteScan();
    return std::move(transcript_);
  }

 private:
  void Write(std::span<const std::byte> bytes) {
    transcript_.insert(transcript_.end(), bytes.begin(), bytes.end());
    const auto outcomes = std::as_bytes(std::span(outcomes_));
    transcript_.insert(transcript_.end(), outcomes.begin(), outcomes.end());
  }
  void WriteScan() {
    std::vector<Key> keys(kUniverse + 1);
    std::vector<std::byte> rows(keys.size() * table_->layout().vector_bytes);
    Scan scan(table_);
    const StatusOr<uint64_t> n = scan.Next(keys, {rows.data(), table_->layout().vector_bytes});
    ASSERT_TRUE(n.ok()) << n.status();
    ASSERT_EQ(*n, table_->rows());
    std::sort(keys.begin(), keys.begin() + static_cast<ptrdiff_t>(*n));
    Write(std::as_bytes(std::span(keys).first(*n)));
  }

  Table* const table_;
  Random random_;
  std::vector<uint8_t> outcomes_;
  Transcript transcript_;
};

Transcript TranscriptOf(std::unique_ptr<Executor> executor, uint64_t seed) {
  StoreWorld store({.seed = seed}, std::move(executor));
  Random random(seed);
  TableOptions options = OptionsOf(static_cast<uint32_t>(random.Between(1, 3)),
                                   random.OneIn(2) ? Optimizer::kAdam : Optimizer::kAdagrad);
  options.value_type = random.OneIn(2) ? ValueType::kBf16 : ValueType::kF32;
  options.initializer = {InitializerKind::kUniform, -1.0f, 1.0f};
  Run run(store.Create("t", options), seed);
  for (int step = 0; step < 2; ++step) run.Step();
  return run.Finish();
}

// On one thread.
#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kSeeds = 20;
#else
constexpr uint64_t kSeeds = 200;
#endif

TEST(ParallelBatches, GiveTheSameBitsInAnyOrderOfTheShards) {
  constexpr uint64_t kOrdersPerRun = 20;
  for (uint64_t seed = 0; seed < kSeeds; seed += kOrdersPerRun) {
    const Transcript expected = TranscriptOf(MakeThreadPool(1), seed);
    for (uint64_t order = seed; order < seed + kOrdersPerRun; ++order) {
      auto executor = std::make_unique<SimulatedExecutor>(order);
      ASSERT_TRUE(TranscriptOf(std::move(executor), seed) == expected) << "order " << order;
    }
  }
}

TEST(ParallelBatches, GiveTheSameBitsOnThreads) {
  for (uint64_t seed = 1000; seed < 1008; ++seed) {
    const Transcript expected = TranscriptOf(MakeThreadPool(1), seed);
    ASSERT_TRUE(TranscriptOf(MakeThreadPool(4), seed) == expected) << "seed " << seed;
  }
}

TEST(ParallelBatches, AreThoseOf8192KeysAndMore) {
  auto executor = std::make_unique<SimulatedExecutor>(1);
  const SimulatedExecutor* const seen = executor.get();
  StoreWorld store({}, std::move(executor));
  Table* const table = store.Create("t", OptionsOf(1));
  std::vector<float> rows(8192);
  std::vector<uint8_t> outcomes(8192);
  ASSERT_TRUE(Contains(table, KeysFrom(0, 8191), std::span(outcomes).first(8191)).ok());
  EXPECT_EQ(seen->calls(), 0u);
  ASSERT_TRUE(Contains(table, KeysFrom(0, 8192), outcomes).ok());
  EXPECT_EQ(seen->calls(), 1u);
}

}  // namespace
}  // namespace embank::test::parallel_test
