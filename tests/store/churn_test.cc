// Rows that are erased and made again, a million of them (EMBANK_TEST_SCALE times more): memory
// stays where it was after the warm-up, and all rows are right at the end.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "store/lookup.h"
#include "store/write.h"
#include "tests/support/random.h"
#include "tests/support/store_world.h"

namespace embank::test {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr uint64_t kOperationsPerScale = 600'000;
#else
constexpr uint64_t kOperationsPerScale = 1'000'000;
#endif

uint64_t Scale() {
  const char* const text = std::getenv("EMBANK_TEST_SCALE");
  return text == nullptr || *text == '\0' ? 1 : std::strtoull(text, nullptr, 10);
}

// A table whose rows come and go, their number swinging between two bounds. Each key has a value.
class ChurningTable {
 public:
  static constexpr size_t kBatch = 1000;
  static constexpr size_t kRowsMin = 15'000;
  static constexpr size_t kRowsMax = 30'000;

  ChurningTable(Table* table, uint64_t seed) : table_(table), random_(seed) {}

  // Erases or makes a batch of rows.
  void Step() {
    if (live_.size() >= kRowsMax) grows_ = false;
    if (live_.size() <= kRowsMin) grows_ = true;
    // Mostly the one or the other, so that pages and the index fill and empty.
    if (live_.size() < kBatch || random_.Below(10) < (grows_ ? 7u : 3u)) {
      Make();
    } else {
      EraseSome();
    }
  }
  void ExpectAllRight() {
    ASSERT_EQ(table_->rows(), live_.size());
    for (size_t begin = 0; begin < live_.size(); begin += kBatch) {
      const size_t count = std::min(kBatch, live_.size() - begin);
      const std::vector<Key> keys(live_.begin() + static_cast<ptrdiff_t>(begin),
                                  live_.begin() + static_cast<ptrdiff_t>(begin + count));
      std::vector<float> rows(count * dim());
      std::vector<uint8_t> outcomes(count);
      ASSERT_TRUE(Lookup(table_, keys, MissingRule::kSkip, RowsIn(&rows, dim()), outcomes).ok());
      for (size_t i = 0; i < count; ++i) {
        ASSERT_EQ(outcomes[i], static_cast<uint8_t>(Outcome::kFound)) << "key " << keys[i];
        for (size_t j = 0; j < dim(); ++j) ASSERT_EQ(rows[i * dim() + j], ValueOf(keys[i], j));
      }
    }
    std::vector<uint8_t> outcomes(gone_.size());
    ASSERT_TRUE(Contains(table_, gone_, outcomes).ok());
    for (const uint8_t outcome : outcomes) {
      ASSERT_EQ(outcome, static_cast<uint8_t>(Outcome::kAbsent));
    }
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
  }

  Table* const table_;
  Random random_;
  std::vector<Key> live_;
  std::vector<Key> gone_;  // erased last
  bool grows_ = true;
};

TEST(Churn, ErasingAndReusingLeavesMemoryWhereItWasAndAllRowsRight) {
  StoreWorld store({.dram_bytes = 64 << 20});
  // Two slot sizes, so that pages change between them.
  ChurningTable narrow(store.Create("narrow", OptionsOf(4)), 1);
  ChurningTable wide(store.Create("wide", OptionsOf(100)), 2);
  const uint64_t steps = kOperationsPerScale * Scale() / ChurningTable::kBatch;
  // Long enough that both tables have been at their largest.
  const uint64_t warm_up = std::min<uint64_t>(steps / 2, 500);
  uint64_t warm_bytes = 0;
  for (uint64_t step = 0; step < steps; ++step) {
    ASSERT_NO_FATAL_FAILURE((step % 2 == 0 ? narrow : wide).Step()) << "step " << step;
    const MemoryReport report = store->ReportMemory();
    ASSERT_EQ(report.used_bytes, report.fixed_bytes + report.index_bytes + report.rows_bytes +
                                     report.state_bytes + report.slack_bytes);
    if (step < warm_up) {
      warm_bytes = std::max(warm_bytes, report.used_bytes);
    } else {
      // The largest number of rows differs from wave to wave by a batch or two.
      ASSERT_LE(report.used_bytes, warm_bytes + kHugePageBytes) << "step " << step;
    }
  }
  ASSERT_NO_FATAL_FAILURE(narrow.ExpectAllRight());
  ASSERT_NO_FATAL_FAILURE(wide.ExpectAllRight());
}

}  // namespace
}  // namespace embank::test
