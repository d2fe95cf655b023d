// Steps of a plan on disk: checkpoints, and stores opened again, after a crash or without one.
#include <utility>

#include "bindings/c/door.h"
#include "tests/bindings/random_run.h"
#include "tests/support/small_log.h"

namespace embank::test {
namespace {

constexpr Persistence kPersistences[] = {Persistence::kNone, Persistence::kAll,
                                         Persistence::kAllButOne, Persistence::kSome,
                                         Persistence::kTorn};

uint64_t RowsInLog(embank_table* table) {
  embank_table_info info = {};
  info.struct_size = sizeof info;
  return embank_table_get_info(table, &info) == EMBANK_OK ? info.rows_ssd : 0;
}

}  // namespace

std::string RandomRun::Open(bool previous) {
  if (!plan_.on_disk) {
    store_ = OpenStore(plan_.store);
    return store_ == nullptr ? "the store did not open" : "";
  }
  embank_store_options options = plan_.store;
  options.path = "store";
  options.flags = EMBANK_OPEN_CREATE;
  if (previous) options.flags |= EMBANK_OPEN_PREVIOUS;
  embank_store* store = nullptr;
  StoreEnvironment environment;
  environment.files = disk_.get();
  environment.log = SmallLog();
  const absl::Status opened = OpenStoreIn(&options, std::move(environment), &store);
  store_.reset(store);
  return opened.ok() ? "" : "the store did not open: " + opened.ToString();
}

std::string RandomRun::Checkpoint() {
  auto kept = std::make_shared<Kept>();
  kept->blob.resize(random_.OneIn(3) ? 0 : random_.Below(3000));
  for (uint8_t& byte : kept->blob) byte = static_cast<uint8_t>(random_.Bits());
  uint64_t sequence = 0;
  const embank_status status =
      embank_checkpoint(store_.get(), kept->blob.data(), kept->blob.size(), &sequence);
  if (status != EMBANK_OK) return std::string("checkpoint: ") + embank_last_error();
  for (const LiveTable& live : tables_) {
    kept->oracles.push_back(*live.oracle);
    events_->Count("rows in the log", RowsInLog(live.table));
  }
  durable_changes_ = disk_->changes();
  kept_ = {kept};
  if (base_ != nullptr) kept_.insert(kept_.begin(), base_);
  base_ = kept;
  events_->Count("checkpoints");
  return "";
}

void RandomRun::CountLog() {
  const RowLogCounters& counters = store_->store->log()->counters();
  events_->Count("rows moved by compaction", counters.compacted_rows);
  events_->Count("segments given up", counters.dead_segments);
}

std::string RandomRun::Reopen() {
  const bool previous = kept_.size() == 2 && random_.OneIn(4);
  const size_t now = disk_->changes();
  CountLog();
  for (LiveTable& live : tables_) live = {};
  store_.reset();
  if (random_.OneIn(3)) {
    events_->Count("stores closed and opened");
  } else {
    const size_t change = random_.OneIn(2) ? now : random_.Between(durable_changes_, now);
    disk_ = disk_->AfterCrash(change, kPersistences[random_.Below(5)], random_.Bits());
    durable_changes_ = 0;
    events_->Count("crashes");
  }
  const std::string wrong = Open(previous);
  return wrong.empty() ? FindTables(previous) : wrong;
}

std::string RandomRun::FindTables(bool previous) {
  uint64_t blob_bytes = 0;
  const embank_status blob_status = embank_checkpoint_blob(store_.get(), nullptr, 0, &blob_bytes);
  if (kept_.empty()) {
    events_->Count("stores without a checkpoint opened");
    if (blob_status != EMBANK_NOT_FOUND) return "a blob without a checkpoint";
    for (LiveTable& live : tables_) {
      const std::string wrong = CreateRandomTable(&live);
      if (!wrong.empty()) return wrong;
    }
    return CompareAll();
  }
  if (previous) events_->Count("previous checkpoints opened");
  base_ = previous ? kept_.front() : kept_.back();
  std::vector<uint8_t> blob(blob_bytes);
  if (embank_checkpoint_blob(store_.get(), blob.data(), blob.size(), &blob_bytes) != EMBANK_OK ||
      blob != base_->blob) {
    return "another blob";
  }
  events_->Count("blobs", blob.size());
  for (size_t i = 0; i < tables_.size(); ++i) {
    tables_[i].oracle = std::make_unique<oracle::Table>(base_->oracles[i]);
    const embank_status status =
        embank_table_open(store_.get(), tables_[i].oracle->name().c_str(), &tables_[i].table);
    if (status != EMBANK_OK) return std::string("open a table: ") + embank_last_error();
  }
  uint64_t names_bytes = 0;
  uint64_t expected_bytes = 1;
  for (const LiveTable& live : tables_) expected_bytes += live.oracle->name().size() + 1;
  if (embank_table_names(store_.get(), nullptr, 0, &names_bytes) != EMBANK_OK ||
      names_bytes != expected_bytes) {
    return "other tables";
  }
  return CompareAll();
}

}  // namespace embank::test
