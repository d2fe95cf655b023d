#include "bench/cache_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <list>
#include <string>
#include <vector>

#include "base/threads/clock.h"
#include "bench/cache_report.h"
#include "bench/embank_cache.h"
#include "bench/lru_cache.h"
#include "bench/rocksdb_cache.h"
#include "bindings/c/embank.h"
#include "tests/bench/temporary_file.h"
#include "tests/support/random.h"

namespace embank::cache_run_test {
namespace {

using testing::HasSubstr;

constexpr TableShape kShape = {.dim = 256, .optimizer = Optimizer::kNone};
constexpr uint64_t kDramBytes = uint64_t{16} << 20;

// One key at a time.
Outcome LookUp(CacheEngine* cache, Key key) {
  std::vector<std::byte> row(kShape.dim * sizeof(float));
  uint8_t outcome = 0;
  EXPECT_TRUE(cache->Lookup({&key, 1}, {row.data(), &outcome}).ok());
  return static_cast<Outcome>(outcome);
}

// How many rows the cache holds.
size_t CapacityOf(CacheEngine* cache) {
  constexpr Key kKeys = 50'000;
  for (Key key = 0; key < kKeys; ++key) LookUp(cache, key);
  Key left = kKeys;
  while (LookUp(cache, left - 1) == Outcome::kFound) --left;
  return kKeys - left;
}

TEST(LruCache, TheCacheOfOneThreadIsAList) {
  const CacheConfig config{kShape, 1, 1, kDramBytes};
  const size_t capacity = CapacityOf(MakeLruCache(config)->get());
  EXPECT_GT(capacity, 14'000u);  // of 1,040 bytes each and 30 of map and list
  const std::unique_ptr<CacheEngine> cache = *MakeLruCache(config);
  EXPECT_LE(cache->Memory()->used_bytes, kDramBytes + (uint64_t{4} << 20))
      << "and what pages round up";
  std::list<Key> list;
  std::vector<std::list<Key>::iterator> places(40'000, list.end());
  test::Random random(1);
  for (int i = 0; i < 200'000; ++i) {
    const Key key = random.Below(random.OneIn(2) ? 2'000 : places.size());
    const bool is_there = places[key] != list.end();
    ASSERT_EQ(LookUp(cache.get(), key), is_there ? Outcome::kFound : Outcome::kCreated) << i;
    if (is_there) list.erase(places[key]);
    places[key] = list.insert(list.begin(), key);
    if (list.size() <= capacity) continue;
    places[list.back()] = list.end();
    list.pop_back();
  }
}

TEST(LruCache, AnswersTheRowsThatEmbankAnswers) {
  for (const uint32_t threads : {1u, 2u}) {
    const CacheConfig config{kShape, 7, threads, kDramBytes};
    const std::unique_ptr<CacheEngine> peer = *MakeLruCache(config);
    const std::unique_ptr<CacheEngine> embank = *MakeEmbankCache(config, EMBANK_EVICT_LRU);
    test::Random random(3);
    constexpr size_t kBatch = 300;
    for (int i = 0; i < 200; ++i) {
      std::vector<Key> keys(kBatch);
      for (Key& key : keys) key = random.Below(30'000);
      std::vector<std::byte> rows[2];
      std::vector<uint8_t> outcomes(kBatch);
      for (CacheEngine* const cache : {peer.get(), embank.get()}) {
        std::vector<std::byte>& answer = rows[cache == embank.get()];
        answer.resize(kBatch * kShape.dim * sizeof(float));
        ASSERT_TRUE(cache->Lookup(keys, {answer.data(), outcomes.data()}).ok());
        ASSERT_EQ(
            std::count(outcomes.begin(), outcomes.end(), static_cast<uint8_t>(Outcome::kRefused)),
            0);
      }
      ASSERT_EQ(rows[0], rows[1]) << "batch " << i;
    }
  }
}

KvOptions RunOf(const std::string& trace) {
  KvOptions options;
  options.shape = kShape;
  options.distribution = {Distribution::Kind::kTrace, 0.0, trace};
  options.batch = 512;
  options.threads = {1, 2};
  options.rounds = 2;
  options.dram_fraction = 0.25;
  options.on_full = "forget";
  options.evictions = {EMBANK_EVICT_LRU, EMBANK_EVICT_CLOCK, EMBANK_EVICT_LFU};
  return options;
}

TEST(CacheRun, MeasuresEachPolicyAndThePeerWithEachNumberOfThreads) {
  std::string keys;
  test::Random random(5);
  for (int i = 0; i < 200'000; ++i) {
    keys += std::to_string(random.Below(random.OneIn(2) ? 2'000 : 60'000)) + "\n";
  }
  const TemporaryFile trace(".txt", keys);
  const KvOptions options = RunOf(trace.path());
  ASSERT_TRUE(Validate(options).ok());
  Progress progress(stderr, SteadyClock());
  const CacheReport report = *RunCache(options, &progress);
  EXPECT_EQ(report.positions, 100'000u);
  EXPECT_EQ(report.dram_bytes, kDramBytes) << "the least that a store takes";
  std::vector<std::string> names;
  for (const CacheResult& result : report.results) {
    names.push_back(result.engine + " " + std::to_string(result.threads));
    EXPECT_GT(result.hit_ratio, 0.5);
    EXPECT_LT(result.hit_ratio, 0.9);
    EXPECT_GT(result.rows_per_second, 0.0);
    EXPECT_LE(result.rows_per_second_min, result.rows_per_second);
    EXPECT_GE(result.rows_per_second_max, result.rows_per_second);
    EXPECT_EQ(result.speedup.has_value(), result.threads == 2);
  }
  std::vector<std::string> expected = {"embank-lru 1",   "embank-lru 2", "embank-clock 1",
                                       "embank-clock 2", "embank-lfu 1", "embank-lfu 2",
                                       "absl-lru 1",     "absl-lru 2"};
  if (HasRocksdbLru()) expected.insert(expected.end(), {"rocksdb-lru 1", "rocksdb-lru 2"});
  EXPECT_EQ(names, expected);
  const Machine machine;
  EXPECT_THAT(CacheTable(machine, options, report), HasSubstr("hit ratio"));
  const std::string json = CacheJson(machine, options, report);
  for (const char* field : {"\"hit_ratio\"", "\"times_absl_lru\"", "\"dram_bytes\""}) {
    EXPECT_THAT(json, HasSubstr(field));
  }
}

// Persia, section 6.3: the id space grows to 7.8e11 rows, and nothing else does. The rows are
// small, so that memory holds enough of them for several pages of the index.
TEST(CacheRun, KeepsTheSameRowsWhateverTheIdSpace) {
  std::vector<CacheResult> results;
  constexpr uint64_t kRows = 700'000;  // of which 442,000 are looked up
  for (const uint64_t id_space : {kRows, uint64_t{780'000'000'000}}) {
    KvOptions options = RunOf("");
    options.shape.dim = 1;
    options.distribution = {Distribution::Kind::kUniform, 0.0, ""};
    options.rows = kRows;
    options.id_space = id_space;
    options.dram_fraction = 0.0;
    options.dram_bytes = kDramBytes * 3 / 2;
    options.threads = {1};
    options.rounds = 1;
    options.evictions = {EMBANK_EVICT_LRU};
    ASSERT_TRUE(Validate(options).ok()) << Validate(options);
    Progress progress(stderr, SteadyClock());
    results.push_back(RunCache(options, &progress)->results[0]);
  }
  EXPECT_LT(results[0].rows, 400'000.0) << "rows were forgotten";
  EXPECT_GT(results[0].index_bytes, 2 << 20) << "an empty table has a page of it";
  for (const CacheResult& result : results) {
    EXPECT_EQ(result.index_bytes, results[0].index_bytes);
    EXPECT_NEAR(result.rows, results[0].rows, 0.01 * results[0].rows);
    EXPECT_NEAR(result.hit_ratio, results[0].hit_ratio, 0.002);
  }
}

}  // namespace
}  // namespace embank::cache_run_test
