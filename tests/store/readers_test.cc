// Readers without locks beside writers: while the index grows and shrinks, and while slab pages
// change from one slot size to another. All elements of a row are equal, so that a torn row shows,
// and its value says whose it is.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "store/lookup.h"
#include "store/scan.h"
#include "store/write.h"
#include "tests/support/index_places.h"
#include "tests/support/index_world.h"
#include "tests/support/inverse_mix.h"
#include "tests/support/random.h"
#include "tests/support/store_world.h"

namespace embank::test {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kWaves = 2;
#else
constexpr int kWaves = 6;
#endif

constexpr size_t kBatch = 256;

// The first thing that a thread saw wrong.
class Complaints {
 public:
  void Add(const std::string& what) {
    MutexLock lock(&mutex_);
    if (first_.empty()) first_ = what;
    any_ = true;
  }
  bool any() const { return any_; }
  std::string first() {
    MutexLock lock(&mutex_);
    return first_;
  }

 private:
  Mutex mutex_;
  std::atomic<bool> any_{false};
  std::string first_ ABSL_GUARDED_BY(mutex_);
};

// Keys of a table by the places that their hashes choose: few shards, so that these grow.
class KeyMaker {
 public:
  explicit KeyMaker(const Table* table) : table_hash_(TableHash(table->name())) {}

  Key At(uint32_t shard, uint64_t q, uint32_t unused) const {
    return KeyWithHash(table_hash_, HashAt(shard, q, unused));
  }
  // The i-th key of kind `kind`; different kinds have different keys.
  Key Of(uint32_t kind, uint32_t i) const {
    return At(i % kShards, i * uint64_t{0x9E3779B1} % kQuotients, kind << 20 | i);
  }
  static constexpr uint32_t kShards = 2;

 private:
  const uint64_t table_hash_;
};

// Rows of one batch, checked one by one.
class BatchReader {
 public:
  BatchReader(Table* table, Complaints* complaints)
      : table_(table),
        complaints_(complaints),
        rows_(kBatch * table->layout().dim),
        outcomes_(kBatch) {}

  void Look(const std::vector<Key>& keys) {
    std::fill(outcomes_.begin(), outcomes_.end(), uint8_t{0});
    if (!Lookup(table_, keys, MissingRule::kSkip, RowsIn(&rows_, table_->layout().dim),
                std::span(outcomes_).first(keys.size()))
             .ok()) {
      complaints_->Add("a lookup failed");
    }
  }
  bool Found(size_t i) const { return outcomes_[i] == static_cast<uint8_t>(Outcome::kFound); }
  // The value of a row that was found; complains when it is torn.
  float Value(size_t i) {
    const auto row = std::span(rows_).subspan(i * table_->layout().dim, table_->layout().dim);
    if (std::count(row.begin(), row.end(), row[0]) != static_cast<ptrdiff_t>(row.size())) {
      complaints_->Add("a torn row");
    }
    return row[0];
  }
  void Complain(const std::string& what) { complaints_->Add(what); }

 private:
  Table* const table_;
  Complaints* const complaints_;
  std::vector<float> rows_;
  std::vector<uint8_t> outcomes_;
};

void UpsertAll(Table* table, const std::vector<Key>& keys, float value, Complaints* complaints) {
  const std::vector<float> rows(keys.size() * table->layout().dim, value);
  if (!Upsert(table, keys, RowsOf(rows, table->layout().dim), {}).ok()) {
    complaints->Add("an upsert failed");
  }
}

// ---- growing and shrinking ----

class GrowthTest : public testing::Test {
 protected:
  static constexpr uint32_t kDim = 6;
  enum Kind : uint32_t { kStays, kComesAndGoes, kNever };
  // Enough for two growths of each shard, and as many shrinkings.
  static constexpr uint32_t kComing = KeyMaker::kShards * 8000;
  static constexpr uint32_t kStaying = 300;

  std::vector<Key> Keys(Kind kind, uint32_t begin, uint32_t count) const {
    std::vector<Key> keys(count);
    for (uint32_t i = 0; i < count; ++i) keys[i] = maker_.Of(kind, begin + i);
    return keys;
  }
  static float ValueOf(uint32_t i) { return static_cast<float>(i + 1); }

  // Rows that come and go, each of a value of its own.
  void Come(uint32_t begin) {
    const std::vector<Key> keys = Keys(kComesAndGoes, begin, kBatch);
    std::vector<float> rows;
    for (uint32_t i = 0; i < kBatch; ++i) rows.insert(rows.end(), kDim, ValueOf(begin + i));
    if (!Upsert(table_, keys, RowsOf(rows, kDim), {}).ok()) complaints_.Add("an upsert failed");
    NoteSizes();
  }
  void Go(uint32_t begin) {
    if (!Erase(table_, Keys(kComesAndGoes, begin, kBatch), {}).ok()) {
      complaints_.Add("an erase failed");
    }
    NoteSizes();
  }
  void NoteSizes() { sizes_.insert(table_->parts().index->shard(0)->high_buckets); }
  void WriteWaves() {
    for (int wave = 0; wave < kWaves && !complaints_.any(); ++wave) {
      for (uint32_t i = 0; i + kBatch <= kComing; i += kBatch) Come(i);
      sizes_.clear();
      for (uint32_t i = 0; i + kBatch <= kComing; i += kBatch) Go(i);
      // A visit finishes what is under way.
      shrinkings_ += sizes_.size() > 1 ? 1 : 0;
      released_bytes_ += table_->parts().index->ReleaseMemory();
    }
  }
  // Values of the rows that stay only ever grow.
  void UpdateStaying() {
    for (float value = 1; !stop_; ++value) {
      UpsertAll(table_, Keys(kStays, 0, kStaying), value, &complaints_);
    }
  }
  void ReadStaying() {
    BatchReader reader(table_, &complaints_);
    float last = 0;
    while (!stop_) {
      const std::vector<Key> keys = Keys(kStays, 17, kBatch);
      reader.Look(keys);
      float next = 1e9f;
      for (size_t i = 0; i < kBatch; ++i) {
        if (!reader.Found(i)) return reader.Complain("a row that stays was not found");
        const float value = reader.Value(i);
        if (value < last - 1) return reader.Complain("a row turned back");
        next = std::min(next, value);
      }
      last = next;
    }
  }
  void ReadOthers() {
    BatchReader reader(table_, &complaints_);
    Random random(5);
    while (!stop_) {
      const auto begin = static_cast<uint32_t>(random.Below(kComing - kBatch));
      reader.Look(Keys(kNever, begin, kBatch));
      for (size_t i = 0; i < kBatch; ++i) {
        if (reader.Found(i)) return reader.Complain("a row that never was");
      }
      reader.Look(Keys(kComesAndGoes, begin, kBatch));
      for (uint32_t i = 0; i < kBatch; ++i) {
        if (reader.Found(i) && reader.Value(i) != ValueOf(begin + i)) {
          return reader.Complain("the row of another key");
        }
      }
    }
  }
  // A scan gives every row that stays once.
  void ScanStaying() {
    const std::vector<Key> staying = Keys(kStays, 0, kStaying);
    const std::set<Key> stays(staying.begin(), staying.end());
    std::vector<Key> keys(kBatch);
    std::vector<float> rows(kBatch * kDim);
    while (!stop_) {
      Scan scan(table_);
      std::multiset<Key> seen;
      while (true) {
        const absl::StatusOr<uint64_t> count = scan.Next(keys, RowsIn(&rows, kDim));
        if (!count.ok()) return complaints_.Add("a scan failed");
        if (*count == 0) break;
        for (size_t i = 0; i < *count; ++i) {
          if (stays.count(keys[i]) == 1) seen.insert(keys[i]);
        }
      }
      if (!std::equal(seen.begin(), seen.end(), stays.begin(), stays.end())) {
        return complaints_.Add("a scan missed a row that stays, or gave it twice");
      }
    }
  }

  StoreWorld store_{{}, MakeThreadPool(1)};
  Table* table_ = store_.Create("t", OptionsOf(kDim));
  KeyMaker maker_{table_};
  Complaints complaints_;
  std::atomic<bool> stop_{false};
  std::set<uint32_t> sizes_;
  int shrinkings_ = 0;
  uint64_t released_bytes_ = 0;
};

TEST_F(GrowthTest, ReadersSeeWholeRowsWhileTheIndexGrowsAndShrinks) {
  UpsertAll(table_, Keys(kStays, 0, kStaying), 1, &complaints_);
  std::vector<std::thread> threads;
  threads.emplace_back([this] { UpdateStaying(); });
  threads.emplace_back([this] { ReadStaying(); });
  threads.emplace_back([this] { ReadOthers(); });
  threads.emplace_back([this] { ScanStaying(); });
  WriteWaves();
  stop_ = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(complaints_.first(), "");
  EXPECT_EQ(shrinkings_, kWaves);
  EXPECT_GT(released_bytes_, 0u);
  EXPECT_EQ(table_->rows(), kStaying);
}

// ---- the search alone ----

// Looks for the same rows again and again, until told to stop.
void SearchWhile(const std::atomic<bool>& stop, IndexWorld* index, const std::vector<RowId>& there,
                 const RowId& absent, Complaints* complaints) {
  while (!stop && !complaints->any()) {
    const EpochTable::Guard guard(index->epochs());
    for (const RowId& id : there) {
      if (!(*index)->Find(id).any()) complaints->Add("a row that is there was not found");
    }
    if ((*index)->Find(absent).any()) complaints->Add("a row that never was");
  }
}

// Few rows, in homes that others crowd, so that they are pushed on and moved while they are sought.
TEST(IndexReaders, FindRowsThatArePushedOnAndMovedByTheBoundary) {
  constexpr uint32_t kShard = 3;
  constexpr uint32_t kOthers = 6000;
  constexpr uint64_t kCrowdedQuotients = kQuotients / 64;
  IndexWorld index;
  std::vector<RowId> there;
  for (uint32_t i = 0; i < 24; ++i) {
    there.push_back(IndexWorld::IdWithHash(0, HashAt(kShard, i * kCrowdedQuotients / 24, i)));
    ASSERT_NO_FATAL_FAILURE(index.Insert(there.back()));
  }
  const RowId absent = IndexWorld::IdWithHash(1, there[7].hash);
  Complaints complaints;
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] { SearchWhile(stop, &index, there, absent, &complaints); });
  }
  Random random(4);
  for (int wave = 0; wave < 5 * kWaves && !complaints.any(); ++wave) {
    std::vector<RowId> others;
    for (uint32_t i = 0; i < kOthers; ++i) {
      const uint64_t q = random.Below(random.OneIn(10) ? kCrowdedQuotients : kQuotients);
      others.push_back(IndexWorld::IdWithHash(2, HashAt(kShard, q, i)));
    }
    for (const RowId& id : others) index.TryInsert(id).IgnoreError();
    for (const RowId& id : others) index.Erase(id);
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(complaints.first(), "");
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
}

// ---- pages that change class ----

// Fills a table with rows of its own value, until there is no room, and empties it again.
class Filler {
 public:
  Filler(Table* table, float value, Complaints* complaints)
      : table_(table), value_(value), complaints_(complaints) {}

  void Fill() {
    for (bool room = true; room;) {
      const std::vector<Key> keys = KeysFrom(count_, kBatch);
      const std::vector<float> rows(kBatch * table_->layout().dim, value_);
      std::vector<uint8_t> outcomes(kBatch);
      if (!Upsert(table_, keys, RowsOf(rows, table_->layout().dim), outcomes).ok()) {
        complaints_->Add("an upsert failed");
      }
      room = std::count(outcomes.begin(), outcomes.end(),
                        static_cast<uint8_t>(Outcome::kRefused)) == 0;
      count_ += kBatch;
    }
    rows_max_ = std::max(rows_max_, table_->rows());
  }
  void Empty() {
    for (Key begin = 0; begin < count_; begin += kBatch) {
      if (!Erase(table_, KeysFrom(begin, kBatch), {}).ok()) complaints_->Add("an erase failed");
    }
    count_ = 0;
  }
  uint64_t bytes_max() const { return rows_max_ * table_->layout().row_bytes; }

 private:
  Table* const table_;
  const float value_;
  Complaints* const complaints_;
  Key count_ = 0;
  uint64_t rows_max_ = 0;
};

void ReadWhile(const std::atomic<bool>& stop, Table* table, float value, Key keys_max,
               Complaints* complaints) {
  BatchReader reader(table, complaints);
  Random random(table->id());
  uint64_t found = 0;
  while (!stop || found == 0) {
    if (complaints->any()) return;
    reader.Look(KeysFrom(random.Below(keys_max), kBatch));
    for (size_t i = 0; i < kBatch; ++i) {
      if (!reader.Found(i)) continue;
      ++found;
      if (reader.Value(i) != value) return complaints->Add("a row of another table");
    }
    if (stop) return;
  }
}

TEST(PageClasses, ChangeUnderReadersWhoSeeOnlyRowsOfTheirTable) {
  constexpr uint64_t kBudgetBytes = 24 << 20;
  StoreWorld store({.dram_bytes = kBudgetBytes}, MakeThreadPool(1));
  Table* const narrow = store.Create("narrow", OptionsOf(60));
  Table* const wide = store.Create("wide", OptionsOf(1000));
  Complaints complaints;
  std::atomic<bool> stop{false};
  std::thread narrow_reader([&] { ReadWhile(stop, narrow, 2.0f, 40'000, &complaints); });
  std::thread wide_reader([&] { ReadWhile(stop, wide, 3.0f, 4000, &complaints); });
  Filler narrow_rows(narrow, 2.0f, &complaints);
  Filler wide_rows(wide, 3.0f, &complaints);
  for (int wave = 0; wave < kWaves && !complaints.any(); ++wave) {
    narrow_rows.Fill();
    narrow_rows.Empty();
    wide_rows.Fill();
    wide_rows.Empty();
  }
  stop = true;
  narrow_reader.join();
  wide_reader.join();
  EXPECT_EQ(complaints.first(), "");
  // Each had nearly all of the budget but the index's 2 MiB and the last page.
  EXPECT_GE(narrow_rows.bytes_max(), kBudgetBytes * 8 / 10);
  EXPECT_GE(wide_rows.bytes_max(), kBudgetBytes * 8 / 10);
}

}  // namespace
}  // namespace embank::test
