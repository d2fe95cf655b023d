// The facts that a store tells of itself: its options, its last checkpoint; and owners of keys.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "bindings/c/embank.h"
#include "bindings/c/handles.h"
#include "tests/support/c_api.h"
#include "tests/support/oracle_numbers.h"
#include "tests/support/random.h"
#include "tests/support/scratch_directory.h"

namespace embank::test::facts_test {
namespace {

class ManualWallClock final : public WallClock {
 public:
  int64_t UnixNs() const override { return now_ns; }
  int64_t now_ns = 1'700'000'000'123'456'789;
};

// ---- the last checkpoint ----

class CheckpointInfo : public testing::Test {
 protected:
  embank_store_options Options(uint32_t flags) const {
    embank_store_options options = StoreOptions();
    options.path = path_.c_str();
    options.flags = flags;
    return options;
  }
  StorePtr Open(uint32_t flags) {
    const embank_store_options options = Options(flags);
    StoreEnvironment environment;
    environment.wall_clock = &clock_;
    embank_store* store = nullptr;
    const Status opened = OpenStoreIn(&options, std::move(environment), &store);
    EXPECT_TRUE(opened.ok()) << opened;
    return StorePtr(store);
  }
  static embank_checkpoint_info Get(embank_store* store) {
    embank_checkpoint_info info = {};
    info.struct_size = sizeof info;
    EXPECT_EQ(embank_get_checkpoint_info(store, &info), EMBANK_OK) << embank_last_error();
    EXPECT_EQ(info.struct_size, sizeof info);
    EXPECT_EQ(info.reserved, 0u);
    return info;
  }
  static uint64_t Checkpoint(embank_store* store, const std::string& blob) {
    uint64_t sequence = 0;
    EXPECT_EQ(embank_checkpoint(store, blob.data(), blob.size(), &sequence), EMBANK_OK)
        << embank_last_error();
    return sequence;
  }
  static void Create(embank_table* table, uint64_t first, uint64_t n) {
    const std::vector<uint64_t> keys = KeyRange(first, n);
    std::vector<float> rows(n * kDim);
    EXPECT_EQ(embank_lookup(table, keys.data(), n, EMBANK_MISSING_CREATE, rows.data(), 0, nullptr),
              EMBANK_OK);
  }

  static constexpr uint32_t kDim = 6;
  const ScratchDirectory scratch_;
  const std::string path_ = scratch_.path() + "/store";
  ManualWallClock clock_;
};

TEST_F(CheckpointInfo, TellsTheLastOneMadeOrOpened) {
  StorePtr store = Open(EMBANK_OPEN_CREATE);
  embank_checkpoint_info none;
  std::memset(&none, 0x5A, sizeof none);
  none.struct_size = sizeof none;
  const embank_checkpoint_info untouched = none;
  EXPECT_EQ(embank_get_checkpoint_info(store.get(), &none), EMBANK_NOT_FOUND);
  EXPECT_EQ(std::memcmp(&none, &untouched, sizeof none), 0);

  embank_table* const table = CreateTable(store.get(), "t", TableOptions(kDim));
  embank_table* const other = CreateTable(store.get(), "other", TableOptions(kDim));
  Create(table, 0, 1000);
  Create(other, 0, 50);
  const uint64_t first = Checkpoint(store.get(), "one");
  const embank_checkpoint_info one = Get(store.get());
  EXPECT_EQ(one.sequence, first);
  EXPECT_EQ(one.unix_ns, clock_.now_ns);
  EXPECT_EQ(one.blob_bytes, 3u);
  EXPECT_EQ(one.rows, 1050u);
  EXPECT_GE(one.bytes, 1050 * kDim * sizeof(float) + 3);

  // Changes after a checkpoint are no part of it; nor is the time in which nothing happens.
  const int64_t then = clock_.now_ns;
  clock_.now_ns += 77;
  Create(table, 1000, 10);
  EXPECT_EQ(Get(store.get()).rows, 1050u);
  EXPECT_EQ(Get(store.get()).unix_ns, then);
  const std::vector<uint64_t> keys = KeyRange(0, 900);
  EXPECT_EQ(embank_erase(table, keys.data(), keys.size(), nullptr), EMBANK_OK);
  const uint64_t second = Checkpoint(store.get(), "");
  const embank_checkpoint_info two = Get(store.get());
  EXPECT_EQ(two.sequence, second);
  EXPECT_EQ(two.unix_ns, then + 77);
  EXPECT_EQ(two.blob_bytes, 0u);
  EXPECT_EQ(two.rows, 160u);
  EXPECT_LT(two.bytes, one.bytes);

  EXPECT_EQ(embank_export(store.get(), (scratch_.path() + "/copy").c_str(), nullptr, nullptr),
            EMBANK_OK)
      << embank_last_error();
  store.reset();
  clock_.now_ns = 5;
  const auto is_same = [](const embank_checkpoint_info& a, const embank_checkpoint_info& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
  };
  EXPECT_TRUE(is_same(Get(Open(0).get()), two));
  EXPECT_TRUE(is_same(Get(Open(EMBANK_OPEN_READ_ONLY).get()), two));
  EXPECT_TRUE(is_same(Get(Open(EMBANK_OPEN_READ_ONLY | EMBANK_OPEN_PREVIOUS).get()), one));
  embank_store_options options = Options(EMBANK_OPEN_READ_ONLY);
  const std::string copy = scratch_.path() + "/copy";
  options.path = copy.c_str();
  EXPECT_TRUE(is_same(Get(OpenStore(options).get()), two));
}

TEST_F(CheckpointInfo, FillsAsManyBytesAsTheCallerHas) {
  const StorePtr store = Open(EMBANK_OPEN_CREATE);
  Checkpoint(store.get(), "b");
  struct {
    embank_checkpoint_info info;
    uint64_t behind;
  } older;
  std::memset(&older, 0x5A, sizeof older);
  older.info.struct_size = 24;
  ASSERT_EQ(embank_get_checkpoint_info(store.get(), &older.info), EMBANK_OK);
  EXPECT_EQ(older.info.unix_ns, clock_.now_ns);
  EXPECT_EQ(older.info.blob_bytes, 0x5A5A5A5A5A5A5A5Au);
  older.info.struct_size = sizeof older;
  ASSERT_EQ(embank_get_checkpoint_info(store.get(), &older.info), EMBANK_OK);
  EXPECT_EQ(older.info.blob_bytes, 1u);
  EXPECT_EQ(older.behind, 0u);
}

// The clock of the machine is what a store has without a clock of its own.
TEST_F(CheckpointInfo, HasTheTimeOfDay) {
  const StorePtr store = OpenStore(Options(EMBANK_OPEN_CREATE));
  const int64_t before = SystemWallClock()->UnixNs();
  Checkpoint(store.get(), "");
  const int64_t made = Get(store.get()).unix_ns;
  EXPECT_GE(made, before);
  EXPECT_LE(made, SystemWallClock()->UnixNs());
  EXPECT_GT(before, int64_t{1'700'000'000} * 1'000'000'000) << "not since 1970";
}

// ---- options ----

embank_store_options Get(embank_store* store) {
  embank_store_options options;
  std::memset(&options, 0x5A, sizeof options);
  options.struct_size = sizeof options;
  EXPECT_EQ(embank_store_get_options(store, &options), EMBANK_OK) << embank_last_error();
  EXPECT_EQ(options.struct_size, sizeof options);
  EXPECT_EQ(options.reserved, 0u);
  EXPECT_EQ(options.reserved_2, 0u);
  return options;
}

TEST(StoreGetOptions, TellsTheDefaultsOfAStoreInMemory) {
  embank_store* opened = nullptr;
  ASSERT_EQ(embank_store_open(nullptr, &opened), EMBANK_OK);
  const StorePtr store(opened);
  const embank_store_options options = Get(store.get());
  EXPECT_EQ(options.flags, 0u);
  EXPECT_EQ(options.path, nullptr);
  EXPECT_EQ(options.pmem_path, nullptr);
  EXPECT_EQ(options.dram_bytes, 0u);
  EXPECT_EQ(options.ssd_bytes, 0u);
  EXPECT_EQ(options.cuda_device, -1);
  EXPECT_GE(options.worker_threads, 1u) << "the number that the store chose";
  EXPECT_EQ(options.durability, EMBANK_DURABLE_NONE);
  EXPECT_EQ(options.warmup_iters, 0u);
  EXPECT_EQ(options.pin_batches, 12u);
  EXPECT_EQ(options.flush_iters, 0u);
}

TEST(StoreGetOptions, TellsWhatAStoreUsesAndOpensAnotherAlike) {
  const ScratchDirectory scratch;
  std::string path = scratch.path() + "/store";
  embank_store_options asked = StoreOptions();
  asked.path = path.c_str();
  asked.flags = EMBANK_OPEN_CREATE;
  asked.dram_bytes = uint64_t{24} << 20;
  asked.ssd_bytes = uint64_t{64} << 20;
  asked.hbm_bytes = uint64_t{1} << 20;
  asked.worker_threads = 3;
  asked.seed = 99;
  asked.flush_iters = UINT32_MAX;
  asked.pin_batches = 72;
  StorePtr store = OpenStore(asked);
  const std::string given = path;
  path.assign(path.size(), '#');  // the caller's string may change: the store has its own
  embank_store_options used = Get(store.get());
  EXPECT_STREQ(used.path, given.c_str());
  EXPECT_EQ(used.flags, asked.flags);
  EXPECT_EQ(used.dram_bytes, asked.dram_bytes);
  EXPECT_EQ(used.ssd_bytes, asked.ssd_bytes);
  EXPECT_EQ(used.hbm_bytes, asked.hbm_bytes);
  EXPECT_EQ(used.worker_threads, 3u);
  EXPECT_EQ(used.seed, 99u);
  EXPECT_EQ(used.durability, EMBANK_DURABLE_CHECKPOINT);
  EXPECT_EQ(used.warmup_iters, 100u);
  EXPECT_EQ(used.flush_iters, UINT32_MAX);
  EXPECT_EQ(used.pin_batches, 72u);
  EXPECT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK);
  // They are legal options, but their strings end with the store.
  used.path = given.c_str();
  store.reset();
  used.flags = EMBANK_OPEN_READ_ONLY;
  const StorePtr reader = OpenStore(used);
  const embank_store_options read = Get(reader.get());
  EXPECT_EQ(read.flags, EMBANK_OPEN_READ_ONLY);
  EXPECT_EQ(read.ssd_bytes, 0u) << "a reader ignores it";
  EXPECT_EQ(read.seed, 99u);
}

TEST(StoreGetOptions, FillsAsManyBytesAsTheCallerHas) {
  const StorePtr store = OpenStore();
  struct {
    embank_store_options options;
    uint64_t behind;
  } all;
  std::memset(static_cast<void*>(&all), 0x5A, sizeof all);
  all.options.struct_size = 16;
  ASSERT_EQ(embank_store_get_options(store.get(), &all.options), EMBANK_OK);
  EXPECT_EQ(all.options.path, nullptr);
  EXPECT_EQ(all.options.dram_bytes, 0x5A5A5A5A5A5A5A5Au);
  all.options.struct_size = sizeof all;
  ASSERT_EQ(embank_store_get_options(store.get(), &all.options), EMBANK_OK);
  EXPECT_EQ(all.options.dram_bytes, 0u);
  EXPECT_EQ(all.behind, 0u);
}

// ---- owners ----

TEST(OwnerOfKeys, IsTheRuleOfTheArithmetic) {
  Random random(1);
  const std::string names[] = {"users", "items", std::string(255, 'n'), "\xC3\xA9"};
  for (const std::string& name : names) {
    std::vector<uint64_t> keys = {0, ~uint64_t{0}, 1};
    for (int i = 0; i < 200; ++i) keys.push_back(random.Bits());
    for (uint32_t ranks = 1; ranks <= 256; ++ranks) {
      std::vector<uint32_t> owners(keys.size(), 999);
      ASSERT_EQ(embank_owner_of(name.c_str(), keys.data(), keys.size(), ranks, owners.data()),
                EMBANK_OK)
          << embank_last_error();
      for (size_t i = 0; i < keys.size(); ++i) {
        const uint64_t hash = oracle::Mix(keys[i] ^ oracle::TableHash(name));
        ASSERT_EQ(owners[i], ((oracle::Mix(hash) >> 52) * ranks) >> 12);
      }
    }
  }
  EXPECT_EQ(embank_owner_of("t", nullptr, 0, 4, nullptr), EMBANK_OK);
}

}  // namespace
}  // namespace embank::test::facts_test
