#include "bench/c_store.h"

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "bench/table_options.h"

namespace embank {

absl::Status ToStatus(embank_status status) {
  if (status == EMBANK_OK) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status), embank_last_error());
}

absl::StatusOr<CStore> OpenCStore(const TableShape& shape, uint64_t seed, uint32_t worker_threads) {
  embank_store_options options;
  embank_store_options_init(&options, sizeof(options));
  options.seed = seed;
  options.worker_threads = worker_threads;
  embank_store* opened = nullptr;
  EMBANK_RETURN_IF_ERROR(ToStatus(embank_store_open(&options, &opened)));
  CStore store{StorePointer(opened)};
  const embank_table_options table = MakeTableOptions(shape);
  EMBANK_RETURN_IF_ERROR(
      ToStatus(embank_table_create(store.store.get(), kTableName, &table, &store.table)));
  return store;
}

absl::StatusOr<CStoreMemory> MemoryOf(const CStore& store) {
  uint64_t needed = 0;
  EMBANK_RETURN_IF_ERROR(ToStatus(embank_memory_report(store.store.get(), nullptr, 0, &needed)));
  std::string text(needed + 64, '\0');  // The numbers may have grown meanwhile.
  EMBANK_RETURN_IF_ERROR(
      ToStatus(embank_memory_report(store.store.get(), text.data(), text.size(), &needed)));
  const auto report = nlohmann::json::parse(text.c_str(), nullptr, false);
  if (report.is_discarded() || !report.contains("dram")) {
    return absl::InternalError(absl::StrCat("unexpected memory report: ", text.c_str()));
  }
  embank_table_info info{};
  info.struct_size = sizeof(info);
  EMBANK_RETURN_IF_ERROR(ToStatus(embank_table_get_info(store.table, &info)));
  const nlohmann::json& dram = report["dram"];
  return CStoreMemory{dram.value("used", uint64_t{0}), dram.value("index", uint64_t{0}), info.rows,
                      info.row_bytes};
}

}  // namespace embank
