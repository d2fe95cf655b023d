// A store: one memory budget, one index, one tier of rows, many tables. It is the composition root:
// it makes the parts, connects them, and hands them out.
#ifndef EMBANK_STORE_STORE_H_
#define EMBANK_STORE_STORE_H_

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/files/file_system.h"
#include "base/status_or.h"
#include "store/catalog/catalog.h"
#include "store/checkpoint/checkpoint_directory.h"
#include "store/checkpoint/checkpoints.h"
#include "store/checkpoint/opened_manifests.h"
#include "store/checkpoint/pmem_directory.h"
#include "store/gate/batch_gate.h"
#include "store/payload/payload_rows.h"
#include "store/payload/topk_flush.h"
#include "store/placement/compaction.h"
#include "store/placement/heat_sketch.h"
#include "store/placement/page_mover.h"
#include "store/started_checkpoint.h"
#include "store/table/row_memory.h"
#include "store/table/table.h"

namespace embank {

// The environment of a store. nullptr: the real one.
struct StoreEnvironment {
  MemorySource* memory = nullptr;
  const Clock* clock = nullptr;
  const WallClock* wall_clock = nullptr;
  std::unique_ptr<Executor> executor;
  FileSystem* files = nullptr;
  std::optional<RowLogOptions> log = {};  // sizes; the store says where, whose and how large
  FileSystem* pmem_files = nullptr;
  std::optional<RowLogOptions> pmem_log = {};  // as `log`
  std::unique_ptr<Device> device = nullptr;    // with hbm_bytes; nullptr: cuda_device says which
  bool topk_hysteresis = true;                 // of the plan of a top-k flush
};

class Store {
 public:
  // Opens a store; one with a path as its last checkpoint left it. A read-only store shares its
  // path with others that are read-only, and changes nothing in the directory; then every call that
  // would change the store is kFailedPrecondition.
  // kInvalidArgument: an option is refused.
  // kNotFound, kUnimplemented, kUnavailable: there is no such device (gpu/device.h).
  // kResourceExhausted: the device, the machine, or dram_bytes, has too little memory.
  // With a path also:
  // kNotFound: there is no store.
  // kUnavailable: the store is open elsewhere.
  // kFailedPrecondition: it has another seed, a newer format, or no previous checkpoint.
  // kDataLoss: the message names what is damaged, and the older checkpoint if there is one.
  // The statuses of files.
  static StatusOr<std::unique_ptr<Store>> Open(const StoreOptions& options,
                                               StoreEnvironment environment);
  // Waits for the end of a started checkpoint.
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Creates a table, which the catalog keeps. After an error nothing was changed.
  // kInvalidArgument: the name or an option is refused.
  // kAlreadyExists: a table has the name.
  // kResourceExhausted: there are too many tables, or there is too little memory or space.
  StatusOr<Table*> CreateTable(std::string_view name, const TableOptions& options);
  // Erases a table's rows, and takes it off the catalog's list.
  // kInvalidArgument: no table can have the name.
  // kNotFound: no table has it.
  // kResourceExhausted, kDataLoss, the statuses of files: some rows are left; drop it again.
  Status DropTable(std::string_view name);

  // The options that it was opened with.
  const StoreOptions& options() const { return options_; }
  // The parts that callers use. Nothing here changes once the store is open.
  const Catalog& catalog() const { return *catalog_; }
  // nullptr: there is no log.
  Checkpoints* checkpoints() const { return checkpoints_.all.get(); }
  StartedCheckpoint* started_checkpoint() const { return checkpoints_.started.get(); }
  const RowLogs* logs() const { return logs_.get(); }
  // nullptr: there is no log, or no limit of memory.
  PageMover* pages() const { return pages_.get(); }
  // nullptr: no device memory.
  PayloadRows* payloads() const { return payloads_.rows.get(); }
  TopkFlush* topk_flush() const { return payloads_.flush.get(); }
  // The number of rows that left PMem for the SSD, and of drains of PMem; 0 without PMem.
  uint64_t demoted_rows() const;
  uint64_t pmem_drains() const;
  // As PmemDirectory::kind; nullptr also: the store has no PMem.
  const char* pmem_kind() const;
  uint64_t heat_epochs() const { return heat_.clock->epochs(); }
  const MemoryBudget& budget() const { return budget_; }
  const KeyIndex& index() const { return *index_; }
  const DramTier& tier() const { return *tier_; }

 private:
  Store(const StoreOptions& options, StoreEnvironment environment);
  Status MakeRowParts();
  void GrowIndexFor(std::span<Table* const> tables);
  Status MakePayloads();
  Status MakeLogs(const OpenedManifests& manifests);
  Status MakeLogParts(const OpenedManifests& manifests);
  void MakeCatalog();
  void MakeCheckpoints(const OpenedManifests& manifests);
  Status MakeOtherParts();
  Status OpenParts();

  // All parts are constant once the store is open.
  StoreOptions options_;
  const std::unique_ptr<FileSystem> own_files_;  // nullptr: the caller's, or none
  StoreEnvironment environment_;
  MemoryBudget budget_;
  MemoryBudget pin_budget_;
  EpochTable epochs_;
  StoreContext context_ = {};
  std::unique_ptr<DramTier> tier_;
  std::unique_ptr<KeyIndex> index_;
  struct {
    StoreRows count;
    RowMemoryPools memory;
  } rows_;
  struct {
    std::unique_ptr<HeatClock> clock;
    std::unique_ptr<HeatSketch> sketch;  // with a path
  } heat_;
  TableDirectory tables_by_id_;
  // With a path only. The directories keep the store locked until the logs have ended.
  struct {
    std::unique_ptr<CheckpointDirectory> store;
    std::unique_ptr<PmemDirectory> pmem;  // nullptr: the store has no PMem
  } directories_;
  // With and without a path.
  std::unique_ptr<BatchGate> gate_;
  std::unique_ptr<RowLogs> logs_;
  std::unique_ptr<PageMover> pages_;  // with a path and a limit of memory
  std::unique_ptr<Catalog> catalog_;
  // With a path only. Compaction, which a read-only store does not have, is last: its task uses all
  // of the above until it ends.
  struct {
    std::unique_ptr<Checkpoints> all;
    std::unique_ptr<StartedCheckpoint> started;  // its thread uses all parts until it ends
  } checkpoints_;
  struct {
    std::unique_ptr<Compaction> pmem;  // nullptr: the store has no PMem
    std::unique_ptr<Compaction> ssd;
    std::vector<Compaction*> all;  // the highest tier first
  } compactions_;
  // With device memory. The task of the flush uses all of the above until it ends.
  struct {
    std::unique_ptr<PayloadRows> rows;
    std::unique_ptr<TopkFlush> flush;
  } payloads_;
};

}  // namespace embank

#endif  // EMBANK_STORE_STORE_H_
