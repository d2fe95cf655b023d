// Random operations on tables that forget, told by their outcomes: a row is what was last written,
// or it was forgotten, and is as new.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "store/batch/gradients.h"
#include "store/batch/lookup.h"
#include "store/batch/write.h"
#include "store/inspect/memory_report.h"
#include "store/scan/scan.h"
#include "tests/support/environment.h"
#include "tests/support/events.h"
#include "tests/support/random.h"
#include "tests/support/store_world.h"

namespace embank::test::forgetting_operations_test {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kBatchesPerScale = 150;
#else
constexpr uint64_t kBatchesPerScale = 800;
#endif

constexpr uint32_t kDim = 4096;
constexpr float kNew = 5.0f;
constexpr Key kKeys = 1600;  // twice what fits

// A table of rows whose values are all one number, and its expected contents; a key may have been
// forgotten since.
class ToldTable {
 public:
  ToldTable(Store* store, Table* table, Events* events)
      : store_(store), table_(table), events_(events) {}

  void LookUp(const std::vector<Key>& keys, MissingRule rule) {
    std::vector<float> rows(keys.size() * kDim, -1.0f);
    std::vector<uint8_t> outcomes(keys.size());
    ASSERT_TRUE(Lookup(table_, keys, rule, RowsIn(&rows, kDim), outcomes).ok());
    std::map<Key, bool> made;
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto outcome = static_cast<Outcome>(outcomes[i]);
      const auto known = values_.find(keys[i]);
      float expected = kNew;
      if (outcome == Outcome::kCreated) {
        ASSERT_EQ(rule, MissingRule::kCreate);
        OnInsert(keys[i], kNew);
        made[keys[i]] = true;
      } else if (outcome == Outcome::kFound) {
        ASSERT_NE(known, values_.end()) << "a row that nobody made";
        expected = known->second;
      } else {
        ASSERT_EQ(outcome, Outcome::kAbsent);
        if (rule == MissingRule::kZero) expected = 0.0f;
        OnErase(keys[i]);
      }
      ExpectAll(rows, i, expected);
    }
  }

  void Put(const std::vector<Key>& keys) {
    std::vector<float> rows;
    for (size_t i = 0; i < keys.size(); ++i) {
      rows.insert(rows.end(), kDim, static_cast<float>(written_ + i));
    }
    std::vector<uint8_t> outcomes(keys.size());
    ASSERT_TRUE(Upsert(table_, keys, RowsOf(rows, kDim), outcomes).ok());
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto outcome = static_cast<Outcome>(outcomes[i]);
      const auto value = static_cast<float>(written_ + i);
      if (outcome == Outcome::kCreated) {
        OnInsert(keys[i], value);
      } else {
        ASSERT_EQ(outcome, Outcome::kFound);
        ASSERT_EQ(values_.count(keys[i]), 1u);
        values_[keys[i]] = value;
      }
    }
    written_ = (written_ + keys.size()) % 100'000;
  }

  // A gradient of one each, by a rate of one.
  void Step(const std::vector<Key>& keys) {
    const std::vector<float> gradients(keys.size() * kDim, 1.0f);
    std::vector<uint8_t> outcomes(keys.size());
    ASSERT_TRUE(ApplyGradients(table_, keys, RowsOf(gradients, kDim), outcomes).ok());
    for (size_t i = 0; i < keys.size(); ++i) {
      if (static_cast<Outcome>(outcomes[i]) == Outcome::kFound) {
        ASSERT_EQ(values_.count(keys[i]), 1u);
        values_[keys[i]] -= 1.0f;
      } else {
        ASSERT_EQ(static_cast<Outcome>(outcomes[i]), Outcome::kAbsent);
        OnErase(keys[i]);
      }
    }
  }

  void Remove(const std::vector<Key>& keys) {
    std::vector<uint8_t> outcomes(keys.size());
    ASSERT_TRUE(Erase(table_, keys, outcomes).ok());
    for (size_t i = 0; i < keys.size(); ++i) {
      if (static_cast<Outcome>(outcomes[i]) == Outcome::kFound) ++erased_;
      OnErase(keys[i]);
    }
  }

  // Compares the rows of a scan with the answers so far, and the count of forgotten rows.
  void CheckAll() {
    uint64_t seen = 0;
    Scan scan(table_);
    std::vector<Key> keys(100);
    std::vector<float> rows(keys.size() * kDim);
    for (;;) {
      const StatusOr<uint64_t> count = scan.Next(keys, RowsIn(&rows, kDim));
      ASSERT_TRUE(count.ok()) << count.status();
      if (*count == 0) break;
      for (size_t i = 0; i < *count; ++i) {
        ASSERT_EQ(values_.count(keys[i]), 1u) << "a row that nobody made";
        ExpectAll(rows, i, values_[keys[i]]);
      }
      seen += *count;
    }
    EXPECT_EQ(seen, table_->rows());
    const uint64_t forgotten = table_->counters().forgotten_rows.load();
    EXPECT_EQ(made_ - erased_ - forgotten, seen);
    EXPECT_EQ(table_->counters().calls.Counts(TableVerb::kLookup).keys_by_outcome[3], 0u)
        << "refused";
    const MemoryReport report = ReportMemory(*store_);
    EXPECT_LE(report.used_bytes, report.budget_bytes);
    events_->Count("forgotten", forgotten - forgotten_);
    forgotten_ = forgotten;
  }

 private:
  void OnInsert(Key key, float value) {
    ++made_;
    if (values_.count(key) == 1) events_->Count("made again");
    values_[key] = value;
  }
  void OnErase(Key key) { values_.erase(key); }
  static void ExpectAll(const std::vector<float>& rows, size_t i, float value) {
    for (size_t at = i * kDim; at < (i + 1) * kDim; ++at) ASSERT_EQ(rows[at], value) << "row " << i;
  }

  Store* const store_;
  Table* const table_;
  Events* const events_;
  std::map<Key, float> values_;
  size_t written_ = 0;
  uint64_t made_ = 0;
  uint64_t erased_ = 0;
  uint64_t forgotten_ = 0;
};

std::vector<Key> DrawKeys(Random* random) {
  const uint64_t drawn = random->Below(100);
  // One in fifty is larger than memory.
  const uint64_t count = drawn < 2 ? 1200 : drawn < 30 ? random->Below(3) : random->Below(120);
  std::vector<Key> keys(count);
  const Key first = random->Below(kKeys);
  const bool in_a_row = random->OneIn(4);
  for (size_t i = 0; i < count; ++i) {
    keys[i] = in_a_row ? (first + i) % kKeys : random->Below(random->OneIn(2) ? kKeys : 300);
  }
  return keys;
}

void Operate(ToldTable* table, Random* random, Events* events) {
  const std::vector<Key> keys = DrawKeys(random);
  if (keys.size() > 1000) events->Count("batch larger than memory");
  switch (random->Below(10)) {
    case 0:
      return table->LookUp(keys, MissingRule::kZero);
    case 1:
    case 2:
      return table->Put(keys);
    case 3:
      return table->Step(keys);
    case 4:
      if (keys.size() > 1000) return;
      events->Count("erase");
      return table->Remove(keys);
    default:
      return table->LookUp(keys, MissingRule::kCreate);
  }
}

class ForgettingOperations : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, ForgettingOperations, testing::Range<uint64_t>(1, 5));

TEST_P(ForgettingOperations, RowsAreWhatWasWrittenOrForgotten) {
  const uint64_t seed = GetParam();
  StoreWorld store({.dram_bytes = uint64_t{16} << 20, .seed = seed});
  Events events;
  for (const char* const name : {"forgotten", "made again", "erase", "batch larger than memory"}) {
    events.Expect(name);
  }
  Random random(seed);
  TableOptions options = OptionsOf(kDim, Optimizer::kSgd);
  options.rule.learning_rate = 1.0f;
  options.initializer = {InitializerKind::kConstant, kNew, 0};
  options.eviction = seed % 2 == 0 ? EvictionPolicy::kLfu : EvictionPolicy::kLru;
  options.on_full = OnFull::kForget;
  // The tables are of one class: rows of either make space for both.
  ToldTable one(&*store, store.Create("one", options), &events);
  ToldTable two(&*store, store.Create("two", options), &events);
  const uint64_t batches = kBatchesPerScale * TestScale();
  for (uint64_t i = 0; i < batches && !HasFatalFailure(); ++i) {
    Operate(random.OneIn(4) ? &two : &one, &random, &events);
    if (i % 50 == 0 || i + 1 == batches) one.CheckAll();
    if (i % 50 == 0 || i + 1 == batches) two.CheckAll();
  }
  std::printf("seed %llu\n%s", static_cast<unsigned long long>(seed), events.Table().c_str());
  EXPECT_EQ(events.Missing(), "");
}

}  // namespace
}  // namespace embank::test::forgetting_operations_test
