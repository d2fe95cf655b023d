// A store: one memory budget, one index, one tier of rows, many tables. The composition root: it
// makes the parts and knows how they hang together.
#ifndef EMBANK_STORE_STORE_H_
#define EMBANK_STORE_STORE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/file_system.h"
#include "base/status_or.h"
#include "base/threads/mutex.h"
#include "store/batch/row_memory.h"
#include "store/checkpoint/checkpoint_directory.h"
#include "store/checkpoint/export.h"
#include "store/checkpoint/manifest.h"
#include "store/gate/batch_gate.h"
#include "store/placement/compaction.h"
#include "store/placement/heat_sketch.h"
#include "store/placement/page_mover.h"
#include "store/placement/row_forgetter.h"
#include "store/table/table.h"

namespace embank {

// What a store takes from the world. nullptr: the real one.
struct StoreEnvironment {
  MemorySource* memory = nullptr;
  const Clock* clock = nullptr;
  std::unique_ptr<Executor> executor;
  FileSystem* files = nullptr;
  std::optional<RowLogOptions> log = {};  // sizes; the store says where, whose and how large
};

// How long the last checkpoint took. Monotonic count.
struct CheckpointReport {
  uint64_t checkpoints = 0;  // that were made since the store was opened
  uint64_t last_ns = 0;
  uint64_t last_flip_ns = 0;  // of them those without a batch
  uint64_t last_rest_ns = 0;  // of them those in which its sweep let batches go first
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
  std::optional<LogSpace> ssd;  // with a path
};

class Store {
 public:
  // With a path: as its last checkpoint left it. kInvalidArgument, kResourceExhausted; with a path
  // also kNotFound: there is none; kUnavailable: it is open elsewhere; kFailedPrecondition: another
  // seed, a newer format, no previous checkpoint; kDataLoss, with what is damaged, and the older
  // checkpoint if there is one; the statuses of files. Read-only: whoever is open read-only, too,
  // is no reason for kUnavailable; nothing in the directory changes, and what would change the
  // store below is kFailedPrecondition.
  static StatusOr<std::unique_ptr<Store>> Open(const StoreOptions& options,
                                               StoreEnvironment environment);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // The store keeps the table, dropped ones too, until it is destroyed. kInvalidArgument,
  // kAlreadyExists, kResourceExhausted; then nothing was changed.
  StatusOr<Table*> CreateTable(std::string_view name, const TableOptions& options);
  // kNotFound.
  StatusOr<Table*> OpenTable(std::string_view name);
  // Erases the table's rows; which of those in the log are its own the footers of segments say.
  // kNotFound. kResourceExhausted, kDataLoss, the statuses of files: some are left, drop it again.
  Status DropTable(std::string_view name);

  // Makes the store as it is at some moment of the call durable, all tables and their rows, between
  // batches of changes; and the caller's blob. Batches go on meanwhile. Returns the checkpoint's
  // number. kFailedPrecondition: there is no path, or a table is dropped in part; kInvalidArgument:
  // the blob is too large; kResourceExhausted: no memory, or the log has no space; the statuses of
  // files: after those of the manifest's name nobody knows which checkpoint is the last, and no
  // further one is made. One at a time; others wait. Thread-safe.
  StatusOr<uint32_t> Checkpoint(std::span<const std::byte> blob);
  // The blob of the last checkpoint. kFailedPrecondition: there is no path; kNotFound: there is no
  // checkpoint. Thread-safe.
  StatusOr<std::vector<std::byte>> CheckpointBlob() const;
  // Makes a store of its own out of the last checkpoint, durably, in a directory that does not
  // exist or is empty. Batches and checkpoints go on meanwhile; what the checkpoint has takes its
  // space until the end. kFailedPrecondition: there is no path, or no checkpoint; else as
  // ExportCheckpoint. Thread-safe.
  Status Export(const std::string& directory, ExportProgress progress);

  // Thread-safe.
  CheckpointReport ReportCheckpoints() const;
  // nullptr: memory only.
  const RowLog* log() const { return log_.get(); }
  // nullptr: memory only, or no limit of memory.
  PageMover* pages() const { return pages_.get(); }

  // The tables that live, in order of creation.
  std::vector<Table*> Tables() const;

  // As of one moment only while no other call runs. Thread-safe.
  MemoryReport ReportMemory() const;

 private:
  struct SlotsOfClass {
    RowClass row_class;
    SlotClass slot_class;
    std::unique_ptr<RowMover> mover;          // with the log
    std::unique_ptr<RowForgetter> forgetter;  // without, of tables that forget
  };

  Store(const StoreOptions& options, StoreEnvironment environment);
  Status Init();
  Table* FindTable(std::string_view name) const EMBANK_SHARED_LOCKS_REQUIRED(tables_mutex_);
  Status InitLog();
  StatusOr<std::unique_ptr<CheckpointDirectory>> OpenDirectory() const;
  Status MakeHeatSketch(const Manifest& opened);
  uint64_t HeatRowsBytesMax() const;
  StatusOr<std::vector<Manifest>> LoadManifests(bool* all);
  Status Recover(std::span<const Manifest> kept);
  Status RecoverRows(const Manifest& manifest);
  void RecoverHeat(const Manifest& manifest);
  Status RecoverSegment(const SegmentRows& rows, uint32_t checkpoint);
  StatusOr<uint32_t> CheckpointLocked(std::span<const std::byte> blob)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(checkpoint_mutex_);
  void ForgetHeat() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(checkpoint_mutex_);
  bool SetHeatAside(bool must) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(checkpoint_mutex_);
  void KeepHeat(Manifest* manifest) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(checkpoint_mutex_);
  void SaveHeatOf(Manifest* manifest);
  // nullptr: a store in memory has no checkpoints.
  SweepPace* pace() const { return gate_ == nullptr ? nullptr : gate_->pace(); }
  StatusOr<Manifest> BeginExport();
  void EndExport(uint32_t checkpoint);
  void ForgetOthers() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(checkpoint_mutex_);
  Status CheckMayFail(std::span<const KeptCheckpoint> found) const;
  Status CheckWhole() const EMBANK_SHARED_LOCKS_REQUIRED(tables_mutex_);
  Status KeepFrozen(Manifest* manifest, bool* in_doubt)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(checkpoint_mutex_);
  bool SetManifestsAside(const Manifest& tables, uint64_t blob_bytes, bool must)
      EMBANK_SHARED_LOCKS_REQUIRED(tables_mutex_);
  Status SetBlobAside(uint64_t bytes);
  Status SetBlobAsideLocked(const Manifest& tables, uint64_t bytes)
      EMBANK_SHARED_LOCKS_REQUIRED(tables_mutex_);
  Status MakeRoomInManifests(ManifestTable table) EMBANK_SHARED_LOCKS_REQUIRED(tables_mutex_);
  Manifest Describe() const EMBANK_SHARED_LOCKS_REQUIRED(tables_mutex_);
  StatusOr<Table*> AddTable(TableId id, std::string_view name, const TableOptions& options)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(tables_mutex_);
  StatusOr<const SlotsOfClass*> SlotsOf(const RowClass& row_class)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(tables_mutex_);
  Status CheckNotesReach(const RowClass& row_class) const;
  Status MakeMover(SlotsOfClass* slots);
  void FreeForTable(const TableOptions& options);
  Status MakeForgetter(SlotsOfClass* slots);
  StatusOr<TableId> FreeTableId() const EMBANK_SHARED_LOCKS_REQUIRED(tables_mutex_);
  Status EraseRowsOf(Table* table);
  Status EraseLoggedRowsOf(Table* table);

  const StoreOptions options_;
  MemorySource* const memory_;
  const Clock* const clock_;
  std::unique_ptr<Executor> executor_;
  MemoryBudget budget_;
  MemoryBudget pin_budget_;
  EpochTable epochs_;
  std::unique_ptr<DramTier> tier_;   // constant after Init
  std::unique_ptr<KeyIndex> index_;  // constant after Init
  StoreRows rows_;
  std::unique_ptr<HeatClock> heat_clock_;  // constant after Init
  std::unique_ptr<RowMemoryPool> row_memory_;
  std::unique_ptr<RowMemoryPool> read_memory_;
  const std::optional<RowLogOptions> log_sizes_;
  std::unique_ptr<FileSystem> own_files_;
  FileSystem* const files_;
  // With a path, constant after Init; or since the first table that forgets.
  std::unique_ptr<TableDirectory> tables_by_id_;
  // All of these with a path, constant after Init.
  std::unique_ptr<CheckpointDirectory> directory_;
  std::unique_ptr<BatchGate> gate_;
  std::unique_ptr<HeatSketch> heat_sketch_;
  std::unique_ptr<RowLog> log_;       // nullptr: memory only
  std::unique_ptr<PageMover> pages_;  // nullptr: there is no log, or no limit of memory
  uint64_t segment_bytes_ = 0;
  std::atomic<uint64_t> heat_room_bytes_{0};  // of ssd_bytes, for files with heat
  std::atomic<uint64_t> blob_room_bytes_{0};  // of what is set aside for a manifest

  mutable Mutex checkpoint_mutex_;                      // taken before tables_mutex_
  Manifest last_ EMBANK_GUARDED_BY(checkpoint_mutex_);  // without what is in segments
  std::multiset<uint32_t> exported_ EMBANK_GUARDED_BY(checkpoint_mutex_);  // checkpoints, now
  mutable Mutex report_mutex_;
  CheckpointReport checkpoint_report_ EMBANK_GUARDED_BY(report_mutex_);
  mutable Mutex tables_mutex_;
  std::vector<Table*> live_tables_ EMBANK_GUARDED_BY(tables_mutex_);
  std::vector<std::unique_ptr<Table>> all_tables_ EMBANK_GUARDED_BY(tables_mutex_);
  std::vector<SlotsOfClass> slot_classes_ EMBANK_GUARDED_BY(tables_mutex_);
  // With the log; constant after Init. Last: its task uses all of the above until it ends.
  std::unique_ptr<Compaction> compaction_;
};

}  // namespace embank

#endif  // EMBANK_STORE_STORE_H_
