#include "tests/support/c_api.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <unordered_set>

#include "tests/support/oracle_numbers.h"

namespace embank::test {
namespace {

constexpr uint64_t kCompareBytes = 4 << 20;  // of one chunk of a comparison

// `call` is one of the string functions with everything but its last three arguments bound.
template <typename Call>
std::string TwoCalls(const Call& call) {
  uint64_t needed = 0;
  EXPECT_EQ(call(nullptr, 0, &needed), EMBANK_OK) << embank_last_error();
  // Space for numbers that grow between the two calls.
  std::vector<char> text(needed + 256);
  EXPECT_EQ(call(text.data(), text.size(), &needed), EMBANK_OK) << embank_last_error();
  return std::string(text.data());
}

std::string CompareScan(embank_table* table, const oracle::Table& oracle) {
  uint64_t row_bytes = oracle.row_bytes();
  // Space for all of them and one more: zeros for 4 MiB cost more than to compare a few rows.
  uint64_t cap = std::min<uint64_t>(kCompareBytes / row_bytes, oracle.rows().size() + 1);
  ScanResult scan = ScanAll(table, row_bytes, std::max<uint64_t>(1, cap));
  if (scan.status != EMBANK_OK) return std::string("scan: ") + embank_last_error();
  std::unordered_set<uint64_t> seen;
  for (size_t i = 0; i < scan.keys.size(); ++i) {
    std::string key = "key " + std::to_string(scan.keys[i]);
    const oracle::Row* row = oracle.Find(scan.keys[i]);
    if (row == nullptr) return key + " was scanned, but does not exist";
    if (!seen.insert(scan.keys[i]).second) return key + " was scanned twice";
    if (!SameValues(row->values.data(), scan.values.data() + i * row_bytes, oracle.options().dim,
                    oracle.options().value_type)) {
      return key + " was scanned with other values";
    }
  }
  if (seen.size() != oracle.rows().size()) {
    return "scan showed " + std::to_string(seen.size()) + " of " +
           std::to_string(oracle.rows().size()) + " rows";
  }
  return "";
}

std::vector<uint64_t> KeysOf(const oracle::Table& oracle) {
  std::vector<uint64_t> keys;
  for (const auto& [key, row] : oracle.rows()) keys.push_back(key);
  return keys;
}

std::string CompareHeat(embank_table* table, const oracle::Table& oracle,
                        const std::vector<uint64_t>& keys) {
  std::vector<uint32_t> heat(keys.size());
  if (embank_get_heat(table, keys.data(), keys.size(), heat.data(), nullptr) != EMBANK_OK) {
    return std::string("get_heat: ") + embank_last_error();
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    uint32_t expected = oracle.Heat(*oracle.Find(keys[i]));
    if (heat[i] != expected) {
      return "key " + std::to_string(keys[i]) + " has heat " + std::to_string(heat[i]) + ", not " +
             std::to_string(expected);
    }
  }
  return "";
}

std::string CompareState(embank_table* table, const oracle::Table& oracle,
                         const std::vector<uint64_t>& keys) {
  uint64_t floats = oracle.state_floats();
  if (floats == 0) return "";
  uint64_t chunk = std::max<uint64_t>(1, kCompareBytes / (floats * sizeof(float)));
  std::vector<float> state(std::min<uint64_t>(chunk, keys.size()) * floats);
  for (uint64_t begin = 0; begin < keys.size(); begin += chunk) {
    uint64_t n = std::min<uint64_t>(chunk, keys.size() - begin);
    if (embank_get_state(table, keys.data() + begin, n, state.data(), 0, nullptr) != EMBANK_OK) {
      return std::string("get_state: ") + embank_last_error();
    }
    for (uint64_t i = 0; i < n; ++i) {
      const auto* actual = reinterpret_cast<const uint8_t*>(state.data() + i * floats);
      const auto& expected = oracle.Find(keys[begin + i])->state;
      if (!SameValues(actual, reinterpret_cast<const uint8_t*>(expected.data()), floats,
                      EMBANK_F32)) {
        return "key " + std::to_string(keys[begin + i]) + " has another optimizer state";
      }
    }
  }
  return "";
}

}  // namespace

embank_store_options StoreOptions() {
  embank_store_options options;
  embank_store_options_init(&options, sizeof options);
  return options;
}

embank_table_options TableOptions(uint32_t dim, int32_t optimizer) {
  embank_table_options options;
  embank_table_options_init(&options, sizeof options);
  options.dim = dim;
  options.optimizer = optimizer;
  return options;
}

StorePtr OpenStore(const embank_store_options& options) {
  embank_store* store = nullptr;
  EXPECT_EQ(embank_store_open(&options, &store), EMBANK_OK) << embank_last_error();
  return StorePtr(store);
}

embank_table* CreateTable(embank_store* store, const std::string& name,
                          const embank_table_options& options) {
  embank_table* table = nullptr;
  EXPECT_EQ(embank_table_create(store, name.c_str(), &options, &table), EMBANK_OK)
      << embank_last_error();
  return table;
}

ScanPtr OpenScan(embank_table* table) {
  embank_scan* scan = nullptr;
  EXPECT_EQ(embank_scan_open(table, &scan), EMBANK_OK) << embank_last_error();
  return ScanPtr(scan);
}

Twin CreateTwin(embank_store* store, uint64_t store_seed, const std::string& name,
                const embank_table_options& options) {
  return {CreateTable(store, name, options), oracle::Table(store_seed, name, options)};
}

void TrainTwin(Twin* twin, const std::vector<uint64_t>& keys, uint32_t dim, Random* random) {
  std::vector<float> rows(keys.size() * dim);
  EXPECT_EQ(embank_lookup(twin->table, keys.data(), keys.size(), EMBANK_MISSING_CREATE, rows.data(),
                          0, nullptr),
            EMBANK_OK)
      << embank_last_error();
  twin->oracle.Lookup(keys.data(), keys.size(), EMBANK_MISSING_CREATE, rows.data(), 0, nullptr);
  for (float& value : rows) value = random->Signed();
  EXPECT_EQ(embank_apply_gradients(twin->table, keys.data(), keys.size(), rows.data(), 0, nullptr),
            EMBANK_OK)
      << embank_last_error();
  twin->oracle.ApplyGradients(keys.data(), keys.size(), rows.data(), 0, nullptr);
}

ScanResult ScanAll(embank_table* table, uint64_t row_bytes, uint64_t cap) {
  ScanResult result;
  ScanPtr scan = OpenScan(table);
  std::vector<uint64_t> keys(cap);
  std::vector<uint8_t> rows(cap * row_bytes);
  for (;;) {
    uint64_t n = 0;
    result.status = embank_scan_next(scan.get(), keys.data(), rows.data(), 0, cap, &n);
    if (result.status != EMBANK_OK || n == 0) return result;
    result.keys.insert(result.keys.end(), keys.begin(), keys.begin() + static_cast<int64_t>(n));
    result.values.insert(result.values.end(), rows.data(), rows.data() + n * row_bytes);
  }
}

std::string Difference(embank_table* table, const oracle::Table& oracle) {
  const std::string difference = DifferenceButHeat(table, oracle);
  return difference.empty() ? CompareHeat(table, oracle, KeysOf(oracle)) : difference;
}

std::string OptionsDifference(embank_table* table, const oracle::Table& oracle) {
  embank_table_options options;
  options.struct_size = sizeof options;
  if (embank_table_get_options(table, &options) != EMBANK_OK) return embank_last_error();
  const bool are_same = std::memcmp(&options, &oracle.options(), sizeof options) == 0;
  return are_same ? "" : "the table has other options";
}

std::string DifferenceButHeat(embank_table* table, const oracle::Table& oracle) {
  std::string difference = OptionsDifference(table, oracle);
  if (difference.empty()) difference = CompareScan(table, oracle);
  const std::vector<uint64_t> keys = KeysOf(oracle);
  if (difference.empty()) difference = CompareState(table, oracle, keys);
  if (difference.empty() && RowCount(table) != keys.size()) {
    difference = "table info counts " + std::to_string(RowCount(table)) + " rows, not " +
                 std::to_string(keys.size());
  }
  return difference;
}

bool SameValues(const uint8_t* a, const uint8_t* b, uint64_t count, int32_t value_type) {
  uint64_t bytes = oracle::ValueBytes(value_type);
  if (count == 0 || std::memcmp(a, b, count * bytes) == 0) return true;
  for (uint64_t i = 0; i < count * bytes; i += bytes) {
    if (std::memcmp(a + i, b + i, bytes) == 0) continue;
    bool both_nan = std::isnan(oracle::LoadValue(a + i, value_type)) &&
                    std::isnan(oracle::LoadValue(b + i, value_type));
    if (!both_nan) return false;
  }
  return true;
}

std::string MemoryReport(embank_store* store) {
  return TwoCalls([store](char* text, uint64_t cap, uint64_t* needed) {
    return embank_memory_report(store, text, cap, needed);
  });
}

std::string Metrics(embank_store* store) {
  return TwoCalls([store](char* text, uint64_t cap, uint64_t* needed) {
    return embank_metrics(store, text, cap, needed);
  });
}

double MetricOf(embank_store* store, const std::string& name) {
  const std::string text = Metrics(store);
  const size_t at = text.find("\n" + name + " ");
  return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + name.size() + 2, nullptr);
}

double JsonNumber(const std::string& json, const std::string& name) {
  size_t at = json.find("\"" + name + "\":");
  if (at == std::string::npos) return -1;
  return std::strtod(json.c_str() + at + name.size() + 3, nullptr);
}

uint64_t RowCount(embank_table* table) {
  embank_table_info info = {};
  info.struct_size = sizeof info;
  EXPECT_EQ(embank_table_get_info(table, &info), EMBANK_OK) << embank_last_error();
  return info.rows;
}

std::vector<uint64_t> KeyRange(uint64_t first, uint64_t n) {
  std::vector<uint64_t> keys(n);
  for (uint64_t i = 0; i < n; ++i) keys[i] = first + i;
  return keys;
}

}  // namespace embank::test
