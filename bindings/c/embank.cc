#include "bindings/c/embank.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/files/posix_file_system.h"
#include "base/pmem/pmem_library.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/log.h"
#include "bindings/c/arguments_in.h"
#include "bindings/c/handles.h"
#include "bindings/c/last_error.h"
#include "bindings/c/options_in.h"
#include "store/batch/gradients.h"
#include "store/batch/lookup.h"
#include "store/batch/prefetch.h"
#include "store/batch/state.h"
#include "store/batch/write.h"
#include "store/index/tag_match.h"
#include "store/inspect/metrics.h"
#include "store/inspect/verify.h"

namespace embank {

// Written at build time (cmake/git_commit.cmake).
extern const char kGitCommit[];

Status OpenStoreIn(const embank_store_options* options, StoreEnvironment environment,
                   embank_store** store) {
  if (store == nullptr) return InvalidArgumentError("store is NULL");
  EMBANK_ASSIGN_OR_RETURN(const StoreOptions read, ReadOptions(options));
  EMBANK_RETURN_IF_ERROR(OwnerProcess::WatchForks());
  auto handle = std::make_unique<embank_store>();
  EMBANK_ASSIGN_OR_RETURN(handle->store, Store::Open(read, std::move(environment)));
  if (PayloadRows* const payloads = handle->store->payloads(); payloads != nullptr) {
    handle->device_memory.emplace(&payloads->memory().device());
  }
  *store = handle.release();
  return OkStatus();
}

namespace {

// Copies bytes to the caller by the convention of `cap` and `needed`.
Status LeaveBytes(std::span<const std::byte> bytes, const char* argument, void* out, uint64_t cap,
                  uint64_t* needed) {
  EMBANK_RETURN_IF_ERROR(CheckNotNull(needed, "needed"));
  if (cap > 0) EMBANK_RETURN_IF_ERROR(CheckNotNull(out, argument));
  *needed = bytes.size();
  if (cap == 0 || bytes.empty()) return OkStatus();
  if (cap < bytes.size()) {
    return ResourceExhaustedError(
        StrCat("cap is ", cap, "; ", argument, " needs ", bytes.size(), " bytes"));
  }
  std::memcpy(out, bytes.data(), bytes.size());
  return OkStatus();
}

Status LeaveString(const std::string& text, const char* argument, char* out, uint64_t cap,
                   uint64_t* needed) {
  return LeaveBytes(std::as_bytes(std::span(text.c_str(), text.size() + 1)), argument, out, cap,
                    needed);
}

// The status of the options of a table, with its number in front.
Status InTables(uint32_t i, const Status& status) {
  if (status.ok()) return status;
  return Status(status.code(), StrCat("tables[", i, "]: ", status.message()));
}

StatusOr<std::vector<TableRows>> EnterTableRows(const embank_table_options* tables,
                                                const uint64_t* rows, uint32_t count) {
  if (count > 0) {
    EMBANK_RETURN_IF_ERROR(CheckNotNull(tables, "tables"));
    EMBANK_RETURN_IF_ERROR(CheckNotNull(rows, "rows"));
  }
  if (count > kTablesMax) {
    return InvalidArgumentError(
        StrCat("table_count is ", count, "; a store has at most ", kTablesMax, " tables"));
  }
  // The structs in the caller's array have the caller's size.
  const auto* next = reinterpret_cast<const std::byte*>(tables);
  std::vector<TableRows> read(count);
  uint64_t rows_sum = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const auto* const options = reinterpret_cast<const embank_table_options*>(next);
    EMBANK_RETURN_IF_ERROR(
        InTables(i, CheckSizeInArray(options->struct_size, tables->struct_size, "tables")));
    const StatusOr<TableOptions> entered = ReadOptions(options);
    EMBANK_RETURN_IF_ERROR(InTables(i, entered.status()));
    read[i].options = *entered;
    if (rows[i] > kRowsMax - rows_sum) {
      return InvalidArgumentError(
          StrCat("rows[", i, "] is ", rows[i], "; a store has at most ", kRowsMax, " rows in all"));
    }
    rows_sum += rows[i];
    read[i].rows = rows[i];
    next += options->struct_size;
  }
  return read;
}

}  // namespace
}  // namespace embank

using embank::CheckNotNull;
using embank::CheckpointsOf;
using embank::CheckScan;
using embank::CheckStore;
using embank::CheckTable;
using embank::EnterKeys;
using embank::EnterOutcomes;
using embank::EnterRows;
using embank::Guard;
using embank::LeaveString;
using embank::Table;
using embank::TableHandle;
using embank::TableOfHandle;

const char* embank_version(void) { return EMBANK_VERSION; }

uint32_t embank_abi_version(void) { return 1; }

const char* embank_build_info(const char* key) {
  if (key == nullptr) return nullptr;
  if (std::strcmp(key, "simd") == 0) return embank::BestTagMatcher().name;
  if (std::strcmp(key, "git") == 0) return embank::kGitCommit;
  if (std::strcmp(key, "io_uring") == 0) return embank::IoUringState();
  if (std::strcmp(key, "pmem") == 0) return embank::PmemState();
  return nullptr;
}

const char* embank_status_name(embank_status code) {
  static constexpr const char* kNames[] = {"OK",
                                           "CANCELLED",
                                           "UNKNOWN",
                                           "INVALID_ARGUMENT",
                                           "DEADLINE_EXCEEDED",
                                           "NOT_FOUND",
                                           "ALREADY_EXISTS",
                                           "PERMISSION_DENIED",
                                           "RESOURCE_EXHAUSTED",
                                           "FAILED_PRECONDITION",
                                           "ABORTED",
                                           "OUT_OF_RANGE",
                                           "UNIMPLEMENTED",
                                           "INTERNAL",
                                           "UNAVAILABLE",
                                           "DATA_LOSS"};
  const bool known = code >= EMBANK_OK && code <= EMBANK_DATA_LOSS;
  return kNames[known ? code : EMBANK_UNKNOWN];
}

const char* embank_last_error(void) { return embank::LastError(); }

void embank_set_log_sink(void (*sink)(int32_t level, const char* message, void* user), void* user) {
  embank::SetLogSink(sink, user);
}

void embank_store_options_init(embank_store_options* options, uint32_t struct_size) {
  embank::InitOptions(options, struct_size);
}

embank_status embank_store_open(const embank_store_options* options, embank_store** store) {
  return Guard([&] { return embank::OpenStoreIn(options, {}, store); });
}

embank_status embank_store_close(embank_store* store) {
  // A child process lacks the store's threads, and its files and their locks are the parent's.
  if (store != nullptr && store->owner.IsThisOne()) delete store;
  return EMBANK_OK;
}

void embank_table_options_init(embank_table_options* options, uint32_t struct_size) {
  embank::InitOptions(options, struct_size);
}

embank_status embank_table_create(embank_store* store, const char* name,
                                  const embank_table_options* options, embank_table** table) {
  return Guard([&]() -> embank::Status {
    EMBANK_RETURN_IF_ERROR(CheckStore(store));
    EMBANK_RETURN_IF_ERROR(CheckNotNull(name, "name"));
    EMBANK_RETURN_IF_ERROR(CheckNotNull(table, "table"));
    EMBANK_ASSIGN_OR_RETURN(const embank::TableOptions read, embank::ReadOptions(options));
    EMBANK_ASSIGN_OR_RETURN(Table* const created, store->store->CreateTable(name, read));
    *table = TableHandle(created);
    return embank::OkStatus();
  });
}

embank_status embank_table_open(embank_store* store, const char* name, embank_table** table) {
  return Guard([&]() -> embank::Status {
    EMBANK_RETURN_IF_ERROR(CheckStore(store));
    EMBANK_RETURN_IF_ERROR(CheckNotNull(name, "name"));
    EMBANK_RETURN_IF_ERROR(CheckNotNull(table, "table"));
    EMBANK_ASSIGN_OR_RETURN(Table* const opened, store->store->catalog().Open(name));
    *table = TableHandle(opened);
    return embank::OkStatus();
  });
}

embank_status embank_table_drop(embank_store* store, const char* name) {
  return Guard([&]() -> embank::Status {
    EMBANK_RETURN_IF_ERROR(CheckStore(store));
    EMBANK_RETURN_IF_ERROR(CheckNotNull(name, "name"));
    return store->store->DropTable(name);
  });
}

embank_status embank_table_get_info(embank_table* table, embank_table_info* info) {
  return Guard([&]() -> embank::Status {
    EMBANK_RETURN_IF_ERROR(CheckTable(table));
    EMBANK_RETURN_IF_ERROR(CheckNotNull(info, "info"));
    Table* const opened = TableOfHandle(table);
    EMBANK_RETURN_IF_ERROR(opened->CheckAlive());
    embank_table_info full;
    std::memset(&full, 0, sizeof full);
    full.dim = opened->layout().dim;
    full.value_type = static_cast<int32_t>(opened->layout().value_type);
    full.optimizer = static_cast<int32_t>(opened->layout().optimizer);
    // Beside running batches, the counts may be of different moments.
    full.rows = opened->rows();
    uint64_t left = full.rows;
    const auto take = [&](uint64_t rows) {
      const uint64_t taken = std::min(rows, left);
      left -= taken;
      return taken;
    };
    full.rows_hbm = take(opened->rows_in(embank::Tier::kHbm));
    full.rows_pmem = take(opened->rows_in(embank::Tier::kPmem));
    full.rows_ssd = take(opened->rows_in(embank::Tier::kSsd));
    full.rows_dram = left;
    full.row_bytes = opened->layout().row_bytes;
    full.lookups_hbm = opened->counters().payload_lookups.load(std::memory_order_relaxed);
    return embank::WriteInfo(full, info);
  });
}

embank_status embank_table_names(embank_store* store, char* names, uint64_t cap, uint64_t* needed) {
  return Guard([&]() -> embank::Status {
    EMBANK_RETURN_IF_ERROR(CheckStore(store));
    std::string text;
    for (const Table* const table : store->store->catalog().List())
      embank::StrAppend(&text, table->name(), "\n");
    return LeaveString(text, "names", names, cap, needed);
  });
}

embank_status embank_lookup(embank_table* table, const uint64_t* keys, uint64_t n, int32_t missing,
                            void* rows, uint64_t row_stride, uint8_t* outcomes) {
  return Guard([&]() -> embank::Status {
    EMBANK_ASSIGN_OR_RETURN(const embank::KeySpan entered, EnterKeys(table, keys, n));
    EMBANK_ASSIGN_OR_RETURN(const embank::MissingRule rule, embank::EnterMissing(missing));
    Table* const opened = TableOfHandle(table);
    EMBANK_ASSIGN_OR_RETURN(
        const embank::RowSpan out,
        EnterRows(*opened, rows, "rows", n, opened->layout().vector_bytes, row_stride));
    return Lookup(opened, entered, rule, out, EnterOutcomes(outcomes, n));
  });
}

embank_status embank_upsert(embank_table* table, const uint64_t* keys, uint64_t n, const void* rows,
                            uint64_t row_stride, uint8_t* outcomes) {
  return Guard([&]() -> embank::Status {
    EMBANK_ASSIGN_OR_RETURN(const embank::KeySpan entered, EnterKeys(table, keys, n));
    Table* const opened = TableOfHandle(table);
    EMBANK_ASSIGN_OR_RETURN(
        const embank::ConstRowSpan in,
        EnterRows(*opened, rows, "rows", n, opened->layout().vector_bytes, row_stride));
    return Upsert(opened, entered, in, EnterOutcomes(outcomes, n));
  });
}

embank_status embank_apply_gradients(embank_table* table, const uint64_t* keys, uint64_t n,
                                     const float* gradients, uint64_t row_stride,
                                     uint8_t* outcomes) {
  return Guard([&]() -> embank::Status {
    EMBANK_ASSIGN_OR_RETURN(const embank::KeySpan entered, EnterKeys(table, keys, n));
    Table* const opened = TableOfHandle(table);
    const void* const bytes = gradients;
    EMBANK_ASSIGN_OR_RETURN(const embank::ConstRowSpan in,
                            EnterRows(*opened, bytes, "gradients", n,
                                      uint64_t{opened->layout().dim} * sizeof(float), row_stride));
    return ApplyGradients(opened, entered, in, EnterOutcomes(outcomes, n));
  });
}

embank_status embank_erase(embank_table* table, const uint64_t* keys, uint64_t n,
                           uint8_t* outcomes) {
  return Guard([&]() -> embank::Status {
    EMBANK_ASSIGN_OR_RETURN(const embank::KeySpan entered, EnterKeys(table, keys, n));
    return Erase(TableOfHandle(table), entered, EnterOutcomes(outcomes, n));
  });
}

embank_status embank_contains(embank_table* table, const uint64_t* keys, uint64_t n,
                              uint8_t* outcomes) {
  return Guard([&]() -> embank::Status {
    EMBANK_ASSIGN_OR_RETURN(const embank::KeySpan entered, EnterKeys(table, keys, n));
    return Contains(TableOfHandle(table), entered, EnterOutcomes(outcomes, n));
  });
}

embank_status embank_prefetch(embank_table* table, const uint64_t* keys, uint64_t n) {
  return Guard([&]() -> embank::Status {
    EMBANK_ASSIGN_OR_RETURN(const embank::KeySpan entered, EnterKeys(table, keys, n));
    return Prefetch(TableOfHandle(table), entered);
  });
}

embank_status embank_get_state(embank_table* table, const uint64_t* keys, uint64_t n, float* state,
                               uint64_t row_stride, uint8_t* outcomes) {
  return Guard([&]() -> embank::Status {
    EMBANK_ASSIGN_OR_RETURN(const embank::KeySpan entered, EnterKeys(table, keys, n));
    Table* const opened = TableOfHandle(table);
    void* const bytes = state;
    EMBANK_ASSIGN_OR_RETURN(
        const embank::RowSpan out,
        EnterRows(*opened, bytes, "state", n, opened->layout().state_bytes(), row_stride));
    return GetState(opened, entered, out, EnterOutcomes(outcomes, n));
  });
}

embank_status embank_set_state(embank_table* table, const uint64_t* keys, uint64_t n,
                               const float* state, uint64_t row_stride, uint8_t* outcomes) {
  return Guard([&]() -> embank::Status {
    EMBANK_ASSIGN_OR_RETURN(const embank::KeySpan entered, EnterKeys(table, keys, n));
    Table* const opened = TableOfHandle(table);
    const void* const bytes = state;
    EMBANK_ASSIGN_OR_RETURN(
        const embank::ConstRowSpan in,
        EnterRows(*opened, bytes, "state", n, opened->layout().state_bytes(), row_stride));
    return SetState(opened, entered, in, EnterOutcomes(outcomes, n));
  });
}

embank_status embank_get_heat(embank_table* table, const uint64_t* keys, uint64_t n, uint32_t* heat,
                              uint8_t* outcomes) {
  return Guard([&]() -> embank::Status {
    EMBANK_ASSIGN_OR_RETURN(const embank::KeySpan entered, EnterKeys(table, keys, n));
    if (n > 0) EMBANK_RETURN_IF_ERROR(CheckNotNull(heat, "heat"));
    return GetHeat(TableOfHandle(table), entered, std::span(heat, n), EnterOutcomes(outcomes, n));
  });
}

embank_status embank_set_learning_rate(embank_table* table, float learning_rate) {
  return Guard([&]() -> embank::Status {
    EMBANK_RETURN_IF_ERROR(CheckTable(table));
    Table* const opened = TableOfHandle(table);
    EMBANK_RETURN_IF_ERROR(opened->CheckMayChange());
    return opened->ChangeRule(
        [&](embank::UpdateRule* rule) { rule->learning_rate = learning_rate; });
  });
}

embank_status embank_scan_open(embank_table* table, embank_scan** scan) {
  return Guard([&]() -> embank::Status {
    EMBANK_RETURN_IF_ERROR(CheckTable(table));
    EMBANK_RETURN_IF_ERROR(CheckNotNull(scan, "scan"));
    EMBANK_RETURN_IF_ERROR(TableOfHandle(table)->CheckAlive());
    *scan = new embank_scan{embank::Scan(TableOfHandle(table))};
    return embank::OkStatus();
  });
}

embank_status embank_scan_next(embank_scan* scan, uint64_t* keys, void* rows, uint64_t row_stride,
                               uint64_t cap, uint64_t* n) {
  return Guard([&]() -> embank::Status {
    EMBANK_RETURN_IF_ERROR(CheckScan(scan));
    EMBANK_RETURN_IF_ERROR(CheckNotNull(n, "n"));
    EMBANK_RETURN_IF_ERROR(embank::CheckCap(cap));
    EMBANK_RETURN_IF_ERROR(CheckNotNull(keys, "keys"));
    const Table& table = scan->scan.table();
    EMBANK_RETURN_IF_ERROR(embank::CheckOnHost(table, keys, "keys"));
    EMBANK_ASSIGN_OR_RETURN(
        const embank::RowSpan out,
        EnterRows(table, rows, "rows", cap, table.layout().vector_bytes, row_stride));
    EMBANK_ASSIGN_OR_RETURN(*n, scan->scan.Next(std::span(keys, cap), out));
    return embank::OkStatus();
  });
}

void embank_scan_close(embank_scan* scan) {
  if (scan != nullptr && scan->scan.table().owner().IsThisOne()) delete scan;
}

embank_status embank_checkpoint(embank_store* store, const void* blob, uint64_t blob_bytes,
                                uint64_t* sequence) {
  return Guard([&]() -> embank::Status {
    EMBANK_RETURN_IF_ERROR(CheckStore(store));
    if (blob_bytes > 0) EMBANK_RETURN_IF_ERROR(CheckNotNull(blob, "blob"));
    EMBANK_ASSIGN_OR_RETURN(embank::Checkpoints* const checkpoints, CheckpointsOf(*store));
    EMBANK_ASSIGN_OR_RETURN(const uint32_t checkpoint,
                            checkpoints->Make({static_cast<const std::byte*>(blob), blob_bytes}));
    if (sequence != nullptr) *sequence = checkpoint;
    return embank::OkStatus();
  });
}

embank_status embank_checkpoint_start(embank_store* store, const void* blob, uint64_t blob_bytes) {
  return Guard([&]() -> embank::Status {
    EMBANK_RETURN_IF_ERROR(CheckStore(store));
    if (blob_bytes > 0) EMBANK_RETURN_IF_ERROR(CheckNotNull(blob, "blob"));
    EMBANK_RETURN_IF_ERROR(CheckpointsOf(*store).status());
    return store->store->started_checkpoint()->Start(
        {static_cast<const std::byte*>(blob), blob_bytes});
  });
}

embank_status embank_checkpoint_finish(embank_store* store, uint64_t* sequence) {
  return Guard([&]() -> embank::Status {
    EMBANK_RETURN_IF_ERROR(CheckStore(store));
    EMBANK_RETURN_IF_ERROR(CheckpointsOf(*store).status());
    EMBANK_ASSIGN_OR_RETURN(const uint32_t checkpoint,
                            store->store->started_checkpoint()->Finish());
    if (sequence != nullptr) *sequence = checkpoint;
    return embank::OkStatus();
  });
}

embank_status embank_checkpoint_blob(embank_store* store, void* blob, uint64_t cap,
                                     uint64_t* needed) {
  return Guard([&]() -> embank::Status {
    EMBANK_RETURN_IF_ERROR(CheckStore(store));
    EMBANK_ASSIGN_OR_RETURN(const embank::Checkpoints* const checkpoints, CheckpointsOf(*store));
    EMBANK_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, checkpoints->Blob());
    return embank::LeaveBytes(bytes, "blob", blob, cap, needed);
  });
}

embank_status embank_export(embank_store* store, const char* directory, embank_progress progress,
                            void* user) {
  return Guard([&]() -> embank::Status {
    EMBANK_RETURN_IF_ERROR(CheckStore(store));
    EMBANK_RETURN_IF_ERROR(CheckNotNull(directory, "directory"));
    EMBANK_RETURN_IF_ERROR(embank::ValidatePath(directory, "directory"));
    EMBANK_ASSIGN_OR_RETURN(embank::Checkpoints* const checkpoints, CheckpointsOf(*store));
    return checkpoints->Export(directory, [&](uint64_t done, uint64_t total) {
      return progress == nullptr || progress(done, total, user) == 0;
    });
  });
}

embank_status embank_verify(const char* directory, embank_progress progress, void* user,
                            char* report, uint64_t cap, uint64_t* needed) {
  return Guard([&]() -> embank::Status {
    EMBANK_RETURN_IF_ERROR(CheckNotNull(directory, "directory"));
    EMBANK_RETURN_IF_ERROR(embank::ValidatePath(directory, "directory"));
    EMBANK_RETURN_IF_ERROR(CheckNotNull(needed, "needed"));
    if (cap > 0) EMBANK_RETURN_IF_ERROR(CheckNotNull(report, "report"));
    const std::unique_ptr<embank::FileSystem> files = embank::MakePosixFileSystem({});
    EMBANK_ASSIGN_OR_RETURN(
        const embank::VerifyReport found,
        embank::VerifyStore(files.get(), directory, [&](uint64_t done, uint64_t total) {
          return progress == nullptr || progress(done, total, user) == 0;
        }));
    EMBANK_RETURN_IF_ERROR(
        LeaveString(embank::FormatVerifyReport(found), "report", report, cap, needed));
    if (found.clean()) return embank::OkStatus();
    return embank::DataLossError(embank::StrCat("directory: ", directory, " has ",
                                                found.damage_count,
                                                " damaged parts; the report names them"));
  });
}

embank_status embank_flush_hot(embank_store* store) {
  return Guard([&]() -> embank::Status {
    EMBANK_RETURN_IF_ERROR(CheckStore(store));
    if (store->store->topk_flush() != nullptr) return store->store->topk_flush()->FlushNow();
    return embank::FailedPreconditionError(
        "the store has no hbm_bytes: no row can be in device memory");
  });
}

embank_status embank_metrics(embank_store* store, char* text, uint64_t cap, uint64_t* needed) {
  return Guard([&]() -> embank::Status {
    EMBANK_RETURN_IF_ERROR(CheckStore(store));
    return LeaveString(embank::FormatMetrics(*store->store), "text", text, cap, needed);
  });
}

embank_status embank_estimate(const embank_store_options* options,
                              const embank_table_options* tables, const uint64_t* rows,
                              uint32_t table_count, char* json, uint64_t cap, uint64_t* needed) {
  return Guard([&]() -> embank::Status {
    EMBANK_ASSIGN_OR_RETURN(const embank::StoreOptions read, embank::ReadOptions(options));
    EMBANK_ASSIGN_OR_RETURN(const std::vector<embank::TableRows> table_rows,
                            embank::EnterTableRows(tables, rows, table_count));
    const embank::Estimate estimate = embank::EstimateMemory(read, table_rows);
    return LeaveString(embank::FormatEstimate(estimate), "json", json, cap, needed);
  });
}

embank_status embank_estimate_for_hit_ratio(const embank_store_options* options,
                                            const embank_table_options* tables,
                                            const uint64_t* rows, uint32_t table_count,
                                            double zipf_exponent, double hit_ratio, char* json,
                                            uint64_t cap, uint64_t* needed) {
  return Guard([&]() -> embank::Status {
    EMBANK_ASSIGN_OR_RETURN(const embank::StoreOptions read, embank::ReadOptions(options));
    EMBANK_ASSIGN_OR_RETURN(const std::vector<embank::TableRows> table_rows,
                            embank::EnterTableRows(tables, rows, table_count));
    EMBANK_ASSIGN_OR_RETURN(
        const embank::Estimate estimate,
        embank::EstimateForHitRatio(read, table_rows, zipf_exponent, hit_ratio));
    return LeaveString(embank::FormatEstimate(estimate), "json", json, cap, needed);
  });
}

embank_status embank_memory_report(embank_store* store, char* json, uint64_t cap,
                                   uint64_t* needed) {
  return Guard([&]() -> embank::Status {
    EMBANK_RETURN_IF_ERROR(CheckStore(store));
    return LeaveString(embank::FormatMemoryReport(embank::ReportMemory(*store->store)), "json",
                       json, cap, needed);
  });
}
