#include "store/inspect/metrics.h"

#include <algorithm>
#include <string_view>

#include "base/str_cat.h"
#include "base/utf8.h"
#include "store/inspect/json_text.h"

namespace embank {
namespace {

constexpr const char* kVerbNames[kTableVerbs] = {"lookup", "upsert", "gradients", "erase",
                                                 "prefetch"};
constexpr const char* kOutcomeNames[] = {"found",     "created",    "absent",     "refused",
                                         "data_loss", "not_finite", "unavailable"};
static_assert(std::size(kOutcomeNames) == kOutcomes);
constexpr ByTier<const char*> kTierNames = {{"dram", "pmem", "ssd", "hbm"}};

// Writes a label value: backslash and quote are escaped; names have no newlines. The format is
// UTF-8: bytes that are none, in names of older stores, become numbers like "\xff".
std::string Escape(std::string_view name) {
  std::string escaped;
  while (!name.empty()) {
    const size_t bytes = Utf8CharacterBytes(name);
    if (bytes == 0) {
      StrAppend(&escaped, "\\\\x", Hex(static_cast<uint8_t>(name[0]), 2));
    } else {
      if (name[0] == '\\' || name[0] == '"') escaped.push_back('\\');
      escaped.append(name.substr(0, bytes));
    }
    name.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return escaped;
}

// All nine decimals, because a rounded counter would stand still and jump.
std::string Seconds(uint64_t nanoseconds) {
  constexpr uint64_t kNsPerSecond = 1'000'000'000;
  return StrCat(nanoseconds / kNsPerSecond, ".", Dec(nanoseconds % kNsPerSecond, 9));
}

void Describe(std::string* text, const char* metric, const char* type, const char* help) {
  StrAppend(text, "# HELP ", metric, " ", help, "\n# TYPE ", metric, " ", type, "\n");
}

std::string TableLabel(const Table& table) {
  return StrCat("table=\"", Escape(table.name()), "\"");
}

// One line per (table, verb); `value` makes the number of a verb's durations.
template <typename Value>
void AppendPerVerb(std::string* text, const std::vector<Table*>& tables, const char* metric,
                   Value value) {
  for (Table* const table : tables) {
    for (uint32_t verb = 0; verb < kTableVerbs; ++verb) {
      StrAppend(text, metric, "{", TableLabel(*table), ",op=\"", kVerbNames[verb], "\"} ",
                value(table->counters().calls.Durations(TableVerb{verb})), "\n");
    }
  }
}

void AppendKeys(std::string* text, const std::vector<Table*>& tables) {
  Describe(text, "embank_keys_total", "counter", "Positions of batches by operation and outcome.");
  for (Table* const table : tables) {
    for (uint32_t verb = 0; verb < kTableVerbs; ++verb) {
      const CallCounts counts = table->counters().calls.Counts(TableVerb{verb});
      for (size_t i = 0; i < kOutcomes; ++i) {
        if (counts.keys_by_outcome[i] == 0) continue;
        StrAppend(text, "embank_keys_total{", TableLabel(*table), ",op=\"", kVerbNames[verb],
                  "\",outcome=\"", kOutcomeNames[i], "\"} ", counts.keys_by_outcome[i], "\n");
      }
    }
  }
}

void AppendHits(std::string* text, const std::vector<Table*>& tables) {
  Describe(text, "embank_lookup_hits_total", "counter",
           "Positions of lookups by the tier in which the row was found.");
  for (Table* const table : tables) {
    const CallCounts counts = table->counters().calls.Counts(TableVerb::kLookup);
    for (size_t tier = 0; tier < kTiers; ++tier) {
      if (counts.found_in[tier] == 0) continue;
      StrAppend(text, "embank_lookup_hits_total{", TableLabel(*table), ",tier=\"",
                kTierNames.values[tier], "\"} ", counts.found_in[tier], "\n");
    }
  }
}

// The buckets of one histogram, each with all shorter ones, as the format asks.
void AppendHistogram(std::string* text, const char* metric, const std::string& labels,
                     const CallDurations& durations) {
  uint64_t batches = 0;
  for (uint32_t bucket = 0; bucket < CallDurations::kBuckets; ++bucket) {
    batches += durations.batches[bucket];
    const bool is_last = bucket + 1 == CallDurations::kBuckets;
    StrAppend(text, metric, "_bucket{", labels, ",le=\"",
              is_last ? "+Inf" : Seconds(CallDurations::BoundNs(bucket)), "\"} ", batches, "\n");
  }
  StrAppend(text, metric, "_sum{", labels, "} ", Seconds(durations.nanoseconds), "\n", metric,
            "_count{", labels, "} ", batches, "\n");
}

void AppendDurations(std::string* text, const std::vector<Table*>& tables) {
  constexpr const char* kMetric = "embank_batch_duration_seconds";
  Describe(text, kMetric, "histogram", "Durations of batches by operation.");
  for (Table* const table : tables) {
    for (uint32_t verb = 0; verb < kTableVerbs; ++verb) {
      const CallDurations durations = table->counters().calls.Durations(TableVerb{verb});
      if (durations.count() == 0) continue;
      AppendHistogram(text, kMetric, StrCat(TableLabel(*table), ",op=\"", kVerbNames[verb], "\""),
                      durations);
    }
  }
}

void AppendTables(std::string* text, const std::vector<Table*>& tables) {
  AppendKeys(text, tables);
  AppendHits(text, tables);
  Describe(text, "embank_batches_total", "counter", "Batches by operation.");
  AppendPerVerb(text, tables, "embank_batches_total",
                [](const CallDurations& durations) { return durations.count(); });
  Describe(text, "embank_batch_seconds_total", "counter", "Time in batches by operation.");
  AppendPerVerb(text, tables, "embank_batch_seconds_total",
                [](const CallDurations& durations) { return Seconds(durations.nanoseconds); });
  AppendDurations(text, tables);
  Describe(text, "embank_tier_rows", "gauge", "Rows by table and tier.");
  for (const Table* const table : tables) {
    const auto append = [&](Tier tier, uint64_t tier_rows) {
      StrAppend(text, "embank_tier_rows{", TableLabel(*table), ",tier=\"", kTierNames[tier], "\"} ",
                tier_rows, "\n");
    };
    if (table->store().payloads != nullptr) append(Tier::kHbm, table->rows_in(Tier::kHbm));
    append(Tier::kDram, RowsInDram(*table));
    for (const RowLog* const log : table->mover()->logs().all()) {
      append(log->options().tier, table->rows_in(log->options().tier));
    }
  }
}

void AppendForgotten(std::string* text, const std::vector<Table*>& tables) {
  Describe(text, "embank_rows_forgotten_total", "counter", "Rows forgotten for new ones.");
  for (Table* const table : tables) {
    if (table->options().on_full != OnFull::kForget) continue;
    StrAppend(text, "embank_rows_forgotten_total{", TableLabel(*table), "} ",
              table->counters().forgotten_rows.load(std::memory_order_relaxed), "\n");
  }
}

void AppendPrefetches(std::string* text, const std::vector<Table*>& tables) {
  const auto append = [&](const char* metric, const char* help,
                          std::atomic<uint64_t> TableCounters::*counter) {
    Describe(text, metric, "counter", help);
    for (Table* const table : tables) {
      StrAppend(text, metric, "{", TableLabel(*table), "} ",
                (table->counters().*counter).load(std::memory_order_relaxed), "\n");
    }
  };
  append("embank_prefetched_rows_total", "Rows that prefetches promoted to memory.",
         &TableCounters::prefetched_rows);
  append("embank_prefetched_unused_rows_total",
         "Of them those that left memory again before they were used.",
         &TableCounters::unused_rows);
}

void AppendMemory(std::string* text, const MemoryReport& report) {
  Describe(text, "embank_tier_bytes", "gauge", "Memory by tier and use.");
  const std::pair<const char*, uint64_t> kinds[] = {{"fixed", report.fixed_bytes},
                                                    {"index", report.index_bytes},
                                                    {"rows", report.rows_bytes},
                                                    {"state", report.state_bytes},
                                                    {"slack", report.slack_bytes}};
  for (const auto& [kind, bytes] : kinds) {
    StrAppend(text, "embank_tier_bytes{tier=\"dram\",kind=\"", kind, "\"} ", bytes, "\n");
  }
  if (report.payloads.has_value()) {
    StrAppend(text, "embank_tier_bytes{tier=\"hbm\",kind=\"rows\"} ", report.payloads->rows_bytes,
              "\n");
  }
  for (const Tier tier : kLogTiers) {
    const std::optional<LogSpace>& space = report.logs[tier];
    if (!space.has_value()) continue;
    const std::pair<const char*, uint64_t> uses[] = {{"used", space->used_bytes},
                                                     {"live", space->live_bytes},
                                                     {"dirty", space->dirty_bytes},
                                                     {"kept", space->reserved_bytes}};
    for (const auto& [kind, bytes] : uses) {
      StrAppend(text, "embank_tier_bytes{tier=\"", kTierNames[tier], "\",kind=\"", kind, "\"} ",
                bytes, "\n");
    }
  }
  Describe(text, "embank_tier_capacity_bytes", "gauge", "Budget by tier; 0: no limit.");
  StrAppend(text, "embank_tier_capacity_bytes{tier=\"dram\"} ", report.budget_bytes, "\n");
  if (report.payloads.has_value()) {
    StrAppend(text, "embank_tier_capacity_bytes{tier=\"hbm\"} ", report.payloads->budget_bytes,
              "\n");
  }
  for (const Tier tier : kLogTiers) {
    if (!report.logs[tier].has_value()) continue;
    StrAppend(text, "embank_tier_capacity_bytes{tier=\"", kTierNames[tier], "\"} ",
              report.logs[tier]->budget_bytes, "\n");
  }
  Describe(text, "embank_huge_pages_refused_bytes", "gauge",
           "Memory that would lie in huge pages if the machine had them.");
  StrAppend(text, "embank_huge_pages_refused_bytes ", report.huge_pages_refused_bytes, "\n");
}

void Append(std::string* text, const char* metric, const char* type, const char* help,
            uint64_t value) {
  Describe(text, metric, type, help);
  StrAppend(text, metric, " ", value, "\n");
}

void AppendLog(std::string* text, const RowLogCounters& counters) {
  Append(text, "embank_log_appended_rows_total", "counter", "Rows written to the log.",
         counters.appended_rows);
  Append(text, "embank_log_compacted_rows_total", "counter", "Of them those that were moved.",
         counters.compacted_rows);
  Append(text, "embank_log_written_bytes_total", "counter", "Bytes written to segments.",
         counters.written_bytes);
  Append(text, "embank_log_reads_total", "counter", "Reads from segments.", counters.reads);
  Append(text, "embank_log_read_bytes_total", "counter", "Bytes read from segments.",
         counters.read_bytes);
  Append(text, "embank_log_read_rows_total", "counter", "Rows of the log that came with them.",
         counters.read_rows);
  Append(text, "embank_log_buffered_reads_total", "counter",
         "Rows of the log that were read from its buffers.", counters.buffered_reads);
}

void AppendPmem(std::string* text, const Store& store) {
  const RowLogCounters& counters = store.logs()->pmem()->counters();
  Append(text, "embank_pmem_appended_rows_total", "counter", "Rows written to PMem.",
         counters.appended_rows);
  Append(text, "embank_pmem_compacted_rows_total", "counter", "Of them those that were moved.",
         counters.compacted_rows);
  Append(text, "embank_pmem_written_bytes_total", "counter", "Bytes written to segments in PMem.",
         counters.written_bytes);
  Append(text, "embank_pmem_written_buffers_total", "counter",
         "Writes to segments in PMem: buffers of rows, headers and footers.",
         counters.written_buffers);
  Append(text, "embank_pmem_read_rows_total", "counter", "Rows that were read in PMem.",
         counters.read_rows);
  Append(text, "embank_pmem_demoted_rows_total", "counter", "Rows that left PMem for the SSD.",
         store.demoted_rows());
  Append(text, "embank_pmem_drains_total", "counter",
         "Waits until stores to PMem are durable: drains, or msync calls.", store.pmem_drains());
  Append(text, "embank_pmem_is_lost", "gauge",
         "1: the directory of PMem is gone, and its rows went to the SSD.",
         store.logs()->pmem()->writer().is_lost() ? 1 : 0);
}

void AppendSeconds(std::string* text, const char* metric, const char* type, const char* help,
                   uint64_t ns) {
  Describe(text, metric, type, help);
  StrAppend(text, metric, " ", Seconds(ns), "\n");
}

void AppendPayloads(std::string* text, const PayloadMemoryReport& payloads,
                    const std::vector<Table*>& tables) {
  Describe(text, "embank_device_info", "gauge", "The device that holds HBM rows; always 1.");
  StrAppend(text, "embank_device_info{device=\"", payloads.device, "\"} 1\n");
  Describe(text, "embank_hot_lookups_total", "counter",
           "Positions of lookups that device memory answered.");
  for (Table* const table : tables) {
    StrAppend(text, "embank_hot_lookups_total{", TableLabel(*table), "} ",
              table->counters().payload_lookups.load(std::memory_order_relaxed), "\n");
  }
  Append(text, "embank_hot_sampled_keys_total", "counter",
         "Distinct keys in a sample of the lookups.", payloads.sampled_keys);
  Append(text, "embank_hot_sampled_hits_total", "counter",
         "Of them those whose rows were in device memory.", payloads.sampled_hits);
  Append(text, "embank_hot_arrived_rows_total", "counter", "Rows that moved to device memory.",
         payloads.arrived_rows);
  Append(text, "embank_hot_left_rows_total", "counter", "Rows that moved from device memory.",
         payloads.left_rows);
  Append(text, "embank_hot_written_back_rows_total", "counter",
         "Of them those that no record has as they are.", payloads.written_back_rows);
  Append(text, "embank_hot_pre_images_total", "counter",
         "Rows that a batch saved for a checkpoint before it changed them in device memory.",
         payloads.pre_images);
  AppendSeconds(text, "embank_hot_wait_seconds_total", "counter",
                "The time in which batches waited for rows that moved.", payloads.wait_ns);
  AppendSeconds(text, "embank_hot_longest_wait_seconds", "gauge",
                "The longest wait of a batch for rows that moved.", payloads.longest_wait_ns);
  Append(text, "embank_hot_flushes_total", "counter", "Top-k flushes.", payloads.flush.flushes);
  Append(text, "embank_hot_early_epochs_total", "counter",
         "Epochs of heat that a drift has ended early.", payloads.flush.early_epochs);
  AppendSeconds(text, "embank_hot_flush_seconds", "gauge", "Duration of the last flush.",
                payloads.flush.last_flush_ns);
  AppendSeconds(text, "embank_hot_flush_seconds_total", "counter", "Duration of all flushes.",
                payloads.flush.all_flushes_ns);
  AppendSeconds(text, "embank_hot_plan_seconds", "gauge",
                "The part of the last flush for its plan.", payloads.flush.last_plan_ns);
}

void AppendPages(std::string* text, const PageMover& pages) {
  Append(text, "embank_pages_emptied_total", "counter",
         "Pages of DRAM whose rows left or moved for the index, the log or other rows.",
         pages.emptied_pages());
  Append(text, "embank_pages_given_total", "counter",
         "Pages of them that went to rows of another size or eviction.", pages.given_pages());
}

void AppendCheckpoints(std::string* text, const CheckpointReport& report) {
  Append(text, "embank_checkpoints_total", "counter", "Checkpoints that were made.",
         report.checkpoints);
  Append(text, "embank_checkpoint_visited_slots_total", "counter",
         "Dirty slots of DRAM that flush passes visited.", report.visited_slots);
  Append(text, "embank_checkpoint_flushed_rows_total", "counter",
         "Rows that flush passes wrote; batches wrote the others as pre-images.",
         report.flushed_rows);
  Append(text, "embank_rows_lost", "gauge",
         "Rows that the last checkpoint lacks, since nobody could read them.", report.rows_lost);
  Describe(text, "embank_checkpoint_seconds", "gauge", "Duration of the last checkpoint.");
  StrAppend(text, "embank_checkpoint_seconds ", Seconds(report.last_ns), "\n");
  Describe(text, "embank_checkpoint_flip_seconds", "gauge",
           "Of it the time in which batches of changes may have waited.");
  StrAppend(text, "embank_checkpoint_flip_seconds ", Seconds(report.last_barrier_ns), "\n");
  Describe(text, "embank_checkpoint_rest_seconds", "gauge",
           "Of it the time in which the flush pass rested for batches of changes.");
  StrAppend(text, "embank_checkpoint_rest_seconds ", Seconds(report.last_rest_ns), "\n");
}

}  // namespace

std::string FormatMetrics(const Store& store) {
  std::string text;
  AppendTables(&text, store.catalog().List());
  AppendForgotten(&text, store.catalog().List());
  const MemoryReport memory = ReportMemory(store);
  AppendMemory(&text, memory);
  Append(&text, "embank_heat_epochs_total", "counter", "Epochs of heat that have ended.",
         store.heat_epochs());
  if (memory.payloads.has_value()) AppendPayloads(&text, *memory.payloads, store.catalog().List());
  if (store.logs()->empty()) return text;
  AppendPrefetches(&text, store.catalog().List());
  AppendLog(&text, store.logs()->lowest().counters());
  if (store.logs()->pmem() != nullptr) AppendPmem(&text, store);
  AppendCheckpoints(&text, store.checkpoints()->Report());
  if (store.pages() != nullptr) AppendPages(&text, *store.pages());
  return text;
}

namespace {

std::string FormatPayloads(const PayloadMemoryReport& payloads) {
  return StrCat(
      ", \"hbm\": {\"budget\": ", payloads.budget_bytes, ", \"rows\": ", payloads.rows_bytes,
      ", \"device\": ", JsonString(payloads.device), ", \"lookups\": ", payloads.lookups,
      ", \"sampled_keys\": ", payloads.sampled_keys, ", \"sampled_hits\": ", payloads.sampled_hits,
      ", \"arrived\": ", payloads.arrived_rows, ", \"left\": ", payloads.left_rows,
      ", \"written_back\": ", payloads.written_back_rows, ", \"flushes\": ", payloads.flush.flushes,
      ", \"early_epochs\": ", payloads.flush.early_epochs,
      ", \"flush_seconds\": ", Seconds(payloads.flush.all_flushes_ns), "}");
}

}  // namespace

std::string FormatMemoryReport(const MemoryReport& report) {
  const auto format = [&](Tier tier) {
    const std::optional<LogSpace>& space = report.logs[tier];
    if (!space.has_value()) return std::string();
    return StrCat(", \"", kTierNames[tier], "\": {\"budget\": ", space->budget_bytes,
                  ", \"used\": ", space->used_bytes, ", \"live\": ", space->live_bytes,
                  ", \"dirty\": ", space->dirty_bytes, ", \"kept\": ", space->reserved_bytes, "}");
  };
  const std::string hbm =
      report.payloads.has_value() ? FormatPayloads(*report.payloads) : std::string();
  const std::string kind =
      report.pmem_kind == nullptr ? "" : StrCat(", \"pmem_kind\": ", JsonString(report.pmem_kind));
  return StrCat("{\"dram\": {\"budget\": ", report.budget_bytes, ", \"used\": ", report.used_bytes,
                ", \"fixed\": ", report.fixed_bytes, ", \"index\": ", report.index_bytes,
                ", \"rows\": ", report.rows_bytes, ", \"state\": ", report.state_bytes,
                ", \"slack\": ", report.slack_bytes,
                ", \"huge_pages_refused\": ", report.huge_pages_refused_bytes, "}", hbm,
                format(Tier::kPmem), kind, format(Tier::kSsd), "}");
}

std::string FormatEstimate(const Estimate& estimate) {
  return StrCat(
      "{\"dram_bytes\": ", estimate.dram_bytes, ", \"fixed_bytes\": ", estimate.fixed_bytes,
      ", \"index_bytes\": ", estimate.index_bytes, ", \"slab_bytes\": ", estimate.slab_bytes,
      ", \"rows_in_dram\": ", estimate.rows_in_dram,
      ", \"fits\": ", estimate.fits ? "true" : "false", "}");
}

}  // namespace embank
