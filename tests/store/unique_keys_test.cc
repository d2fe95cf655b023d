// Groups of a batch by shard, and the distinct keys of a group.
#include "store/batch/unique_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "store/batch/lookup.h"
#include "store/batch/row_group.h"
#include "store/batch/shard_plan.h"
#include "store/batch/touches.h"
#include "store/batch/write.h"
#include "tests/support/inverse_mix.h"
#include "tests/support/random.h"
#include "tests/support/store_world.h"

namespace embank::test::unique_keys_test {
namespace {

class ShardGroupsTest : public testing::Test {
 protected:
  // Keys of which some are many times there, some once, and some share the low half of their
  // hashes, by which they are told apart.
  std::vector<Key> RandomKeys(size_t count) {
    const uint64_t table_hash = TableHash(table_->name());
    const uint64_t kind = random_.Below(5);
    std::vector<Key> keys(count);
    for (Key& key : keys) {
      const uint64_t i = random_.Below(kind == 0 ? 1 : kind == 1 ? 10 : count);
      key = kind == 4 ? KeyWithHash(table_hash, i << 32 | 0xFFFFFFFFu)
                      : (kind == 3 ? random_.Bits() : i);
    }
    return keys;
  }
  // Each distinct key of a group with its positions, in order.
  static std::map<Key, std::vector<uint32_t>> PositionsByKey(const Batch& batch,
                                                             const ShardGroup& group) {
    std::map<Key, std::vector<uint32_t>> positions;
    for (const uint32_t position : group.positions) {
      positions[batch.keys()[position]].push_back(position);
    }
    return positions;
  }

  StoreWorld store_;
  Table* table_ = store_.Create("t", OptionsOf(1));
  Random random_{1};
};

void ExpectUnique(UniqueKeys* unique, const Batch& batch, const ShardGroup& group,
                  const std::map<Key, std::vector<uint32_t>>& expected) {
  const std::span<const uint32_t> firsts = unique->Find(group);
  ASSERT_EQ(firsts.size(), expected.size());
  std::set<Key> seen;
  ASSERT_TRUE(std::is_sorted(firsts.begin(), firsts.end())) << "not in order of first occurrence";
  for (size_t i = 0; i < firsts.size(); ++i) {
    const Key key = batch.keys()[group.positions[firsts[i]]];
    ASSERT_TRUE(seen.insert(key).second);
    std::vector<uint32_t> chain;
    for (uint32_t at = firsts[i]; at != UniqueKeys::kEnd; at = unique->Next(group, at)) {
      chain.push_back(group.positions[at]);
    }
    ASSERT_EQ(chain, expected.at(key)) << "key " << key;
  }
}

TEST_F(ShardGroupsTest, HoldEveryPositionOnceInOrderWithItsHash) {
  for (const size_t count : {0u, 1u, 2u, 63u, 64u, 65u, 1000u, 8191u, 8192u, 20'000u}) {
    const std::vector<Key> keys = RandomKeys(count);
    const Batch batch(table_, keys, {});
    ShardPlan plan;
    ASSERT_TRUE(plan.Allocate(count).ok());
    plan.GroupAll(batch);
    std::vector<uint32_t> seen;
    std::vector<bool> begins(count + 1);
    plan.ForEachShard(batch, [&](const ShardGroup& group) {
      ASSERT_GT(group.size(), 0u);
      ASSERT_FALSE(begins[group.begin]) << "two groups begin at one place";
      begins[group.begin] = true;
      ASSERT_TRUE(std::is_sorted(group.positions.begin(), group.positions.end()));
      for (size_t i = 0; i < group.size(); ++i) {
        const KeyHash hash = table_->HashOf(keys[group.positions[i]]);
        ASSERT_EQ(group.hashes[i], hash);
        ASSERT_EQ(table_->store().index->shard(KeyIndex::ShardOf(hash)), group.shard);
        seen.push_back(group.positions[i]);
      }
    });
    std::sort(seen.begin(), seen.end());
    std::vector<uint32_t> all(count);
    std::iota(all.begin(), all.end(), 0u);
    ASSERT_EQ(seen, all);
  }
}

TEST_F(ShardGroupsTest, GroupsOfSomePositionsHoldThoseOnly) {
  const std::vector<Key> keys = RandomKeys(3000);
  std::vector<uint32_t> some;
  for (uint32_t i = 0; i < keys.size(); ++i) {
    if (random_.OneIn(3)) some.push_back(i);
  }
  const Batch batch(table_, keys, {});
  ShardPlan plan;
  ASSERT_TRUE(plan.Allocate(keys.size()).ok());
  plan.Group(batch, some);
  std::vector<uint32_t> seen;
  plan.ForEachShard(batch, [&](const ShardGroup& group) {
    ASSERT_TRUE(std::is_sorted(group.positions.begin(), group.positions.end()));
    seen.insert(seen.end(), group.positions.begin(), group.positions.end());
  });
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, some);
}

// A wrong guess for a row in memory would only cost time: KeyIndex::Confirm mends it. Entries far
// from their homes have none.
TEST_F(ShardGroupsTest, HaveGuessesThatHoldForNearlyAllRows) {
  std::vector<float> rows(20'000);
  const RowSpan out = {reinterpret_cast<std::byte*>(rows.data()), sizeof(float)};
  for (const size_t count : {1u, 2u, 15u, 16u, 17u, 64u, 300u, 1000u, 9000u, 20'000u}) {
    std::vector<Key> keys(count);
    for (Key& key : keys) key = random_.Below(2 * count);
    ASSERT_TRUE(Lookup(table_, keys, MissingRule::kCreate, out, {}).ok());
    const Batch batch(table_, keys, {});
    ShardPlan plan;
    uint64_t asked = 0;
    std::set<Key> missed;
    ASSERT_TRUE(plan.Allocate(count).ok());
    const uint64_t distance = 1 + random_.Below(3) * random_.Below(20);
    const auto compare = [&](const ShardGroup& group, size_t number, size_t i) {
      const RowId id = table_->IdOf(keys[group.positions[i]], group.hashes[i]);
      const Match guess = group.guesses->At(group.first_guess + number);
      ++asked;
      if (guess.word != table_->store().index->Find(id).word) missed.insert(id.key);
    };
    const auto ask = [&](const ShardGroup& group) {
      MutexLock lock(&group.shard->mutex);
      for (size_t i = 0; i < group.size(); i += distance) compare(group, i, i);
    };
    // It chooses the keys at odd places of a group, or the only one.
    std::array<std::vector<uint32_t>, KeyIndex::kShardCount> chosen;
    const auto choose_odd = [&](const ShardGroup& group) {
      std::vector<uint32_t>& odd = chosen[group.shard->number];
      odd.clear();
      for (uint32_t i = group.size() > 1 ? 1 : 0; i < group.size(); i += 2) odd.push_back(i);
      return std::span<const uint32_t>(odd);
    };
    const auto check_chosen = [&](const ShardGroup& group) {
      MutexLock lock(&group.shard->mutex);
      const std::vector<uint32_t>& odd = chosen[group.shard->number];
      for (size_t number = 0; number < odd.size(); ++number) compare(group, number, odd[number]);
    };
    const ShardPlan::Choose choose = choose_odd;
    plan.GroupAll(batch);
    plan.ForEachShard(batch, ask);
    ASSERT_GE(asked, (count + distance - 1) / distance);
    const uint64_t asked_before = std::exchange(asked, 0);
    plan.ForEachShard(batch, check_chosen, &choose);
    uint64_t chosen_count = 0;
    for (const std::vector<uint32_t>& odd : chosen) chosen_count += odd.size();
    ASSERT_EQ(asked, chosen_count);
    asked = 0;
    plan.ForEachGroup(batch, ask);
    ASSERT_EQ(asked, asked_before);
    for (uint32_t part = 0; part < 3 && count > 1; ++part) {
      plan.UsePart(part, 3);
      plan.ForEachShard(batch, ask);
    }
    const std::set<Key> distinct(keys.begin(), keys.end());
    ASSERT_LE(missed.size(), distinct.size() / 100 + (count > 2 ? 1 : 0)) << count << " keys";
  }
}

// Buckets of shards whose locks are free may be given back outside a guard.
TEST_F(ShardGroupsTest, MakeAGuardForEachGroupOfKeys) {
  const EpochTable& epochs = *table_->store().epochs;
  for (const size_t count : {1u, 16u, 17u, 1000u, 4095u, 4096u, 9000u}) {
    std::vector<Key> keys(count);
    std::iota(keys.begin(), keys.end(), uint64_t{0});
    const Batch batch(table_, keys, {});
    ShardPlan plan;
    ASSERT_TRUE(plan.Allocate(count).ok());
    plan.GroupAll(batch);
    const auto ask = [&](const ShardGroup& group) {
      MutexLock lock(&group.shard->mutex);
      for (size_t i = 0; i < group.size(); ++i) group.guesses->At(group.first_guess + i);
    };
    const auto guards_of = [&](auto visit) {
      const uint64_t before = epochs.entered();
      visit();
      return epochs.entered() - before;
    };
    const uint64_t groups = count == 1 ? 0 : (count + kGroupKeys - 1) / kGroupKeys;
    EXPECT_EQ(guards_of([&] { plan.ForEachGroup(batch, ask); }), groups);
    // Each shard of a large batch is a run by itself, under its lock.
    const bool is_large = count >= 64 * KeyIndex::kShardCount;
    EXPECT_EQ(guards_of([&] { plan.ForEachShard(batch, ask); }), is_large ? 0 : groups);
  }
}

TEST_F(ShardGroupsTest, GiveEachDistinctKeyWithItsPositionsInOrder) {
  for (int round = 0; round < 300; ++round) {
    const size_t count = random_.Below(round % 10 == 0 ? 9000 : 300);
    const std::vector<Key> keys = RandomKeys(count);
    const Batch batch(table_, keys, {});
    ShardPlan plan;
    UniqueKeys unique;
    ASSERT_TRUE(plan.Allocate(count).ok());
    ASSERT_TRUE(unique.Allocate(count).ok());
    plan.GroupAll(batch);
    // All groups first, then all again: no group may spoil another's part of the scratch.
    plan.ForEachShard(batch, [&](const ShardGroup& group) { unique.Find(group); });
    plan.ForEachShard(batch, [&](const ShardGroup& group) {
      const auto expected = PositionsByKey(batch, group);
      std::set<uint32_t> last;
      for (const auto& [key, positions] : expected) last.insert(positions.back());
      for (uint32_t i = 0; i < group.size(); ++i) {
        if (last.erase(group.positions[i]) == 0) continue;
        ASSERT_EQ(unique.Next(group, i), UniqueKeys::kEnd);
      }
      ASSERT_TRUE(last.empty());
      ASSERT_NO_FATAL_FAILURE(ExpectUnique(&unique, batch, group, expected));
    });
  }
}

// The keys of a batch by their numbers: in the order of first positions, each as often as it
// occurs. Returns them in order.
std::vector<Key> ExpectNumbers(const Table& table, const std::vector<Key>& keys) {
  NumberedKeys distinct;
  EXPECT_TRUE(distinct.Allocate(keys.size()).ok());
  for (int times = 0; times < 2; ++times) distinct.Find(table, keys);
  std::vector<uint32_t> occurrences;
  for (uint32_t i = 0; i < keys.size(); ++i) {
    const uint32_t number = distinct.numbers()[i];
    if (number >= occurrences.size()) occurrences.push_back(0);
    if (number >= occurrences.size() || distinct.keys()[number] != keys[i]) {
      ADD_FAILURE() << "position " << i << " has number " << number;
      return {};
    }
    ++occurrences[number];
  }
  const std::vector<uint32_t> touches(distinct.touches().begin(), distinct.touches().end());
  EXPECT_EQ(touches, occurrences);
  return {distinct.keys().begin(), distinct.keys().end()};
}

TEST_F(ShardGroupsTest, NumberTheKeysOfABatchByTheirFirstPositions) {
  for (const size_t count : {1u, 2u, 15u, 16u, 17u, 100u, 5000u, 60'000u}) {
    for (const uint64_t universe : {uint64_t{1}, uint64_t{10}, uint64_t{count}}) {
      std::vector<Key> keys(count);
      for (Key& key : keys) key = random_.Below(universe);
      std::vector<Key> numbered = ExpectNumbers(*table_, keys);
      std::ranges::sort(numbered);
      ASSERT_TRUE(std::ranges::adjacent_find(numbered) == numbered.end()) << "a key has two";
    }
  }
  EXPECT_EQ(ExpectNumbers(*table_, std::vector<Key>(131'072, 5)), std::vector<Key>(3, 5))
      << "a count holds 65,535";
  // Most of these find their places taken, which costs no more than others do.
  const uint64_t table_hash = TableHash(table_->name());
  std::vector<Key> keys(131'072);
  for (Key& key : keys) key = KeyWithHash(table_hash, random_.Below(50'000) << 32 | 0xFFFFFFFFu);
  EXPECT_GT(ExpectNumbers(*table_, keys).size(), 120'000u);
}

TEST_F(ShardGroupsTest, TellByASampleWhichPartOfTheKeysIsDistinct) {
  constexpr size_t kKeys = 4096;
  std::vector<Key> keys = KeysFrom(1, kKeys);
  EXPECT_GT(DistinctPart(*table_, keys), 0.9);
  for (Key& key : keys) key = random_.Below(600);
  const std::set<Key> seen(keys.begin(), keys.begin() + 1024);
  EXPECT_NEAR(DistinctPart(*table_, keys), static_cast<double>(seen.size()) / 1024, 0.15);
  for (Key one = 0; one < 20; ++one) {
    EXPECT_LE(DistinctPart(*table_, std::vector<Key>(kKeys, one)), 8.0 / 1024) << "one key";
    // Three of five positions have one key, which mostly is not in the sample.
    std::vector<Key> frequent = KeysFrom(1000, kKeys);
    for (size_t i = 0; i < kKeys; ++i) frequent[i] = i % 5 < 3 ? one : frequent[i];
    EXPECT_NEAR(DistinctPart(*table_, frequent), 0.4, 0.15) << "frequent key " << one;
  }
}

// Lookups of repeated keys: each key is looked up once, and nobody can tell. `calls` are the same
// positions in calls of one key each, in their order, in another store.
class RepeatedKeys {
 public:
  RepeatedKeys(const TableOptions& options, MissingRule rule)
      : rule_(rule), batch_(world_.Create("t", options)), calls_(other_.Create("t", options)) {
    // Some rows are there.
    std::vector<Key> keys(200);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = 3 * i;
    for (Table* const table : {batch_, calls_}) {
      const uint64_t bytes = table->layout().vector_bytes;
      std::vector<std::byte> rows(keys.size() * bytes);
      EXPECT_TRUE(Lookup(table, keys, MissingRule::kCreate, {rows.data(), bytes}, {}).ok());
    }
  }

  void LookUp(const std::vector<Key>& keys, uint64_t gap_bytes, bool takes_outcomes) {
    const uint64_t bytes = batch_->layout().vector_bytes + gap_bytes;
    std::vector<std::byte> rows(keys.size() * bytes), expected;
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::byte>(i * 7 / 5);
    expected = rows;
    std::vector<uint8_t> outcomes(takes_outcomes ? keys.size() : 0), expected_outcomes(outcomes);
    ASSERT_TRUE(Lookup(batch_, keys, rule_, {rows.data(), bytes}, outcomes).ok());
    for (size_t i = 0; i < keys.size(); ++i) {
      const OutcomeSpan outcome =
          takes_outcomes ? std::span(expected_outcomes).subspan(i, 1) : OutcomeSpan();
      ASSERT_TRUE(Lookup(calls_, std::span(keys).subspan(i, 1), rule_,
                         {&expected[i * bytes], bytes}, outcome)
                      .ok());
    }
    ASSERT_EQ(rows, expected);
    ASSERT_EQ(outcomes, expected_outcomes);
    ExpectEqualTables();
  }

 private:
  void ExpectEqualTables() {
    ASSERT_EQ(batch_->rows(), calls_->rows());
    const CallCounts counts = batch_->counters().calls.Counts(TableVerb::kLookup);
    const CallCounts expected = calls_->counters().calls.Counts(TableVerb::kLookup);
    EXPECT_EQ(counts.keys_by_outcome, expected.keys_by_outcome);
    EXPECT_EQ(counts.found_in, expected.found_in);
    const std::vector<Key> keys = KeysFrom(0, 2000);
    std::vector<uint32_t> heat(keys.size()), expected_heat(keys.size());
    std::vector<uint8_t> outcomes(keys.size());
    ASSERT_TRUE(GetHeat(batch_, keys, heat, outcomes).ok());
    ASSERT_TRUE(GetHeat(calls_, keys, expected_heat, outcomes).ok());
    EXPECT_EQ(heat, expected_heat);
  }

  const MissingRule rule_;
  StoreWorld world_, other_;
  Table* const batch_;
  Table* const calls_;
};

TEST(LookupsOfRepeatedKeys, AnswerAndCountEachPosition) {
  Random random(7);
  for (const MissingRule rule :
       {MissingRule::kCreate, MissingRule::kDefault, MissingRule::kZero, MissingRule::kSkip}) {
    for (const uint32_t dim : {1u, 3u, 16u, 17u, 64u}) {
      TableOptions options = OptionsOf(dim, Optimizer::kAdagrad);
      options.value_type = random.OneIn(2) ? ValueType::kF16 : ValueType::kF32;
      options.initializer = {InitializerKind::kUniform, -1.0f, 1.0f};
      RepeatedKeys tables(options, rule);
      for (const uint64_t universe : {1u, 40u, 500u, 1500u, 2000u}) {
        // More of 10,000 keys are repeated than the sample has, and enough are created at once.
        std::vector<Key> keys(universe == 1500 ? 10'000 : 4096 + random.Below(3000));
        for (Key& key : keys) key = random.Below(universe);
        ASSERT_NO_FATAL_FAILURE(tables.LookUp(keys, random.Below(2) * 12, random.OneIn(2)));
      }
    }
  }
}

TEST(LookupsOfRepeatedKeys, CountAKeyMoreOftenThanItsCountHolds) {
  RepeatedKeys tables(OptionsOf(1), MissingRule::kCreate);
  std::vector<Key> keys(131'072, 3);
  for (size_t i = 0; i < keys.size(); i += 1000) keys[i] = i / 1000;
  ASSERT_NO_FATAL_FAILURE(tables.LookUp(keys, 0, true));
}

TEST(LookupsOfRepeatedKeys, RefuseAllPositionsOfAKeyWithoutSpace) {
  StoreWorld world;
  TableOptions options = OptionsOf(2);
  options.initializer = {InitializerKind::kConstant, 1.0f};
  Table* const table = world.Create("t", options);
  std::vector<Key> keys(5000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i % 40;
  std::vector<float> rows(2 * keys.size());
  std::vector<uint8_t> outcomes(keys.size());
  world.memory()->FailEveryCall(true);
  ASSERT_TRUE(Lookup(table, keys, MissingRule::kCreate, RowsIn(&rows, 2), outcomes).ok());
  const Status status = Lookup(table, keys, MissingRule::kCreate, RowsIn(&rows, 2), {});
  world.memory()->FailEveryCall(false);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.ToString().find("5000 of 5000 keys"), std::string::npos) << status;
  EXPECT_NE(status.ToString().find("key 0 at position 0"), std::string::npos) << status;
  EXPECT_EQ(outcomes, std::vector<uint8_t>(5000, static_cast<uint8_t>(Outcome::kRefused)));
  EXPECT_EQ(rows, std::vector<float>(rows.size(), 1.0f));
  EXPECT_EQ(table->rows(), 0u);
}

TEST(OutcomeTally, KeepsTheFirstPositionOfEachOutcome) {
  OutcomeTally tally, part;
  for (const uint64_t position : {7, 3, 5}) tally.Add(Outcome::kAbsent, position);
  tally.Add(Outcome::kRefused, 9);
  part.Add(Outcome::kDataLoss, 1);
  part.Add(Outcome::kAbsent, 0);
  part.Add(Outcome::kRefused, 2);
  tally.Add(part, 4);  // its positions are from 4 on
  EXPECT_EQ(tally.first(Outcome::kAbsent), 3u);
  EXPECT_EQ(tally.first(Outcome::kRefused), 6u);
  EXPECT_EQ(tally.first(Outcome::kDataLoss), 5u);
  EXPECT_EQ(tally.count(Outcome::kAbsent), 4u);
  EXPECT_EQ(tally.first(Outcome::kUnavailable), OutcomeTally::kNoPosition);
}

// The rows are written before their touches are counted, so that each is looked for by the key of
// its position in its batch.
TEST(HeatTouches, CountForTheBatchAndPositionOfEachRow) {
  StoreWorld world;
  Table* const table = world.Create("t", OptionsOf(1));
  std::vector<float> rows = {1, 2, 3, 4};
  const std::vector<Key> keys = {10, 20, 30, 40};
  ASSERT_TRUE(Upsert(table, keys, RowsOf(rows, 1), {}).ok());
  Batch first(table, std::span(keys).first(3), {});
  const std::vector<uint16_t> touches_of_first = {5, 6, 7};
  first.set_touches(touches_of_first);
  const Batch second(table, std::span(keys).last(1), {});
  {
    const EpochTable::Guard guard(table->store().epochs);
    HeatTouches touches(first);
    const auto add = [&](const Batch& batch, uint32_t position) {
      touches.Use(batch);
      Match match = {};
      const Key key = batch.keys()[position];
      touches.Add(position, FindAndReadRow(
                                *table, key, table->HashOf(key),
                                [](const RowWatch& watch) { return watch.IsCurrent(); }, &match));
    };
    add(first, 1);
    add(first, 2);
    add(second, 0);
    add(first, 1);
    ASSERT_TRUE(Upsert(table, keys, RowsOf(rows, 1), {}).ok());
    touches.Flush();
  }
  std::vector<uint32_t> heat(4);
  ASSERT_TRUE(GetHeat(table, keys, heat, {}).ok());
  EXPECT_EQ(heat, (std::vector<uint32_t>{0, 12, 7, 1}));
}

}  // namespace
}  // namespace embank::test::unique_keys_test
