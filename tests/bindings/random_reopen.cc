// Steps of a plan on disk: checkpoints, and stores opened again, after a crash or without one.
#include <utility>

#include "bindings/c/handles.h"
#include "tests/bindings/random_run.h"
#include "tests/support/hbm_tier.h"
#include "tests/support/pmem_tier.h"
#include "tests/support/simulated_executor.h"
#include "tests/support/small_log.h"

namespace embank::test {
namespace {

constexpr Persistence kPersistences[] = {Persistence::kNone, Persistence::kAll,
                                         Persistence::kAllButOne, Persistence::kSome,
                                         Persistence::kTorn};

uint64_t RowsInLog(embank_table* table) {
  embank_table_info info = {};
  info.struct_size = sizeof info;
  return embank_table_get_info(table, &info) == EMBANK_OK ? info.rows_ssd + info.rows_pmem : 0;
}

}  // namespace

std::string RandomRun::Open(uint32_t flags) {
  embank_store_options options = plan_.store;
  StoreEnvironment environment;
  environment.device = MakeLateTwin(plan_.seed);
  if (!plan_.on_disk) {
    embank_store* store = nullptr;
    const Status opened = OpenStoreIn(&options, std::move(environment), &store);
    store_.reset(store);
    return opened.ok() ? "" : "the store did not open: " + opened.ToString();
  }
  options.flags = flags;
  if ((flags & EMBANK_OPEN_READ_ONLY) != 0) {
    options.hbm_bytes = 0;
    options.cuda_device = -1;
    options.warmup_iters = 0;
    options.flush_iters = 0;
  }
  environment.files = disk_.get();
  environment.log = plan_.crashes ? CrashedLog() : SmallLog();
  if (plan_.crashes) environment.executor = std::make_unique<SimulatedExecutor>(plan_.seed);
  const Status opened = OpenOnDisk(options, std::move(environment), &store_);
  return opened.ok() ? "" : "the store did not open: " + opened.ToString();
}

std::shared_ptr<KeptCheckpoint> RandomRun::CheckpointOfNow() {
  auto kept = std::make_shared<KeptCheckpoint>();
  kept->begin = disk_->changes();
  kept->blob.resize(random_.OneIn(3) ? 0 : random_.Below(3000));
  for (uint8_t& byte : kept->blob) byte = static_cast<uint8_t>(random_.Bits());
  for (const LiveTable& live : tables_) kept->oracles.push_back(*live.oracle);
  return kept;
}

// It has ended.
void RandomRun::Keep(const std::shared_ptr<KeptCheckpoint>& checkpoint) {
  durable_changes_ = disk_->changes();
  checkpoint->end = durable_changes_;
  if (!plan_.crashes) kept_.clear();
  if (!plan_.crashes && base_ != nullptr) kept_.push_back(base_);
  kept_.push_back(checkpoint);
  base_ = checkpoint;
}

void RandomRun::KeepStarted() {
  if (started_ == nullptr || started_is_kept_) return;
  Keep(started_);
  started_is_kept_ = true;
}

// It ends behind a started one. That of a plan for crashes has ended when its start returns.
std::string RandomRun::Checkpoint() {
  KeepStarted();
  const std::shared_ptr<KeptCheckpoint> kept = CheckpointOfNow();
  uint64_t sequence = 0;
  const embank_status status =
      embank_checkpoint(store_.get(), kept->blob.data(), kept->blob.size(), &sequence);
  if (status != EMBANK_OK) return std::string("checkpoint: ") + embank_last_error();
  for (const LiveTable& live : tables_) events_->Count("rows in the log", RowsInLog(live.table));
  Keep(kept);
  events_->Count("checkpoints");
  return "";
}

std::string RandomRun::StartCheckpoint() {
  const std::shared_ptr<KeptCheckpoint> kept = CheckpointOfNow();
  const embank_status status =
      embank_checkpoint_start(store_.get(), kept->blob.data(), kept->blob.size());
  if (started_ != nullptr) {
    events_->Count("second starts");
    return status == EMBANK_FAILED_PRECONDITION ? "" : "a second checkpoint was started";
  }
  if (status != EMBANK_OK) return std::string("start: ") + embank_last_error();
  started_ = kept;
  started_is_kept_ = false;
  events_->Count("checkpoints started");
  return "";
}

std::string RandomRun::FinishCheckpoint() {
  uint64_t sequence = 0;
  const embank_status status = embank_checkpoint_finish(store_.get(), &sequence);
  if (started_ == nullptr) {
    return status == EMBANK_FAILED_PRECONDITION ? "" : "none was started, and one finished";
  }
  if (status != EMBANK_OK) return std::string("finish: ") + embank_last_error();
  KeepStarted();
  started_ = nullptr;
  events_->Count("checkpoints finished");
  return "";
}

void RandomRun::CountLog() {
  for (const RowLog* const log : store_->store->logs()->all()) {
    events_->Count("rows moved by compaction", log->counters().compacted_rows);
    events_->Count("segments given up", log->counters().dead_segments);
  }
  if (!WithPmem()) return;
  events_->Count("rows written to PMem", store_->store->logs()->pmem()->counters().appended_rows);
  events_->Count("rows demoted", store_->store->demoted_rows());
}

// Adds the counts of the store since it was opened.
void RandomRun::CountHotRows() {
  if (!WithHbm()) return;
  const PayloadCounters& counters = store_->store->payloads()->counters();
  events_->Count("rows moved to device memory", counters.arrived_rows);
  events_->Count("rows moved from device memory", counters.left_rows);
  events_->Count("rows written back", counters.written_back_rows);
  events_->Count("rows of device memory flushed before a change", counters.pre_images);
  const TopkFlushReport report = store_->store->topk_flush()->Report();
  events_->Count("top-k flushes", report.flushes);
  events_->Count("epochs that a drift has ended", report.early_epochs);
  for (const LiveTable& live : tables_) {
    if (live.table == nullptr) continue;
    events_->Count("positions answered by device memory",
                   TableOfHandle(live.table)->counters().payload_lookups);
  }
}

// The hits of device memory decide how many epochs end early, and flushes run beside the calls. So
// the oracle is told of them; each ends behind the call that saw the drift.
void RandomRun::FollowEarlyEpochs(const LiveTable& live) {
  if (!WithHbm() || live.table == nullptr) return;
  const uint64_t epochs = TableOfHandle(live.table)->store().heat_clock->epochs();
  if (epochs > heat_clock_.epoch) heat_clock_ = {.epoch = epochs, .rows = heat_clock_.rows};
}

std::string RandomRun::FlushHot() {
  return embank_flush_hot(store_.get()) == EMBANK_OK
             ? ""
             : std::string("flush_hot: ") + embank_last_error();
}

void RandomRun::CloseStore() {
  CountLog();
  CountHotRows();
  for (LiveTable& live : tables_) live = {};
  store_.reset();
  if (started_ == nullptr) return;
  KeepStarted();
  started_ = nullptr;
  events_->Count("stores closed with a started checkpoint");
}

CrashedWorkload RandomRun::TakeWorkload() {
  CloseStore();
  auto none = std::make_shared<KeptCheckpoint>();
  none->exists = false;
  kept_.insert(kept_.begin(), std::move(none));
  return {plan_, std::move(disk_), std::move(kept_)};
}

std::string RandomRun::Reopen() {
  CloseStore();
  const bool previous = kept_.size() == 2 && random_.OneIn(4);
  const size_t now = disk_->changes();
  if (random_.OneIn(3)) {
    events_->Count("stores closed and opened");
  } else {
    const size_t change = random_.OneIn(2) ? now : random_.Between(durable_changes_, now);
    disk_ = disk_->AfterCrash(change, kPersistences[random_.Below(5)], random_.Bits());
    durable_changes_ = 0;
    events_->Count("crashes");
  }
  std::string wrong = ++reopenings_ % 2 == 0 ? ReadOnly(previous) : "";
  if (!wrong.empty()) return "read-only: " + wrong;
  wrong = Open(EMBANK_OPEN_CREATE | (previous ? EMBANK_OPEN_PREVIOUS : 0));
  return wrong.empty() ? FindTables(previous) : wrong;
}

// Somebody looks at it before it is opened to be changed: sees the same, and leaves no trace.
std::string RandomRun::ReadOnly(bool previous) {
  if (kept_.empty()) return "";
  const size_t changes = disk_->changes();
  std::string wrong = Open(EMBANK_OPEN_READ_ONLY | (previous ? EMBANK_OPEN_PREVIOUS : 0));
  if (!wrong.empty()) return wrong;
  for (const oracle::Table& oracle : (previous ? kept_.front() : kept_.back())->oracles) {
    embank_table* table = nullptr;
    if (embank_table_open(store_.get(), oracle.name().c_str(), &table) != EMBANK_OK) {
      return std::string("open a table: ") + embank_last_error();
    }
    wrong = DifferenceButHeat(table, oracle);
    if (!wrong.empty()) return "table " + oracle.name() + ": " + wrong;
    events_->Count("rows read by a read-only opener", oracle.rows().size());
  }
  store_.reset();
  return disk_->changes() == changes ? "" : "the disk has changed";
}

std::string RandomRun::FindTables(bool previous) {
  if (kept_.empty()) {
    events_->Count("stores without a checkpoint opened");
    KeptCheckpoint none;
    none.exists = false;
    const std::string wrong = DifferenceFrom(store_.get(), none, FindRows::kByScan);
    if (!wrong.empty()) return wrong;
    for (LiveTable& live : tables_) {
      const std::string cannot = CreateRandomTable(&live);
      if (!cannot.empty()) return cannot;
    }
    return CompareAll();
  }
  if (previous) events_->Count("previous checkpoints opened");
  base_ = previous ? kept_.front() : kept_.back();
  const std::string wrong = DifferenceFrom(store_.get(), *base_, FindRows::kByScan);
  if (!wrong.empty()) return wrong;
  events_->Count("blobs", base_->blob.size());
  for (size_t i = 0; i < tables_.size(); ++i) {
    tables_[i].oracle = std::make_unique<oracle::Table>(base_->oracles[i]);
    events_->Count("rows compared", tables_[i].oracle->rows().size());
    const embank_status status =
        embank_table_open(store_.get(), tables_[i].oracle->name().c_str(), &tables_[i].table);
    if (status != EMBANK_OK) return std::string("open a table: ") + embank_last_error();
  }
  return "";
}

}  // namespace embank::test
