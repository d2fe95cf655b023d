// Checkpoints that one call starts and another finishes, through the C API and on real files: bit
// for bit against the oracle, beside threads, and refused where they must be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bindings/c/embank.h"
#include "bindings/c/handles.h"
#include "tests/support/c_api.h"
#include "tests/support/child_process.h"
#include "tests/support/random.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/small_log.h"

namespace embank::test::started_checkpoint_c_api_test {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kDim = 700;
constexpr uint64_t kKeys = 3'000;  // 17 MiB with their state, half of which memory holds
constexpr uint64_t kBatch = 300;

embank_store_options OptionsOf(const std::string& path, uint32_t flags) {
  embank_store_options options = StoreOptions();
  options.path = path.c_str();
  options.flags = flags;
  options.dram_bytes = uint64_t{16} << 20;
  options.worker_threads = 2;
  return options;
}

StorePtr OpenAt(const std::string& path, uint32_t flags = EMBANK_OPEN_CREATE) {
  const embank_store_options options = OptionsOf(path, flags);
  StoreEnvironment environment;
  environment.log = SmallLog();
  embank_store* store = nullptr;
  const Status status = OpenStoreIn(&options, std::move(environment), &store);
  EXPECT_TRUE(status.ok()) << status;
  return StorePtr(store);
}

class StartedCheckpointCApi : public testing::Test {
 protected:
  StartedCheckpointCApi() : path_(scratch_.path() + "/store"), store_(OpenAt(path_)) {
    embank_table_options options = TableOptions(kDim, EMBANK_OPT_ADAGRAD);
    options.initializer = EMBANK_INIT_UNIFORM;
    options.init_b = 1.0f;
    twin_ = std::make_unique<Twin>(CreateTwin(store_.get(), StoreOptions().seed, "t", options));
    for (uint64_t first = 0; first < kKeys; first += kBatch) Train(KeyRange(first, kBatch));
  }

  void Train(const std::vector<uint64_t>& keys) { TrainTwin(twin_.get(), keys, kDim, &random_); }
  void TrainSome() {
    for (int i = 0; i < 5; ++i) Train(KeyRange(random_.Below(kKeys), kBatch));
  }
  void ExpectReopened(const oracle::Table& expected, const std::string& blob) {
    store_.reset();
    store_ = OpenAt(path_);
    ASSERT_EQ(embank_table_open(store_.get(), "t", &twin_->table), EMBANK_OK);
    EXPECT_EQ(DifferenceButHeat(twin_->table, expected), "");
    std::array<char, 64> found = {};
    uint64_t needed = 0;
    ASSERT_EQ(embank_checkpoint_blob(store_.get(), found.data(), found.size(), &needed), EMBANK_OK);
    EXPECT_EQ(std::string(found.data(), needed), blob);
  }

  const ScratchDirectory scratch_;
  const std::string path_;
  Random random_{11};
  StorePtr store_;
  std::unique_ptr<Twin> twin_;
};

TEST_F(StartedCheckpointCApi, HasTheStepsBeforeItsStartBitForBit) {
  for (uint64_t round = 1; round <= 3; ++round) {
    TrainSome();
    const oracle::Table at_start = twin_->oracle;
    std::string blob = "step " + std::to_string(round);
    const std::string saved = blob;
    ASSERT_EQ(embank_checkpoint_start(store_.get(), blob.data(), blob.size()), EMBANK_OK)
        << embank_last_error();
    blob.assign(blob.size(), '?');  // it was copied
    TrainSome();
    std::vector<uint64_t> erased = KeyRange(random_.Below(kKeys), 40);
    ASSERT_EQ(embank_erase(twin_->table, erased.data(), erased.size(), nullptr), EMBANK_OK);
    twin_->oracle.Erase(erased.data(), erased.size(), nullptr);
    EXPECT_EQ(DifferenceButHeat(twin_->table, twin_->oracle), "") << "as if there were none";
    uint64_t sequence = 0;
    ASSERT_EQ(embank_checkpoint_finish(store_.get(), &sequence), EMBANK_OK) << embank_last_error();
    EXPECT_EQ(sequence, round);
    EXPECT_EQ(DifferenceButHeat(twin_->table, twin_->oracle), "");
    ASSERT_NO_FATAL_FAILURE(ExpectReopened(at_start, saved));
    twin_ = std::make_unique<Twin>(Twin{twin_->table, at_start});
  }
}

TEST_F(StartedCheckpointCApi, IsThereWhenItsStoreIsClosedWithoutFinish) {
  const oracle::Table at_start = twin_->oracle;
  ASSERT_EQ(embank_checkpoint_start(store_.get(), "closed", 6), EMBANK_OK);
  TrainSome();
  ExpectReopened(at_start, "closed");
}

// All rows of the keys in both tables are one number from `least` to `most`.
void ExpectWhole(embank_store* store, const std::vector<uint64_t>& keys, uint64_t least,
                 uint64_t most) {
  std::vector<float> values;
  for (const char* const name : {"t0", "t1"}) {
    embank_table* table = nullptr;
    ASSERT_EQ(embank_table_open(store, name, &table), EMBANK_OK);
    std::vector<float> rows(keys.size() * 4);
    EXPECT_EQ(embank_lookup(table, keys.data(), keys.size(), EMBANK_MISSING_ZERO, rows.data(), 0,
                            nullptr),
              EMBANK_OK);
    values.insert(values.end(), rows.begin(), rows.end());
  }
  EXPECT_THAT(values, testing::Each(values[0])) << "a call is in it in part";
  EXPECT_GE(values[0], static_cast<float>(least));
  EXPECT_LE(values[0], static_cast<float>(most));
}

// A packed call adds one to rows of two tables; a checkpoint has all of them or none.
TEST(StartedCheckpointBesideThreads, HasPackedCallsWhollyOrNotAtAll) {
  constexpr uint64_t kThreads = 3;
  constexpr uint64_t kEach = 40;
  const ScratchDirectory scratch;
  const StorePtr store = OpenAt(scratch.path() + "/store");
  std::array<embank_table*, 2> tables = {};
  embank_table_options table_options = TableOptions(4, EMBANK_OPT_SGD);
  table_options.learning_rate = 1.0f;
  for (size_t i = 0; i < tables.size(); ++i) {
    tables[i] = CreateTable(store.get(), "t" + std::to_string(i), table_options);
    const std::vector<uint64_t> keys = KeyRange(0, kThreads * kEach);
    const std::vector<float> zeros(keys.size() * 4);
    ASSERT_EQ(embank_upsert(tables[i], keys.data(), keys.size(), zeros.data(), 0, nullptr),
              EMBANK_OK);
  }
  std::atomic<bool> over{false};
  std::vector<std::atomic<uint64_t>> returned(kThreads);
  std::vector<std::atomic<uint64_t>> begun(kThreads);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::vector<uint64_t> keys = KeyRange(t * kEach, kEach);
      std::vector<float> gradients(kEach * 4, -1.0f);
      std::array<embank_feature, 2> features = {};
      for (size_t i = 0; i < features.size(); ++i) {
        features[i].struct_size = sizeof features[i];
        features[i].pooling = EMBANK_POOL_NONE;
        features[i].table = tables[i];
        features[i].keys = keys.data();
        features[i].n = kEach;
        features[i].rows = gradients.data();
      }
      while (!over) {
        ++begun[t];
        EXPECT_EQ(embank_apply_gradients_packed(features.data(), features.size(), nullptr),
                  EMBANK_OK)
            << embank_last_error();
        ++returned[t];
      }
    });
  }
  for (int round = 0; round < 5; ++round) {
    std::vector<uint64_t> least(kThreads);
    std::vector<uint64_t> most(kThreads);
    for (uint64_t t = 0; t < kThreads; ++t) least[t] = returned[t];
    EXPECT_EQ(embank_checkpoint_start(store.get(), nullptr, 0), EMBANK_OK) << embank_last_error();
    for (uint64_t t = 0; t < kThreads; ++t) most[t] = begun[t];
    for (uint64_t t = 0; t < kThreads; ++t) {
      while (returned[t] < most[t] + 20) std::this_thread::yield();
    }
    EXPECT_EQ(embank_checkpoint_finish(store.get(), nullptr), EMBANK_OK) << embank_last_error();
    const std::string target = scratch.path() + "/export" + std::to_string(round);
    EXPECT_EQ(embank_export(store.get(), target.c_str(), nullptr, nullptr), EMBANK_OK);
    const StorePtr found = OpenAt(target, EMBANK_OPEN_READ_ONLY);
    for (uint64_t t = 0; t < kThreads; ++t) {
      ExpectWhole(found.get(), KeyRange(t * kEach, kEach), least[t], most[t]);
    }
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
}

// ---- calls that are refused ----

TEST_F(StartedCheckpointCApi, IsOneUntilItIsFinished) {
  uint64_t sequence = 77;
  EXPECT_EQ(embank_checkpoint_finish(store_.get(), &sequence), EMBANK_FAILED_PRECONDITION);
  EXPECT_THAT(embank_last_error(), HasSubstr("embank_checkpoint_start"));
  ASSERT_EQ(embank_checkpoint_start(store_.get(), "a", 1), EMBANK_OK);
  EXPECT_EQ(embank_checkpoint_start(store_.get(), "b", 1), EMBANK_FAILED_PRECONDITION);
  EXPECT_THAT(embank_last_error(), HasSubstr("embank_checkpoint_finish"));
  EXPECT_EQ(sequence, 77u);
  ASSERT_EQ(embank_checkpoint(store_.get(), "c", 1, &sequence), EMBANK_OK) << embank_last_error();
  EXPECT_EQ(sequence, 2u);
  EXPECT_EQ(embank_checkpoint_finish(store_.get(), &sequence), EMBANK_OK);
  EXPECT_EQ(sequence, 1u);
  const oracle::Table now = twin_->oracle;
  ExpectReopened(now, "c");
}

TEST_F(StartedCheckpointCApi, RefusesABlobThatIsTooLargeAndStartsNothing) {
  const std::vector<char> blob((32 << 20) + 1);
  EXPECT_EQ(embank_checkpoint_start(store_.get(), blob.data(), blob.size()),
            EMBANK_INVALID_ARGUMENT);
  EXPECT_THAT(embank_last_error(), HasSubstr("blob_bytes"));
  EXPECT_EQ(embank_checkpoint_start(store_.get(), nullptr, 1), EMBANK_INVALID_ARGUMENT);
  EXPECT_THAT(embank_last_error(), HasSubstr("blob"));
  EXPECT_EQ(embank_checkpoint_finish(store_.get(), nullptr), EMBANK_FAILED_PRECONDITION);
  ASSERT_EQ(embank_checkpoint_start(store_.get(), nullptr, 0), EMBANK_OK);
  EXPECT_EQ(embank_checkpoint_finish(store_.get(), nullptr), EMBANK_OK);
}

TEST_F(StartedCheckpointCApi, IsRefusedInAReadOnlyStore) {
  ASSERT_EQ(embank_checkpoint(store_.get(), nullptr, 0, nullptr), EMBANK_OK);
  store_ = nullptr;
  store_ = OpenAt(path_, EMBANK_OPEN_READ_ONLY);
  EXPECT_EQ(embank_checkpoint_start(store_.get(), nullptr, 0), EMBANK_FAILED_PRECONDITION);
  EXPECT_THAT(embank_last_error(), HasSubstr("read-only"));
  EXPECT_EQ(embank_checkpoint_finish(store_.get(), nullptr), EMBANK_FAILED_PRECONDITION);
}

TEST_F(StartedCheckpointCApi, ACheckpointOfAParentGoesOnAndIsRefusedToItsChild) {
  const oracle::Table at_start = twin_->oracle;
  ASSERT_EQ(embank_checkpoint_start(store_.get(), "parent", 6), EMBANK_OK);
  EXPECT_EQ(InChild([this] {
              const bool refused =
                  embank_checkpoint_start(store_.get(), nullptr, 0) == EMBANK_FAILED_PRECONDITION &&
                  embank_checkpoint_finish(store_.get(), nullptr) == EMBANK_FAILED_PRECONDITION;
              return refused && embank_store_close(store_.get()) == EMBANK_OK ? 0 : 1;
            }),
            "exit 0");
  TrainSome();
  EXPECT_EQ(embank_checkpoint_finish(store_.get(), nullptr), EMBANK_OK) << embank_last_error();
  ExpectReopened(at_start, "parent");
}

}  // namespace
}  // namespace embank::test::started_checkpoint_c_api_test
