// The index against std::unordered_map, with keys built to collide: the worst that hashes can do.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <utility>
#include <vector>

#include "store/index/key_index.h"
#include "tests/support/events.h"
#include "tests/support/index_world.h"
#include "tests/support/random.h"

namespace embank::test::key_index_random_test {
namespace {

// Rows in few shards; each shard has some in one home, some in its first and last homes, some whose
// tag is that of empty entries, some that share all that the index looks at, and some anywhere.
class Universe {
 public:
  Universe(uint64_t seed, uint32_t shards, uint32_t rows_per_shard) : random_(seed) {
    for (uint32_t shard = 0; shard < shards; ++shard) {
      const uint64_t crowded = random_.Below(kQuotients);
      const uint64_t all_ones = QuotientWithAllOnesTag(
          static_cast<uint32_t>(random_.Below(kFirstBuckets / 2)), kFirstBuckets);
      for (uint32_t i = 0; i < rows_per_shard; ++i) {
        // Crowds of 1/16 of the rows at most, so that they fit behind a home or two.
        const uint64_t crowds[] = {crowded + random_.Below(4), kQuotients - 1 - random_.Below(4),
                                   random_.Below(4), all_ones};
        const uint64_t q = random_.OneIn(rows_per_shard / 60) ? crowds[random_.Below(4)]
                                                              : random_.Below(kQuotients);
        const auto table = static_cast<TableId>(random_.Below(IndexWorld::kTables));
        Add(IndexWorld::IdWithHash(table, HashAt(shard * 63 % 64, q, i)));
      }
    }
  }
  const RowId& Any() { return ids_[random_.Below(ids_.size())]; }
  const std::vector<RowId>& ids() const { return ids_; }
  Random* random() { return &random_; }

 private:
  // Two draws may give the same row.
  void Add(const RowId& id) {
    if (seen_.emplace(std::pair(id.table, id.key), true).second) ids_.push_back(id);
  }
  Random random_;
  std::vector<RowId> ids_;
  std::map<std::pair<TableId, Key>, bool> seen_;
};

// One index and one universe, changed at random.
class RandomUse {
 public:
  explicit RandomUse(uint64_t seed, Events* events) : universe_(seed, 2, 9000), events_(events) {}

  void Step(uint64_t inserts_of_ten) {
    const RowId& id = universe_.Any();
    if (universe_.random()->Below(10) >= inserts_of_ten) {
      events_->Count(index_.Holds(id) ? "erases" : "erases of absent rows");
      ASSERT_NO_FATAL_FAILURE(index_.Erase(id));
    } else if (!index_.Holds(id)) {
      events_->Count("inserts");
      ASSERT_NO_FATAL_FAILURE(index_.Insert(id));
    }
    ASSERT_NO_FATAL_FAILURE(index_.ExpectFindsRight(universe_.Any()));
    ASSERT_NO_FATAL_FAILURE(index_.ExpectFindsRight(id));
    const KeyIndex::Shard* const shard = index_.ShardOf(id);
    if (shard->low_buckets == shard->high_buckets) return;
    events_->Count(inserts_of_ten > 5 ? "steps while growing" : "steps while shrinking");
  }
  void ExpectAllRight() {
    for (const RowId& id : universe_.ids()) {
      ASSERT_NO_FATAL_FAILURE(index_.ExpectFindsRight(id));
    }
    ASSERT_NO_FATAL_FAILURE(index_.ExpectAllFound());
  }

 private:
  IndexWorld index_;
  Universe universe_;
  Events* const events_;
};

#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kSeeds = 1;
#else
constexpr uint64_t kSeeds = 3;
#endif

TEST(KeyIndex, AgreesWithAPlainMapOnCollidingKeysWhateverIsDone) {
  Events events;
  for (const char* name : {"inserts", "erases", "erases of absent rows", "steps while growing",
                           "steps while shrinking"}) {
    events.Expect(name);
  }
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    RandomUse use(seed, &events);
    constexpr int kSteps = 120'000;
    for (int step = 0; step < kSteps; ++step) {
      // Growing and shrinking by turns.
      const uint64_t inserts_of_ten = step / 30'000 % 2 == 0 ? 9 : 1;
      ASSERT_NO_FATAL_FAILURE(use.Step(inserts_of_ten)) << "seed " << seed << ", step " << step;
      if (step % 3000 != 0) continue;
      ASSERT_NO_FATAL_FAILURE(use.ExpectAllRight()) << "seed " << seed << ", step " << step;
    }
    ASSERT_NO_FATAL_FAILURE(use.ExpectAllRight()) << "seed " << seed;
  }
  std::printf("%s", events.Table().c_str());
  EXPECT_EQ(events.Missing(), "");
}

}  // namespace
}  // namespace embank::test::key_index_random_test
