// A store whose rows are more than its memory: whatever is where, it answers like a map.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/batch/gradients.h"
#include "store/batch/lookup.h"
#include "store/batch/state.h"
#include "store/batch/write.h"
#include "store/inspect/memory_report.h"
#include "store/scan/scan.h"
#include "store/store.h"
#include "tests/support/events.h"
#include "tests/support/row_values.h"
#include "tests/support/spill_world.h"

namespace embank::test::larger_than_memory_test {
namespace {

// All values of a row are one number, so that the whole row is checked and a map is enough.
class Model {
 public:
  Model(Table* table, uint64_t seed, Events* events)
      : table_(table), random_(seed), events_(events) {}

  static constexpr Key kKeys = 5000;

  void Step() {
    const uint64_t choice = random_.Below(100);
    const std::vector<Key> keys = DrawKeys();
    if (choice < 25) return DoUpsert(keys);
    if (choice < 60) return DoLookup(keys, static_cast<MissingRule>(random_.Below(4)));
    if (choice < 80) return DoGradients(keys);
    if (choice < 88) return DoErase(keys);
    if (choice < 94) return DoContains(keys);
    if (choice < 97) return DoHeat(keys);
    return DoScan();
  }

  void DoScan() {
    Scan scan(table_);
    std::map<Key, float> seen;
    std::vector<Key> keys(300);
    std::vector<float> rows(keys.size() * kDim);
    while (true) {
      const StatusOr<uint64_t> n = scan.Next(keys, RowsIn(&rows, kDim));
      ASSERT_TRUE(n.ok()) << n.status();
      if (*n == 0) break;
      for (uint64_t i = 0; i < *n; ++i) {
        ASSERT_TRUE(seen.emplace(keys[i], Value(rows, i)).second) << "seen twice";
      }
    }
    ASSERT_EQ(seen, rows_);
    events_->Count("scan");
  }
  const std::map<Key, float>& rows() const { return rows_; }
  void Clear(Table* table) {
    table_ = table;
    rows_.clear();
  }

 private:
  std::vector<Key> DrawKeys() {
    // Mostly a few, some of them hot, with doubles; now and then more than fit.
    const size_t n = random_.OneIn(50) ? 2500 : random_.Between(1, 60);
    std::vector<Key> keys(n);
    const bool hot = random_.OneIn(3);
    for (Key& key : keys) key = random_.Below(hot ? 300 : kKeys);
    return keys;
  }
  static float Value(const std::vector<float>& rows, size_t i) {
    EXPECT_TRUE(IsWholeRow(rows, i, kDim)) << "a torn row";
    return rows[i * kDim];
  }
  static std::vector<float> Rows(const std::vector<float>& values) {
    std::vector<float> rows(values.size() * kDim);
    for (size_t i = 0; i < values.size(); ++i) FillRow(&rows, i, kDim, values[i]);
    return rows;
  }
  void Expect(const std::vector<uint8_t>& outcomes, size_t i, Outcome expected) {
    ASSERT_EQ(outcomes[i], static_cast<uint8_t>(expected)) << "position " << i;
  }

  void DoUpsert(const std::vector<Key>& keys) {
    std::vector<float> values;
    for (size_t i = 0; i < keys.size(); ++i) {
      values.push_back(static_cast<float>(random_.Below(1000)));
    }
    std::vector<uint8_t> outcomes(keys.size());
    ASSERT_TRUE(Upsert(table_, keys, RowsOf(Rows(values), kDim), outcomes).ok());
    for (size_t i = 0; i < keys.size(); ++i) {
      const bool found = rows_.count(keys[i]) == 1;
      ASSERT_NO_FATAL_FAILURE(Expect(outcomes, i, found ? Outcome::kFound : Outcome::kCreated));
      rows_[keys[i]] = values[i];
    }
    events_->Count("upsert");
  }
  void DoLookup(const std::vector<Key>& keys, MissingRule rule) {
    std::vector<float> rows(keys.size() * kDim, -7.0f);
    std::vector<uint8_t> outcomes(keys.size());
    ASSERT_TRUE(Lookup(table_, keys, rule, RowsIn(&rows, kDim), outcomes).ok());
    for (size_t i = 0; i < keys.size(); ++i) {
      const bool found = rows_.count(keys[i]) == 1;
      const bool creates = rule == MissingRule::kCreate;
      if (!found && creates) rows_[keys[i]] = 5.0f;
      ASSERT_NO_FATAL_FAILURE(Expect(outcomes, i,
                                     found     ? Outcome::kFound
                                     : creates ? Outcome::kCreated
                                               : Outcome::kAbsent));
      const float absent = rule == MissingRule::kZero   ? 0.0f
                           : rule == MissingRule::kSkip ? -7.0f
                                                        : 5.0f;
      ASSERT_EQ(Value(rows, i), found || creates ? rows_.at(keys[i]) : absent);
    }
    events_->Count("lookup");
  }
  void DoGradients(const std::vector<Key>& keys) {
    std::vector<float> values;
    for (size_t i = 0; i < keys.size(); ++i) {
      values.push_back(static_cast<float>(random_.Below(10)));
    }
    std::vector<uint8_t> outcomes(keys.size());
    ASSERT_TRUE(ApplyGradients(table_, keys, RowsOf(Rows(values), kDim), outcomes).ok());
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto row = rows_.find(keys[i]);
      ASSERT_NO_FATAL_FAILURE(
          Expect(outcomes, i, row != rows_.end() ? Outcome::kFound : Outcome::kAbsent));
      if (row != rows_.end()) row->second -= values[i];
    }
    events_->Count("gradients");
  }
  void DoErase(const std::vector<Key>& keys) {
    std::vector<uint8_t> outcomes(keys.size());
    ASSERT_TRUE(Erase(table_, keys, outcomes).ok());
    for (size_t i = 0; i < keys.size(); ++i) {
      const bool found = rows_.erase(keys[i]) == 1;
      ASSERT_NO_FATAL_FAILURE(Expect(outcomes, i, found ? Outcome::kFound : Outcome::kAbsent));
    }
    events_->Count("erase");
  }
  void DoContains(const std::vector<Key>& keys) {
    std::vector<uint8_t> outcomes(keys.size());
    ASSERT_TRUE(Contains(table_, keys, outcomes).ok());
    for (size_t i = 0; i < keys.size(); ++i) {
      const bool found = rows_.count(keys[i]) == 1;
      ASSERT_NO_FATAL_FAILURE(Expect(outcomes, i, found ? Outcome::kFound : Outcome::kAbsent));
    }
    events_->Count("contains");
  }
  void DoHeat(const std::vector<Key>& keys) {
    std::vector<uint32_t> heat(keys.size(), 99'999);
    std::vector<uint8_t> outcomes(keys.size());
    ASSERT_TRUE(GetHeat(table_, keys, heat, outcomes).ok());
    for (size_t i = 0; i < keys.size(); ++i) {
      const bool found = rows_.count(keys[i]) == 1;
      ASSERT_NO_FATAL_FAILURE(Expect(outcomes, i, found ? Outcome::kFound : Outcome::kAbsent));
      ASSERT_LT(heat[i], found ? 99'999u : 1u);
    }
    events_->Count("heat");
  }

  Table* table_;
  Random random_;
  Events* const events_;
  std::map<Key, float> rows_;
};

TEST(LargerThanMemory, AgreesWithAMapWhateverIsWhere) {
  Events events;
  for (const char* name :
       {"scan", "upsert", "lookup", "gradients", "erase", "contains", "heat", "rows in the log",
        "rows in memory", "record read", "table dropped", "segment removed"}) {
    events.Expect(name);
  }
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SpillWorld store(seed);
    Table* one = store.Create("one", Optimizer::kSgd);
    Table* const other = store.Create("other", Optimizer::kNone);
    Model model(one, seed, &events);
    // Rows of another table of the class, which are told apart.
    const std::vector<Key> others = KeysFrom(0, 1000);
    const std::vector<float> values(others.size() * kDim, 3.0f);
    ASSERT_TRUE(Upsert(other, others, RowsOf(values, kDim), {}).ok());
    for (int step = 0; step < 400; ++step) {
      ASSERT_NO_FATAL_FAILURE(model.Step()) << "seed " << seed << " step " << step;
      ASSERT_EQ(one->rows(), model.rows().size());
      ASSERT_LE(ReportMemory(*store).used_bytes, kDramBytes);
      if (step == 200) {
        ASSERT_TRUE(store->DropTable("one").ok());
        ASSERT_EQ(one->rows(), 0u);
        ASSERT_EQ(one->rows_in_log(), 0u);
        one = store.Create("one", Optimizer::kSgd);
        model.Clear(one);
        events.Count("table dropped");
      }
    }
    ASSERT_NO_FATAL_FAILURE(model.DoScan());
    events.Count("rows in the log", one->rows_in_log());
    events.Count("rows in memory", one->rows() - one->rows_in_log());
    events.Count("record read", one->mover()->logs().lowest().counters().reads);
    std::vector<float> found(others.size() * kDim);
    ASSERT_TRUE(Lookup(other, others, MissingRule::kZero, RowsIn(&found, kDim), {}).ok());
    ASSERT_EQ(found, values);
    // Segments that only a dropped table used are removed when the next segment is begun.
    ASSERT_TRUE(store->DropTable("one").ok());
    for (Key first = 10'000; first < 14'000; first += 1000) {
      ASSERT_TRUE(Upsert(other, KeysFrom(first, 1000), RowsOf(values, kDim), {}).ok());
    }
    const RowLogs& logs = other->mover()->logs();
    const uint64_t in_pmem = WithPmem() ? logs.pmem()->segments().live_rows() : 0;
    const uint64_t live = logs.lowest().segments().live_rows() + in_pmem;
    EXPECT_GE(live, other->rows_in_log());
    EXPECT_LE(live, other->rows());
    const std::vector<std::string> files = store.disk().Files();
    const uint64_t segments =
        std::stoull(files.back().substr(files.back().size() - 16), nullptr, 16);
    events.Count("segment removed", segments - files.size());
  }
  std::printf("%s", events.Table().c_str());
  EXPECT_EQ(events.Missing(), "");
}

// Each gradient takes one from a row: at the end none is missing, whatever was evicted meanwhile.
TEST(LargerThanMemory, NoStepIsLostBetweenThreads) {
  SpillWorld store(1, MakeThreadPool(2));
  Table* const table = store.Create("t", Optimizer::kSgd);
  constexpr Key kKeys = 4000;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr int kBatches = 40;
#else
  constexpr int kBatches = 200;
#endif
  constexpr size_t kBatch = 50;
  const std::vector<Key> all = KeysFrom(0, kKeys);
  std::vector<float> rows(kKeys * kDim, 0.0f);
  ASSERT_TRUE(Upsert(table, all, RowsOf(rows, kDim), {}).ok());
  ASSERT_GT(table->rows_in_log(), 1000u);
  std::vector<std::atomic<uint32_t>> steps(kKeys);
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      Random random(thread);
      const std::vector<float> ones(kBatch * kDim, 1.0f);
      std::vector<float> seen(kBatch * kDim);
      for (int i = 0; i < kBatches; ++i) {
        std::vector<Key> keys(kBatch);
        for (Key& key : keys) key = random.Below(random.OneIn(2) ? 200 : kKeys);
        if (thread < 2) {
          wrong += ApplyGradients(table, keys, RowsOf(ones, kDim), {}).ok() ? 0 : 1;
          for (const Key key : keys) ++steps[key];
        } else {
          wrong += Lookup(table, keys, MissingRule::kZero, RowsIn(&seen, kDim), {}).ok() ? 0 : 1;
          for (size_t k = 0; k < kBatch; ++k) {
            wrong += IsWholeRow(seen, k, kDim) ? 0 : 1;
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  std::vector<uint8_t> outcomes(kKeys);
  ASSERT_TRUE(Lookup(table, all, MissingRule::kZero, RowsIn(&rows, kDim), outcomes).ok());
  for (Key key = 0; key < kKeys; ++key) {
    ASSERT_EQ(outcomes[key], static_cast<uint8_t>(Outcome::kFound));
    ASSERT_EQ(rows[key * kDim], -static_cast<float>(steps[key])) << "key " << key;
  }
}

// Rows made, written and erased by one thread each, read and scanned by all, while they are
// evicted.
TEST(LargerThanMemory, EachThreadFindsItsOwnRowsWhateverOthersDo) {
  SpillWorld store(2, MakeThreadPool(2));
  Table* const table = store.Create("t", Optimizer::kSgd);
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr int kSteps = 60;
#else
  constexpr int kSteps = 300;
#endif
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      Random random(thread);
      std::map<Key, float> mine;
      for (int step = 0; step < kSteps; ++step) {
        std::vector<Key> keys(random.Between(1, 40));
        for (Key& key : keys) key = thread << 32 | random.Below(1500);
        std::vector<float> rows(keys.size() * kDim, static_cast<float>(step));
        std::vector<uint8_t> outcomes(keys.size());
        const uint64_t choice = random.Below(10);
        Status status;
        if (choice < 4) {
          status = Upsert(table, keys, RowsOf(rows, kDim), outcomes);
          for (const Key key : keys) mine[key] = static_cast<float>(step);
        } else if (choice < 6) {
          status = Erase(table, keys, outcomes);
          for (const Key key : keys) mine.erase(key);
        } else if (choice < 7) {
          status = Lookup(table, keys, MissingRule::kCreate, RowsIn(&rows, kDim), outcomes);
          for (const Key key : keys) mine.try_emplace(key, 5.0f);
        }
        wrong += status.ok() ? 0 : 1;
        status = Lookup(table, keys, MissingRule::kZero, RowsIn(&rows, kDim), outcomes);
        wrong += status.ok() ? 0 : 1;
        for (size_t i = 0; i < keys.size(); ++i) {
          const auto row = mine.find(keys[i]);
          const bool found = outcomes[i] == static_cast<uint8_t>(Outcome::kFound);
          wrong += found == (row != mine.end()) ? 0 : 1;
          wrong += rows[i * kDim] == (row != mine.end() ? row->second : 0.0f) ? 0 : 1;
        }
        if (random.OneIn(40)) {
          Scan scan(table);
          std::vector<Key> seen(200);
          std::vector<float> seen_rows(seen.size() * kDim);
          std::set<Key> my_seen;
          StatusOr<uint64_t> n = 1;
          while (n.ok() && *n > 0) {
            n = scan.Next(seen, RowsIn(&seen_rows, kDim));
            for (uint64_t i = 0; n.ok() && i < *n; ++i) {
              if (seen[i] >> 32 == thread) wrong += my_seen.insert(seen[i]).second ? 0 : 1;
            }
          }
          wrong += n.ok() && my_seen.size() == mine.size() ? 0 : 1;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace embank::test::larger_than_memory_test
