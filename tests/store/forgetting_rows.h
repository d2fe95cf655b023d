// Rows of a table that forgets, in a small log on a simulated disk.
#ifndef EMBANK_TESTS_STORE_FORGETTING_ROWS_H_
#define EMBANK_TESTS_STORE_FORGETTING_ROWS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "store/batch/lookup.h"
#include "store/batch/write.h"
#include "tests/support/row_values.h"
#include "tests/support/spill_world.h"

namespace embank::test {

// Its half has space for 8,035 records of 4,176 bytes: four times what memory has slots for.
inline constexpr uint64_t kSsdBytes = uint64_t{64} << 20;
inline constexpr uint64_t kRecordBytes = 4176;
inline constexpr uint64_t kRowsOfPart = kSsdBytes / 2 / kRecordBytes;
inline constexpr size_t kBatch = 200;

inline TableOptions Forgets(EvictionPolicy eviction = EvictionPolicy::kClock, uint32_t dim = kDim) {
  TableOptions options = OptionsOf(dim, Optimizer::kSgd);
  options.rule.learning_rate = 1.0f;
  options.initializer = {InitializerKind::kConstant, 5.0f, 0};
  options.eviction = eviction;
  options.on_full = OnFull::kForget;
  return options;
}

inline uint64_t Forgotten(Table* table) { return table->counters().forgotten_rows.load(); }

inline Table* Create(SpillWorld* store, std::string_view name, const TableOptions& options) {
  const StatusOr<Table*> table = (*store)->CreateTable(name, options);
  EXPECT_TRUE(table.ok()) << table.status();
  return table.ok() ? *table : nullptr;
}

// Writes keys whose values are their key times `factor`; all have to be taken.
inline void Write(Table* table, const std::vector<Key>& keys, float factor = 1.0f) {
  std::vector<uint8_t> outcomes(keys.size());
  const Status status = Upsert(table, keys, RowsOf(RowsOfKeys(keys, factor), kDim), outcomes);
  ASSERT_TRUE(status.ok()) << status;
  const auto refused =
      std::count(outcomes.begin(), outcomes.end(), static_cast<uint8_t>(Outcome::kRefused));
  ASSERT_EQ(refused, 0) << table->mover()->logs().lowest().space().RefusalReason();
}

// Those of [begin, end) in batches, with a checkpoint after each so many keys, if any.
inline void WriteRange(SpillWorld* store, Table* table, Key begin, Key end,
                       Key keys_per_checkpoint = 0) {
  for (Key key = begin; key < end; key += kBatch) {
    ASSERT_NO_FATAL_FAILURE(Write(table, KeysFrom(key, std::min<Key>(kBatch, end - key))));
    if (keys_per_checkpoint == 0 ||
        key / keys_per_checkpoint == (key + kBatch) / keys_per_checkpoint)
      continue;
    const StatusOr<uint32_t> made = (*store)->checkpoints()->Make({});
    ASSERT_TRUE(made.ok()) << made.status();
  }
}

// Which of the keys have a row, without a trace.
inline std::set<Key> Present(Table* table, const std::vector<Key>& keys) {
  std::vector<uint8_t> outcomes(keys.size());
  EXPECT_TRUE(Contains(table, keys, outcomes).ok());
  std::set<Key> present;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (outcomes[i] == static_cast<uint8_t>(Outcome::kFound)) present.insert(keys[i]);
  }
  return present;
}

// The values of those of the keys that have a row: one for the whole row.
inline std::map<Key, float> ValuesOf(Table* table, const std::vector<Key>& keys) {
  std::map<Key, float> values;
  std::vector<float> rows(keys.size() * kDim);
  std::vector<uint8_t> outcomes(keys.size());
  const Status status = Lookup(table, keys, MissingRule::kDefault, RowsIn(&rows, kDim), outcomes);
  EXPECT_TRUE(status.ok()) << status;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (outcomes[i] != static_cast<uint8_t>(Outcome::kFound)) continue;
    EXPECT_TRUE(IsWholeRow(rows, i, kDim)) << "a torn row";
    values[keys[i]] = rows[i * kDim];
  }
  return values;
}

inline void ExpectOwnValues(Table* table, const std::vector<Key>& keys) {
  for (const auto& [key, value] : ValuesOf(table, keys)) {
    ASSERT_EQ(value, static_cast<float>(key));
  }
}

inline uint64_t BytesOfRows(SpillWorld* store) {
  const LogSpace space = (*store)->logs()->lowest().space().Report();
  return space.live_bytes + space.dirty_bytes;
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_STORE_FORGETTING_ROWS_H_
