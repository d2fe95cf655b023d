// All that a store has, for comparison: tables by name, rows of one number each by key.
#ifndef EMBANK_TESTS_SUPPORT_STORE_CONTENTS_H_
#define EMBANK_TESTS_SUPPORT_STORE_CONTENTS_H_

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "store/batch/lookup.h"
#include "store/batch/write.h"
#include "store/scan/scan.h"
#include "store/store.h"
#include "tests/support/row_values.h"
#include "tests/support/spill_world.h"

namespace embank::test {

using Rows = std::map<Key, float>;  // all values of a row are one number
using Tables = std::map<std::string, Rows>;

inline std::span<const std::byte> BlobOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// Rows of the keys times `factor`; all are taken.
inline void Put(Table* table, const std::vector<Key>& keys, float factor) {
  const Status status = Upsert(table, keys, RowsOf(RowsOfKeys(keys, factor), kDim), {});
  ASSERT_TRUE(status.ok()) << status;
}

// Looks rows up, so that they gain heat.
inline void LookUp(Table* table, const std::vector<Key>& keys) {
  std::vector<float> rows(keys.size() * kDim);
  const Status status = Lookup(table, keys, MissingRule::kSkip, RowsIn(&rows, kDim), {});
  ASSERT_TRUE(status.ok()) << status;
}

// Reads all rows by a scan; checks that no row is torn, returned twice or not counted.
inline StatusOr<Rows> ReadAll(Table* table) {
  Rows rows;
  Scan scan(table);
  std::vector<Key> keys(200);
  std::vector<float> values(keys.size() * kDim);
  while (true) {
    const StatusOr<uint64_t> count = scan.Next(keys, RowsIn(&values, kDim));
    if (!count.ok()) return count.status();
    if (*count == 0) break;
    for (uint64_t i = 0; i < *count; ++i) {
      if (!IsWholeRow(values, i, kDim)) return InternalError("a torn row");
      if (!rows.emplace(keys[i], values[i * kDim]).second) return InternalError("a row twice");
    }
  }
  if (table->rows() != rows.size()) return InternalError("a wrong count of rows");
  return rows;
}

inline StatusOr<Tables> ReadAll(Store* store) {
  Tables tables;
  for (Table* const table : store->catalog().List()) {
    StatusOr<Rows> rows = ReadAll(table);
    if (!rows.ok()) return rows.status();
    tables[table->name()] = *std::move(rows);
  }
  return tables;
}

// Reads rows by key, too, which checks parts of the index that a scan does not use.
inline void ExpectRows(Table* table, const Rows& expected) {
  std::vector<Key> keys;
  std::vector<float> values(expected.size() * kDim);
  for (const auto& [key, value] : expected) {
    FillRow(&values, keys.size(), kDim, value);
    keys.push_back(key);
  }
  std::vector<float> found(values.size(), -1.0f);
  const Status status = Lookup(table, keys, MissingRule::kZero, RowsIn(&found, kDim), {});
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(found, values);
}

inline void ExpectIs(Store* store, const Tables& expected) {
  const StatusOr<Tables> tables = ReadAll(store);
  ASSERT_TRUE(tables.ok()) << tables.status();
  ASSERT_EQ(tables->size(), expected.size());
  for (const auto& [name, rows] : expected) {
    ASSERT_EQ(tables->count(name), 1u) << name;
    ASSERT_EQ(tables->at(name), rows) << name;
    ExpectRows(*store->catalog().Open(name), rows);
  }
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_STORE_CONTENTS_H_
