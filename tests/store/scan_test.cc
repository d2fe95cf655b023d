#include "store/scan/scan.h"
#include "store/inspect/memory_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <vector>

#include "store/batch/lookup.h"
#include "store/batch/write.h"
#include "tests/support/events.h"
#include "tests/support/inverse_mix.h"
#include "tests/support/random.h"
#include "tests/support/store_world.h"

namespace embank::test::scan_test {
namespace {

constexpr uint32_t kDim = 3;

class ScanTest : public testing::Test {
 protected:
  // Rows whose elements say the key and a generation.
  void Write(const std::vector<Key>& keys, float generation) {
    std::vector<float> values;
    for (const Key key : keys) {
      values.insert(values.end(), {static_cast<float>(key), generation, generation});
    }
    ASSERT_TRUE(Upsert(table_, keys, RowsOf(values, kDim), {}).ok());
  }
  void Remove(const std::vector<Key>& keys) {
    std::vector<uint8_t> outcomes(keys.size());
    ASSERT_TRUE(Erase(table_, keys, outcomes).ok());
  }
  // The next rows, checked to be whole: key -> generation.
  std::multimap<Key, float> Next(Scan* scan, size_t cap) {
    std::vector<Key> keys(cap);
    std::vector<float> rows(cap * kDim, -1.0f);
    const StatusOr<uint64_t> n = scan->Next(keys, RowsIn(&rows, kDim));
    EXPECT_TRUE(n.ok()) << n.status();
    std::multimap<Key, float> seen;
    for (uint64_t i = 0; n.ok() && i < *n; ++i) {
      EXPECT_EQ(rows[i * kDim], static_cast<float>(keys[i]));
      EXPECT_EQ(rows[i * kDim + 1], rows[i * kDim + 2]) << "a torn row";
      seen.emplace(keys[i], rows[i * kDim + 1]);
    }
    return seen;
  }
  std::multimap<Key, float> All(size_t cap) {
    Scan scan(table_);
    std::multimap<Key, float> all;
    while (true) {
      const std::multimap<Key, float> some = Next(&scan, cap);
      if (some.empty()) return all;
      EXPECT_LE(some.size(), cap);
      all.insert(some.begin(), some.end());
    }
  }

  StoreWorld store_;
  Table* table_ = store_.Create("t", OptionsOf(kDim));
};

TEST_F(ScanTest, AScanOfAnEmptyTableEndsAtOnceAndStaysAtItsEnd) {
  Scan scan(table_);
  EXPECT_TRUE(Next(&scan, 10).empty());
  EXPECT_TRUE(Next(&scan, 10).empty());
  EXPECT_EQ(&scan.table(), table_);
}

TEST_F(ScanTest, GivesEveryRowOnceWhateverTheCap) {
  Write(KeysFrom(100, 700), 1.0f);
  for (const size_t cap : {1, 2, 7, 699, 700, 701, 5000}) {
    const std::multimap<Key, float> all = All(cap);
    ASSERT_EQ(all.size(), 700u) << "cap " << cap;
    for (Key key = 100; key < 800; ++key) ASSERT_EQ(all.count(key), 1u) << key;
  }
}

TEST_F(ScanTest, FillsTheCapWhileThereAreRows) {
  Write(KeysFrom(0, 700), 1.0f);
  Scan scan(table_);
  EXPECT_EQ(Next(&scan, 300).size(), 300u);
  EXPECT_EQ(Next(&scan, 300).size(), 300u);
  EXPECT_EQ(Next(&scan, 300).size(), 100u);
  EXPECT_EQ(Next(&scan, 300).size(), 0u);
}

TEST_F(ScanTest, SeesOnlyItsTable) {
  Table* const other = store_.Create("other", OptionsOf(kDim));
  std::vector<float> values(200 * kDim, 5.0f);
  ASSERT_TRUE(Upsert(other, KeysFrom(0, 200), RowsOf(values, kDim), {}).ok());
  Write(KeysFrom(100, 200), 1.0f);
  const std::multimap<Key, float> all = All(64);
  ASSERT_EQ(all.size(), 200u);
  EXPECT_EQ(all.begin()->first, 100u);
}

TEST_F(ScanTest, LeavesTheBytesBetweenTheRowsAlone) {
  Write(KeysFrom(0, 5), 1.0f);
  std::vector<Key> keys(8, 999);
  std::vector<float> rows(8 * 5, -7.0f);  // stride of 5 floats for rows of 3
  Scan scan(table_);
  const StatusOr<uint64_t> n =
      scan.Next(keys, {reinterpret_cast<std::byte*>(rows.data()), 5 * sizeof(float)});
  ASSERT_TRUE(n.ok());
  ASSERT_EQ(*n, 5u);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(rows[i * 5 + 3], -7.0f);
    EXPECT_EQ(rows[i * 5 + 4], -7.0f);
    EXPECT_EQ(keys[i] == 999, i >= 5);
  }
}

TEST_F(ScanTest, EndsWhenItsTableIsDropped) {
  Write(KeysFrom(0, 100), 1.0f);
  Scan begun(table_);
  Scan fresh(table_);
  EXPECT_EQ(Next(&begun, 10).size(), 10u);
  ASSERT_TRUE(store_->DropTable("t").ok());
  std::vector<Key> keys(10);
  std::vector<float> rows(10 * kDim);
  for (Scan* const scan : {&begun, &fresh}) {
    const Status status = scan->Next(keys, RowsIn(&rows, kDim)).status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
  }
}

TEST_F(ScanTest, DoesNotGiveARowErasedBeforeItIsReached) {
  Write(KeysFrom(0, 500), 1.0f);
  Scan scan(table_);
  std::set<Key> seen;
  for (const auto& [key, generation] : Next(&scan, 100)) seen.insert(key);
  Remove(KeysFrom(0, 500));
  EXPECT_TRUE(Next(&scan, 500).empty());
  EXPECT_EQ(seen.size(), 100u);
}

TEST_F(ScanTest, DoesNotGiveARowErasedWhileItsRangeIsHalfRead) {
  // Keys of one range, which are collected together.
  std::vector<Key> keys;
  for (uint64_t i = 0; i < 40; ++i) {
    keys.push_back(KeyWithHash(TableHash("t"), (uint64_t{77} << 52) + (i << 20)));
  }
  Write(keys, 1.0f);
  Scan scan(table_);
  const std::multimap<Key, float> first = Next(&scan, 10);
  ASSERT_EQ(first.size(), 10u);
  std::vector<Key> left;
  for (const Key key : keys) {
    if (first.count(key) == 0) left.push_back(key);
  }
  Remove({left[3], left[4], left[29]});
  Write({left[5]}, 2.0f);
  const std::multimap<Key, float> rest = Next(&scan, 100);
  EXPECT_EQ(rest.size(), 27u);
  for (const size_t erased : {3, 4, 29}) EXPECT_EQ(rest.count(left[erased]), 0u);
  ASSERT_EQ(rest.count(left[5]), 1u);
  EXPECT_EQ(rest.find(left[5])->second, 2.0f) << "as of a moment before the open";
  EXPECT_TRUE(Next(&scan, 1).empty());
}

// Keys first, first + 1, ... of those whose hashes lie in two shards, so that these grow early.
std::vector<Key> KeysOfTwoShards(uint64_t first, uint64_t n) {
  std::vector<Key> keys;
  for (uint64_t i = first; i < first + n; ++i) {
    const uint64_t q = i * kGoldenRatio >> 32;
    keys.push_back(KeyWithHash(TableHash("t"), (i % 2 << 58) | q << 26 | (i & 0x3FFFFFF)));
  }
  return keys;
}

// Rows that live throughout are seen once each, others at most once, all of them whole and as of
// some moment since the open, while the index grows from one page a shard to several.
TEST_F(ScanTest, GivesEachLivingRowOnceWhileOthersComeAndGoAndTheIndexGrows) {
  Events events;
  for (const char* name :
       {"new rows seen", "new rows missed", "erased rows seen", "erased rows missed",
        "rewritten rows seen new", "rewritten rows seen old", "index growths"}) {
    events.Expect(name);
  }
  constexpr uint64_t kRows = 4000;
  int moment = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Random random(seed);
    const uint64_t base = seed << 20;
    const std::vector<Key> living = KeysOfTwoShards(base, kRows);
    const std::vector<Key> dying = KeysOfTwoShards(base + 100'000, kRows);
    Write(living, 0.0f);
    Write(dying, 0.0f);
    const uint64_t index_bytes = ReportMemory(*store_).index_bytes;
    Scan scan(table_);
    std::multimap<Key, float> all;
    std::set<Key> erased;
    uint64_t next_new = base + 200'000;
    while (true) {
      const auto generation = static_cast<float>(++moment);
      const std::multimap<Key, float> some = Next(&scan, random.Between(1, 300));
      if (some.empty()) break;
      for (const auto& [key, seen_generation] : some) {
        ASSERT_LT(seen_generation, generation) << "a row from the future";
        ASSERT_EQ(erased.count(key), 0u) << "a row seen after it was erased";
      }
      all.insert(some.begin(), some.end());
      ASSERT_NO_FATAL_FAILURE(Write(KeysOfTwoShards(next_new, 40), generation));
      next_new += 40;
      const std::vector<Key> rewritten = {living[random.Below(kRows)], living[random.Below(kRows)]};
      ASSERT_NO_FATAL_FAILURE(Write(rewritten, generation));
      const std::vector<Key> gone = {dying[random.Below(kRows)], dying[random.Below(kRows)]};
      ASSERT_NO_FATAL_FAILURE(Remove(gone));
      erased.insert(gone.begin(), gone.end());
    }
    for (const auto& [key, generation] : all) ASSERT_EQ(all.count(key), 1u) << "seen twice";
    for (const Key key : living) {
      ASSERT_EQ(all.count(key), 1u) << "a living row was missed";
      events.Count(all.find(key)->second > 0 ? "rewritten rows seen new"
                                             : "rewritten rows seen old");
    }
    for (const Key key : dying) {
      if (erased.count(key) == 0) {
        ASSERT_EQ(all.count(key), 1u) << "a living row was missed";
      } else {
        events.Count(all.count(key) == 1 ? "erased rows seen" : "erased rows missed");
      }
    }
    const uint64_t first_new = base + 200'000;
    for (const Key key : KeysOfTwoShards(first_new, next_new - first_new)) {
      events.Count(all.count(key) == 1 ? "new rows seen" : "new rows missed");
    }
    events.Count("index growths", ReportMemory(*store_).index_bytes > index_bytes ? 1 : 0);
  }
  std::printf("%s", events.Table().c_str());
  EXPECT_EQ(events.Missing(), "");
}

}  // namespace
}  // namespace embank::test::scan_test
