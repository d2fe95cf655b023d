// Lookups whose heat a plain counter counts beside the store, for tests of heat that travels.
#ifndef EMBANK_TESTS_STORE_COUNTED_HEAT_H_
#define EMBANK_TESTS_STORE_COUNTED_HEAT_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "store/batch/lookup.h"
#include "tests/support/export_world.h"
#include "tests/support/random.h"

namespace embank::test {

using Heats = std::vector<uint32_t>;  // of keys 0, 1, ...

inline constexpr uint64_t kMillion = uint64_t{1} << 20;  // positions of the shortest epoch

inline Heats HeatsOf(Table* table, uint64_t keys) {
  Heats heats(keys);
  const Status status = GetHeat(table, KeysFrom(0, keys), heats, {});
  EXPECT_TRUE(status.ok()) << status;
  return heats;
}

// Looks rows up, and counts beside it.
class Counted {
 public:
  Counted(Table* table, uint64_t keys) : table_(table), exact_(keys) {}

  void LookUp(const std::vector<Key>& keys) {
    const uint32_t dim = table_->options().dim;
    std::vector<float> rows(keys.size() * dim);
    ASSERT_TRUE(Lookup(table_, keys, MissingRule::kZero, RowsIn(&rows, dim), {}).ok());
    for (const Key key : keys) ++exact_[key];
    Age();
  }
  // Ends an epoch, if it is a million.
  void Pass(uint64_t positions) {
    table_->store().heat_clock->Count(positions);
    Age();
  }
  const Heats& exact() const { return exact_; }
  Heats told() const { return HeatsOf(table_, exact_.size()); }
  bool IsInLog(Key key) const {
    const Match match = table_->store().index->Find(table_->IdOf(key, table_->HashOf(key)));
    return match.any() && match.location().tier() == Tier::kSsd;
  }

 private:
  void Age() {
    for (; epochs_ < table_->store().heat_clock->epochs(); ++epochs_) {
      for (uint32_t& heat : exact_) heat /= 2;
    }
  }

  Table* const table_;
  Heats exact_;
  uint64_t epochs_ = 0;
};

// Twice the rows that memory holds; their records say that they were never looked up.
inline constexpr Key kKeys = 4000;

inline Table* MakeCold(SpillWorld* world) {
  Table* const table = world->Create("t", Optimizer::kSgd);
  Put(table, KeysFrom(0, kKeys), 1.0f);
  EXPECT_TRUE((*world)->checkpoints()->Make({}).ok());
  EXPECT_GT(table->rows_in_log(), kKeys / 3);
  return table;
}

inline std::vector<Key> DrawKeys(Random* random) {
  std::vector<Key> keys(random->Between(1, 300));
  for (Key& key : keys) key = random->Below(random->OneIn(2) ? kKeys : kKeys / 8);
  return keys;
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_STORE_COUNTED_HEAT_H_
