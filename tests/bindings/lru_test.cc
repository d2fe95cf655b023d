// EMBANK_EVICT_LRU through the C API, beside an exact LRU for each shard.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <list>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/hash.h"
#include "base/hash_keys.h"
#include "bindings/c/embank.h"
#include "store/index/key_index.h"
#include "tests/support/c_api.h"
#include "tests/support/environment.h"
#include "tests/support/random.h"

namespace embank::test::lru_test {
namespace {

constexpr uint64_t kDramBytes = uint64_t{16} << 20;
constexpr uint32_t kDim = 128;
const char* const kName = "t";

// The keys of one shard from the one used last to the one used longest ago.
class ExactLru {
 public:
  bool Has(uint64_t key) const { return places_.contains(key); }
  // Uses a key, which is there from now on.
  void Use(uint64_t key) {
    Remove(key);
    places_[key] = order_.insert(order_.begin(), key);
  }
  void Remove(uint64_t key) {
    const auto place = places_.find(key);
    if (place == places_.end()) return;
    order_.erase(place->second);
    places_.erase(place);
  }
  // Removes the key that was used longest ago, but for those of a batch.
  void RemoveLast(const std::unordered_set<uint64_t>& batch) {
    const auto last = std::find_if(order_.rbegin(), order_.rend(),
                                   [&](uint64_t key) { return !batch.contains(key); });
    ASSERT_NE(last, order_.rend());
    Remove(*last);
  }
  const std::list<uint64_t>& order() const { return order_; }

 private:
  std::list<uint64_t> order_;
  std::unordered_map<uint64_t, std::list<uint64_t>::iterator> places_;
};

uint32_t ShardOf(uint64_t key) { return KeyIndex::ShardOf(HashKey(TableHash(kName), key)); }

class LruTest : public testing::Test {
 protected:
  void SetUp() override {
    embank_store_options options = StoreOptions();
    options.dram_bytes = kDramBytes;
    options.worker_threads = 1;
    store_ = OpenStore(options);
    embank_table_options table = TableOptions(kDim, EMBANK_OPT_ADAGRAD);
    table.eviction = EMBANK_EVICT_LRU;
    table.on_full = EMBANK_FULL_FORGET;
    table_ = CreateTable(store_.get(), kName, table);
  }

  std::vector<uint8_t> Lookup(const std::vector<uint64_t>& keys, int32_t missing) {
    std::vector<float> rows(keys.size() * kDim);
    std::vector<uint8_t> outcomes(keys.size());
    EXPECT_EQ(
        embank_lookup(table_, keys.data(), keys.size(), missing, rows.data(), 0, outcomes.data()),
        EMBANK_OK);
    return outcomes;
  }
  void Upsert(const std::vector<uint64_t>& keys) {
    const std::vector<float> rows(keys.size() * kDim, 1.0f);
    std::vector<uint8_t> outcomes(keys.size());
    EXPECT_EQ(embank_upsert(table_, keys.data(), keys.size(), rows.data(), 0, outcomes.data()),
              EMBANK_OK);
  }
  void ApplyGradients(const std::vector<uint64_t>& keys) {
    const std::vector<float> gradients(keys.size() * kDim, 0.5f);
    std::vector<uint8_t> outcomes(keys.size());
    EXPECT_EQ(embank_apply_gradients(table_, keys.data(), keys.size(), gradients.data(), 0,
                                     outcomes.data()),
              EMBANK_OK);
  }
  void Erase(const std::vector<uint64_t>& keys) {
    std::vector<uint8_t> outcomes(keys.size());
    EXPECT_EQ(embank_erase(table_, keys.data(), keys.size(), outcomes.data()), EMBANK_OK);
  }
  std::vector<uint8_t> Contains(const std::vector<uint64_t>& keys) {
    std::vector<uint8_t> outcomes(keys.size());
    EXPECT_EQ(embank_contains(table_, keys.data(), keys.size(), outcomes.data()), EMBANK_OK);
    return outcomes;
  }
  uint64_t Forgotten() {
    const std::string begin = "embank_rows_forgotten_total{table=\"t\"} ";
    const std::string text = Metrics(store_.get());
    const size_t at = text.find(begin);
    EXPECT_NE(at, std::string::npos);
    return std::stoull(text.substr(at + begin.size()));
  }
  // Looks up new keys from `first` on until rows are forgotten; the one behind the last.
  uint64_t Fill(uint64_t first) {
    while (Forgotten() == 0) {
      Lookup(KeyRange(first, 100), EMBANK_MISSING_CREATE);
      first += 100;
    }
    return first;
  }

  StorePtr store_;
  embank_table* table_ = nullptr;
};

class BesideExactLru : public LruTest {
 protected:
  bool IsThere(uint64_t key) { return shards_[ShardOf(key)].Has(key); }

  // A lookup uses what it finds, then makes the others, each in the order of the positions. What
  // else changes rows that are there is no use of them, as it counts no heat.
  void LookupBeside(const std::vector<uint64_t>& keys, int32_t missing) {
    const std::vector<uint8_t> outcomes = Lookup(keys, missing);
    std::vector<uint64_t> others;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (IsThere(keys[i])) {
        ASSERT_EQ(outcomes[i], EMBANK_ROW_FOUND);
        shards_[ShardOf(keys[i])].Use(keys[i]);
      } else {
        others.push_back(keys[i]);
      }
    }
    if (missing != EMBANK_MISSING_CREATE) return;
    for (const uint64_t key : others) Make(key);
    for (const uint64_t key : others) shards_[ShardOf(key)].Use(key);
  }
  void UpsertBeside(const std::vector<uint64_t>& keys) {
    Upsert(keys);
    for (const uint64_t key : keys) {
      if (!IsThere(key)) Make(key);
    }
  }
  void EraseBeside(const std::vector<uint64_t>& keys) {
    Erase(keys);
    for (const uint64_t key : keys) shards_[ShardOf(key)].Remove(key);
    erased_ += keys.size();
  }

  // Which keys are left: of each shard those used longest ago are gone, without the batch's.
  void Compare(const std::vector<uint64_t>& batch) {
    const std::unordered_set<uint64_t> in_batch(batch.begin(), batch.end());
    for (uint32_t shard = 0; shard < shards_.size(); ++shard) {
      const std::list<uint64_t>& order = shards_[shard].order();
      const std::vector<uint64_t> keys(order.rbegin(), order.rend());
      const std::vector<uint8_t> outcomes = Contains(keys);
      auto gone = static_cast<uint64_t>(
          std::count(outcomes.begin(), outcomes.end(), uint8_t{EMBANK_ROW_ABSENT}));
      ASSERT_LE(gone, made_[shard]);
      if (full_ && erased_ == 0) {
        ASSERT_EQ(gone, made_[shard]) << "each new row forgets one";
      }
      forgotten_ += gone;
      for (size_t i = 0; i < keys.size(); ++i) {
        const bool leaves = gone > 0 && !in_batch.contains(keys[i]);
        ASSERT_EQ(outcomes[i], leaves ? EMBANK_ROW_ABSENT : EMBANK_ROW_FOUND)
            << "shard " << shard << ", key " << keys[i] << ", " << i << " used longer ago";
        if (!leaves) continue;
        shards_[shard].Remove(keys[i]);
        --gone;
      }
      made_[shard] = 0;
    }
    full_ = full_ || forgotten_ > 0;
    ASSERT_EQ(Forgotten(), forgotten_);
  }

  // A batch of a full table, whatever call it is part of: each new row forgets one.
  void UseInFullTable(std::span<const uint64_t> keys) {
    const std::unordered_set<uint64_t> batch(keys.begin(), keys.end());
    std::vector<uint64_t> others;
    for (const uint64_t key : keys) {
      if (!IsThere(key)) others.push_back(key);
      if (IsThere(key)) shards_[ShardOf(key)].Use(key);
    }
    for (const uint64_t key : others) {
      if (!IsThere(key)) shards_[ShardOf(key)].RemoveLast(batch);
      shards_[ShardOf(key)].Use(key);
    }
  }
  // Returns the number of shards of which all keys are left that should be.
  uint32_t ShardsAsExpected() {
    uint32_t right = 0;
    for (const ExactLru& shard : shards_) {
      const std::vector<uint64_t> keys(shard.order().begin(), shard.order().end());
      const std::vector<uint8_t> outcomes = Contains(keys);
      right += std::ranges::count(outcomes, uint8_t{EMBANK_ROW_ABSENT}) == 0 ? 1 : 0;
    }
    return right;
  }

  uint64_t forgotten_ = 0;

 private:
  void Make(uint64_t key) {
    if (!IsThere(key)) ++made_[ShardOf(key)];
    shards_[ShardOf(key)].Use(key);
  }

  std::array<ExactLru, KeyIndex::kShardCount> shards_;
  std::array<uint64_t, KeyIndex::kShardCount> made_{};  // rows, by the last batch
  bool full_ = false;
  uint64_t erased_ = 0;
};

// Half of the keys are few.
std::vector<uint64_t> RandomKeys(Random* random, size_t n) {
  std::vector<uint64_t> keys(n);
  for (uint64_t& key : keys) key = random->Below(random->OneIn(2) ? 3'000 : 60'000);
  return keys;
}

TEST_F(BesideExactLru, TheSameKeysRemainWhateverTheBatchesAre) {
  Random random(1);
  constexpr int kBatches = 600;
  for (int i = 0; i < kBatches; ++i) {
    // Small batches, larger ones than a part, and some that would fill a table.
    const size_t n = random.OneIn(40) ? 3000 : random.Between(1, random.OneIn(3) ? 1200 : 60);
    std::vector<uint64_t> keys = RandomKeys(&random, n);
    switch (random.Below(8)) {
      case 0:
        UpsertBeside(keys);
        break;
      case 1:
        ApplyGradients(keys);
        break;
      case 2:
        LookupBeside(keys, EMBANK_MISSING_ZERO);
        break;
      case 3:
        keys.resize(std::min<size_t>(keys.size(), 20));
        if (i > kBatches / 2) EraseBeside(keys);
        break;
      default:
        LookupBeside(keys, EMBANK_MISSING_CREATE);
    }
    Compare(keys);
    ASSERT_FALSE(HasFatalFailure()) << "batch " << i << " of " << n << " keys";
  }
  EXPECT_GT(forgotten_, 20'000u);
}

// Each feature is a batch, and of a pooled one each chunk of 256 KiB of vectors.
TEST_F(BesideExactLru, APackedLookupIsABatchForEachFeatureAndEachChunk) {
  constexpr size_t kChunkKeys = (256 << 10) / (kDim * sizeof(float));
  Random random(2);
  while (forgotten_ < 1000) {
    const std::vector<uint64_t> keys = RandomKeys(&random, 1000);
    ASSERT_NO_FATAL_FAILURE(LookupBeside(keys, EMBANK_MISSING_CREATE));
    ASSERT_NO_FATAL_FAILURE(Compare(keys));
  }
  uint64_t right = 0;
  constexpr uint32_t kCalls = 60;
  for (uint32_t call = 0; call < kCalls; ++call) {
    std::vector<std::vector<uint64_t>> keys;
    for (const size_t max : {600, 1500, 60}) {
      keys.push_back(RandomKeys(&random, random.Between(1, max)));
    }
    const uint64_t offsets[] = {0, keys[1].size() / 3, keys[1].size()};
    std::vector<std::vector<float>> rows;
    std::vector<embank_feature> features;
    for (size_t i = 0; i < keys.size(); ++i) {
      const bool pooled = i == 1;
      rows.emplace_back((pooled ? 2 : keys[i].size()) * kDim);
      embank_feature& feature = features.emplace_back();
      feature.struct_size = sizeof feature;
      feature.pooling = pooled ? EMBANK_POOL_SUM : EMBANK_POOL_NONE;
      feature.table = table_;
      feature.keys = keys[i].data();
      feature.n = keys[i].size();
      feature.offsets = pooled ? offsets : nullptr;
      feature.bags = pooled ? 2 : 0;
      feature.rows = rows.back().data();
      for (size_t begin = 0; begin < keys[i].size();) {
        const size_t some = pooled ? std::min(kChunkKeys, keys[i].size() - begin) : keys[i].size();
        ASSERT_NO_FATAL_FAILURE(UseInFullTable(std::span(keys[i]).subspan(begin, some)));
        begin += some;
      }
    }
    ASSERT_EQ(embank_lookup_packed(features.data(), 3, EMBANK_MISSING_CREATE, nullptr), EMBANK_OK);
    right += ShardsAsExpected();
  }
  EXPECT_EQ(right, kCalls * KeyIndex::kShardCount);
}

TEST_F(LruTest, LosesNoRowWhileTwoThreadsLookUp) {
  uint64_t next = Fill(0);
  const uint64_t rows = RowCount(table_);
  const auto work = [&](uint64_t seed) {
    Random random(seed);
    for (uint64_t i = 0; i < 300 * TestScale(); ++i) {
      std::vector<uint64_t> keys = RandomKeys(&random, random.Between(1, 400));
      Lookup(keys, random.OneIn(2) ? EMBANK_MISSING_CREATE : EMBANK_MISSING_ZERO);
      if (random.OneIn(4)) ApplyGradients(keys);
      keys.resize(std::min<size_t>(keys.size(), 10));
      if (random.OneIn(4)) Erase(keys);
      if (random.OneIn(4)) Upsert(keys);
    }
  };
  std::thread other([&] { work(1); });
  work(2);
  other.join();
  std::vector<uint64_t> all = KeyRange(0, std::max<uint64_t>(next, 60'000));
  const std::vector<uint8_t> there = Contains(all);
  EXPECT_EQ(
      static_cast<uint64_t>(std::count(there.begin(), there.end(), uint8_t{EMBANK_ROW_FOUND})),
      RowCount(table_));
  // Every row is still in an order: new ones push all of them out, one each.
  next = 1'000'000;
  for (int i = 0; i < 300; ++i, next += 300) {
    Lookup(KeyRange(next, 300), EMBANK_MISSING_CREATE);
  }
  EXPECT_EQ(RowCount(table_), rows);
  const std::vector<uint8_t> left = Contains(all);
  EXPECT_EQ(std::count(left.begin(), left.end(), uint8_t{EMBANK_ROW_FOUND}), 0);
}

TEST_F(LruTest, ARowThatIsLookedUpOutlivesOnesThatAreWritten) {
  const uint64_t next = Fill(0);
  const std::vector<uint64_t> looked_up = KeyRange(next - 2000, 200);
  const std::vector<uint64_t> written = KeyRange(next - 1500, 200);
  const uint64_t rows = RowCount(table_);
  for (uint64_t key = next; key < next + 2 * rows; key += 100) {
    Lookup(KeyRange(key, 100), EMBANK_MISSING_CREATE);
    if (key % 1000 == 0) Lookup(looked_up, EMBANK_MISSING_ZERO);
    if (key % 1000 == 500) ApplyGradients(written);
  }
  const std::vector<uint8_t> stay = Contains(looked_up);
  EXPECT_EQ(std::count(stay.begin(), stay.end(), uint8_t{EMBANK_ROW_FOUND}), 200);
  const std::vector<uint8_t> go = Contains(written);
  EXPECT_EQ(std::count(go.begin(), go.end(), uint8_t{EMBANK_ROW_FOUND}), 0);
}

}  // namespace
}  // namespace embank::test::lru_test
