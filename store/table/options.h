// The options of a store and of a table, and their limits.
#ifndef EMBANK_STORE_TABLE_OPTIONS_H_
#define EMBANK_STORE_TABLE_OPTIONS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

#include "base/status.h"
#include "base/types.h"
#include "store/table/initializer.h"
#include "tiers/dram/eviction_order.h"
#include "tiers/row/update_rule.h"

namespace embank {

// Enough for the index, records, and one page of rows for a few classes, whatever the number of
// cores.
inline constexpr uint64_t kDramBytesMin = uint64_t{16} << 20;
// Four segments of the smallest size: one to write, one for compaction, and two with rows.
inline constexpr uint64_t kPmemBytesMin = uint64_t{4} << 20;
// One row of the largest size.
inline constexpr uint64_t kHbmBytesMin = uint64_t{64} << 10;
inline constexpr uint32_t kWorkerThreadsMax = 1024;
inline constexpr size_t kTableNameBytesMax = 255;
inline constexpr uint32_t kExpectedRowsLog2Max = 40;

struct StoreOptions {
  uint64_t dram_bytes = 0;      // 0: no limit
  uint32_t worker_threads = 0;  // 0: one per core
  uint32_t pin_batches = 0;     // lookup batches that a pin outlasts; 0: Pins::kBatches
  uint64_t seed = 0;
  std::string path = {};   // directory of the store; empty: memory only, and nothing below counts
  uint64_t ssd_bytes = 0;  // of the log; 0: no limit
  std::string pmem_path = {};  // directory of the PMem tier; empty: there is none
  uint64_t pmem_bytes = 0;     // of the log in PMem
  uint64_t hbm_bytes = 0;      // device memory for HBM rows; 0: none
  int32_t cuda_device = -1;    // -1: the twin, if hbm_bytes is above 0
  uint32_t warmup_iters = 0;   // lookup batches before the first top-k flush; 0: 100
  uint32_t flush_iters = 0;    // between flushes; 0: 100; UINT32_MAX: none
  bool may_create = true;      // a store where there is none
  bool previous = false;       // opens the last checkpoint but one
  // Together with others who only read; then nothing is made or written, and ssd_bytes and
  // may_create do not count.
  bool read_only = false;
};

// The word for an optimizer in texts: "adagrad". Thread-safe.
const char* NameOf(Optimizer optimizer);

// The number of threads in the store's pool.
uint32_t WorkerThreads(const StoreOptions& options);

// The answer of a table to a new row for which there is no space. The values are those of the C
// API.
enum class OnFull : int32_t { kRefuse = 0, kForget = 1 };

struct TableOptions {
  uint32_t dim = 0;
  ValueType value_type = ValueType::kF32;
  Optimizer optimizer = Optimizer::kNone;
  UpdateRule rule;
  Initializer initializer;
  EvictionPolicy eviction = EvictionPolicy::kClock;
  OnFull on_full = OnFull::kRefuse;
  uint32_t expected_rows_log2 = 0;  // the table will have about 2^n rows; 0: it is unknown
};

// The properties that tables share if their rows share slots and one eviction order.
struct RowClass {
  uint32_t slot_bytes = 0;
  EvictionPolicy eviction = EvictionPolicy::kClock;
  OnFull on_full = OnFull::kRefuse;

  bool operator==(const RowClass&) const = default;
  bool operator<(const RowClass& other) const {
    return std::tie(slot_bytes, eviction, on_full) <
           std::tie(other.slot_bytes, other.eviction, other.on_full);
  }
};
// The row class of a table with valid options.
RowClass RowClassOf(const TableOptions& options);

// kInvalidArgument: the message names the option, its value and the limit.
Status Validate(const StoreOptions& options);
Status Validate(const TableOptions& options);
Status ValidateTableName(std::string_view name);
// Like ValidateTableName, for a new table, whose name has to be UTF-8. Older stores have names of
// any bytes; they can be opened and dropped.
Status ValidateNewTableName(std::string_view name);
Status ValidateLearningRate(Optimizer optimizer, float learning_rate);

}  // namespace embank

#endif  // EMBANK_STORE_TABLE_OPTIONS_H_
