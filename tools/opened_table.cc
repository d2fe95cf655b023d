#include "tools/opened_table.h"

#include <algorithm>

#include "base/files/posix_file_system.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/inspect/estimate.h"
#include "store/inspect/survey.h"
#include "tools/byte_size.h"

namespace embank {
namespace {

StoreOptions OptionsOf(const TableCommand& command, const Manifest& manifest) {
  StoreOptions options = {.seed = manifest.seed, .path = command.directory, .may_create = false};
  options.pmem_path = command.pmem_path;
  const bool has_pmem = !std::ranges::all_of(manifest.segments, &SegmentRows::IsInStoreDirectory);
  if (has_pmem && options.pmem_path.empty()) {
    options.pmem_path = manifest.directories[Tier::kPmem].path;
  }
  if (!options.pmem_path.empty()) options.pmem_bytes = kPmemBytesMin;
  return options;
}

// The limit of memory with which the rows of a store are all on the SSD.
StatusOr<uint64_t> DramBytesOf(FileSystem* files, const StoreOptions& options) {
  EMBANK_ASSIGN_OR_RETURN(const Survey survey, SurveyStore(files, options.path));
  std::vector<TableRows> tables;
  for (const SurveyedTable& one : survey.tables) tables.push_back({one.table.options, one.rows});
  return EstimateMemory(options, tables).dram_bytes;
}

}  // namespace

StatusOr<OpenedTable> OpenToRead(const TableCommand& command) {
  const std::unique_ptr<FileSystem> files = MakePosixFileSystem({});
  EMBANK_ASSIGN_OR_RETURN(const Manifest manifest,
                          ReadNewestManifest(files.get(), command.directory));
  StoreOptions options = OptionsOf(command, manifest);
  options.read_only = true;
  OpenedTable opened;
  EMBANK_ASSIGN_OR_RETURN(opened.store, Store::Open(options, {}));
  EMBANK_ASSIGN_OR_RETURN(opened.table, opened.store->catalog().Open(command.table));
  return opened;
}

StatusOr<std::unique_ptr<Store>> OpenToChange(FileSystem* files, const TableCommand& command,
                                              const Manifest& manifest) {
  StoreOptions options = OptionsOf(command, manifest);
  if (!command.dram_bytes.empty()) {
    EMBANK_ASSIGN_OR_RETURN(options.dram_bytes, ParseByteSize("--dram-bytes", command.dram_bytes));
  }
  if (!options.pmem_path.empty()) {
    // The limit is an option of each open. PMem keeps what it has, and new rows go to the SSD.
    EMBANK_ASSIGN_OR_RETURN(const Survey survey, SurveyStore(files, command.directory));
    options.pmem_bytes = std::max(kPmemBytesMin, survey.taken_bytes[Tier::kPmem]);
  }
  StatusOr<std::unique_ptr<Store>> store = Store::Open(options, {});
  // A full disk is RESOURCE_EXHAUSTED, too, and no matter of this option.
  const bool is_limit = IsResourceExhausted(store.status()) &&
                        store.status().message().find("dram_bytes is ") != std::string::npos;
  if (command.dram_bytes.empty() || !is_limit) return store;
  const StatusOr<uint64_t> needed = DramBytesOf(files, options);
  // Segments that a store with a larger limit has written need more than an estimate knows.
  const std::string need = !needed.ok() || *needed <= options.dram_bytes
                               ? std::string()
                               : StrCat("; the store needs about ", *needed, " bytes");
  return ResourceExhaustedError(
      StrCat("--dram-bytes is ", command.dram_bytes, need, ": ", store.status().message()));
}

Status CheckStatesOf(const Table& table, const char* option) {
  if (table.layout().state_floats > 0) return OkStatus();
  return FailedPreconditionError(StrCat(option, ": rows of table ", table.name(),
                                        " have no state, since its optimizer is ",
                                        NameOf(table.layout().optimizer)));
}

}  // namespace embank
