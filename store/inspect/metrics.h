// Metrics of a store as text: Prometheus and JSON.
#ifndef EMBANK_STORE_INSPECT_METRICS_H_
#define EMBANK_STORE_INSPECT_METRICS_H_

#include <string>

#include "store/inspect/estimate.h"
#include "store/inspect/memory_report.h"
#include "store/store.h"

namespace embank {

// Returns counters and gauges in the Prometheus text format 0.0.4 (docs/metrics.md). Thread-safe.
std::string FormatMetrics(const Store& store);

// {"dram": {...}}, all in bytes. Thread-safe.
std::string FormatMemoryReport(const MemoryReport& report);

// {"dram_bytes": ..., "fits": ...}.
std::string FormatEstimate(const Estimate& estimate);

}  // namespace embank

#endif  // EMBANK_STORE_INSPECT_METRICS_H_
