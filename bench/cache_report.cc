#include "bench/cache_report.h"

#include "absl/strings/str_format.h"
#include "base/str_cat.h"
#include "bench/cache_engine.h"
#include "bench/report_parts.h"

namespace embank {
namespace {

constexpr const char* kCacheLegend =
    "T: threads; hit ratio: keys that found their row / keys; Mrows/s: million keys a second, "
    "the median of the rounds; min..max: of the rounds; rel: the rate / that of absl-lru with as "
    "many threads; speedup: the rate / that with the first number of threads; MiB: all memory at "
    "the end; absl-lru: an exact LRU in shards over absl::flat_hash_map, with the same budget";

// The rate of the peer with as many threads.
double PeerRate(const CacheReport& report, uint32_t threads) {
  for (const CacheResult& result : report.results) {
    if (result.engine == kLruPeerName && result.threads == threads) return result.rows_per_second;
  }
  return 0.0;
}

}  // namespace

std::string CacheTable(const Machine& machine, const KvOptions& options,
                       const CacheReport& report) {
  std::string text = "embank-bench kv\n" + Heading(machine, options.shape);
  absl::StrAppendFormat(&text, "  keys     %s rows, %s, %s\n", Grouped(report.rows),
                        DistributionName(options.distribution),
                        report.trace_is_whole ? "whole" : "its beginning only");
  absl::StrAppendFormat(&text, "  memory   %.1f MiB of each engine, which forgets rows\n",
                        static_cast<double>(report.dram_bytes) * 0x1p-20);
  absl::StrAppendFormat(&text,
                        "  run      %s lookups after as many, batch %d, median of %d rounds\n\n",
                        Grouped(report.positions), options.batch, options.rounds);
  absl::StrAppendFormat(&text, "  %-13s%2s%11s%9s%14s%6s%9s%9s%12s%10s\n", "engine", "T",
                        "hit ratio", "Mrows/s", "min..max", "rel", "speedup", "MiB", "rows",
                        "index MiB");
  for (const CacheResult& result : report.results) {
    absl::StrAppendFormat(
        &text, "  %-13s%2d%11.4f%9.3f%14s%6.2f%9s%9.1f%12s%10.2f\n", result.engine, result.threads,
        result.hit_ratio, result.rows_per_second * 1e-6,
        absl::StrFormat("%.1f..%.1f", result.rows_per_second_min * 1e-6,
                        result.rows_per_second_max * 1e-6),
        result.rows_per_second / PeerRate(report, result.threads), OrDash(result.speedup, 2),
        result.used_bytes * 0x1p-20, Grouped(static_cast<uint64_t>(result.rows)),
        result.index_bytes * 0x1p-20);
  }
  return text + "\n" + Legend(kCacheLegend);
}

std::string CacheJson(const Machine& machine, const KvOptions& options, const CacheReport& report) {
  Json json;
  json["machine"] = MachineJson(machine);
  json["commit"] = Commit();
  Json& parameters = json["parameters"];
  AddKeys(options, report.rows, report.positions, report.trace_is_whole, &parameters);
  parameters["dram_fraction"] = options.dram_fraction;
  parameters["dram_bytes"] = report.dram_bytes;
  parameters["on_full"] = "forget";
  parameters["batch"] = options.batch;
  parameters["threads"] = options.threads;
  parameters["rounds"] = options.rounds;
  parameters["seed"] = options.seed;
  json["runs"] = Json::array();
  for (const CacheResult& result : report.results) {
    json["runs"].push_back(
        {{"engine", result.engine},
         {"threads", result.threads},
         {"batch", options.batch},
         {"hit_ratio", result.hit_ratio},
         {"rows_per_second", result.rows_per_second},
         {"rows_per_second_min", result.rows_per_second_min},
         {"rows_per_second_max", result.rows_per_second_max},
         {"times_absl_lru", result.rows_per_second / PeerRate(report, result.threads)},
         {"speedup", OrNull(result.speedup)},
         {"used_bytes", result.used_bytes},
         {"rows", result.rows},
         {"index_bytes", result.index_bytes}});
  }
  return JsonText(json);
}

}  // namespace embank
