// The C API's handles and statuses as C++ owns them.
#ifndef EMBANK_BENCH_C_STORE_H_
#define EMBANK_BENCH_C_STORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "base/status_or.h"
#include "bench/options.h"
#include "bindings/c/embank.h"
#include "store/store.h"

namespace embank {

struct StoreCloser {
  void operator()(embank_store* store) const { embank_store_close(store); }
};
struct ScanCloser {
  void operator()(embank_scan* scan) const { embank_scan_close(scan); }
};
using StorePointer = std::unique_ptr<embank_store, StoreCloser>;
using ScanPointer = std::unique_ptr<embank_scan, ScanCloser>;

// A store with one table.
struct CStore {
  StorePointer store;
  embank_table* table = nullptr;
};

// Memory of store and table, from embank_memory_report and embank_table_get_info.
struct CStoreMemory {
  uint64_t used_bytes = 0;
  uint64_t index_bytes = 0;
  uint64_t rows = 0;
  uint64_t row_bytes = 0;
};

// The code of a C call, with the thread's last message.
Status ToStatus(embank_status status);

// Opens a store, and its table: that of MakeTableOptions(shape) with these policies, or the one
// that is there.
StatusOr<CStore> OpenCStore(const embank_store_options& options, const TableShape& shape,
                            int32_t eviction = EMBANK_EVICT_CLOCK,
                            int32_t on_full = EMBANK_FULL_REFUSE,
                            StoreEnvironment environment = {});
// Opens a store in memory without a budget and creates the table of MakeTableOptions(shape) in it.
StatusOr<CStore> OpenCStore(const TableShape& shape, uint64_t seed, uint32_t worker_threads);

StatusOr<CStoreMemory> MemoryOf(const CStore& store);

// The text of embank_metrics, and in it the value of a metric without labels.
StatusOr<std::string> MetricsOf(const CStore& store);
std::optional<double> MetricIn(const std::string& text, const std::string& metric);

}  // namespace embank

#endif  // EMBANK_BENCH_C_STORE_H_
