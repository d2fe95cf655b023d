// Several threads on one store. On disjoint keys every thread must see what it would see alone, bit
// for bit; on shared keys the sums are of whole numbers, so that every order gives the same row,
// and all elements of a row are equal, so that a torn row shows.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/str_cat.h"
#include "bindings/c/embank.h"
#include "tests/support/c_api.h"
#include "tests/support/events.h"
#include "tests/support/oracle.h"
#include "tests/support/random.h"
#include "tests/support/row_buffer.h"
#include "tests/support/threads.h"

namespace embank::test::threads_test {
namespace {

constexpr uint64_t kThreads = 4;
constexpr int kDisjointSteps = 600;

// ---- disjoint keys ----

// One thread's share of the work on a table: its own keys, its own oracle.
class DisjointWorker {
 public:
  DisjointWorker(embank_table* table, uint64_t thread, const oracle::Table& empty)
      : table_(table), oracle_(empty), random_(thread + 1) {
    for (uint64_t i = 0; i < 300; ++i) universe_.push_back(i * kThreads + thread);
  }

  void Step() {
    std::vector<uint64_t> keys(random_.Below(200));
    for (uint64_t& key : keys) key = universe_[random_.Below(universe_.size())];
    switch (random_.Below(5)) {
      case 0:
        return Lookup(keys);
      case 1:
        return Upsert(keys);
      case 2:
        return Erase(keys);
      default:
        return Gradients(keys);
    }
  }

  const oracle::Table& oracle() const { return oracle_; }
  const std::string& wrong() const { return wrong_; }
  Events* events() { return &events_; }

 private:
  void Judge(const char* verb, bool same) {
    events_.Count(verb);
    if (!same && wrong_.empty()) wrong_ = std::string(verb) + ": " + embank_last_error();
  }
  void Lookup(const std::vector<uint64_t>& keys) {
    RowBuffer actual(keys.size(), oracle_.row_bytes());
    RowBuffer expected = actual;
    std::vector<uint8_t> outcomes(keys.size());
    std::vector<uint8_t> right(keys.size());
    bool ok = embank_lookup(table_, keys.data(), keys.size(), EMBANK_MISSING_CREATE, actual.data(),
                            0, outcomes.data()) == EMBANK_OK;
    oracle_.Lookup(keys.data(), keys.size(), EMBANK_MISSING_CREATE, expected.data(), 0,
                   right.data());
    Judge("lookups of own keys", ok && actual == expected && outcomes == right);
  }
  void Upsert(const std::vector<uint64_t>& keys) {
    RowBuffer rows = Floats(keys.size());
    std::vector<uint8_t> outcomes(keys.size());
    std::vector<uint8_t> right(keys.size());
    bool ok = embank_upsert(table_, keys.data(), keys.size(), rows.data(), 0, outcomes.data()) ==
              EMBANK_OK;
    oracle_.Upsert(keys.data(), keys.size(), rows.data(), 0, right.data());
    Judge("upserts of own keys", ok && outcomes == right);
  }
  void Gradients(const std::vector<uint64_t>& keys) {
    RowBuffer gradients = Floats(keys.size());
    std::vector<uint8_t> outcomes(keys.size());
    std::vector<uint8_t> right(keys.size());
    bool ok = embank_apply_gradients(table_, keys.data(), keys.size(), gradients.floats(), 0,
                                     outcomes.data()) == EMBANK_OK;
    oracle_.ApplyGradients(keys.data(), keys.size(), gradients.floats(), 0, right.data());
    Judge("gradients of own keys", ok && outcomes == right);
  }
  void Erase(const std::vector<uint64_t>& keys) {
    std::vector<uint8_t> outcomes(keys.size());
    std::vector<uint8_t> right(keys.size());
    bool ok = embank_erase(table_, keys.data(), keys.size(), outcomes.data()) == EMBANK_OK;
    oracle_.Erase(keys.data(), keys.size(), right.data());
    Judge("erases of own keys", ok && outcomes == right);
  }
  RowBuffer Floats(uint64_t n) {
    RowBuffer rows(n, oracle_.options().dim * sizeof(float));
    for (uint64_t i = 0; i < n; ++i) {
      for (uint64_t j = 0; j < oracle_.options().dim; ++j) rows.SetFloat(i, j, random_.Signed());
    }
    return rows;
  }

  embank_table* table_;
  oracle::Table oracle_;
  Random random_;
  std::vector<uint64_t> universe_;
  Events events_;
  std::string wrong_;
};

// The table after all threads against all their oracles: rows, states and heat of every key.
std::string MergedDifference(embank_table* table, const std::vector<DisjointWorker>& workers) {
  uint64_t rows = 0;
  for (const DisjointWorker& worker : workers) {
    const oracle::Table& oracle = worker.oracle();
    rows += oracle.rows().size();
    for (const auto& [key, row] : oracle.rows()) {
      uint32_t heat = 0;
      std::vector<float> state(oracle.state_floats());
      RowBuffer values(1, oracle.row_bytes());
      embank_get_heat(table, &key, 1, &heat, nullptr);
      embank_get_state(table, &key, 1, state.data(), 0, nullptr);
      embank_lookup(table, &key, 1, EMBANK_MISSING_SKIP, values.data(), 0, nullptr);
      bool same = heat == oracle.Heat(row) && state == row.state &&
                  std::memcmp(values.row(0), row.values.data(), oracle.row_bytes()) == 0;
      if (!same) return "key " + std::to_string(key) + " differs";
    }
  }
  return rows == RowCount(table) ? "" : "another number of rows";
}

void RunDisjoint(int32_t optimizer, uint32_t dim) {
  StorePtr store = OpenStore();
  embank_table_options options = TableOptions(dim, optimizer);
  options.initializer = EMBANK_INIT_UNIFORM;
  options.init_b = 1.0f;
  Twin twin = CreateTwin(store.get(), StoreOptions().seed, "shared", options);
  std::vector<DisjointWorker> workers;
  for (uint64_t t = 0; t < kThreads; ++t) workers.emplace_back(twin.table, t, twin.oracle);
  OnThreads(kThreads, [&](uint64_t t) {
    for (int step = 0; step < kDisjointSteps; ++step) workers[t].Step();
  });
  Events events;
  for (DisjointWorker& worker : workers) {
    EXPECT_EQ(worker.wrong(), "");
    events.Add(*worker.events());
  }
  EXPECT_EQ(MergedDifference(twin.table, workers), "");
  std::printf("%s", events.Table().c_str());
  EXPECT_EQ(events.Missing(), "");
}

TEST(Threads, DisjointKeysGiveTheBitsOfOneThreadWithAdagrad) {
  RunDisjoint(EMBANK_OPT_ADAGRAD, 17);
}
TEST(Threads, DisjointKeysGiveTheBitsOfOneThreadWithAdam) { RunDisjoint(EMBANK_OPT_ADAM, 8); }

TEST(Threads, TablesOfOneStoreDoNotDisturbEachOther) {
  StorePtr store = OpenStore();
  std::vector<DisjointWorker> workers;
  std::vector<embank_table*> tables;
  for (uint64_t t = 0; t < kThreads; ++t) {
    // Two and two share a row class.
    embank_table_options options = TableOptions(t < 2 ? 5 : 6, EMBANK_OPT_ADAGRAD);
    Twin twin = CreateTwin(store.get(), StoreOptions().seed, StrCat("t", t), options);
    workers.emplace_back(twin.table, 0, twin.oracle);
    tables.push_back(twin.table);
  }
  OnThreads(kThreads, [&](uint64_t t) {
    for (int step = 0; step < kDisjointSteps; ++step) workers[t].Step();
  });
  for (uint64_t t = 0; t < kThreads; ++t) {
    EXPECT_EQ(workers[t].wrong(), "");
    EXPECT_EQ(Difference(tables[t], workers[t].oracle()), "");
  }
}

// ---- shared keys ----

constexpr uint64_t kSharedKeys = 50;
constexpr uint64_t kChurnFirst = 1000;  // other keys come and go here
constexpr uint64_t kChurnKeys = 400;
constexpr uint64_t kUpsertedFirst = 5000;
constexpr uint64_t kUpsertedKeys = 20;
constexpr uint32_t kDims[] = {32, 128};  // whole lines, so that bags are summed from the slots
constexpr int kSteps = 500;

class SharedKeys {
 public:
  explicit SharedKeys(uint32_t dim) : dim_(dim), store_(OpenStore()) {
    embank_table_options options = TableOptions(dim, EMBANK_OPT_SGD);
    options.learning_rate = 1.0f;
    table_ = CreateTable(store_.get(), "t", options);
    std::vector<uint64_t> keys = KeyRange(0, kSharedKeys);
    RowBuffer zeros(kSharedKeys, dim_ * sizeof(float));
    Fill(&zeros, kSharedKeys, 0.0f);
    EXPECT_EQ(embank_upsert(table_, keys.data(), keys.size(), zeros.data(), 0, nullptr), EMBANK_OK);
  }

  // w -= g with whole g: exact in any order below 2^24.
  void AddGradients(Random* random) {
    std::vector<uint64_t> keys(random->Between(1, 120));
    RowBuffer gradients(keys.size(), dim_ * sizeof(float));
    for (uint64_t i = 0; i < keys.size(); ++i) {
      keys[i] = random->Below(kSharedKeys);
      auto amount = static_cast<float>(random->Between(1, 3));
      for (uint64_t j = 0; j < dim_; ++j) gradients.SetFloat(i, j, -amount);
      sums_[keys[i]] += static_cast<uint64_t>(amount);
    }
    std::vector<uint8_t> outcomes(keys.size());
    Judge(embank_apply_gradients(table_, keys.data(), keys.size(), gradients.floats(), 0,
                                 outcomes.data()) == EMBANK_OK,
          "a gradient batch failed");
    for (uint8_t outcome : outcomes) Judge(outcome == EMBANK_ROW_FOUND, "a shared key was absent");
  }

  // Rows are whole, and never go back to an older value. (Two positions of one key may show the
  // rows before and after a writer in either order, docs/threading.md: so all positions of a batch
  // are compared with the batches before it.)
  void LookUp(Random* random, std::vector<float>* last_seen) {
    // Large batches look each key up once.
    std::vector<uint64_t> keys(random->OneIn(8) ? 4500 : random->Between(1, 100));
    for (uint64_t& key : keys) key = random->Below(kSharedKeys);
    RowBuffer rows(keys.size(), dim_ * sizeof(float));
    Judge(embank_lookup(table_, keys.data(), keys.size(), EMBANK_MISSING_CREATE, rows.data(), 0,
                        nullptr) == EMBANK_OK,
          "a lookup failed");
    looked_up_ += keys.size();
    for (uint64_t i = 0; i < keys.size(); ++i) {
      Judge(IsWhole(rows, i), "a lookup showed a torn row");
      Judge(rows.GetFloat(i, 0) >= (*last_seen)[keys[i]], "a row went back to an older value");
    }
    for (uint64_t i = 0; i < keys.size(); ++i) {
      float& seen = (*last_seen)[keys[i]];
      seen = std::max(seen, rows.GetFloat(i, 0));
    }
  }

  // The sums of bags are those of whole rows, none of which goes back to an older value. The second
  // and third feature of a table do not begin with those of others; the third has weights.
  void SumBags(Random* random, const std::vector<float>& last_seen) {
    std::vector<uint64_t> keys(random->Between(20, 300));
    for (uint64_t& key : keys) key = random->Below(kSharedKeys);
    std::vector<uint64_t> offsets = {0};
    while (offsets.back() < keys.size()) {
      offsets.push_back(std::min<uint64_t>(keys.size(), offsets.back() + random->Between(2, 30)));
    }
    const size_t bags = offsets.size() - 1;
    const std::vector<float> ones(keys.size(), 1.0f);
    std::vector<RowBuffer> sums;
    embank_feature features[3] = {};
    for (size_t i = 0; i < std::size(features); ++i) {
      sums.emplace_back(bags, dim_ * sizeof(float));
      features[i].struct_size = sizeof(embank_feature);
      features[i].pooling = EMBANK_POOL_SUM;
      features[i].table = table_;
      features[i].keys = keys.data();
      features[i].n = keys.size();
      features[i].offsets = offsets.data();
      features[i].bags = bags;
      features[i].rows = sums[i].data();
      features[i].weights = i == 2 ? ones.data() : nullptr;
    }
    Judge(embank_lookup_packed(features, std::size(features), EMBANK_MISSING_CREATE, nullptr) ==
              EMBANK_OK,
          "a packed lookup failed");
    summed_ += std::size(features) * keys.size();
    for (size_t bag = 0; bag < bags; ++bag) {
      float least = 0.0f;
      for (uint64_t i = offsets[bag]; i < offsets[bag + 1]; ++i) least += last_seen[keys[i]];
      for (const RowBuffer& of : sums) {
        Judge(IsWhole(of, bag), "a sum has a torn row");
        Judge(of.GetFloat(bag, 0) >= least, "a row of a sum went back to an older value");
      }
    }
  }

  // Creates and erases other keys, so that slots and index entries move.
  void Churn(Random* random) {
    std::vector<uint64_t> keys = KeyRange(kChurnFirst + random->Below(kChurnKeys), 60);
    RowBuffer rows(keys.size(), dim_ * sizeof(float));
    std::vector<uint8_t> outcomes(keys.size());
    Judge(embank_lookup(table_, keys.data(), keys.size(), EMBANK_MISSING_CREATE, rows.data(), 0,
                        outcomes.data()) == EMBANK_OK,
          "a creating lookup failed");
    for (uint64_t i = 0; i < keys.size(); ++i) {
      created_ += outcomes[i] == EMBANK_ROW_CREATED ? 1 : 0;
      Judge(IsWhole(rows, i) && rows.GetFloat(i, 0) == 0.0f, "a new row did not start at zero");
    }
    keys.resize(40);
    Judge(embank_erase(table_, keys.data(), keys.size(), outcomes.data()) == EMBANK_OK,
          "an erase failed");
    for (uint64_t i = 0; i < keys.size(); ++i) erased_ += outcomes[i] == EMBANK_ROW_FOUND ? 1 : 0;
  }

  // Whole rows are overwritten by whole rows of another value.
  void Overwrite(Random* random) {
    std::vector<uint64_t> keys = KeyRange(kUpsertedFirst, kUpsertedKeys);
    RowBuffer rows(keys.size(), dim_ * sizeof(float));
    Fill(&rows, keys.size(), static_cast<float>(random->Below(1 << 20)));
    Judge(embank_upsert(table_, keys.data(), keys.size(), rows.data(), 0, nullptr) == EMBANK_OK,
          "an upsert failed");
    Judge(embank_lookup(table_, keys.data(), keys.size(), EMBANK_MISSING_SKIP, rows.data(), 0,
                        nullptr) == EMBANK_OK,
          "a lookup failed");
    overwritten_ += keys.size();
    for (uint64_t i = 0; i < keys.size(); ++i) Judge(IsWhole(rows, i), "an upsert tore a row");
  }

  // Every shared key exactly once, every row whole.
  void Scan() {
    ScanPtr scan = OpenScan(table_);
    std::unordered_map<uint64_t, int> times_seen;
    for (uint64_t n = 1; n > 0;) {
      std::vector<uint64_t> keys(64);
      RowBuffer rows(64, dim_ * sizeof(float));
      Judge(embank_scan_next(scan.get(), keys.data(), rows.data(), 0, 64, &n) == EMBANK_OK,
            "a scan failed");
      for (uint64_t i = 0; i < n; ++i) {
        ++times_seen[keys[i]];
        Judge(IsWhole(rows, i), "a scan showed a torn row");
      }
      scanned_ += n;
    }
    for (uint64_t key = 0; key < kSharedKeys; ++key) {
      Judge(times_seen[key] == 1, "a scan did not show a shared key exactly once");
    }
  }

  std::string FinalDifference() {
    std::vector<uint64_t> keys = KeyRange(0, kSharedKeys);
    RowBuffer rows(kSharedKeys, dim_ * sizeof(float));
    embank_lookup(table_, keys.data(), keys.size(), EMBANK_MISSING_SKIP, rows.data(), 0, nullptr);
    for (uint64_t key = 0; key < kSharedKeys; ++key) {
      if (!IsWhole(rows, key) || rows.GetFloat(key, 0) != static_cast<float>(sums_[key])) {
        return "key " + std::to_string(key) + " holds " + std::to_string(rows.GetFloat(key, 0)) +
               " and not " + std::to_string(sums_[key]);
      }
    }
    return "";
  }

  void ExpectAllHappened() const {
    std::printf("  looked up %llu, created %llu, erased %llu, overwritten %llu, scanned %llu\n",
                static_cast<unsigned long long>(looked_up_.load()),
                static_cast<unsigned long long>(created_.load()),
                static_cast<unsigned long long>(erased_.load()),
                static_cast<unsigned long long>(overwritten_.load()),
                static_cast<unsigned long long>(scanned_.load()));
    EXPECT_GT(looked_up_, 0u);
    EXPECT_GT(summed_, 0u);
    EXPECT_GT(created_, 0u);
    EXPECT_GT(erased_, 0u);
    EXPECT_GT(overwritten_, 0u);
    EXPECT_GT(scanned_, 0u);
    const char* wrong = wrong_.load();
    EXPECT_EQ(std::string(wrong == nullptr ? "" : wrong), "");
  }

 private:
  // All elements equal, or NAN-free proof that the row is torn.
  bool IsWhole(const RowBuffer& rows, uint64_t i) const {
    for (uint64_t j = 1; j < dim_; ++j) {
      if (rows.GetFloat(i, j) != rows.GetFloat(i, 0)) return false;
    }
    return true;
  }
  void Fill(RowBuffer* rows, uint64_t n, float value) const {
    for (uint64_t i = 0; i < n; ++i) {
      for (uint64_t j = 0; j < dim_; ++j) rows->SetFloat(i, j, value);
    }
  }
  void Judge(bool good, const char* wrong) {
    if (!good) wrong_ = wrong;
  }

  const uint32_t dim_;
  StorePtr store_;
  embank_table* table_ = nullptr;
  std::atomic<uint64_t> sums_[kSharedKeys] = {};
  std::atomic<uint64_t> looked_up_ = 0;
  std::atomic<uint64_t> summed_ = 0;
  std::atomic<uint64_t> created_ = 0;
  std::atomic<uint64_t> erased_ = 0;
  std::atomic<uint64_t> overwritten_ = 0;
  std::atomic<uint64_t> scanned_ = 0;
  std::atomic<const char*> wrong_ = nullptr;
};

class ThreadsWithSharedKeys : public testing::TestWithParam<uint32_t> {};

TEST_P(ThreadsWithSharedKeys, SumThemExactlyAndTearNoRow) {
  SharedKeys shared(GetParam());
  OnThreads(kThreads, [&](uint64_t thread) {
    Random random(thread + 100);
    std::vector<float> last_seen(kSharedKeys, 0.0f);
    for (int step = 0; step < kSteps; ++step) {
      shared.AddGradients(&random);
      shared.LookUp(&random, &last_seen);
      if (step % 4 == 0) shared.SumBags(&random, last_seen);
      shared.Churn(&random);
      if (thread == 0) shared.Overwrite(&random);
      if (thread % 2 == 1 && step % 10 == 0) shared.Scan();
      if (thread % 2 == 0) shared.LookUp(&random, &last_seen);
    }
  });
  EXPECT_EQ(shared.FinalDifference(), "");
  shared.ExpectAllHappened();
}

INSTANTIATE_TEST_SUITE_P(Dims, ThreadsWithSharedKeys, testing::ValuesIn(kDims),
                         [](const auto& dim) { return std::to_string(dim.param); });

// When threads create the same keys at once, exactly one is told that it created each.
TEST(Threads, EachRowIsCreatedByExactlyOneOfTheThreads) {
  constexpr uint64_t kKeys = 3000;
  StorePtr store = OpenStore();
  embank_table* table = CreateTable(store.get(), "t", TableOptions(4));
  std::atomic<uint64_t> created = 0;
  OnThreads(kThreads, [&](uint64_t thread) {
    Random random(thread);
    for (uint64_t batch = 0; batch < kKeys / 100; ++batch) {
      std::vector<uint64_t> keys = KeyRange(batch * 100, 100);
      for (uint64_t i = 0; i < 99; ++i) std::swap(keys[i], keys[random.Between(i, 99)]);
      RowBuffer rows(100, 16);
      std::vector<uint8_t> outcomes(100);
      EXPECT_EQ(embank_lookup(table, keys.data(), 100, EMBANK_MISSING_CREATE, rows.data(), 0,
                              outcomes.data()),
                EMBANK_OK);
      for (uint8_t outcome : outcomes) created += outcome == EMBANK_ROW_CREATED ? 1 : 0;
    }
  });
  EXPECT_EQ(created, kKeys);
  EXPECT_EQ(RowCount(table), kKeys);
  std::vector<uint64_t> keys = KeyRange(0, kKeys);
  std::vector<uint32_t> heat(kKeys);
  EXPECT_EQ(embank_get_heat(table, keys.data(), kKeys, heat.data(), nullptr), EMBANK_OK);
  for (uint64_t key = 0; key < kKeys; ++key) EXPECT_EQ(heat[key], kThreads) << "key " << key;
}

// When threads erase the same keys at once, exactly one is told that it found each.
TEST(Threads, EachRowIsErasedByExactlyOneOfTheThreads) {
  constexpr uint64_t kKeys = 3000;
  StorePtr store = OpenStore();
  embank_table* table = CreateTable(store.get(), "t", TableOptions(4));
  std::vector<uint64_t> keys = KeyRange(0, kKeys);
  RowBuffer rows(kKeys, 16);
  ASSERT_EQ(embank_upsert(table, keys.data(), kKeys, rows.data(), 0, nullptr), EMBANK_OK);
  std::atomic<uint64_t> erased = 0;
  OnThreads(kThreads, [&](uint64_t) {
    for (uint64_t begin = 0; begin < kKeys; begin += 100) {
      std::vector<uint8_t> outcomes(100);
      EXPECT_EQ(embank_erase(table, keys.data() + begin, 100, outcomes.data()), EMBANK_OK);
      for (uint8_t outcome : outcomes) erased += outcome == EMBANK_ROW_FOUND ? 1 : 0;
    }
  });
  EXPECT_EQ(erased, kKeys);
  EXPECT_EQ(RowCount(table), 0u);
}

}  // namespace
}  // namespace embank::test::threads_test
