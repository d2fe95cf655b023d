// A key index over a tier with bare rows, and a plain map that says what it must hold.
#ifndef EMBANK_TESTS_SUPPORT_INDEX_WORLD_H_
#define EMBANK_TESTS_SUPPORT_INDEX_WORLD_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/index/key_index.h"
#include "tests/support/failing_memory.h"
#include "tests/support/index_places.h"
#include "tests/support/inverse_mix.h"

namespace embank::test {

class IndexWorld {
 public:
  static constexpr TableId kTables = 3;
  static constexpr uint32_t kRowBytes = 32;

  explicit IndexWorld(uint64_t budget_bytes = 0) : budget_(budget_bytes) {
    auto tier = DramTier::Create(&memory_, &budget_, &epochs_, uint64_t{256} << 20);
    EXPECT_TRUE(tier.ok()) << tier.status();
    tier_ = *std::move(tier);
    row_class_ = tier_->AddClass(kRowBytes);
    auto index = KeyIndex::Create(&memory_, &budget_, &epochs_, tier_.get());
    EXPECT_TRUE(index.ok()) << index.status();
    index_ = *std::move(index);
  }
  ~IndexWorld() {
    index_.reset();
    tier_.reset();
    EXPECT_EQ(memory_.outstanding(), 0u);
    EXPECT_EQ(memory_.misuses(), 0u);
    EXPECT_EQ(budget_.used_bytes(), 0u);
  }

  // A key whose rows in tables 0 and 2 look the same to the index.
  static constexpr Key kTwinKey = 424242;
  static uint64_t TableHashOf(TableId table) {
    if (table < 2) return TableHash("table " + std::to_string(table));
    const KeyHash twin = HashKey(TableHashOf(0), kTwinKey) ^ (uint64_t{1} << 24);
    return InverseMix(twin) ^ kTwinKey;
  }
  static RowId IdOf(TableId table, Key key) {
    return {table, key, HashKey(TableHashOf(table), key)};
  }
  // The row of a table whose hash is given.
  static RowId IdWithHash(TableId table, KeyHash hash) {
    return {table, KeyWithHash(TableHashOf(table), hash), hash};
  }

  KeyIndex* operator->() { return index_.get(); }
  DramTier* tier() { return tier_.get(); }
  FailingMemory* memory() { return &memory_; }
  MemoryBudget* budget() { return &budget_; }
  EpochTable* epochs() { return &epochs_; }
  KeyIndex::Shard* ShardOf(const RowId& id) { return index_->shard(KeyIndex::ShardOf(id.hash)); }

  bool Holds(const RowId& id) const { return expected_.count({id.table, id.key}) == 1; }
  uint64_t rows() const { return expected_.size(); }

  // Adds a row that is not there, or returns why there is no space in the index.
  Status TryInsert(const RowId& id) {
    EXPECT_FALSE(Holds(id));
    KeyIndex::Shard* const shard = ShardOf(id);
    MutexLock lock(&shard->mutex);
    if (Status status = index_->capacity()->ReserveOne(shard, id.hash); !status.ok()) return status;
    Location slot;
    EXPECT_EQ(tier_->Allocate(row_class_, {&slot, 1}), 1u);
    RowHeader* const header = HeaderAt(slot);
    header->key = id.key;
    EndRowWrite(header, BeginRowWrite(header), id.table);
    index_->Insert(shard, id.hash, slot);
    expected_[{id.table, id.key}] = slot;
    return OkStatus();
  }
  // Adds a row that is not there.
  void Insert(const RowId& id) {
    const Status status = TryInsert(id);
    ASSERT_TRUE(status.ok()) << status;
  }
  // Erases a row, which may be there or not.
  void Erase(const RowId& id) {
    KeyIndex::Shard* const shard = ShardOf(id);
    const auto held = expected_.find({id.table, id.key});
    {
      MutexLock lock(&shard->mutex);
      const Match match = index_->Find(id);
      ASSERT_EQ(match.any(), held != expected_.end());
      if (!match.any()) return;
      ASSERT_EQ(match.location(), held->second);
      index_->Erase(shard, id.hash, match);
    }
    Return(held->second);
    expected_.erase(held);
  }
  // Both searches find a row, or none does: the full one, and the guess by tags that is confirmed.
  void ExpectFindsRight(const RowId& id) {
    const auto held = expected_.find({id.table, id.key});
    const Location expected = held == expected_.end() ? kNoLocation : held->second;
    {
      const EpochTable::Guard guard(&epochs_);
      const Match found = index_->Find(id);
      ASSERT_EQ(found.any() ? found.location() : kNoLocation, expected)
          << "table " << id.table << " key " << id.key;
      ASSERT_TRUE(!found.any() || found.IsCurrent());
    }
    KeyIndex::Shard* const shard = ShardOf(id);
    MutexLock lock(&shard->mutex);
    const Match confirmed = index_->Confirm(Guess(id), id);
    ASSERT_EQ(confirmed.any() ? confirmed.location() : kNoLocation, expected)
        << "table " << id.table << " key " << id.key;
  }
  // The result of a first look into the row's home bucket.
  Match Guess(const RowId& id) const {
    const Probe probe = index_->ProbeOf(id.hash);
    uint8_t mask = 0;
    index_->MatchTags({&probe, 1}, &mask);
    return KeyIndex::FirstMatch(probe, mask);
  }
  // Every row is found, the shards count as many, and their buckets are sound.
  void ExpectAllFound() {
    for (const auto& [name, slot] : expected_) {
      ASSERT_NO_FATAL_FAILURE(ExpectFindsRight(IdOf(name.table, name.key)));
    }
    uint64_t counted = 0;
    for (uint32_t i = 0; i < KeyIndex::kShardCount; ++i) {
      ASSERT_NO_FATAL_FAILURE(ExpectSound(i));
      KeyIndex::Shard* const shard = index_->shard(i);
      MutexLock lock(&shard->mutex);
      counted += shard->rows;
    }
    ASSERT_EQ(counted, expected_.size());
  }
  // Every entry of a shard stands where its row's hash belongs, and the heads of the buckets say
  // so.
  void ExpectSound(uint32_t number) {
    const std::vector<PlacedRow> rows = RowsOf(number);
    KeyIndex::Shard* const shard = index_->shard(number);
    MutexLock lock(&shard->mutex);
    ASSERT_EQ(shard->rows, rows.size());
    ASSERT_EQ(shard->seq % 2, 0u);
    const std::vector<const Bucket*> buckets = BucketsOf(index_.get(), shard);
    std::vector<uint32_t> passed(buckets.size());
    for (const PlacedRow& row : rows) {
      const PaperPlace place = PaperPlaceOf(*shard, row.id.hash);
      ASSERT_EQ(row.tag, place.tag) << "key " << row.id.key;
      ASSERT_EQ(row.bucket - row.displacement, place.home) << "key " << row.id.key;
      ASSERT_TRUE(Holds(row.id));
      for (uint32_t i = place.home; i < row.bucket; ++i) ++passed[i];
    }
    for (size_t i = 0; i < buckets.size(); ++i) {
      ASSERT_FALSE(Bucket::IsBeingWritten(buckets[i]->Head()));
      ASSERT_EQ(Bucket::Passed(buckets[i]->Head()), passed[i]) << "bucket " << i;
      uint32_t empty = 0;
      for (uint32_t slot = 0; slot < kBucketEntries; ++slot) {
        if (buckets[i]->Entry(slot) == kEmptyEntry) empty |= 1u << slot;
      }
      ASSERT_EQ(Bucket::EmptySlots(buckets[i]->Head()), empty) << "bucket " << i;
    }
  }
  // The largest displacement of a shard's rows.
  uint32_t FarthestOf(uint32_t number) {
    uint32_t farthest = 0;
    for (const PlacedRow& row : RowsOf(number)) farthest = std::max(farthest, row.displacement);
    return farthest;
  }
  // Frees the slot of a row that a visit of a table has removed from the index.
  void Drop(const RowId& id, Location slot) {
    ASSERT_EQ(expected_.count({id.table, id.key}), 1u) << "visited twice, or never there";
    ASSERT_EQ(slot, (expected_[{id.table, id.key}]));
    expected_.erase({id.table, id.key});
    Return(slot);
  }
  RowId IdAt(Location slot) const {
    return IdOf(TableOf(HeaderAt(slot)->identity), HeaderAt(slot)->key);
  }

 private:
  struct Name {
    TableId table;
    Key key;
    bool operator==(const Name&) const = default;
  };
  struct NameHash {
    size_t operator()(const Name& name) const { return Mix(name.key + name.table); }
  };
  struct PlacedRow {
    RowId id;
    uint32_t bucket;
    uint32_t displacement;
    uint32_t tag;
  };

  std::vector<PlacedRow> RowsOf(uint32_t number) {
    std::vector<PlacedRow> rows;
    KeyIndex::Shard* const shard = index_->shard(number);
    MutexLock lock(&shard->mutex);
    const std::vector<const Bucket*> buckets = BucketsOf(index_.get(), shard);
    for (uint32_t i = 0; i < buckets.size(); ++i) {
      for (uint32_t slot = 0; slot < kBucketEntries; ++slot) {
        const uint64_t entry = buckets[i]->Entry(slot);
        if (entry == kEmptyEntry) continue;
        rows.push_back({IdAt(LocationOf(entry)), i, Bucket::Displacement(buckets[i]->Head(), slot),
                        TagOf(entry)});
      }
    }
    return rows;
  }
  void Return(Location slot) {
    RetireRow(HeaderAt(slot));
    tier_->Free(row_class_, {&slot, 1});
  }
  RowHeader* HeaderAt(Location slot) const {
    return reinterpret_cast<RowHeader*>(tier_->Row(slot));
  }

  FailingMemory memory_;
  MemoryBudget budget_;
  EpochTable epochs_;
  std::unique_ptr<DramTier> tier_;
  std::unique_ptr<KeyIndex> index_;
  SlotClass row_class_ = 0;
  std::unordered_map<Name, Location, NameHash> expected_;
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_INDEX_WORLD_H_
