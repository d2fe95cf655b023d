// Sums of bags whose rows are in all tiers, absent, or there several times: bit for bit those of
// the oracle, which adds one row after the other.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bindings/c/embank.h"
#include "bindings/c/handles.h"
#include "tests/support/c_api.h"
#include "tests/support/oracle_packed.h"
#include "tests/support/packed_feature.h"
#include "tests/support/random.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/small_log.h"

namespace embank::test::bags_in_tiers_test {
namespace {

struct Tiers {
  bool has_pmem;
  bool has_hbm;
  std::string name;
};

class BagsInTiers : public testing::TestWithParam<Tiers> {
 protected:
  static constexpr uint32_t kDim = 128;
  static constexpr uint64_t kRows = 24'000;  // of 1 KiB, more than memory has

  void SetUp() override {
    embank_store_options options = StoreOptions();
    const std::string path = scratch_.path() + "/store";
    options.path = path.c_str();
    options.flags = EMBANK_OPEN_CREATE;
    options.dram_bytes = uint64_t{16} << 20;
    options.worker_threads = 2;
    options.seed = kSeed;
    if (GetParam().has_pmem) {
      options.pmem_path = pmem_.path().c_str();
      options.pmem_bytes = uint64_t{16} << 20;
    }
    if (GetParam().has_hbm) options.hbm_bytes = uint64_t{1} << 20;
    StoreEnvironment environment;
    environment.log = SmallLog();
    embank_store* opened = nullptr;
    const Status status = OpenStoreIn(&options, std::move(environment), &opened);
    ASSERT_TRUE(status.ok()) << status;
    store_.reset(opened);
    embank_table_options table = TableOptions(kDim, EMBANK_OPT_ADAGRAD);
    table.initializer = EMBANK_INIT_UNIFORM;
    table.init_a = -1.0f;
    table.init_b = 1.0f;
    twin_.emplace(CreateTwin(store_.get(), kSeed, "t", table));
    for (uint64_t first = 0; first < kRows; first += 500) {
      TrainTwin(&*twin_, KeyRange(first, 500), kDim, &random_);
      TrainTwin(&*twin_, KeyRange(0, 200), kDim, &random_);
    }
  }

  // A bag of rows that are in memory, with others between them.
  oracle::Feature DrawFeature() {
    return RandomFeature(&random_, [&](Random* random) {
      const uint64_t kind = random->Below(40);
      if (kind == 0) return random->Below(kRows);
      if (kind == 1) return next_new_++;
      return random->Below(kind < 10 ? 5 : 200);
    });
  }

  // A row that is lost adds nothing to the sum of the only bag.
  void LeaveOutLost(oracle::Feature* feature, std::vector<uint8_t>* outcomes) {
    const auto lost =
        static_cast<uint64_t>(std::ranges::count(*outcomes, uint8_t{EMBANK_ROW_DATA_LOSS}));
    if (lost == 0) return;
    lost_ += lost;
    oracle::Feature left;
    left.pooling = EMBANK_POOL_SUM;
    for (size_t i = 0; i < outcomes->size(); ++i) {
      if ((*outcomes)[i] != EMBANK_ROW_DATA_LOSS) left.keys.push_back(feature->keys[i]);
    }
    left.offsets = {0, left.keys.size()};
    *feature = left;
    std::erase(*outcomes, uint8_t{EMBANK_ROW_DATA_LOSS});
  }

  void CompareSums(oracle::Feature feature, int32_t missing) {
    const uint64_t rows =
        feature.pooling == EMBANK_POOL_NONE ? feature.keys.size() : feature.bags();
    std::vector<float> sums(rows * kDim, 7.0f);
    std::vector<uint8_t> outcomes(feature.keys.size());
    PassedFeature passed(feature, &random_);
    const embank_feature of_call = passed.Of(twin_->table, sums.data(), 0);
    ASSERT_EQ(embank_lookup_packed(&of_call, 1, missing, outcomes.data()), EMBANK_OK)
        << embank_last_error();
    LeaveOutLost(&feature, &outcomes);
    const auto bytes_of = [](const std::vector<float>& floats) {
      const auto* const first = reinterpret_cast<const uint8_t*>(floats.data());
      return std::vector<uint8_t>(first, first + floats.size() * sizeof(float));
    };
    std::vector<uint8_t> expected = bytes_of(std::vector<float>(sums.size(), 7.0f));
    std::vector<uint8_t> expected_outcomes;
    LookUpFeature(&twin_->oracle, feature, missing, &expected, &expected_outcomes);
    ASSERT_EQ(outcomes, expected_outcomes);
    ASSERT_EQ(bytes_of(sums), expected);
  }

  // One bag of keys of all kinds, some of them several times.
  oracle::Feature DrawBag() {
    oracle::Feature bag;
    bag.pooling = EMBANK_POOL_SUM;
    for (int i = 0; i < 200; ++i) bag.keys.push_back(random_.Below(kRows));
    for (int i = 0; i < 100; ++i) bag.keys.push_back(random_.Below(200));
    for (int i = 0; i < 3; ++i) bag.keys.insert(bag.keys.end(), 2, next_new_++);
    for (size_t i = bag.keys.size(); i-- > 1;)
      std::swap(bag.keys[i], bag.keys[random_.Below(i + 1)]);
    bag.offsets = {0, bag.keys.size()};
    return bag;
  }

  // Damages records in the files of the SSD.
  void DamageRecords() {
    constexpr uint64_t kEveryBytes = uint64_t{64} << 10;
    for (const auto& file : std::filesystem::directory_iterator(scratch_.path() + "/store")) {
      if (!file.path().filename().string().starts_with("segment-")) continue;
      std::fstream bytes(file.path(), std::ios::in | std::ios::out | std::ios::binary);
      for (uint64_t at = kEveryBytes / 2; at + 1 < file.file_size(); at += kEveryBytes) {
        bytes.seekg(static_cast<std::streamoff>(at));
        const auto other = static_cast<char>(~bytes.get());
        bytes.seekp(static_cast<std::streamoff>(at));
        bytes.put(other);
      }
      ASSERT_TRUE(bytes.good()) << file.path();
    }
  }

  double FoundIn(const std::string& tier) {
    return MetricOf(store_.get(), "embank_lookup_hits_total{table=\"t\",tier=\"" + tier + "\"}");
  }

  embank_table_info Info() {
    embank_table_info info = {};
    info.struct_size = sizeof info;
    EXPECT_EQ(embank_table_get_info(twin_->table, &info), EMBANK_OK);
    return info;
  }

  static constexpr uint64_t kSeed = 5;
  const ScratchDirectory scratch_, pmem_;
  Random random_{9};
  uint64_t next_new_ = kRows;
  uint64_t lost_ = 0;
  StorePtr store_;
  std::optional<Twin> twin_;
};
INSTANTIATE_TEST_SUITE_P(Tiers, BagsInTiers,
                         testing::Values(Tiers{false, false, "Ssd"}, Tiers{true, false, "Pmem"},
                                         Tiers{false, true, "Hbm"}, Tiers{true, true, "All"}),
                         [](const auto& tiers) { return tiers.param.name; });

TEST_P(BagsInTiers, AreThoseOfTheOracle) {
  for (int call = 0; call < 120; ++call) {
    if (GetParam().has_hbm && call % 20 == 10) {
      ASSERT_EQ(embank_flush_hot(store_.get()), EMBANK_OK);
    }
    ASSERT_NO_FATAL_FAILURE(CompareSums(DrawFeature(), static_cast<int32_t>(random_.Below(4))))
        << "call " << call;
  }
  const embank_table_info info = Info();
  EXPECT_GT(info.rows_ssd, 1000u);
  EXPECT_EQ(info.rows_pmem > 0, GetParam().has_pmem);
  EXPECT_EQ(info.rows_hbm > 0, GetParam().has_hbm);
  EXPECT_EQ(DifferenceButHeat(twin_->table, twin_->oracle), "");
}

// A writer writes the same bits again meanwhile, so that readers find rows under its hands.
TEST_P(BagsInTiers, OneBagHasRowsOfAllKindsBesideAWriter) {
  ASSERT_NO_FATAL_FAILURE(DamageRecords());
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> writes = 0;
  std::thread writer([&] {
    const std::vector<uint64_t> keys = KeyRange(0, 200);
    const std::vector<float> zeros(keys.size() * kDim, 0.0f);
    while (!stop) {
      EXPECT_EQ(
          embank_apply_gradients(twin_->table, keys.data(), keys.size(), zeros.data(), 0, nullptr),
          EMBANK_OK);
      ++writes;
    }
  });
  const double found_before[] = {FoundIn("dram"), FoundIn("ssd"), FoundIn("pmem"), FoundIn("hbm")};
  for (int call = 0; call < 40 && !HasFatalFailure(); ++call) {
    CompareSums(DrawBag(), EMBANK_MISSING_CREATE);
  }
  stop = true;
  writer.join();
  EXPECT_GT(writes, 0u);
  EXPECT_GT(lost_, 0u);
  EXPECT_GT(FoundIn("dram"), found_before[0]);
  EXPECT_GT(FoundIn("ssd"), found_before[1]);
  EXPECT_EQ(FoundIn("pmem") > found_before[2], GetParam().has_pmem);
  EXPECT_EQ(FoundIn("hbm") > found_before[3], GetParam().has_hbm);
}

// A bag reads the records of its rows as one list, as a lookup of the same number of keys does.
TEST_P(BagsInTiers, ReadRecordsTogether) {
  constexpr uint64_t kKeys = 480;
  const auto reads = [this] { return MetricOf(store_.get(), "embank_log_reads_total"); };
  std::vector<float> rows(kKeys * kDim);
  double of_lookups = 0.0, of_bags = 0.0;
  for (uint64_t first = 1'000; first < 9'000; first += 2 * kKeys) {
    const double before = reads();
    const std::vector<uint64_t> looked_up = KeyRange(first, kKeys);
    ASSERT_EQ(embank_lookup(twin_->table, looked_up.data(), kKeys, EMBANK_MISSING_SKIP, rows.data(),
                            0, nullptr),
              EMBANK_OK);
    const double between = reads();
    oracle::Feature bag;
    bag.pooling = EMBANK_POOL_SUM;
    bag.keys = KeyRange(first + kKeys, kKeys);
    bag.offsets = {0, kKeys};
    PassedFeature passed(bag, &random_);
    const embank_feature of_call = passed.Of(twin_->table, rows.data(), 0);
    ASSERT_EQ(embank_lookup_packed(&of_call, 1, EMBANK_MISSING_SKIP, nullptr), EMBANK_OK);
    of_lookups += between - before;
    of_bags += reads() - between;
  }
  EXPECT_GT(of_lookups, 0.0);
  EXPECT_GT(of_bags, 0.0);
  EXPECT_LT(of_bags, 1.5 * of_lookups);
}

}  // namespace
}  // namespace embank::test::bags_in_tiers_test
