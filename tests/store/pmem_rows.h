// A store with a PMem tier on a simulated disk.
#ifndef EMBANK_TESTS_STORE_PMEM_ROWS_H_
#define EMBANK_TESTS_STORE_PMEM_ROWS_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "store/batch/lookup.h"
#include "store/batch/write.h"
#include "tests/support/spill_world.h"

namespace embank::test {

inline constexpr uint64_t kLargePmem = uint64_t{64} << 20;

// A store of a table with rows of 8 KiB, of which memory holds about 2,000.
class PmemTier : public testing::Test {
 protected:
  void OpenWith(uint64_t pmem_bytes, uint64_t ssd_bytes = 0) {
    world_.AddPmemOptions(pmem_bytes);
    world_.options().ssd_bytes = ssd_bytes;
    const Status opened = world_.Open();
    ASSERT_TRUE(opened.ok()) << opened;
    table_ = world_.Create("t", Optimizer::kAdagrad);
  }
  // Rows of 100 keys at a time, each with values of its key times `factor`.
  void Fill(Key keys, float factor = 1.0f, Key first = 0) {
    for (Key begin = first; begin < first + keys; begin += 100) {
      const std::vector<Key> some = KeysFrom(begin, 100);
      const Status status = Upsert(table_, some, RowsOf(RowsOfKeys(some, factor), kDim), {});
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  void ExpectRows(Key keys, float factor = 1.0f) {
    for (Key begin = 0; begin < keys; begin += 100) {
      const std::vector<Key> some = KeysFrom(begin, 100);
      std::vector<float> rows(some.size() * kDim, -1.0f);
      const Status status = Lookup(table_, some, MissingRule::kSkip, RowsIn(&rows, kDim), {});
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_EQ(rows, RowsOfKeys(some, factor)) << "from key " << begin;
    }
  }
  void Lookups(const std::vector<Key>& keys) {
    std::vector<float> rows(keys.size() * kDim);
    ASSERT_TRUE(Lookup(table_, keys, MissingRule::kSkip, RowsIn(&rows, kDim), {}).ok());
  }
  Tier TierOf(Key key) {
    return table_->store().index->Find(table_->IdOf(key, table_->HashOf(key))).location().tier();
  }
  std::vector<Key> KeysIn(Tier tier, Key keys, size_t most) {
    std::vector<Key> found;
    for (Key key = 0; key < keys && found.size() < most; ++key) {
      if (TierOf(key) == tier) found.push_back(key);
    }
    return found;
  }
  void Checkpoint() {
    const auto made = world_->checkpoints()->Make({});
    ASSERT_TRUE(made.ok()) << made.status();
  }
  void Reopen() {
    const Status opened = world_.Open();
    ASSERT_TRUE(opened.ok()) << opened;
    table_ = *world_->catalog().Open("t");
  }
  void CopyDirectory(const std::string& from, const std::string& to) {
    ASSERT_TRUE(world_.disk().CreateDirectory(to).ok());
    for (const std::string& file : world_.disk().Files()) {
      if (file.find(from + "/") != 0) continue;
      const auto copy = world_.disk().Open(to + file.substr(from.size()), FileAccess::kCreate,
                                           FileCaching::kCached);
      ASSERT_TRUE(copy.ok()) << copy.status();
      const std::vector<std::byte> bytes = world_.disk().Contents(file);
      if (bytes.empty()) continue;
      ASSERT_TRUE((*copy)->Preallocate(bytes.size()).ok());
      ASSERT_TRUE((*copy)->Write(0, bytes).ok());
    }
  }
  uint64_t PmemTakenBytes() {
    const LogSegments& segments = world_->logs()->pmem()->segments();
    ReaderMutexLock lock(segments.mutex());
    return segments.accounts().taken_bytes();
  }
  uint64_t ssd_rows() { return table_->rows_in(Tier::kSsd); }
  uint64_t pmem_rows() { return table_->rows_in(Tier::kPmem); }

  SpillWorld world_{11};
  Table* table_ = nullptr;
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_STORE_PMEM_ROWS_H_
