// Readers without locks beside writers: while the index grows and shrinks, and while slab pages
// change from one slot size to another. All elements of a row are equal, so that a torn row shows,
// and its value says whose it is.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "store/batch/gradients.h"
#include "store/batch/lookup.h"
#include "store/batch/row_group.h"
#include "store/batch/write.h"
#include "store/scan/scan.h"
#include "tests/support/events.h"
#include "tests/support/index_places.h"
#include "tests/support/index_world.h"
#include "tests/support/inverse_mix.h"
#include "tests/support/random.h"
#include "tests/support/store_world.h"

namespace embank::test::readers_test {
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
  std::string first_ EMBANK_GUARDED_BY(mutex_);
};

// Counts how often a reader has seen the change that it looks for. The writer waits for it, so that
// no change passes unseen.
class Sightings {
 public:
  void Add(uint64_t times) {
    if (times == 0) return;
    count_ += times;
    count_.notify_all();
  }
  // The reader leaves: nobody waits for it any more.
  void End() {
    ended_ = true;
    ++count_;
    count_.notify_all();
  }
  void AwaitMore() const {
    const uint64_t before = count_;
    if (!ended_) count_.wait(before);
  }
  uint64_t count() const { return count_ - (ended_ ? 1 : 0); }

 private:
  std::atomic<uint64_t> count_{0};
  std::atomic<bool> ended_{false};
};

// Runs `body` on a thread, and says so when it ends.
template <typename Body>
std::thread ReaderThread(Sightings* sightings, Body body) {
  return std::thread([sightings, body] {
    body();
    sightings->End();
  });
}

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

  // Every other time missing rows are zeros: then small lookups begin with leading positions.
  void Look(const std::vector<Key>& keys) {
    constexpr float kKept = -7;
    const MissingRule rule = ++looks_ % 2 == 0 ? MissingRule::kZero : MissingRule::kSkip;
    const float missing = rule == MissingRule::kZero ? 0.0f : kKept;
    std::fill(outcomes_.begin(), outcomes_.end(), uint8_t{0});
    std::fill(rows_.begin(), rows_.end(), kKept);
    if (!Lookup(table_, keys, rule, RowsIn(&rows_, table_->layout().dim),
                std::span(outcomes_).first(keys.size()))
             .ok()) {
      complaints_->Add("a lookup failed");
    }
    const uint32_t dim = table_->layout().dim;
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto row = std::span(rows_).subspan(i * dim, dim);
      if (!Found(i) && std::count(row.begin(), row.end(), missing) != dim) {
        complaints_->Add("a row that was not found is neither kept nor zeros");
      }
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
  uint64_t looks_ = 0;
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
  enum Kind : uint32_t { kStays, kLearns, kComesAndGoes, kNever };
  // Enough for two growths of each shard, and as many shrinkings.
  static constexpr uint32_t kComing = KeyMaker::kShards * 8000;
  static constexpr uint32_t kStaying = 300;

  std::vector<Key> Keys(Kind kind, uint32_t begin, uint32_t count) const {
    std::vector<Key> keys(count);
    for (uint32_t i = 0; i < count; ++i) keys[i] = maker_.Of(kind, begin + i);
    return keys;
  }
  static float ValueOf(uint32_t i) { return static_cast<float>(i + 1); }
  static TableOptions Options() {
    TableOptions options = OptionsOf(kDim, Optimizer::kSgd);
    options.rule.learning_rate = 1.0f;
    return options;
  }

  // Rows that come and go, each of a value of its own.
  void Come(uint32_t begin) {
    const std::vector<Key> keys = Keys(kComesAndGoes, begin, kBatch);
    std::vector<float> rows;
    for (uint32_t i = 0; i < kBatch; ++i) rows.insert(rows.end(), kDim, ValueOf(begin + i));
    if (!Upsert(table_, keys, RowsOf(rows, kDim), {}).ok()) complaints_.Add("an upsert failed");
    NoteSize(&growths_);
  }
  void Go(uint32_t begin) {
    if (!Erase(table_, Keys(kComesAndGoes, begin, kBatch), {}).ok()) {
      complaints_.Add("an erase failed");
    }
    NoteSize(&shrinkings_);
  }
  void NoteSize(int* changes) {
    const uint32_t buckets = table_->store().index->shard(0)->high_buckets;
    *changes += buckets != buckets_ ? 1 : 0;
    buckets_ = buckets;
  }
  void WriteWaves() {
    buckets_ = table_->store().index->shard(0)->high_buckets;
    for (int wave = 0; wave < kWaves && !complaints_.any(); ++wave) {
      for (uint32_t i = 0; i + kBatch <= kComing; i += kBatch) Come(i);
      for (const Sightings* seen : {&updates_, &steps_, &looks_, &strangers_, &scans_}) {
        seen->AwaitMore();
      }
      for (uint32_t i = 0; i + kBatch <= kComing; i += kBatch) {
        Go(i);
        if (i / kBatch % 32 != 31) continue;
        released_bytes_ += table_->store().index->capacity()->Shrink();
        NoteSize(&shrinkings_);
      }
      released_bytes_ += table_->store().index->capacity()->Shrink();
    }
  }
  // Values of the rows that stay only ever grow.
  void UpdateStaying() {
    for (float value = 1; !stop_; ++value) {
      UpsertAll(table_, Keys(kStays, 0, kStaying), value, &complaints_);
      updates_.Add(1);
    }
  }
  // Each batch adds one to the rows that learn.
  void StepLearning() {
    const std::vector<Key> keys = Keys(kLearns, 0, kStaying);
    const std::vector<float> gradients(keys.size() * kDim, -1.0f);
    while (!stop_) {
      std::vector<uint8_t> outcomes(keys.size());
      if (!ApplyGradients(table_, keys, RowsOf(gradients, kDim), outcomes).ok() ||
          std::count(outcomes.begin(), outcomes.end(), static_cast<uint8_t>(Outcome::kFound)) !=
              static_cast<ptrdiff_t>(keys.size())) {
        return complaints_.Add("a row that learns was not found by a gradient");
      }
      steps_.Add(1);
    }
  }
  // The least value of rows that only grow, all of which must be there; none after a complaint.
  std::optional<float> LookAtGrowing(BatchReader* reader, Kind kind, float last) {
    reader->Look(Keys(kind, 17, kBatch));
    float least = 1e9f;
    for (size_t i = 0; i < kBatch; ++i) {
      if (!reader->Found(i)) {
        reader->Complain("a row that stays was not found");
        return std::nullopt;
      }
      const float value = reader->Value(i);
      if (value < last - 1) {
        reader->Complain("a row turned back");
        return std::nullopt;
      }
      least = std::min(least, value);
    }
    looks_.Add(1);
    return least;
  }
  void ReadStaying() {
    BatchReader reader(table_, &complaints_);
    std::optional<float> stays = 0.0f;
    std::optional<float> learns = 0.0f;
    while (!stop_ && stays.has_value() && learns.has_value()) {
      stays = LookAtGrowing(&reader, kStays, *stays);
      learns = LookAtGrowing(&reader, kLearns, *learns);
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
      // A small lookup may find all of its rows, or all but one that goes.
      const auto count = static_cast<uint32_t>(random.OneIn(2) ? kBatch : random.Between(1, 40));
      reader.Look(Keys(kComesAndGoes, begin, count));
      uint64_t found = 0;
      for (uint32_t i = 0; i < count; ++i) {
        if (!reader.Found(i)) continue;
        ++found;
        if (reader.Value(i) != ValueOf(begin + i)) {
          return reader.Complain("the row of another key");
        }
      }
      strangers_.Add(found);
    }
  }
  // A scan gives every row that stays once.
  void ScanStaying() {
    std::vector<Key> staying = Keys(kStays, 0, kStaying);
    const std::vector<Key> learning = Keys(kLearns, 0, kStaying);
    staying.insert(staying.end(), learning.begin(), learning.end());
    const std::set<Key> stays(staying.begin(), staying.end());
    std::vector<Key> keys(kBatch);
    std::vector<float> rows(kBatch * kDim);
    while (!stop_) {
      Scan scan(table_);
      std::multiset<Key> seen;
      while (true) {
        const StatusOr<uint64_t> count = scan.Next(keys, RowsIn(&rows, kDim));
        if (!count.ok()) return complaints_.Add("a scan failed");
        if (*count == 0) break;
        for (size_t i = 0; i < *count; ++i) {
          if (stays.count(keys[i]) == 1) seen.insert(keys[i]);
        }
      }
      if (!std::equal(seen.begin(), seen.end(), stays.begin(), stays.end())) {
        return complaints_.Add("a scan missed a row that stays, or gave it twice");
      }
      scans_.Add(1);
    }
  }
  // A step that was lost, or done twice, would show.
  void ExpectEveryStepOnce() {
    std::vector<float> rows(kStaying * kDim);
    std::vector<uint8_t> outcomes(kStaying);
    ASSERT_TRUE(Lookup(table_, Keys(kLearns, 0, kStaying), MissingRule::kSkip, RowsIn(&rows, kDim),
                       outcomes)
                    .ok());
    for (const float value : rows) ASSERT_EQ(value, static_cast<float>(steps_.count()));
  }
  void ExpectAllHappened() const {
    Events events;
    events.Count("upserts of rows that stay", updates_.count());
    events.Count("gradient batches", steps_.count());
    events.Count("lookups of rows that stay", looks_.count());
    events.Count("rows found that come and go", strangers_.count());
    events.Count("scans", scans_.count());
    std::fputs(events.Table().c_str(), stdout);
    EXPECT_EQ(events.Missing(), "");
  }

  StoreWorld store_{{}, MakeThreadPool(1)};
  Table* table_ = store_.Create("t", Options());
  KeyMaker maker_{table_};
  Complaints complaints_;
  Sightings updates_;
  Sightings steps_;
  Sightings looks_;
  Sightings strangers_;
  Sightings scans_;
  std::atomic<bool> stop_{false};
  uint32_t buckets_ = 0;
  int growths_ = 0;
  int shrinkings_ = 0;
  uint64_t released_bytes_ = 0;
};

TEST_F(GrowthTest, ReadersSeeWholeRowsAndNoStepIsLostWhileTheIndexGrowsAndShrinks) {
  UpsertAll(table_, Keys(kStays, 0, kStaying), 1, &complaints_);
  UpsertAll(table_, Keys(kLearns, 0, kStaying), 0, &complaints_);
  std::vector<std::thread> threads;
  threads.push_back(ReaderThread(&updates_, [this] { UpdateStaying(); }));
  threads.push_back(ReaderThread(&steps_, [this] { StepLearning(); }));
  threads.push_back(ReaderThread(&looks_, [this] { ReadStaying(); }));
  threads.push_back(ReaderThread(&strangers_, [this] { ReadOthers(); }));
  threads.push_back(ReaderThread(&scans_, [this] { ScanStaying(); }));
  WriteWaves();
  stop_ = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(complaints_.first(), "");
  ASSERT_NO_FATAL_FAILURE(ExpectEveryStepOnce());
  ExpectAllHappened();
  EXPECT_GE(growths_, 2 * kWaves);
  EXPECT_GE(shrinkings_, kWaves);
  EXPECT_GT(released_bytes_, 0u);
  EXPECT_EQ(table_->rows(), 2 * kStaying);
}

// ---- the search alone ----

// Looks for the same rows again and again, until told to stop.
void SearchWhile(const std::atomic<bool>& stop, IndexWorld* index, const std::vector<RowId>& there,
                 const RowId& absent, Sightings* finds, Complaints* complaints) {
  while (!stop && !complaints->any()) {
    const EpochTable::Guard guard(index->epochs());
    for (const RowId& id : there) {
      if (!(*index)->Find(id).any()) complaints->Add("a row that is there was not found");
    }
    if ((*index)->Find(absent).any()) complaints->Add("a row that never was");
    finds->Add(there.size());
  }
}

// An entry goes before its row does, and comes behind it: a reader with an older match in its hand
// must not see a row that another call would not find.
TEST(RowReading, ARowWhoseEntryIsGoneIsNotRead) {
  StoreWorld store;
  Table* const table = store.Create("t", OptionsOf(4));
  const Key key = 7;
  const KeyHash hash = table->HashOf(key);
  const std::vector<float> row = {1, 2, 3, 4};
  ASSERT_TRUE(Upsert(table, {&key, 1}, RowsOf(row, 4), {}).ok());
  KeyIndex* const index = table->store().index;
  const auto copy = [](const RowWatch& watch) { return watch.IsCurrent(); };

  const Match match = index->Find(table->IdOf(key, hash));
  ASSERT_NE(ReadRow(*table, match, key, copy).header, nullptr);
  KeyIndex::Shard* const shard = index->shard(KeyIndex::ShardOf(hash));
  MutexLock lock(&shard->mutex);
  index->Erase(shard, hash, match);
  EXPECT_EQ(ReadRow(*table, match, key, copy).header, nullptr);
  Match guess = match;
  EXPECT_EQ(FindAndReadRow(*table, key, hash, copy, &guess).header, nullptr);
  EXPECT_FALSE(guess.any());
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
  std::array<Sightings, 2> finds;
  std::vector<std::thread> readers;
  for (Sightings& found : finds) {
    readers.push_back(ReaderThread(
        &found, [&] { SearchWhile(stop, &index, there, absent, &found, &complaints); }));
  }
  Random random(4);
  for (int wave = 0; wave < 5 * kWaves && !complaints.any(); ++wave) {
    std::vector<RowId> others;
    for (uint32_t i = 0; i < kOthers; ++i) {
      const uint64_t q = random.Below(random.OneIn(10) ? kCrowdedQuotients : kQuotients);
      others.push_back(IndexWorld::IdWithHash(2, HashAt(kShard, q, i)));
    }
    for (const RowId& id : others) index.TryInsert(id).IgnoreError();
    for (const Sightings& found : finds) found.AwaitMore();
    for (const RowId& id : others) index.Erase(id);
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(complaints.first(), "");
  for (const Sightings& found : finds) EXPECT_GE(found.count(), 5 * kWaves * there.size());
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
}

// ---- pages that change class ----

// Fills a table with rows of its own value, until there is no space, and empties it again.
class Filler {
 public:
  Filler(Table* table, float value, Complaints* complaints)
      : table_(table), value_(value), complaints_(complaints) {}

  void Fill() {
    for (bool has_space = true; has_space;) {
      const std::vector<Key> keys = KeysFrom(count_, kBatch);
      const std::vector<float> rows(kBatch * table_->layout().dim, value_);
      std::vector<uint8_t> outcomes(kBatch);
      if (!Upsert(table_, keys, RowsOf(rows, table_->layout().dim), outcomes).ok()) {
        complaints_->Add("an upsert failed");
      }
      has_space = std::count(outcomes.begin(), outcomes.end(),
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
               Sightings* found, Complaints* complaints) {
  BatchReader reader(table, complaints);
  Random random(table->id());
  while (!stop && !complaints->any()) {
    reader.Look(KeysFrom(random.Below(keys_max), kBatch));
    uint64_t found_now = 0;
    for (size_t i = 0; i < kBatch; ++i) {
      if (!reader.Found(i)) continue;
      ++found_now;
      if (reader.Value(i) != value) return complaints->Add("a row of another table");
    }
    found->Add(found_now);
  }
}

TEST(PageClasses, ChangeUnderReadersWhoSeeOnlyRowsOfTheirTable) {
  constexpr uint64_t kBudgetBytes = 24 << 20;
  StoreWorld store({.dram_bytes = kBudgetBytes}, MakeThreadPool(1));
  Table* const narrow = store.Create("narrow", OptionsOf(60));
  Table* const wide = store.Create("wide", OptionsOf(1000));
  Complaints complaints;
  std::atomic<bool> stop{false};
  Sightings narrow_found;
  Sightings wide_found;
  std::thread narrow_reader = ReaderThread(
      &narrow_found, [&] { ReadWhile(stop, narrow, 2.0f, 40'000, &narrow_found, &complaints); });
  std::thread wide_reader = ReaderThread(
      &wide_found, [&] { ReadWhile(stop, wide, 3.0f, 4000, &wide_found, &complaints); });
  Filler narrow_rows(narrow, 2.0f, &complaints);
  Filler wide_rows(wide, 3.0f, &complaints);
  for (int wave = 0; wave < kWaves && !complaints.any(); ++wave) {
    narrow_rows.Fill();
    narrow_found.AwaitMore();
    narrow_rows.Empty();
    wide_rows.Fill();
    wide_found.AwaitMore();
    wide_rows.Empty();
  }
  stop = true;
  narrow_reader.join();
  wide_reader.join();
  EXPECT_EQ(complaints.first(), "");
  // Their rows were seen in every wave.
  EXPECT_GE(narrow_found.count(), static_cast<uint64_t>(kWaves));
  EXPECT_GE(wide_found.count(), static_cast<uint64_t>(kWaves));
  // Each had nearly all of the budget but the index's 2 MiB and the last page.
  EXPECT_GE(narrow_rows.bytes_max(), kBudgetBytes * 8 / 10);
  EXPECT_GE(wide_rows.bytes_max(), kBudgetBytes * 8 / 10);
}

}  // namespace
}  // namespace embank::test::readers_test
