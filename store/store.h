// A store: one memory budget, one index, one tier of rows, many tables. The composition root: it
// makes the parts and knows how they hang together.
#ifndef EMBANK_STORE_STORE_H_
#define EMBANK_STORE_STORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file_system.h"
#include "base/mutex.h"
#include "store/table.h"

namespace embank {

// What a store takes from the world. nullptr: the real one.
struct StoreEnvironment {
  MemorySource* memory = nullptr;
  const Clock* clock = nullptr;
  std::unique_ptr<Executor> executor;
  FileSystem* files = nullptr;
  std::optional<RowLogOptions> log = {};  // sizes; the store says where, whose and how large
};

// Bytes of DRAM by use: used = fixed + index + rows + state + slack.
struct MemoryReport {
  uint64_t budget_bytes;  // 0: no limit
  uint64_t used_bytes;
  uint64_t fixed_bytes;
  uint64_t index_bytes;
  uint64_t rows_bytes;   // headers, vectors and padding of rows that live
  uint64_t state_bytes;  // their optimizer state
  uint64_t slack_bytes;  // slab memory without a living row
  uint64_t huge_pages_refused_bytes;
};

class Store {
 public:
  // kInvalidArgument, kResourceExhausted.
  static absl::StatusOr<std::unique_ptr<Store>> Open(const StoreOptions& options,
                                                     StoreEnvironment environment);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // The store keeps the table, dropped ones too, until it is destroyed. kInvalidArgument,
  // kAlreadyExists, kResourceExhausted; then nothing was changed.
  absl::StatusOr<Table*> CreateTable(std::string_view name, const TableOptions& options);
  // kNotFound.
  absl::StatusOr<Table*> OpenTable(std::string_view name);
  // Erases the table's rows, for which it reads those of all tables that are in the log. kNotFound;
  // kResourceExhausted: some are left, drop it again. (Rows that cannot be read are left too, with
  // the table's id, which is never used again.)
  absl::Status DropTable(std::string_view name);

  // The tables that live, in order of creation.
  std::vector<Table*> Tables() const;

  // As of one moment only while no other call runs. Thread-safe.
  MemoryReport ReportMemory() const;

 private:
  struct SizedClass {
    uint32_t slot_bytes;
    SlotClass slot_class;
    std::unique_ptr<RowMover> mover;  // with the log
  };

  Store(const StoreOptions& options, StoreEnvironment environment);
  absl::Status Init();
  Table* FindTable(std::string_view name) const ABSL_SHARED_LOCKS_REQUIRED(tables_mutex_);
  absl::Status InitLog();
  absl::StatusOr<const SizedClass*> ClassOf(uint32_t slot_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(tables_mutex_);
  absl::StatusOr<TableId> FreeTableId() const ABSL_SHARED_LOCKS_REQUIRED(tables_mutex_);
  absl::Status EraseRowsOf(Table* table);
  absl::Status EraseLoggedRowsOf(Table* table, std::span<const Location> logged);

  const StoreOptions options_;
  MemorySource* const memory_;
  const Clock* const clock_;
  std::unique_ptr<Executor> executor_;
  MemoryBudget budget_;
  EpochTable epochs_;
  std::unique_ptr<DramTier> tier_;         // constant after Init
  std::unique_ptr<KeyIndex> index_;        // constant after Init
  std::unique_ptr<HeatClock> heat_clock_;  // constant after Init
  const std::optional<RowLogOptions> log_sizes_;
  std::unique_ptr<FileSystem> own_files_;
  FileSystem* const files_;
  std::unique_ptr<TableDirectory> directory_;  // with the log
  std::unique_ptr<RowLog> log_;                // constant after Init; nullptr: memory only

  mutable Mutex tables_mutex_;
  std::vector<Table*> live_tables_ ABSL_GUARDED_BY(tables_mutex_);
  std::vector<std::unique_ptr<Table>> all_tables_ ABSL_GUARDED_BY(tables_mutex_);
  std::vector<SizedClass> slot_classes_ ABSL_GUARDED_BY(tables_mutex_);
};

}  // namespace embank

#endif  // EMBANK_STORE_STORE_H_
