// The memory report of a store: its bytes of DRAM by use, and the space of its log.
#ifndef EMBANK_STORE_INSPECT_MEMORY_REPORT_H_
#define EMBANK_STORE_INSPECT_MEMORY_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "store/payload/topk_flush.h"
#include "store/store.h"
#include "tiers/log/row_log.h"

namespace embank {

// Device memory, and the rows that came to it and left it since the store was opened.
struct PayloadMemoryReport {
  uint64_t budget_bytes;
  uint64_t rows_bytes;    // vectors and states of the rows in it
  std::string device;     // "twin": host memory
  uint64_t lookups;       // positions that it answered
  uint64_t sampled_keys;  // distinct keys in a sample of the lookups
  uint64_t sampled_hits;  // of them those whose rows were in it
  uint64_t arrived_rows;
  uint64_t left_rows;
  uint64_t written_back_rows;  // of them those that no record has as they are
  uint64_t pre_images;
  uint64_t wait_ns;  // of all batches for rows that moved
  uint64_t longest_wait_ns;
  TopkFlushReport flush;
};

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
  std::optional<PayloadMemoryReport> payloads;  // with device memory
  ByTier<std::optional<LogSpace>> logs;         // of the tiers that have one
  const char* pmem_kind;                        // Store::pmem_kind
};

// Reports the memory of a store, as of one moment only while no other call runs. Thread-safe.
MemoryReport ReportMemory(const Store& store);

}  // namespace embank

#endif  // EMBANK_STORE_INSPECT_MEMORY_REPORT_H_
