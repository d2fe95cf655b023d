// A store on disk whose device is lost: every call that needs it is UNAVAILABLE until the store is
// opened again, at its last checkpoint, with every row of that.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/c/handles.h"
#include "gpu/twin.h"
#include "tests/bindings/kept_checkpoint.h"
#include "tests/support/c_api.h"
#include "tests/support/row_buffer.h"
#include "tests/support/simulated_disk.h"

namespace embank::test::lost_device_test {
namespace {

constexpr uint64_t kSeed = 9;
constexpr uint32_t kDim = 64;
constexpr uint64_t kHot = 48;
constexpr uint64_t kRows = 300;

// A table on disk, its oracle, and the oracle of its last checkpoint.
class World {
 public:
  World() {
    Open();
    embank_table_options options = TableOptions(kDim, EMBANK_OPT_ADAGRAD);
    options.learning_rate = 0.5f;
    options.initial_accumulator = 0.25f;
    now_ = std::make_unique<oracle::Table>(kSeed, "t", options);
    table_ = CreateTable(store_.get(), "t", options);
    EXPECT_EQ(LookUp(KeyRange(1, kRows)), EMBANK_OK);
  }

  void Open() {
    store_.reset();
    embank_store_options options = StoreOptions();
    options.seed = kSeed;
    options.dram_bytes = uint64_t{32} << 20;
    options.hbm_bytes = uint64_t{64} << 10;
    options.worker_threads = 2;
    options.flush_iters = UINT32_MAX;
    StoreEnvironment environment;
    environment.files = &disk_;
    auto device = std::make_unique<embank::Twin>(TwinOptions{});
    twin_ = device.get();
    environment.device = std::move(device);
    const Status opened = OpenOnDisk(options, std::move(environment), &store_);
    EXPECT_TRUE(opened.ok()) << opened;
  }

  embank_status LookUp(const std::vector<uint64_t>& keys) {
    RowBuffer rows(keys.size(), now_->row_bytes());
    const embank_status status = embank_lookup(table_, keys.data(), keys.size(),
                                               EMBANK_MISSING_CREATE, rows.data(), 0, nullptr);
    if (status != EMBANK_OK) return status;
    now_->Lookup(keys.data(), keys.size(), EMBANK_MISSING_CREATE, rows.data(), 0, nullptr);
    return status;
  }
  embank_status Upsert(const std::vector<uint64_t>& keys, float value) {
    const std::vector<float> rows(keys.size() * kDim, value);
    const embank_status status =
        embank_upsert(table_, keys.data(), keys.size(), rows.data(), 0, nullptr);
    if (status == EMBANK_OK) now_->Upsert(keys.data(), keys.size(), rows.data(), 0, nullptr);
    return status;
  }
  embank_status Step(const std::vector<uint64_t>& keys, float gradient) {
    const std::vector<float> rows(keys.size() * kDim, gradient);
    const embank_status status =
        embank_apply_gradients(table_, keys.data(), keys.size(), rows.data(), 0, nullptr);
    if (status == EMBANK_OK) {
      now_->ApplyGradients(keys.data(), keys.size(), rows.data(), 0, nullptr);
    }
    return status;
  }
  embank_status Heat(uint64_t first, int lookups) {
    embank_status status = EMBANK_OK;
    for (int i = 0; i < lookups && status == EMBANK_OK; ++i) status = LookUp(KeyRange(first, kHot));
    return status == EMBANK_OK ? embank_flush_hot(store_.get()) : status;
  }
  embank_status Checkpoint() {
    const oracle::Table saved = *now_;
    const embank_status status = embank_checkpoint(store_.get(), nullptr, 0, nullptr);
    if (status == EMBANK_OK) saved_ = std::make_unique<oracle::Table>(saved);
    return status;
  }
  uint64_t RowsInHbm() {
    embank_table_info info = {};
    info.struct_size = sizeof info;
    EXPECT_EQ(embank_table_get_info(table_, &info), EMBANK_OK);
    return info.rows_hbm;
  }
  // Opens the store with a device that works.
  void ExpectLastCheckpoint() {
    Open();
    if (saved_ == nullptr) {
      EXPECT_NE(embank_table_open(store_.get(), "t", &table_), EMBANK_OK);
      return;
    }
    ASSERT_EQ(embank_table_open(store_.get(), "t", &table_), EMBANK_OK) << embank_last_error();
    EXPECT_EQ(DifferenceButHeat(table_, *saved_), "");
    now_ = std::make_unique<oracle::Table>(*saved_);
  }

  embank_store* store() { return store_.get(); }
  embank_table* table() { return table_; }
  embank::Twin* twin() { return twin_; }
  const oracle::Table& now() const { return *now_; }

 private:
  SimulatedDisk disk_;
  embank::Twin* twin_ = nullptr;  // the store's
  StorePtr store_;
  embank_table* table_ = nullptr;
  std::unique_ptr<oracle::Table> now_;
  std::unique_ptr<oracle::Table> saved_;
};

TEST(LostDevice, IsUnavailableToEveryCallAndCostsNoRowOfTheCheckpoint) {
  World world;
  ASSERT_EQ(world.Heat(1, 8), EMBANK_OK);
  ASSERT_EQ(world.Step(KeyRange(1, kRows), 0.5f), EMBANK_OK);
  ASSERT_EQ(world.Checkpoint(), EMBANK_OK) << embank_last_error();
  ASSERT_EQ(world.Step(KeyRange(1, kRows), 0.25f), EMBANK_OK);
  ASSERT_EQ(world.Upsert(KeyRange(1, 10), 3.0f), EMBANK_OK);
  ASSERT_GE(world.RowsInHbm(), kHot);

  world.twin()->LoseAt(1);
  embank_store* const store = world.store();
  embank_table* const table = world.table();
  ScanPtr scan = OpenScan(table);
  const std::vector<uint64_t> hot = KeyRange(1, 5);
  const uint64_t* const k = hot.data();
  std::vector<uint64_t> scanned(kRows);
  std::vector<float> rows(kRows * kDim, 1.0f);
  std::vector<uint32_t> heat(kRows);
  float* const r = rows.data();
  uint64_t n = 0;
  const std::vector<std::pair<const char*, std::function<embank_status()>>> calls = {
      {"lookup", [&] { return embank_lookup(table, k, 5, 0, r, 0, nullptr); }},
      {"upsert", [&] { return embank_upsert(table, k, 5, r, 0, nullptr); }},
      {"upsert_full",
       [&] { return embank_upsert_full(table, k, 5, r, 0, r, 0, nullptr, nullptr); }},
      {"gradients", [&] { return embank_apply_gradients(table, k, 5, r, 0, nullptr); }},
      {"get_state", [&] { return embank_get_state(table, k, 5, r, 0, nullptr); }},
      {"set_state", [&] { return embank_set_state(table, k, 5, r, 0, nullptr); }},
      {"scan", [&] { return embank_scan_next(scan.get(), scanned.data(), r, 0, kRows, &n); }},
      {"full scan",
       [&] {
         return embank_scan_next_full(scan.get(), scanned.data(), nullptr, 0, nullptr, 0,
                                      heat.data(), kRows, &n);
       }},
      {"flush", [&] { return embank_flush_hot(store); }},
      {"checkpoint", [&] { return embank_checkpoint(store, nullptr, 0, nullptr); }},
      {"started checkpoint", [&] {
         const embank_status started = embank_checkpoint_start(store, nullptr, 0);
         return started == EMBANK_OK ? embank_checkpoint_finish(store, nullptr) : started;
       }}};
  for (int round = 0; round < 2; ++round) {
    for (const auto& [name, call] : calls) {
      EXPECT_EQ(call(), EMBANK_UNAVAILABLE) << name << ": " << embank_last_error();
    }
  }
  scan.reset();
  ASSERT_NO_FATAL_FAILURE(world.ExpectLastCheckpoint());
  // It goes on, with HBM rows.
  ASSERT_EQ(world.Heat(1, 8), EMBANK_OK);
  EXPECT_GE(world.RowsInHbm(), kHot);
  ASSERT_EQ(world.Step(KeyRange(1, kRows), 1.0f), EMBANK_OK);
  EXPECT_EQ(DifferenceButHeat(world.table(), world.now()), "");
}

// Flushes, changes and checkpoints; ends at the first call that fails.
embank_status Work(World* world, bool* in_checkpoint) {
  for (uint64_t round = 0; round < 3; ++round) {
    const auto value = static_cast<float>(round + 1);
    embank_status status = world->Heat(1 + round * kHot, 8 * static_cast<int>(round + 1));
    if (status == EMBANK_OK) status = world->Step(KeyRange(1, kRows), value);
    if (status == EMBANK_OK) status = world->Upsert(KeyRange(1 + 20 * round, 40), value);
    if (status == EMBANK_OK) {
      status = world->Checkpoint();
      *in_checkpoint = status != EMBANK_OK;
    }
    if (status == EMBANK_OK) status = world->Step(KeyRange(1, 2 * kHot), -value);
    if (status != EMBANK_OK) return status;
  }
  return EMBANK_OK;
}

TEST(LostDevice, CostsNothingDurableWhereverItIsLost) {
  uint64_t places = 0;
  uint64_t in_checkpoints = 0;
  for (uint64_t work = 1;; ++work) {
    SCOPED_TRACE("lost at work " + std::to_string(work));
    World world;
    world.twin()->LoseAt(work);
    bool in_checkpoint = false;
    const embank_status status = Work(&world, &in_checkpoint);
    if (status == EMBANK_OK) break;
    ASSERT_EQ(status, EMBANK_UNAVAILABLE) << embank_last_error();
    ++places;
    in_checkpoints += in_checkpoint ? 1 : 0;
    world.ExpectLastCheckpoint();
    if (testing::Test::HasFailure()) return;
  }
  std::printf("%llu places, %llu of them in checkpoints\n", static_cast<unsigned long long>(places),
              static_cast<unsigned long long>(in_checkpoints));
  EXPECT_GE(places, 10u);
  // Work of other threads comes between, so that the place where a checkpoint's work is varies.
  EXPECT_GE(in_checkpoints, 1u);
}

}  // namespace
}  // namespace embank::test::lost_device_test
