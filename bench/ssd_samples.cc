#include "bench/ssd_samples.h"

#include <algorithm>
#include <utility>

#include "bench/kv_samples.h"

namespace embank {
namespace {

constexpr const char* kRate = "rows_per_second";

constexpr const char* kNames[] = {kRate,
                                  "rows_per_second_min",
                                  "rows_per_second_max",
                                  "times_best_peer",
                                  "times_memory",
                                  "batch_p50_us",
                                  "batch_p99_us",
                                  "batch_p999_us",
                                  "batch_p999_over_p50",
                                  "longest_batch_us",
                                  "iops",
                                  "fio_iops",
                                  "fraction_of_fio",
                                  "fio_cpu_us_per_read",
                                  "cpu_us_per_row",
                                  "cpu_us_per_miss",
                                  "system_us_per_miss",
                                  "hit_ratio",
                                  "missed_rows_per_second",
                                  "pmem_hit_ratio",
                                  "pmem_rows_per_second",
                                  "pmem_times_ssd",
                                  "pmem_cpu_us_per_row",
                                  "drains",
                                  "pmem_buffers_written",
                                  "ssd_rows_appended_by_checkpoint",
                                  "scan_seconds",
                                  "scan_bytes_per_second",
                                  "fio_read_bytes_per_second",
                                  "fraction_of_fio_read",
                                  "write_amplification",
                                  "written_bytes_per_second",
                                  "overwritten",
                                  "taken_bytes",
                                  "checkpoints",
                                  "settle_seconds",
                                  "checkpoint_seconds",
                                  "checkpoint_seconds_beside",
                                  "longest_flip_us",
                                  "visited_slots_per_checkpoint",
                                  "flushed_rows_per_checkpoint",
                                  "trainer_batch_p95_us",
                                  "trainer_batch_p95_us_beside",
                                  "trainer_p95_ratio",
                                  "checkpoint_bytes_per_second",
                                  "fio_write_bytes_per_second",
                                  "fraction_of_fio_write",
                                  "trainer_rows_per_second",
                                  "trainer_slowdown",
                                  "recover_seconds",
                                  "footer_read_seconds",
                                  "times_footer_read",
                                  "index_bytes_per_row"};

}  // namespace

std::span<const char* const> SsdFigureNames() { return kNames; }

std::optional<double> SsdResult::Figure(const std::string& name) const {
  const auto found = figures.find(name);
  if (found == figures.end()) return std::nullopt;
  return found->second;
}

void SsdSamples::Record(const SsdCase& which, const SsdFigures& figures) {
  samples_[which].push_back(figures);
}

std::vector<SsdResult> SsdSamples::Results(SsdPhase phase, const std::string& engine) const {
  std::vector<SsdResult> results;
  for (const auto& [which, rounds] : samples_) {
    if (which.phase != phase || which.engine != engine) continue;
    std::map<std::string, std::vector<double>> values;
    for (const SsdFigures& figures : rounds) {
      for (const auto& [name, value] : figures) values[name].push_back(value);
    }
    SsdResult result{which, {}};
    for (const auto& [name, all] : values) result.figures[name] = Median(all);
    if (const auto rates = values.find(kRate); rates != values.end()) {
      const auto [min, max] = std::minmax_element(rates->second.begin(), rates->second.end());
      result.figures["rows_per_second_min"] = *min;
      result.figures["rows_per_second_max"] = *max;
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace embank
