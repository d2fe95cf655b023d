// Support for tests through the C API: handles that close themselves, options with defaults, and
// the comparison of a whole table with its oracle.
#ifndef EMBANK_TESTS_SUPPORT_C_API_H_
#define EMBANK_TESTS_SUPPORT_C_API_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bindings/c/embank.h"
#include "tests/support/oracle.h"
#include "tests/support/random.h"

namespace embank::test {

struct StoreCloser {
  void operator()(embank_store* store) const { embank_store_close(store); }
};
using StorePtr = std::unique_ptr<embank_store, StoreCloser>;

struct ScanCloser {
  void operator()(embank_scan* scan) const { embank_scan_close(scan); }
};
using ScanPtr = std::unique_ptr<embank_scan, ScanCloser>;

embank_store_options StoreOptions();
embank_table_options TableOptions(uint32_t dim, int32_t optimizer = EMBANK_OPT_NONE);

// These fail the running test with the library's message and return nullptr.
StorePtr OpenStore(const embank_store_options& options = StoreOptions());
embank_table* CreateTable(embank_store* store, const std::string& name,
                          const embank_table_options& options);
ScanPtr OpenScan(embank_table* table);

// A table of the store and its oracle, made together.
struct Twin {
  embank_table* table = nullptr;
  oracle::Table oracle;
};
Twin CreateTwin(embank_store* store, uint64_t store_seed, const std::string& name,
                const embank_table_options& options);
// Looks keys up, creating rows, and makes a step with random gradients: in store and oracle.
void TrainTwin(Twin* twin, const std::vector<uint64_t>& keys, uint32_t dim, Random* random);

// All rows that a scan shows, in its order: keys and packed values.
struct ScanResult {
  embank_status status = EMBANK_OK;
  std::vector<uint64_t> keys;
  std::vector<uint8_t> values;
};
ScanResult ScanAll(embank_table* table, uint64_t row_bytes, uint64_t cap);

// Compares options, every row, state, heat and the row count; "" when they are the same bits (any
// NaN equals any NaN: IEEE leaves its payload open), else the first difference in words.
std::string Difference(embank_table* table, const oracle::Table& oracle);
// As above, except heat: rows that leave memory may lose a part of it.
std::string DifferenceButHeat(embank_table* table, const oracle::Table& oracle);
// Compares the options alone.
std::string OptionsDifference(embank_table* table, const oracle::Table& oracle);

// Same rows at `count` packed values of the type, with the NaN rule above.
bool SameValues(const uint8_t* a, const uint8_t* b, uint64_t count, int32_t value_type);

// A string of the library by its two-call protocol; fails the test on an error.
std::string MemoryReport(embank_store* store);
std::string Metrics(embank_store* store);
// The sample of this name, with its labels, among the metrics; 0: there is none.
double MetricOf(embank_store* store, const std::string& name);
// The number behind "name": in a JSON text, or -1.
double JsonNumber(const std::string& json, const std::string& name);

uint64_t RowCount(embank_table* table);
std::vector<uint64_t> KeyRange(uint64_t first, uint64_t n);

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_C_API_H_
