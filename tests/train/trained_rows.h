// The rows that a trainer has left in the directory of its store.
#ifndef EMBANK_TESTS_TRAIN_TRAINED_ROWS_H_
#define EMBANK_TESTS_TRAIN_TRAINED_ROWS_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "store/batch/state.h"
#include "store/scan/scan.h"
#include "store/store.h"

namespace embank::test {

using TableRows = std::map<Key, std::vector<float>>;

inline RowSpan SpanOf(std::vector<float>* rows, uint32_t floats) {
  return {reinterpret_cast<std::byte*>(rows->data()), floats * sizeof(float)};
}

// The values of each row, and its optimizer state behind them.
inline TableRows RowsIn(Table* table) {
  const uint32_t dim = table->layout().dim;
  const uint32_t state_floats = table->layout().state_floats;
  TableRows all;
  Scan scan(table);
  std::vector<Key> keys(1000);
  std::vector<float> rows(keys.size() * dim);
  std::vector<float> states(keys.size() * state_floats);
  for (;;) {
    const StatusOr<uint64_t> count = scan.Next(keys, SpanOf(&rows, dim));
    EXPECT_TRUE(count.ok()) << count.status();
    if (!count.ok() || *count == 0) return all;
    if (state_floats > 0) {
      const KeySpan found = KeySpan(keys).first(*count);
      EXPECT_TRUE(GetState(table, found, SpanOf(&states, state_floats), {}).ok());
    }
    for (uint64_t i = 0; i < *count; ++i) {
      std::vector<float>& row = all[keys[i]];
      row.assign(&rows[i * dim], &rows[i * dim] + dim);
      const auto state = states.begin() + static_cast<ptrdiff_t>(i * state_floats);
      row.insert(row.end(), state, state + state_floats);
    }
  }
}

inline std::map<std::string, TableRows> TablesIn(const std::string& path,
                                                 const std::string& pmem_path = "") {
  std::map<std::string, TableRows> tables;
  StoreOptions options;
  options.worker_threads = 1;
  options.path = path;
  options.pmem_path = pmem_path;
  options.read_only = true;
  options.dram_bytes = uint64_t{64} << 20;
  const StatusOr<std::unique_ptr<Store>> store = Store::Open(options, {});
  EXPECT_TRUE(store.ok()) << store.status();
  if (!store.ok()) return tables;
  for (Table* const table : (*store)->catalog().List()) tables[table->name()] = RowsIn(table);
  return tables;
}

// Expects the same rows and states in all tables of two stores.
inline void ExpectSameRows(const std::string& path, const std::string& expected_path,
                           size_t tables_expected) {
  const std::map<std::string, TableRows> tables = TablesIn(path);
  const std::map<std::string, TableRows> expected = TablesIn(expected_path);
  EXPECT_EQ(tables.size(), tables_expected);
  ASSERT_EQ(tables.size(), expected.size());
  for (const auto& [name, rows] : expected) {
    EXPECT_GT(rows.size(), 0u) << name;
    EXPECT_TRUE(tables.contains(name) && tables.at(name) == rows) << name;
  }
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_TRAIN_TRAINED_ROWS_H_
