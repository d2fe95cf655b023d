// How much a store with a path takes: until the index has the memory, and always to be saved.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/str_cat.h"
#include "bindings/c/embank.h"
#include "tests/support/c_api.h"
#include "tests/support/environment.h"
#include "tests/support/random.h"
#include "tests/support/scratch_directory.h"

namespace embank::test::capacity_test {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kBatch = 4096;

// Rows whose values are their key, so that any row can be checked without an oracle.
void FillRows(const std::vector<uint64_t>& keys, uint32_t dim, std::vector<float>* rows) {
  rows->resize(keys.size() * dim);
  for (size_t i = 0; i < keys.size(); ++i) {
    std::fill_n(rows->begin() + static_cast<ptrdiff_t>(i * dim), dim,
                static_cast<float>(keys[i] % (1 << 24)));
  }
}

// The first `rows` keys of a table have their values, but for keys that it may have forgotten.
void ExpectRows(embank_table* table, uint32_t dim, uint64_t rows, uint64_t step = 1,
                bool forgets = false) {
  std::vector<uint64_t> keys;
  std::vector<float> values;
  std::vector<float> expected;
  std::vector<uint8_t> outcomes;
  for (uint64_t key = 0; key < rows;) {
    keys.clear();
    for (; key < rows && keys.size() < kBatch; key += step) keys.push_back(key);
    FillRows(keys, dim, &expected);
    values.assign(keys.size() * dim, -1.0f);
    outcomes.assign(keys.size(), 0);
    ASSERT_EQ(embank_lookup(table, keys.data(), keys.size(), EMBANK_MISSING_SKIP, values.data(), 0,
                            outcomes.data()),
              EMBANK_OK)
        << embank_last_error();
    for (size_t i = 0; forgets && i < keys.size(); ++i) {
      if (outcomes[i] != EMBANK_ROW_ABSENT) continue;
      std::fill_n(expected.begin() + static_cast<ptrdiff_t>(i * dim), dim, -1.0f);
    }
    ASSERT_EQ(values, expected) << "keys from " << keys[0];
  }
}

embank_store_options OptionsAt(const ScratchDirectory& directory, uint64_t dram_bytes) {
  embank_store_options options = StoreOptions();
  options.path = directory.path().c_str();
  options.flags = EMBANK_OPEN_CREATE;
  options.dram_bytes = dram_bytes;
  options.worker_threads = 1;
  return options;
}

// A table that is filled with consecutive keys until a row is refused.
struct Filler {
  embank_table* table;
  uint32_t dim;
  uint64_t rows = 0;
  bool is_refused = false;
  std::string why = {};
  bool forgets = false;

  void UpsertBatch(uint64_t count) {
    const std::vector<uint64_t> keys = KeyRange(rows, count);
    std::vector<float> values;
    FillRows(keys, dim, &values);
    std::vector<uint8_t> outcomes(count);
    ASSERT_EQ(embank_upsert(table, keys.data(), count, values.data(), 0, outcomes.data()),
              EMBANK_OK)
        << embank_last_error();
    const auto refused = std::find(outcomes.begin(), outcomes.end(), EMBANK_ROW_REFUSED);
    if (refused == outcomes.end()) {
      rows += count;
      return;
    }
    is_refused = true;
    const auto first = static_cast<uint64_t>(refused - outcomes.begin());
    rows += first;
    // The same key without outcomes, for the message; keys behind it may have found a place.
    const uint64_t key = keys[first];
    if (embank_upsert(table, &key, 1, values.data() + first * dim, 0, nullptr) != EMBANK_OK) {
      why = embank_last_error();
    }
    for (uint64_t i = first; i < count; ++i) embank_erase(table, &keys[i], 1, outcomes.data());
  }
};

TEST(Capacity, GoesOnUntilTheIndexFillsTheMemory) {
  constexpr uint64_t kDramBytes = 40 * kMiB;
  const ScratchDirectory directory;
  const embank_store_options options = OptionsAt(directory, kDramBytes);
  StorePtr store = OpenStore(options);
  ASSERT_NE(store, nullptr);
  Filler filler = {CreateTable(store.get(), "t", TableOptions(16, EMBANK_OPT_ADAGRAD)), 16};
  const double fixed = JsonNumber(MemoryReport(store.get()), "fixed");
  while (!filler.is_refused) ASSERT_NO_FATAL_FAILURE(filler.UpsertBatch(kBatch));
  const double least = (static_cast<double>(kDramBytes) - fixed) / 24;
  EXPECT_GE(static_cast<double>(filler.rows), least) << MemoryReport(store.get());
  EXPECT_NE(filler.why.find("dram_bytes"), std::string::npos) << filler.why;
  EXPECT_NE(filler.why.find("index"), std::string::npos) << filler.why;
  std::printf("%llu rows, %.1f bytes a row; fixed %.0f; %s\n%s\n",
              static_cast<unsigned long long>(filler.rows),
              static_cast<double>(kDramBytes) / static_cast<double>(filler.rows), fixed,
              filler.why.c_str(), MemoryReport(store.get()).c_str());
  // Rows that were accepted can be saved, changed and found again.
  ASSERT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK) << embank_last_error();
  ASSERT_NO_FATAL_FAILURE(ExpectRows(filler.table, 16, filler.rows, 7));
  store.reset();
  store = OpenStore(options);
  ASSERT_NE(store, nullptr);
  embank_table* table = nullptr;
  ASSERT_EQ(embank_table_open(store.get(), "t", &table), EMBANK_OK);
  EXPECT_EQ(RowCount(table), filler.rows);
  ASSERT_NO_FATAL_FAILURE(ExpectRows(table, 16, filler.rows, 5));
}

// Tables with their rows, for which an estimate says how much memory they take.
struct Plan {
  std::vector<embank_table_options> tables;
  std::vector<uint64_t> rows;

  void Add(uint32_t dim, int32_t optimizer, uint64_t count) {
    tables.push_back(TableOptions(dim, optimizer));
    rows.push_back(count);
  }
  uint64_t DramBytes() const {
    embank_store_options options = StoreOptions();
    options.path = "not opened";
    std::string json(1000, '\0');
    uint64_t needed = 0;
    EXPECT_EQ(
        embank_estimate(&options, tables.data(), rows.data(), static_cast<uint32_t>(tables.size()),
                        json.data(), json.size(), &needed),
        EMBANK_OK)
        << embank_last_error();
    return static_cast<uint64_t>(JsonNumber(json, "dram_bytes"));
  }
  // Fills a store with so much memory; returns how many rows it has accepted, all of which it can
  // save.
  uint64_t FillStore(uint64_t dram_bytes) const {
    const ScratchDirectory directory;
    const StorePtr store = OpenStore(OptionsAt(directory, dram_bytes));
    std::vector<Filler> fillers;
    for (size_t i = 0; i < tables.size(); ++i) {
      embank_table* table = nullptr;
      const std::string name = StrCat("table ", i);
      if (embank_table_create(store.get(), name.c_str(), &tables[i], &table) != EMBANK_OK) return 0;
      fillers.push_back({table, tables[i].dim});
    }
    uint64_t accepted = 0;
    bool is_refused = false;
    for (uint64_t round = 0, added = 1; added > 0 && !is_refused; ++round) {
      added = 0;
      for (size_t i = 0; i < fillers.size() && !is_refused; ++i) {
        const uint64_t before = fillers[i].rows;
        fillers[i].UpsertBatch(std::min(kBatch, rows[i] - before));
        added += fillers[i].rows - before;
        is_refused = fillers[i].is_refused;
        if (is_refused) {
          std::printf("%llu bytes: %s\n%s\n", static_cast<unsigned long long>(dram_bytes),
                      fillers[i].why.c_str(), MemoryReport(store.get()).c_str());
        }
      }
      accepted += added;
      if (round % 16 != 15) continue;
      EXPECT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK)
          << embank_last_error();
    }
    EXPECT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK)
        << embank_last_error();
    return accepted;
  }
};

// The least memory that the estimate names is enough, and so many twentieths of it are not. Memory
// comes in pages of 2 MiB, each a twentieth of 40 MiB: there no estimate can be much closer.
void ExpectLeast(const Plan& plan, uint64_t twentieths = 17) {
  uint64_t all = 0;
  for (const uint64_t rows : plan.rows) all += rows;
  const uint64_t dram_bytes = plan.DramBytes();
  EXPECT_EQ(plan.FillStore(dram_bytes), all) << "with dram_bytes " << dram_bytes;
  EXPECT_LT(plan.FillStore(dram_bytes / 20 * twentieths), all)
      << twentieths << " twentieths of " << dram_bytes;
}

TEST(Capacity, TheEstimateOfOneTableIsTheLeast) {
  Plan plan;
  plan.Add(8, EMBANK_OPT_ADAGRAD, 2'500'000);
  ExpectLeast(plan);
}

TEST(Capacity, TheEstimateOfManyShapesIsTheLeast) {
  Plan plan;
  for (uint32_t i = 0; i < 150; ++i) {
    plan.Add(1 + i % 50, i % 3 == 0 ? EMBANK_OPT_ADAM : EMBANK_OPT_ADAGRAD, 4000 + 70 * i);
  }
  ExpectLeast(plan);
}

// A page is a sixtieth of this memory.
TEST(Capacity, TheEstimateIsCloserForMoreMemory) {
  if (TestScale() == 1) GTEST_SKIP() << "fills 12 million rows: for longer runs";
  Plan plan;
  plan.Add(1, EMBANK_OPT_NONE, 6'500'000);
  ExpectLeast(plan, 18);
}

// Small rows, of which the log's own memory is the larger part.
TEST(Capacity, TheEstimateOfALargeTableIsTheLeast) {
  if (TestScale() == 1) GTEST_SKIP() << "fills 13 million rows: for longer runs";
  for (const uint64_t rows : {11'000'000, 13'000'000}) {
    Plan plan;
    plan.Add(1, EMBANK_OPT_NONE, rows);
    const uint64_t dram_bytes = plan.DramBytes();
    EXPECT_EQ(plan.FillStore(dram_bytes), rows) << "with dram_bytes " << dram_bytes;
    if (rows > 11'000'000) continue;
    EXPECT_LT(plan.FillStore(dram_bytes / 10 * 9), rows) << "nine tenths of " << dram_bytes;
  }
}

// Keys of a table, drawn by Zipf's law: the rank of a key is scattered over all keys.
class ZipfKeys {
 public:
  ZipfKeys(uint64_t rows, double exponent) : random_(1) {
    double sum = 0;
    for (uint64_t rank = 1; rank <= rows; ++rank) {
      sum += std::pow(static_cast<double>(rank), -exponent);
      ends_.push_back(sum);
    }
  }

  std::vector<uint64_t> Draw(uint64_t count) {
    constexpr uint64_t kStep = 7919;  // a prime number
    std::vector<uint64_t> keys(count);
    for (uint64_t& key : keys) {
      const double drawn = static_cast<double>(random_.Bits() >> 11) * 0x1p-53 * ends_.back();
      const auto rank = std::lower_bound(ends_.begin(), ends_.end(), drawn) - ends_.begin();
      key = static_cast<uint64_t>(rank) * kStep % ends_.size();
    }
    return keys;
  }

 private:
  Random random_;
  std::vector<double> ends_;  // of each rank's part of [0, sum)
};

// How many rows the store has read from its log so far.
double RowsReadFromLog(embank_store* store) {
  const std::string text = Metrics(store);
  double rows = 0;
  for (const char* name : {"\nembank_log_read_rows_total ", "\nembank_log_buffered_reads_total "}) {
    const size_t at = text.find(name);
    EXPECT_NE(at, std::string::npos) << name << " in\n" << text;
    if (at != std::string::npos) rows += std::stod(text.substr(at + std::strlen(name)));
  }
  return rows;
}

// The share of so many looked-up keys whose rows were in memory.
double MeasuredHitRatio(embank_store* store, Filler* filler, ZipfKeys* zipf, uint64_t keys) {
  constexpr uint64_t kLookupBatch = 512;
  std::vector<float> values(kLookupBatch * filler->dim);
  const double before = RowsReadFromLog(store);
  for (uint64_t done = 0; done < keys; done += kLookupBatch) {
    const std::vector<uint64_t> drawn = zipf->Draw(kLookupBatch);
    EXPECT_EQ(embank_lookup(filler->table, drawn.data(), kLookupBatch, EMBANK_MISSING_ZERO,
                            values.data(), 0, nullptr),
              EMBANK_OK)
        << embank_last_error();
  }
  return 1 - (RowsReadFromLog(store) - before) / static_cast<double>(keys);
}

TEST(Capacity, TheRecommendedMemoryHasTheHitRatio) {
  constexpr uint64_t kRows = 400'000;
  constexpr uint32_t kDim = 16;
  constexpr double kExponent = 0.99;
  constexpr double kHitRatio = 0.8;
  const embank_table_options table = TableOptions(kDim, EMBANK_OPT_ADAGRAD);
  embank_store_options options = StoreOptions();
  options.path = "not opened";
  std::string json(1000, '\0');
  uint64_t needed = 0;
  ASSERT_EQ(embank_estimate_for_hit_ratio(&options, &table, &kRows, 1, kExponent, kHitRatio,
                                          json.data(), json.size(), &needed),
            EMBANK_OK)
      << embank_last_error();
  const auto dram_bytes = static_cast<uint64_t>(JsonNumber(json, "dram_bytes"));
  const ScratchDirectory directory;
  const StorePtr store = OpenStore(OptionsAt(directory, dram_bytes));
  ASSERT_NE(store, nullptr);
  Filler filler = {CreateTable(store.get(), "t", table), kDim};
  while (filler.rows < kRows && !filler.is_refused) {
    ASSERT_NO_FATAL_FAILURE(filler.UpsertBatch(std::min(kBatch, kRows - filler.rows)));
  }
  ASSERT_FALSE(filler.is_refused) << filler.why;
  ASSERT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK) << embank_last_error();
  ZipfKeys zipf(kRows, kExponent);
  MeasuredHitRatio(store.get(), &filler, &zipf, 600'000);
  const double hit_ratio = MeasuredHitRatio(store.get(), &filler, &zipf, 300'000);
  std::printf("%s: hit ratio %.3f\n%s\n", json.c_str(), hit_ratio,
              MemoryReport(store.get()).c_str());
  EXPECT_GE(hit_ratio, kHitRatio - 0.02);
  EXPECT_LE(hit_ratio, kHitRatio + 0.05) << "so much memory is not needed";
}

// One store of a drawn shape, filled until it refuses. A seed draws the same budget and tables
// whatever else is drawn: with policies, half of the tables forget instead, and some stores have
// PMem, drawn by a generator of their own. docs/sizing.md names rows of seeds without policies.
class DrawnStore {
 public:
  DrawnStore(uint64_t seed, bool with_policies)
      : random_(seed), policies_(~seed), with_policies_(with_policies) {
    // Larger stores take longer to fill.
    const uint64_t mib_max = TestScale() == 1 ? 48 : 128;
    options_ = OptionsAt(directory_, random_.Between(16, mib_max) * kMiB);
    if (with_policies && policies_.OneIn(2) && embank_build_info("pmem") != nullptr) {
      options_.pmem_path = pmem_directory_.path().c_str();
      options_.pmem_bytes = policies_.Between(16, 64) * kMiB;
    }
    store_ = OpenStore(options_);
    const uint64_t tables = random_.OneIn(3) ? random_.Between(2, 6) : 1;
    for (uint64_t i = 0; i < tables; ++i) AddTable(StrCat("table ", i));
  }

  void Fill() {
    uint64_t unsaved = 0;
    bool goes_on = true;
    while (goes_on) {
      Filler& filler = fillers_[random_.Below(fillers_.size())];
      const uint64_t count = random_.OneIn(8) ? 4 * kBatch : random_.Between(1, kBatch);
      ASSERT_NO_FATAL_FAILURE(filler.UpsertBatch(count));
      unsaved += count;
      goes_on = !filler.is_refused && RowsForgotten() < kForgottenMax;
      if (goes_on && unsaved < 50'000) continue;
      ASSERT_NO_FATAL_FAILURE(Save());
      unsaved = 0;
    }
  }

  // Changes rows that are there, saves, opens the store again and looks at all rows.
  void ChangeAndReopen() {
    ASSERT_NO_FATAL_FAILURE(Save());
    for (Filler& filler : fillers_) {
      if (filler.rows == 0) continue;
      Filler again = {filler.table, filler.dim};
      again.UpsertBatch(std::min(filler.rows, kBatch));
      // Forgotten rows are created again. Where tables that refuse have filled the index, and this
      // table has no rows left to forget, there is no place for them.
      if (again.is_refused && filler.forgets && HasRowsThatStay() && RowCount(filler.table) == 0) {
        continue;
      }
      EXPECT_FALSE(again.is_refused) << again.why;
    }
    ASSERT_NO_FATAL_FAILURE(Save());
    store_.reset();
    store_ = OpenStore(options_);
    ASSERT_NE(store_, nullptr);
    for (size_t i = 0; i < fillers_.size(); ++i) {
      embank_table* table = nullptr;
      ASSERT_EQ(embank_table_open(store_.get(), StrCat("table ", i).c_str(), &table), EMBANK_OK);
      const Filler& filler = fillers_[i];
      if (!filler.forgets) {
        ASSERT_EQ(RowCount(table), filler.rows);
      }
      ASSERT_NO_FATAL_FAILURE(ExpectRows(table, filler.dim, filler.rows, 11, filler.forgets));
    }
  }

  uint64_t checkpoints() const { return checkpoints_; }
  std::string Policies() const {
    const auto forget = std::ranges::count_if(fillers_, &Filler::forgets);
    return StrCat(forget, " of ", fillers_.size(), " tables forget",
                  options_.pmem_path == nullptr ? "" : ", with PMem");
  }
  uint64_t rows() const {
    uint64_t rows = 0;
    for (const Filler& filler : fillers_) rows += filler.rows;
    return rows;
  }
  double bytes_per_row() const {
    return static_cast<double>(options_.dram_bytes) / static_cast<double>(rows());
  }

 private:
  void AddTable(const std::string& name) {
    constexpr int32_t kOptimizers[] = {EMBANK_OPT_NONE, EMBANK_OPT_SGD, EMBANK_OPT_ADAGRAD,
                                       EMBANK_OPT_ADAM};
    const auto dim = static_cast<uint32_t>(random_.Between(1, random_.OneIn(4) ? 96 : 24));
    embank_table_options options = TableOptions(dim, kOptimizers[random_.Below(4)]);
    options.eviction = static_cast<int32_t>(random_.Below(3));
    const bool forgets = with_policies_ && policies_.OneIn(2);
    options.on_full = forgets ? EMBANK_FULL_FORGET : EMBANK_FULL_REFUSE;
    fillers_.push_back({.table = CreateTable(store_.get(), name, options), .dim = dim});
    fillers_.back().forgets = forgets;
  }

  // Rows of tables that refuse.
  bool HasRowsThatStay() const {
    return std::ranges::any_of(
        fillers_, [](const Filler& filler) { return !filler.forgets && filler.rows > 0; });
  }

  // Rows of tables that forget: they may go on forever.
  uint64_t RowsForgotten() const {
    uint64_t forgotten = 0;
    for (const Filler& filler : fillers_) {
      if (filler.forgets) forgotten += filler.rows - RowCount(filler.table);
    }
    return forgotten;
  }

  void Save() {
    ASSERT_EQ(embank_checkpoint(store_.get(), nullptr, 0, nullptr), EMBANK_OK)
        << embank_last_error() << "\nafter " << rows() << " rows and " << checkpoints_
        << " checkpoints\n"
        << MemoryReport(store_.get());
    ++checkpoints_;
  }

  static constexpr uint64_t kForgottenMax = 200'000;

  Random random_;
  Random policies_;
  const bool with_policies_;
  const ScratchDirectory directory_;
  const ScratchDirectory pmem_directory_;
  embank_store_options options_;
  StorePtr store_;
  std::vector<Filler> fillers_;
  uint64_t checkpoints_ = 0;
};

// Between where the index wants to grow and where it has to, a batch can bring more rows than fit;
// and batches of several threads together.
TEST(Capacity, NoBatchIsRefusedWhileRowsCouldLeave) {
  constexpr uint32_t kDim = 64;
  constexpr uint64_t kRows = 400'000;
  for (const uint64_t threads : {1, 4}) {
    const ScratchDirectory directory;
    const StorePtr store = OpenStore(OptionsAt(directory, 64 * kMiB));
    ASSERT_NE(store, nullptr);
    embank_table* const table =
        CreateTable(store.get(), "t", TableOptions(kDim, EMBANK_OPT_ADAGRAD));
    std::vector<Filler> fillers;
    for (uint64_t i = 0; i < threads; ++i) fillers.push_back({table, kDim, i * kRows / threads});
    const auto fill = [&](uint64_t number) {
      Random random(number);
      const uint64_t end = (number + 1) * kRows / threads;
      while (fillers[number].rows < end && !fillers[number].is_refused) {
        fillers[number].UpsertBatch(1 + random.Below(60'000 / threads));
      }
    };
    std::vector<std::thread> others;
    for (uint64_t i = 1; i < threads; ++i) others.emplace_back(fill, i);
    fill(0);
    for (std::thread& other : others) other.join();
    for (const Filler& filler : fillers) {
      EXPECT_FALSE(filler.is_refused) << threads << " threads: " << filler.why;
    }
  }
}

void ExpectAll(embank_status status, const std::vector<uint8_t>& outcomes, uint8_t outcome) {
  ASSERT_EQ(status, EMBANK_OK) << embank_last_error();
  EXPECT_EQ(std::ranges::count(outcomes, outcome), std::ssize(outcomes));
}

TEST(Capacity, OneBatchOfAnySizeMakesItsSpaceAsItGoes) {
  constexpr uint32_t kDim = 4;
  constexpr uint64_t rows = 2'100'000;  // they take three times the memory
  const ScratchDirectory directory;
  const StorePtr store = OpenStore(OptionsAt(directory, 40 * kMiB));
  embank_table_options options = TableOptions(kDim, EMBANK_OPT_SGD);
  options.learning_rate = 1.0f;
  embank_table* const table = CreateTable(store.get(), "t", options);
  const std::vector<uint64_t> keys = KeyRange(0, rows);
  std::vector<float> values;
  FillRows(keys, kDim, &values);
  std::vector<uint8_t> outcomes(rows);
  uint8_t* const out = outcomes.data();
  ExpectAll(embank_upsert(table, keys.data(), rows, values.data(), 0, out), outcomes,
            EMBANK_ROW_CREATED);
  ASSERT_NO_FATAL_FAILURE(ExpectRows(table, kDim, rows, 7));
  std::vector<float> read(rows * kDim, 1.0f);
  ExpectAll(embank_apply_gradients(table, keys.data(), rows, read.data(), 0, out), outcomes,
            EMBANK_ROW_FOUND);
  ExpectAll(embank_lookup(table, keys.data(), rows, EMBANK_MISSING_SKIP, read.data(), 0, out),
            outcomes, EMBANK_ROW_FOUND);
  for (size_t i = 0; i < read.size(); i += 7) ASSERT_EQ(read[i], values[i] - 1.0f) << i;
  ExpectAll(embank_erase(table, keys.data(), rows, out), outcomes, EMBANK_ROW_FOUND);
  ExpectAll(embank_lookup(table, keys.data(), rows, EMBANK_MISSING_CREATE, read.data(), 0, out),
            outcomes, EMBANK_ROW_CREATED);
  EXPECT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK) << embank_last_error();
}

TEST(Capacity, OneBatchOfATableThatForgetsForgetsAsItGoes) {
  constexpr uint32_t kDim = 4;
  constexpr uint64_t kRows = 2'000'000;  // more than the index has places for
  const ScratchDirectory directory;
  const StorePtr store = OpenStore(OptionsAt(directory, 16 * kMiB));
  embank_table_options options = TableOptions(kDim, EMBANK_OPT_NONE);
  options.on_full = EMBANK_FULL_FORGET;
  embank_table* const table = CreateTable(store.get(), "t", options);
  const std::vector<uint64_t> keys = KeyRange(0, kRows);
  std::vector<float> values;
  FillRows(keys, kDim, &values);
  std::vector<uint8_t> created(kRows);
  ExpectAll(embank_upsert(table, keys.data(), kRows, values.data(), 0, created.data()), created,
            EMBANK_ROW_CREATED);
  EXPECT_LT(RowCount(table), kRows / 2);
  ASSERT_NO_FATAL_FAILURE(ExpectRows(table, kDim, kRows, 5, /*forgets=*/true));
}

// A full index has no place for a row of a table that forgets either, until rows are forgotten.
TEST(Capacity, ATableThatForgetsFindsPlacesBesideOneThatRefuses) {
  constexpr uint32_t kDim = 8;
  constexpr uint64_t kRows = 100'000;
  const ScratchDirectory directory;
  const StorePtr store = OpenStore(OptionsAt(directory, 20 * kMiB));
  ASSERT_NE(store, nullptr);
  embank_table_options options = TableOptions(kDim, EMBANK_OPT_NONE);
  Filler refusing = {CreateTable(store.get(), "refuses", options), kDim};
  options.on_full = EMBANK_FULL_FORGET;
  Filler forgetting = {CreateTable(store.get(), "forgets", options), kDim};
  while (forgetting.rows < kRows) {
    ASSERT_NO_FATAL_FAILURE(forgetting.UpsertBatch(kBatch));
    ASSERT_FALSE(forgetting.is_refused) << forgetting.why;
  }
  while (!refusing.is_refused) ASSERT_NO_FATAL_FAILURE(refusing.UpsertBatch(kBatch));
  const uint64_t rows = RowCount(refusing.table);

  const std::vector<uint64_t> keys = KeyRange(kRows * 2, kBatch);
  std::vector<float> values;
  FillRows(keys, kDim, &values);
  std::vector<uint8_t> outcomes(kBatch);
  const auto upsert_refused = [&] {
    EXPECT_EQ(
        embank_upsert(forgetting.table, keys.data(), kBatch, values.data(), 0, outcomes.data()),
        EMBANK_OK)
        << embank_last_error();
    return std::ranges::count(outcomes, EMBANK_ROW_REFUSED);
  };
  EXPECT_EQ(upsert_refused(), 0) << "though the index is full: " << refusing.why;
  // Each key alone, too: its shard has no place, and few of the rows that can go are in it.
  for (uint64_t key = 3 * kRows; key < 3 * kRows + 300; ++key) {
    ASSERT_EQ(embank_upsert(forgetting.table, &key, 1, values.data(), 0, nullptr), EMBANK_OK)
        << embank_last_error();
  }
  EXPECT_LT(RowCount(forgetting.table), forgetting.rows);
  EXPECT_EQ(RowCount(refusing.table), rows) << "a table that refuses has lost rows";
}

void FillDrawnStores(uint64_t stores, bool with_policies) {
  const uint64_t only = NumberFromEnvironment("EMBANK_TEST_SEED", 0);
  const uint64_t begin = only != 0 ? only : FirstSeed();
  const uint64_t end = only != 0 ? only + 1 : begin + stores;
  uint64_t checkpoints = 0;
  uint64_t rows = 0;
  for (uint64_t seed = begin; seed < end; ++seed) {
    SCOPED_TRACE(StrCat("EMBANK_TEST_SEED=", seed, " EMBANK_TEST_SCALE=", TestScale()));
    DrawnStore store(seed, with_policies);
    ASSERT_NO_FATAL_FAILURE(store.Fill());
    ASSERT_NO_FATAL_FAILURE(store.ChangeAndReopen());
    checkpoints += store.checkpoints();
    rows += store.rows();
    std::printf("seed %llu: %llu rows, %.1f bytes of dram_bytes a row; %s\n",
                static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(store.rows()), store.bytes_per_row(),
                store.Policies().c_str());
  }
  std::printf("quantities: %llu stores filled, %llu rows, %llu checkpoints\n",
              static_cast<unsigned long long>(end - begin), static_cast<unsigned long long>(rows),
              static_cast<unsigned long long>(checkpoints));
}

TEST(Capacity, EverythingThatIsAcceptedCanBeSaved) { FillDrawnStores(1 + 2 * TestScale(), false); }

TEST(Capacity, EverythingThatIsAcceptedCanBeSavedWithAnyPolicy) {
  FillDrawnStores(2 * TestScale(), true);
}

}  // namespace
}  // namespace embank::test::capacity_test
