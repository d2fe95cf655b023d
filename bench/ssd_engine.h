// An engine of an ssd run: a store that keeps a part of its rows in memory and all of them on an
// SSD.
#ifndef EMBANK_BENCH_SSD_ENGINE_H_
#define EMBANK_BENCH_SSD_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "base/status_or.h"
#include "base/types.h"
#include "bench/options.h"

namespace embank {

struct SsdEngineConfig {
  TableShape shape;
  uint64_t seed = 1;
  std::string path;         // an empty directory of its own
  uint64_t dram_bytes = 0;  // memory that it may use for rows and what it needs to find them
  uint64_t ssd_bytes = 0;   // 0: no limit
  uint32_t threads = 1;     // that will call, at most
  std::string pmem_path;    // an empty directory for a PMem tier; empty: without
  uint64_t pmem_bytes = 0;  // of that tier
  uint32_t sync_us = 0;     // by which each sync of an Embank store's files is longer
};

// Counts the work of a PMem tier.
struct SsdPmemCounters {
  uint64_t read_rows = 0;          // rows that were answered from PMem
  uint64_t written_buffers = 0;    // writes to its files
  uint64_t drains = 0;             // waits until such writes are durable
  uint64_t ssd_appended_rows = 0;  // rows that were written to the SSD below it
};

// Counters since the opening; they only grow, except taken_bytes.
struct SsdCounters {
  uint64_t reads = 0;          // reads of the device
  uint64_t missed_rows = 0;    // rows that were asked for and not in DRAM
  uint64_t written_bytes = 0;  // to the device
  uint64_t taken_bytes = 0;    // by its files now; 0: it is not known
  // The longest time in which no batch of writes began, for a checkpoint; 0: it is not known.
  double longest_barrier_us = 0;
  uint64_t visited_slots = 0;           // by the flush passes of checkpoints; 0: it is not known
  uint64_t flushed_rows = 0;            // rows that these wrote
  std::optional<SsdPmemCounters> pmem;  // nothing: it has no PMem tier
};

// All calls but Reopen may come from several threads at once.
class SsdEngine {
 public:
  virtual ~SsdEngine() = default;

  // Writes rows, new or not: vectors, packed, with first states. RESOURCE_EXHAUSTED: some were
  // refused, the device's budget is used up.
  virtual Status Write(KeySpan keys, const std::byte* vectors) = 0;
  // Reads the vectors of rows. NOT_FOUND: one is not there; DATA_LOSS.
  virtual Status Read(KeySpan keys, std::byte* vectors) = 0;

  // Gives every row once, to visit(keys, vectors), `batch` at a time, as a program would that does
  // nothing else. A status of `visit` ends it.
  using ScanVisit = std::function<Status(KeySpan, const std::byte*)>;
  virtual Status Scan(uint64_t batch, const ScanVisit& visit) = 0;

  // Makes everything that was written durable. One thread at a time.
  virtual Status Checkpoint() = 0;
  // Waits for the work that writes left for later. No thread writes meanwhile.
  virtual Status Settle() = 0;
  // Puts the rows into the order in which reads are fastest, if that is more than Settle.
  virtual Status Compact() = 0;
  // Closes the store, and opens its durable state; returns the seconds of the opening.
  virtual StatusOr<double> Reopen() = 0;

  virtual StatusOr<SsdCounters> Counters() const = 0;
  // The memory of the index, if it is known.
  virtual StatusOr<std::optional<uint64_t>> IndexBytes() const = 0;
};

}  // namespace embank

#endif  // EMBANK_BENCH_SSD_ENGINE_H_
