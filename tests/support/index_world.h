// A key index over a tier with bare rows, and a plain map that says what it must hold.
#ifndef EMBANK_TESTS_SUPPORT_INDEX_WORLD_H_
#define EMBANK_TESTS_SUPPORT_INDEX_WORLD_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/key_index.h"
#include "tests/support/failing_memory.h"
#include "tests/support/inverse_mix.h"

namespace embank::test {

class IndexWorld {
 public:
  static constexpr TableId kTables = 3;
  static constexpr uint32_t kRowBytes = 32;

  explicit IndexWorld(uint64_t budget_bytes = 0) : budget_(budget_bytes) {
    auto tier = DramTier::Create(&memory_, &budget_, uint64_t{256} << 20);
    EXPECT_TRUE(tier.ok()) << tier.status();
    tier_ = *std::move(tier);
    row_class_ = tier_->AddClass(kRowBytes);
    auto index = KeyIndex::Create(&memory_, &budget_, tier_.get());
    EXPECT_TRUE(index.ok()) << index.status();
    index_ = *std::move(index);
    for (TableId table = 0; table < kTables; ++table) {
      index_->SetTableHash(table, TableHashOf(table));
    }
  }
  ~IndexWorld() {
    index_.reset();
    tier_.reset();
    EXPECT_EQ(memory_.outstanding(), 0u);
    EXPECT_EQ(budget_.used_bytes(), 0u);
  }

  // A key whose rows in tables 0 and 2 look the same to the index in all that it looks at.
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
  KeyIndex::Shard* ShardOf(const RowId& id) { return index_->shard(KeyIndex::ShardOf(id.hash)); }

  bool Holds(const RowId& id) const { return expected_.count({id.table, id.key}) == 1; }
  uint64_t rows() const { return expected_.size(); }

  // Adds a row that is not there.
  void Insert(const RowId& id) {
    ASSERT_FALSE(Holds(id));
    Location slot;
    ASSERT_EQ(tier_->Allocate(row_class_, {&slot, 1}), 1u);
    *reinterpret_cast<RowHeader*>(tier_->Row(slot)) = {
        .key = id.key, .identity = id.table, .usage = 0};
    KeyIndex::Shard* const shard = ShardOf(id);
    MutexLock lock(&shard->mutex);
    const absl::Status status = index_->ReserveOne(shard);
    ASSERT_TRUE(status.ok()) << status;
    index_->Insert(shard, id, slot);
    expected_[{id.table, id.key}] = slot;
  }
  // Erases a row, which may be there or not.
  void Erase(const RowId& id) {
    KeyIndex::Shard* const shard = ShardOf(id);
    Location erased;
    {
      MutexLock lock(&shard->mutex);
      erased = index_->Erase(shard, id);
    }
    const auto held = expected_.find({id.table, id.key});
    ASSERT_EQ(erased, held == expected_.end() ? kNoLocation : held->second);
    if (held == expected_.end()) return;
    expected_.erase(held);
    tier_->Free(row_class_, {&erased, 1});
  }
  void ExpectFindsRight(const RowId& id) {
    KeyIndex::Shard* const shard = ShardOf(id);
    ReaderMutexLock lock(&shard->mutex);
    const auto held = expected_.find({id.table, id.key});
    ASSERT_EQ(index_->Find(*shard, id), held == expected_.end() ? kNoLocation : held->second)
        << "table " << id.table << " key " << id.key;
  }
  // Every row is found, and the shards count as many.
  void ExpectAllFound() {
    for (const auto& [name, slot] : expected_) {
      ASSERT_NO_FATAL_FAILURE(ExpectFindsRight(IdOf(name.table, name.key)));
    }
    uint64_t counted = 0;
    for (uint32_t i = 0; i < KeyIndex::kShardCount; ++i) {
      KeyIndex::Shard* const shard = index_->shard(i);
      ReaderMutexLock lock(&shard->mutex);
      counted += shard->rows;
    }
    ASSERT_EQ(counted, expected_.size());
  }
  // What a visit of a table has taken out of the index is free.
  void Forget(const RowId& id, Location slot) {
    ASSERT_EQ(expected_.count({id.table, id.key}), 1u) << "visited twice, or never there";
    ASSERT_EQ(slot, (expected_[{id.table, id.key}]));
    expected_.erase({id.table, id.key});
    tier_->Free(row_class_, {&slot, 1});
  }
  RowId IdAt(Location slot) const {
    const auto* const header = reinterpret_cast<const RowHeader*>(tier_->Row(slot));
    return IdOf(TableOf(header->identity), header->key);
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

  FailingMemory memory_;
  MemoryBudget budget_;
  std::unique_ptr<DramTier> tier_;
  std::unique_ptr<KeyIndex> index_;
  SlotClass row_class_ = 0;
  std::unordered_map<Name, Location, NameHash> expected_;
};

// The hash whose top bits are the shard, whose next 32 are `home` and whose lowest 24 are `tag`;
// two bits between belong to neither.
inline KeyHash HashAt(uint32_t shard, uint32_t home, uint32_t between, uint32_t tag) {
  return uint64_t{shard} << 58 | uint64_t{home} << 26 | uint64_t{between & 3} << 24 |
         (tag & 0xFFFFFFu);
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_INDEX_WORLD_H_
