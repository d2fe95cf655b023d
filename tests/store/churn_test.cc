// Rows that are erased and made again, ten million of them (EMBANK_TEST_SCALE times more): in waves
// of two tables in turn, each of which fills and leaves the store wholly. Memory stays where the
// first waves brought it, and all rows are right at the end.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "store/batch/lookup.h"
#include "store/batch/write.h"
#include "store/inspect/memory_report.h"
#include "tests/support/environment.h"
#include "tests/support/events.h"
#include "tests/support/random.h"
#include "tests/support/store_world.h"

namespace embank::test::churn_test {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kOperationsPerScale = 2'000'000;
#else
constexpr uint64_t kOperationsPerScale = 10'000'000;
#endif
constexpr size_t kBatch = 1000;

// A table whose rows come and go. Each key has a value.
class ChurningTable {
 public:
  ChurningTable(Table* table, uint64_t seed, size_t rows_max, Events* events)
      : table_(table), random_(seed), rows_max_(rows_max), events_(events) {}

  // Erases or makes a batch of rows. True: a wave is over, and no row is left.
  bool Step() {
    if (live_.size() + kBatch > rows_max_) grows_ = false;
    // Mostly the one or the other, so that slots are used again while pages fill and empty.
    if (live_.empty() || (live_.size() < rows_max_ && random_.Below(10) < (grows_ ? 7u : 3u))) {
      Make();
    } else {
      EraseSome();
    }
    const bool over = !grows_ && live_.empty();
    if (over) grows_ = true;
    return over;
  }
  void ExpectAllRight() {
    ASSERT_EQ(table_->rows(), live_.size());
    for (size_t begin = 0; begin < live_.size(); begin += kBatch) {
      ASSERT_NO_FATAL_FAILURE(
          ExpectRight({live_.begin() + static_cast<ptrdiff_t>(begin),
                       live_.begin() + static_cast<ptrdiff_t>(begin + kBatch)}));
    }
    std::vector<uint8_t> outcomes(gone_.size());
    ASSERT_TRUE(Contains(table_, gone_, outcomes).ok());
    for (const uint8_t outcome : outcomes) {
      ASSERT_EQ(outcome, static_cast<uint8_t>(Outcome::kAbsent));
    }
  }
  // Pages that a wave fills at its height.
  uint64_t PagesOfWave() const {
    return (rows_max_ - kBatch) / DramTier::SlotsPerPage(table_->layout().row_bytes);
  }

 private:
  uint32_t dim() const { return table_->layout().dim; }
  static float ValueOf(Key key, size_t element) {
    return static_cast<float>(key % 1'000'003) + static_cast<float>(element);
  }
  void Make() {
    std::vector<Key> keys(kBatch);
    std::vector<float> rows;
    for (Key& key : keys) {
      key = random_.Bits();
      for (size_t j = 0; j < dim(); ++j) rows.push_back(ValueOf(key, j));
    }
    std::vector<uint8_t> outcomes(kBatch);
    ASSERT_TRUE(Upsert(table_, keys, RowsOf(rows, dim()), outcomes).ok());
    for (const uint8_t outcome : outcomes) {
      ASSERT_EQ(outcome, static_cast<uint8_t>(Outcome::kCreated));
    }
    live_.insert(live_.end(), keys.begin(), keys.end());
    events_->Count("rows made", kBatch);
  }
  void EraseSome() {
    gone_.clear();
    for (size_t i = 0; i < kBatch; ++i) {
      std::swap(live_[random_.Below(live_.size())], live_.back());
      gone_.push_back(live_.back());
      live_.pop_back();
    }
    std::vector<uint8_t> outcomes(kBatch);
    ASSERT_TRUE(Erase(table_, gone_, outcomes).ok());
    for (const uint8_t outcome : outcomes) {
      ASSERT_EQ(outcome, static_cast<uint8_t>(Outcome::kFound));
    }
    events_->Count("rows erased", kBatch);
  }
  void ExpectRight(const std::vector<Key>& keys) {
    std::vector<float> rows(keys.size() * dim());
    std::vector<uint8_t> outcomes(keys.size());
    ASSERT_TRUE(Lookup(table_, keys, MissingRule::kSkip, RowsIn(&rows, dim()), outcomes).ok());
    for (size_t i = 0; i < keys.size(); ++i) {
      ASSERT_EQ(outcomes[i], static_cast<uint8_t>(Outcome::kFound)) << "key " << keys[i];
      for (size_t j = 0; j < dim(); ++j) ASSERT_EQ(rows[i * dim() + j], ValueOf(keys[i], j));
    }
  }

  Table* const table_;
  Random random_;
  const size_t rows_max_;
  Events* const events_;
  std::vector<Key> live_;  // whole batches of them
  std::vector<Key> gone_;  // erased last
  bool grows_ = true;
};

// The expected contents of the store after each step.
class MemoryLine {
 public:
  MemoryLine(Store* store, const KeyIndex::Shard* shard, Events* events)
      : store_(store), shard_(shard), events_(events) {}

  void Check(bool is_warm) {
    const MemoryReport report = ReportMemory(*store_);
    ASSERT_EQ(report.used_bytes, report.fixed_bytes + report.index_bytes + report.rows_bytes +
                                     report.state_bytes + report.slack_bytes);
    slab_bytes_ = report.rows_bytes + report.state_bytes + report.slack_bytes;
    if (is_warm) {
      // The largest number of rows differs from wave to wave by a batch.
      ASSERT_LE(report.used_bytes, warm_bytes_ + kHugePageBytes);
    } else {
      warm_bytes_ = std::max(warm_bytes_, report.used_bytes);
    }
    const uint32_t buckets = std::min(shard_->low_buckets.load(), shard_->high_buckets.load());
    if (buckets > buckets_) events_->Count("growths of a shard");
    if (buckets < buckets_) events_->Count("shrinkings of a shard");
    buckets_ = buckets;
  }
  uint64_t slab_pages() const { return slab_bytes_ / DramTier::kPageBytes; }

 private:
  Store* const store_;
  const KeyIndex::Shard* const shard_;
  Events* const events_;
  uint64_t warm_bytes_ = 0;
  uint64_t slab_bytes_ = 0;
  uint32_t buckets_ = 0;
};

TEST(Churn, ErasingAndReusingLeavesMemoryWhereItWasAndAllRowsRight) {
  Events events;
  for (const char* event : {"rows made", "rows erased", "waves", "growths of a shard",
                            "shrinkings of a shard", "pages that changed class"}) {
    events.Expect(event);
  }
  StoreWorld store({.dram_bytes = 64 << 20});
  // Many small rows, for which the index grows; then large ones in the pages of the small.
  ChurningTable narrow(store.Create("narrow", OptionsOf(12)), FirstSeed(), 220'000, &events);
  ChurningTable wide(store.Create("wide", OptionsOf(60)), ~FirstSeed(), 70'000, &events);
  MemoryLine memory(&*store, store->catalog().List()[0]->store().index->shard(0), &events);
  ChurningTable* table = &narrow;
  uint64_t waves = 0;
  for (uint64_t step = 0; step < kOperationsPerScale * TestScale() / kBatch; ++step) {
    const bool wave_is_over = table->Step();
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "step " << step;
    ASSERT_NO_FATAL_FAILURE(memory.Check(waves >= 2)) << "step " << step;
    if (!wave_is_over) continue;
    ++waves;
    table = table == &narrow ? &wide : &narrow;
  }
  events.Count("waves", waves);
  // Each wave had that many pages, and yet no more were ever taken than these.
  const uint64_t both = narrow.PagesOfWave() + wide.PagesOfWave();
  events.Count("pages that changed class", both - std::min(both, memory.slab_pages()));
  ASSERT_NO_FATAL_FAILURE(narrow.ExpectAllRight());
  ASSERT_NO_FATAL_FAILURE(wide.ExpectAllRight());
  std::fputs(events.Table().c_str(), stdout);
  EXPECT_EQ(events.Missing(), "");
}

}  // namespace
}  // namespace embank::test::churn_test
