#include "bench/c_store.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "bench/table_options.h"
#include "bindings/c/handles.h"

namespace embank {

Status ToStatus(embank_status status) {
  if (status == EMBANK_OK) return OkStatus();
  return Status(static_cast<StatusCode>(status), embank_last_error());
}

StatusOr<CStore> OpenCStore(const embank_store_options& options, const TableShape& shape,
                            int32_t eviction, int32_t on_full, StoreEnvironment environment) {
  embank_store* opened = nullptr;
  EMBANK_RETURN_IF_ERROR(OpenStoreIn(&options, std::move(environment), &opened));
  CStore store{StorePointer(opened)};
  if (embank_table_open(opened, kTableName, &store.table) == EMBANK_OK) return store;
  embank_table_options table = MakeTableOptions(shape);
  table.eviction = eviction;
  table.on_full = on_full;
  EMBANK_RETURN_IF_ERROR(ToStatus(embank_table_create(opened, kTableName, &table, &store.table)));
  return store;
}

StatusOr<CStore> OpenCStore(const TableShape& shape, uint64_t seed, uint32_t worker_threads) {
  embank_store_options options;
  embank_store_options_init(&options, sizeof(options));
  options.seed = seed;
  options.worker_threads = worker_threads;
  return OpenCStore(options, shape);
}

StatusOr<CStoreMemory> MemoryOf(const CStore& store) {
  uint64_t needed = 0;
  EMBANK_RETURN_IF_ERROR(ToStatus(embank_memory_report(store.store.get(), nullptr, 0, &needed)));
  std::string text(needed + 64, '\0');  // The numbers may have grown meanwhile.
  EMBANK_RETURN_IF_ERROR(
      ToStatus(embank_memory_report(store.store.get(), text.data(), text.size(), &needed)));
  const auto report = nlohmann::json::parse(text.c_str(), nullptr, false);
  if (report.is_discarded() || !report.contains("dram")) {
    return InternalError(StrCat("unexpected memory report: ", text.c_str()));
  }
  embank_table_info info{};
  info.struct_size = sizeof(info);
  EMBANK_RETURN_IF_ERROR(ToStatus(embank_table_get_info(store.table, &info)));
  const nlohmann::json& dram = report["dram"];
  return CStoreMemory{dram.value("used", uint64_t{0}), dram.value("index", uint64_t{0}), info.rows,
                      info.row_bytes};
}

StatusOr<std::string> MetricsOf(const CStore& store) {
  uint64_t needed = 0;
  EMBANK_RETURN_IF_ERROR(ToStatus(embank_metrics(store.store.get(), nullptr, 0, &needed)));
  std::string text(needed + 1024, '\0');  // The numbers may have grown meanwhile.
  EMBANK_RETURN_IF_ERROR(
      ToStatus(embank_metrics(store.store.get(), text.data(), text.size(), &needed)));
  text.resize(needed - 1);
  return text;
}

std::optional<double> MetricIn(const std::string& text, const std::string& metric) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    double value = 0.0;
    const bool is_it = absl::StartsWith(line, StrCat(metric, " ")) &&
                       absl::SimpleAtod(line.substr(metric.size() + 1), &value);
    if (is_it) return value;
  }
  return std::nullopt;
}

}  // namespace embank
