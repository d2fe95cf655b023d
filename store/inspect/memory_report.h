// The memory report of a store: its bytes of DRAM by use, and the space of its log.
#ifndef EMBANK_STORE_INSPECT_MEMORY_REPORT_H_
#define EMBANK_STORE_INSPECT_MEMORY_REPORT_H_

#include <cstdint>
#include <optional>

#include "store/store.h"
#include "tiers/log/row_log.h"

namespace embank {

// Bytes of DRAM by use: used = fixed + index + rows + state + slack.
struct MemoryReport {
  uint64_t budget_bytes;  // 0: no limit
  uint64_t used_bytes;
  uint64_t fixed_bytes;
  uint64_t index_bytes;
  uint64_t rows_bytes;   // headers, vectors and padding of living rows
  uint64_t state_bytes;  // their optimizer state
  uint64_t slack_bytes;  // slab memory without a living row
  uint64_t huge_pages_refused_bytes;
  uint64_t hbm_budget_bytes;     // device memory; 0: none
  uint64_t hbm_rows_bytes;       // vectors and states of the rows in it
  std::optional<LogSpace> ssd;   // with a path
  std::optional<LogSpace> pmem;  // with a pmem_path
  const char* pmem_kind;         // Store::pmem_kind
};

// Reports the memory of a store, as of one moment only while no other call runs. Thread-safe.
MemoryReport ReportMemory(const Store& store);

}  // namespace embank

#endif  // EMBANK_STORE_INSPECT_MEMORY_REPORT_H_
