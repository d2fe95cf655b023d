#include "store/inspect/memory_report.h"

#include <algorithm>

namespace embank {
namespace {

PayloadMemoryReport ReportPayloads(const Store& store) {
  const PayloadRows& payloads = *store.payloads();
  const PayloadCounters& counters = payloads.counters();
  const UniqueHits& unique = store.topk_flush()->unique_hits();
  return {.budget_bytes = payloads.memory().hbm_bytes(),
          .rows_bytes = payloads.memory().slots().taken_bytes(),
          .device = payloads.memory().device().figures().name,
          .lookups = counters.answered.load(std::memory_order_relaxed),
          .sampled_keys = unique.keys(),
          .sampled_hits = unique.hits(),
          .arrived_rows = counters.arrived_rows.load(std::memory_order_relaxed),
          .left_rows = counters.left_rows.load(std::memory_order_relaxed),
          .written_back_rows = counters.written_back_rows.load(std::memory_order_relaxed),
          .pre_images = counters.pre_images.load(std::memory_order_relaxed),
          .wait_ns = counters.wait_ns.load(std::memory_order_relaxed),
          .longest_wait_ns = counters.longest_wait_ns.load(std::memory_order_relaxed),
          .flush = store.topk_flush()->Report()};
}

}  // namespace

MemoryReport ReportMemory(const Store& store) {
  MemoryReport report{};
  for (const Table* const table : store.catalog().List()) {
    const RowLayout& layout = table->layout();
    const uint64_t rows = RowsInDram(*table);
    report.rows_bytes += rows * (layout.row_bytes - layout.state_bytes());
    report.state_bytes += rows * layout.state_bytes();
    // A row in device memory has its header and its note here.
    report.rows_bytes += table->rows_in(Tier::kHbm) * (sizeof(RowHeader) + DramTier::kNoteBytes);
  }
  if (store.payloads() != nullptr) report.payloads = ReportPayloads(store);
  report.budget_bytes = store.budget().limit_bytes();
  report.used_bytes = store.budget().used_bytes();
  report.index_bytes = store.index().memory()->bytes();
  const uint64_t slab_bytes = store.tier().pool()->committed_bytes();
  const uint64_t taken_bytes = report.rows_bytes + report.state_bytes;
  report.slack_bytes = slab_bytes - std::min(slab_bytes, taken_bytes);
  report.fixed_bytes =
      report.used_bytes - std::min(report.used_bytes, slab_bytes + report.index_bytes);
  report.huge_pages_refused_bytes = HugePagesOff() ? slab_bytes + report.index_bytes : 0;
  for (const RowLog* const log : store.logs()->all()) {
    report.logs[log->options().tier] = log->space().Report();
  }
  report.pmem_kind = store.pmem_kind();
  return report;
}

}  // namespace embank
