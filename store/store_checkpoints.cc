// How a store with a path begins, and what it makes durable.
#include <algorithm>
#include <bit>
#include <map>
#include <new>
#include <utility>

#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "base/status_with_room.h"
#include "base/str_cat.h"
#include "base/threads/log.h"
#include "store/checkpoint/checkpoint.h"
#include "store/checkpoint/heat_file.h"
#include "store/checkpoint/ssd_need.h"
#include "store/placement/memory_plan.h"
#include "store/store.h"

namespace embank {
namespace {

Status NoPath() { return FailedPreconditionError("the store has no path: it is in memory only"); }

// Memory was reserved for all rows: mostly it is many that a damaged footer makes one.
Status NoPlace(uint64_t segment_id, uint64_t dram_bytes) {
  return StatusWithRoom(StatusCode::kResourceExhausted, [&] {
    return StrCat(RowLog::SegmentName(segment_id),
                  ": no place in the index for one of its rows; dram_bytes is ", dram_bytes,
                  ", or too many rows are said to have the same key");
  });
}

}  // namespace

Status Store::InitLog() {
  EMBANK_ASSIGN_OR_RETURN(directory_, OpenDirectory());
  bool all = false;
  EMBANK_ASSIGN_OR_RETURN(const std::vector<Manifest> kept, LoadManifests(&all));
  const Manifest& opened = kept.front();
  if (opened.seed != options_.seed) {
    return FailedPreconditionError(
        StrCat("seed: ", options_.path, " was made with ", opened.seed, ", not ", options_.seed));
  }
  RowLogOptions log = log_sizes_.value_or(LogSizes(options_));
  segment_bytes_ = log.segment_bytes;
  log.directory = directory_->files();
  log.store_id = opened.store_id;
  log.ssd_bytes = options_.read_only ? 0 : options_.ssd_bytes;
  log.read_only = options_.read_only;
  log.first_segment_id = directory_->listing().next_segment_id;
  for (const Manifest& manifest : kept) {
    if (Seeded(SeededBug::kNumbersUsedAgain)) break;
    log.first_segment_id = std::max(log.first_segment_id, manifest.next_segment_id);
    log.first_sequence = std::max(log.first_sequence, manifest.next_sequence);
  }
  tables_by_id_ = std::make_unique<TableDirectory>();
  gate_ = std::make_unique<BatchGate>(directory_->listing().next_checkpoint());
  EMBANK_ASSIGN_OR_RETURN(log_, RowLog::Create(files_, memory_, &budget_, executor_.get(), log));
  EMBANK_RETURN_IF_ERROR(MakeHeatSketch(opened));
  if (!options_.read_only) {
    compaction_ = std::make_unique<Compaction>(CompactionParts{.index = index_.get(),
                                                               .log = log_.get(),
                                                               .tables = tables_by_id_.get(),
                                                               .gate = gate_.get(),
                                                               .executor = executor_.get()});
  }
  if (options_.dram_bytes != 0) {
    pages_ = std::make_unique<PageMover>(PageMoverParts{.budget = &budget_,
                                                        .tier = tier_.get(),
                                                        .index = index_.get(),
                                                        .log = log_.get(),
                                                        .tables = tables_by_id_.get(),
                                                        .gate = gate_.get()});
  }
  EMBANK_RETURN_IF_ERROR(Recover(kept));
  // Only now: rows that were accepted find their places again, whatever order they come in.
  if (options_.dram_bytes != 0) index_->KeepFree(IndexLeavesBytes(options_.dram_bytes));
  // What a damaged manifest has is nobody's to remove.
  if (all && !options_.read_only) directory_->RemoveOrphans(kept);
  return OkStatus();
}

StatusOr<std::unique_ptr<CheckpointDirectory>> Store::OpenDirectory() const {
  if (!options_.read_only) {
    return CheckpointDirectory::Open(files_, options_.path, options_.may_create);
  }
  EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<CheckpointDirectory> directory,
                          CheckpointDirectory::OpenToRead(files_, options_.path, "path"));
  EMBANK_RETURN_IF_ERROR(directory->CheckHasManifest());
  return directory;
}

// Without a limit of memory rows do not leave; but all begin in the log, with the heat that was
// saved: five rows, or a block of twelve, in 64 bytes.
Status Store::MakeHeatSketch(const Manifest& opened) {
  const uint64_t ssd_bytes = options_.read_only ? 0 : options_.ssd_bytes;
  uint64_t bytes = HeatSketchBytes(options_.dram_bytes, ssd_bytes);
  if (options_.dram_bytes == 0 && HeatSketch::IsSize(opened.heat.bytes)) {
    bytes = std::min(opened.heat.bytes, HeatSketchBytes(PhysicalMemoryBytes(), ssd_bytes));
  }
  EMBANK_ASSIGN_OR_RETURN(heat_sketch_, HeatSketch::Create(memory_, &budget_, bytes));
  return OkStatus();
}

// As many rows as the sketch has blocks for; without a limit of memory there is hardly a sketch.
uint64_t Store::HeatRowsBytesMax() const {
  if (options_.dram_bytes != 0) return heat_sketch_->bytes();
  if (options_.ssd_bytes == 0) return HeatSketch::kBytesMax;
  return HeatSketchBytes(HeatSketch::kBytesMax, options_.ssd_bytes);
}

// The kept ones, first the one that is opened. A store that is new has one of its own. *all: there
// is no other, as far as can be told.
StatusOr<std::vector<Manifest>> Store::LoadManifests(bool* all) {
  *all = true;
  const bool is_new = directory_->listing().checkpoints.empty();
  if (is_new && options_.previous) {
    return FailedPreconditionError(
        StrCat("flags: ", options_.path, " is not a store, and has no previous checkpoint"));
  }
  if (is_new) {
    std::vector<Manifest> first(1);
    first[0].store_id = HashKey(options_.seed, clock_->NowNs());
    first[0].seed = options_.seed;
    bool in_doubt = false;
    EMBANK_RETURN_IF_ERROR(directory_->Keep(first[0], &in_doubt));
    return first;
  }
  std::vector<KeptCheckpoint> found = directory_->LoadKept();
  const bool has_older = found.size() > 1;
  std::vector<Manifest> kept;
  if (found[0].manifest.ok()) {
    kept.push_back(*std::move(found[0].manifest));
  } else {
    EMBANK_RETURN_IF_ERROR(CheckMayFail(found));
    *all = false;
  }
  if (!has_older) {
    if (!options_.previous) return kept;
    return FailedPreconditionError(
        StrCat("flags: ", options_.path, " has one checkpoint, and none previous to it"));
  }
  StatusOr<Manifest>& older = found[1].manifest;
  if (older.ok()) {
    kept.insert(options_.previous ? kept.begin() : kept.end(), *std::move(older));
    return kept;
  }
  if (options_.previous) return older.status();
  // The one that is not opened may be damaged, or be gone.
  *all = IsNotFound(older.status());
  Log(LogLevel::kWarning, StrCat("the previous checkpoint: ", older.status().ToString()));
  return kept;
}

// Whether a store is opened though the newest manifest cannot be read: only as the previous one.
Status Store::CheckMayFail(std::span<const KeptCheckpoint> found) const {
  const Status& newest = found[0].manifest.status();
  if (IsFailedPrecondition(newest) || found.size() == 1) return newest;
  if (!options_.previous && !Seeded(SeededBug::kSilentWayBack)) {
    return Status(newest.code(), StrCat(newest.message(), "; checkpoint ", found[1].checkpoint,
                                        " can be opened as the previous one"));
  }
  Log(LogLevel::kWarning, StrCat("the newest checkpoint: ", newest.ToString()));
  return OkStatus();
}

Status Store::Recover(std::span<const Manifest> kept) {
  const Manifest& opened = kept.front();
  {
    MutexLock lock(&tables_mutex_);
    for (const RowClass& row_class : opened.row_classes) {
      EMBANK_RETURN_IF_ERROR(SlotsOf(row_class).status());
    }
    for (const ManifestTable& table : opened.tables) {
      EMBANK_RETURN_IF_ERROR(AddTable(table.id, table.name, table.options).status());
    }
  }
  const Status recovered = RecoverRows(opened);
  if (IsDataLoss(recovered)) {
    const bool has_other = kept.size() > 1 && !options_.previous;
    return DataLossError(StrCat(
        recovered.message(),
        has_other
            ? StrCat("; checkpoint ", kept.back().checkpoint, " can be opened as the previous one")
            : "",
        "; `embank repair` makes a new store of all rows that can be read"));
  }
  EMBANK_RETURN_IF_ERROR(recovered);
  RecoverHeat(opened);
  for (const Manifest& manifest : kept.subspan(1)) {
    // Its segments take space, which is nothing to who only reads.
    if (options_.read_only) break;
    for (const SegmentRows& rows : manifest.segments) {
      const Status adopted = log_->Adopt(rows, manifest.checkpoint, nullptr);
      if (!adopted.ok()) {
        Log(LogLevel::kWarning, StrCat("of checkpoint ", manifest.checkpoint,
                                       ", which is not opened: ", adopted.ToString()));
      }
    }
  }
  for (const Manifest& manifest : kept) {
    if (manifest.heat.bytes > 0) directory_->NoteHeat(manifest.checkpoint, manifest.heat.bytes);
  }
  heat_room_bytes_ = directory_->HeatBytes();
  MutexLock lock(&checkpoint_mutex_);
  last_ = opened;
  last_.segments.clear();
  MutexLock tables_lock(&tables_mutex_);
  // What is there is there: where it is too much, nothing changes until rows are erased.
  SetManifestsAside(Describe(), last_.blob.size(), /*must=*/true);
  return OkStatus();
}

// No row depends on it.
void Store::RecoverHeat(const Manifest& manifest) {
  if (manifest.heat.bytes == 0) return;
  const Status loaded = LoadHeat(directory_->files(), HeatName(manifest.checkpoint), manifest.heat,
                                 heat_sketch_.get());
  if (loaded.ok()) return;
  Log(LogLevel::kWarning,
      StrCat("what heat rows gained since they were written is lost: ", loaded.ToString()));
}

Status Store::RecoverRows(const Manifest& manifest) {
  // In the order of the log rows come by hash: an index that grows while they do finds the places
  // of a part of them full.
  uint64_t rows = 0;
  for (const SegmentRows& segment : manifest.segments) {
    for (const uint64_t word : segment.bits) rows += static_cast<uint64_t>(std::popcount(word));
  }
  const Status reserved = index_->ReserveRows(rows);
  if (!reserved.ok()) {
    return ResourceExhaustedError(StrCat("dram_bytes is ", options_.dram_bytes,
                                         "; the index of the ", rows, " rows of ", options_.path,
                                         " needs ", KeyIndex::EstimateBytes(rows), " bytes"));
  }
  Mutex mutex;
  Status status;
  executor_->ParallelFor(static_cast<uint32_t>(manifest.segments.size()), [&](uint32_t i) {
    {
      MutexLock lock(&mutex);
      if (!status.ok()) return;
    }
    Status recovered;
    try {
      recovered = RecoverSegment(manifest.segments[i], manifest.checkpoint);
    } catch (const std::bad_alloc&) {
      recovered = NoMemory();
    }
    if (recovered.ok()) return;
    MutexLock lock(&mutex);
    status.Update(recovered);
  });
  return status;
}

Status Store::RecoverSegment(const SegmentRows& rows, uint32_t checkpoint) {
  Status status;
  std::map<Table*, int64_t> counts;
  const auto insert = [&](Location location, TableId owner, Key key) {
    Table* const table = tables_by_id_->Get(owner);
    const bool is_owner = table != nullptr && table->slot_class() == rows.header.row_class;
    if (!is_owner && status.ok()) {
      status =
          DataLossError(StrCat(RowLog::SegmentName(rows.header.segment_id), ": a row of table ",
                               owner, ", which has no such rows in the checkpoint"));
    }
    if (!status.ok()) return;
    const KeyHash hash = table->HashOf(key);
    KeyIndex::Shard* const shard = index_->shard(KeyIndex::ShardOf(hash));
    MutexLock lock(&shard->mutex);
    status = index_->ReserveOne(shard, hash);
    if (!status.ok()) status = NoPlace(rows.header.segment_id, options_.dram_bytes);
    if (!status.ok()) return;
    index_->Insert(shard, hash, location);
    ++counts[table];
  };
  const RowLog::VisitOwner visit = insert;
  const Status adopted = log_->Adopt(rows, checkpoint, &visit);
  for (const auto& [table, count] : counts) {
    table->AddRows(count);
    table->mover()->CountInLog(*table, count);
  }
  EMBANK_RETURN_IF_ERROR(adopted);
  return status;
}

Manifest Store::Describe() const {
  Manifest manifest;
  for (const SlotsOfClass& slots : slot_classes_) manifest.row_classes.push_back(slots.row_class);
  for (const Table* const table : live_tables_) {
    manifest.tables.push_back({table->id(), table->name(), table->options()});
  }
  return manifest;
}

// Blobs are no larger than the last, or so large as many are.
constexpr uint64_t kBlobBytes = uint64_t{16} << 10;

// For manifests, and the heat that there is.
bool Store::SetManifestsAside(const Manifest& tables, uint64_t blob_bytes, bool must) {
  if (options_.ssd_bytes == 0 || options_.read_only) return true;
  const uint64_t blob_room_bytes = std::max(blob_bytes, kBlobBytes);
  const uint64_t bytes =
      ManifestsBytesMax(tables, options_.ssd_bytes, segment_bytes_, blob_room_bytes) +
      heat_room_bytes_.load();
  if (!log_->SetAside(bytes, must)) return false;
  blob_room_bytes_ = blob_room_bytes;
  return true;
}

// For a table more, and its row class.
Status Store::MakeRoomInManifests(ManifestTable table) {
  Manifest tables = Describe();
  const RowClass row_class = RowClassOf(table.options);
  const std::vector<RowClass>& classes = tables.row_classes;
  const bool is_known = std::find(classes.begin(), classes.end(), row_class) != classes.end();
  if (!is_known) tables.row_classes.push_back(row_class);
  tables.tables.push_back(std::move(table));
  // Where no row of it would ever fit, no checkpoint helps.
  if (options_.ssd_bytes != 0 &&
      !HasRoomForRows(tables, options_.ssd_bytes, segment_bytes_, kBlobBytes)) {
    const auto segment_bytes =
        log_sizes_.has_value() ? std::optional(segment_bytes_) : std::nullopt;
    return ResourceExhaustedError(StrCat(
        "ssd_bytes is ", options_.ssd_bytes, "; for a row of each of its tables, with table \"",
        tables.tables.back().name, "\", the store needs at least ",
        LeastSsdBytes(tables, options_, segment_bytes, kBlobBytes)));
  }
  if (SetManifestsAside(tables, blob_room_bytes_.load(), /*must=*/false)) return OkStatus();
  return ResourceExhaustedError(
      StrCat("a table more has no room in a checkpoint; ", log_->WhyRefused()));
}

StatusOr<uint32_t> Store::Checkpoint(std::span<const std::byte> blob) {
  if (log_ == nullptr) return NoPath();
  if (blob.size() > kBlobBytesMax) {
    return InvalidArgumentError(StrCat("blob_bytes: ", blob.size(), ", at most ", kBlobBytesMax));
  }
  if (options_.read_only) return OpenedReadOnly();
  HurriedLock lock(&checkpoint_mutex_, pace());
  try {
    // Keep looks again; here nothing has been done yet.
    EMBANK_RETURN_IF_ERROR(directory_->lock().Check());
    // Before compaction takes what is left.
    EMBANK_RETURN_IF_ERROR(SetBlobAside(blob.size()));
    const Compaction::UnderWay under_way(compaction_.get());
    compaction_->MakeRoomLater();
    return CheckpointLocked(blob);
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
}

Status Store::SetBlobAside(uint64_t bytes) {
  ReaderMutexLock lock(&tables_mutex_);
  return SetBlobAsideLocked(Describe(), bytes);
}

Status Store::SetBlobAsideLocked(const Manifest& tables, uint64_t bytes) {
  const uint64_t room = blob_room_bytes_.load();
  if (SetManifestsAside(tables, std::max(bytes, room), /*must=*/false)) return OkStatus();
  return ResourceExhaustedError(
      StrCat("blob_bytes: ", bytes, "; what is kept of ssd_bytes for a checkpoint holds ", room));
}

// Until the flip nothing has happened; after it the gate and the log are told how it ended.
StatusOr<uint32_t> Store::CheckpointLocked(std::span<const std::byte> blob) {
  const uint64_t begin_ns = clock_->NowNs();
  uint64_t flip_ns = 0;
  Manifest manifest;
  {
    // No table comes or goes while there is no batch.
    ReaderMutexLock lock(&tables_mutex_);
    EMBANK_RETURN_IF_ERROR(CheckWhole());
    const std::span<Table* const> tables = live_tables_;
    manifest = Describe();
    manifest.store_id = last_.store_id;
    manifest.seed = last_.seed;
    manifest.previous = last_.checkpoint;
    EMBANK_RETURN_IF_ERROR(SetBlobAsideLocked(manifest, blob.size()));
    manifest.blob.assign(blob.begin(), blob.end());
    uint64_t flip_begin_ns = 0;
    gate_->Flip(
        [&](uint32_t checkpoint) {
          manifest.checkpoint = checkpoint;
          // The rates with which the last batches were made.
          for (size_t i = 0; i < tables.size(); ++i)
            manifest.tables[i].options = tables[i]->options();
          log_->Freeze(checkpoint);
        },
        [&] { flip_begin_ns = clock_->NowNs(); });
    flip_ns = clock_->NowNs() - flip_begin_ns;
  }
  const uint64_t rest_ns = SweepOwed({.index = index_.get(),
                                      .tier = tier_.get(),
                                      .tables = tables_by_id_.get(),
                                      .gate = gate_.get(),
                                      .log = log_.get(),
                                      .executor = executor_.get(),
                                      .clock = clock_});
  Status status = gate_->EndSweep();
  bool in_doubt = false;
  if (status.ok()) status = KeepFrozen(&manifest, &in_doubt);
  if (Seeded(SeededBug::kManifestBeforeSegments)) status.Update(log_->Sync());
  log_->Thaw(status.ok() || in_doubt);
  if (!status.ok()) {
    ForgetHeat();
    return status;
  }
  manifest.segments.clear();
  last_ = std::move(manifest);
  ForgetOthers();
  MutexLock lock(&report_mutex_);
  checkpoint_report_ = {.checkpoints = checkpoint_report_.checkpoints + 1,
                        .last_ns = clock_->NowNs() - begin_ns,
                        .last_flip_ns = flip_ns,
                        .last_rest_ns = rest_ns};
  return last_.checkpoint;
}

// What is being exported is kept, too.
void Store::ForgetOthers() {
  uint32_t oldest = last_.previous;
  if (!exported_.empty()) oldest = std::min(oldest, *exported_.begin());
  log_->Forget(oldest);
  if (!options_.read_only) ForgetHeat();
}

CheckpointReport Store::ReportCheckpoints() const {
  MutexLock lock(&report_mutex_);
  return checkpoint_report_;
}

// Makes what is frozen durable, and then the manifest. *in_doubt: nobody knows whether it is there.
Status Store::KeepFrozen(Manifest* manifest, bool* in_doubt) {
  try {
    // Before the log's sync of the directory, which makes its name durable too.
    KeepHeat(manifest);
    EMBANK_ASSIGN_OR_RETURN(manifest->segments, log_->SyncFrozen());
    manifest->next_segment_id = log_->next_segment_id();
    manifest->next_sequence = log_->next_sequence();
    return directory_->Keep(*manifest, in_doubt);
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
}

// What is left for want of memory is done by the next one.
void Store::ForgetHeat() {
  directory_->KeepHeatOf(exported_);
  try {
    SetHeatAside(/*must=*/true);
  } catch (const std::bad_alloc&) {
  }
}

// So much as there is, or may come to be.
bool Store::SetHeatAside(bool must) {
  ReaderMutexLock lock(&tables_mutex_);
  const uint64_t former = heat_room_bytes_.exchange(directory_->HeatBytes());
  if (SetManifestsAside(Describe(), blob_room_bytes_.load(), must)) return true;
  heat_room_bytes_ = former;
  return false;
}

// Without it the checkpoint is whole: where there is no room, it is left out. std::bad_alloc leaves
// this.
void Store::KeepHeat(Manifest* manifest) {
  directory_->NoteHeat(manifest->checkpoint, heat_sketch_->bytes() + HeatRowsBytesMax());
  if (SetHeatAside(/*must=*/false)) SaveHeatOf(manifest);
  directory_->NoteHeat(manifest->checkpoint, manifest->heat.bytes);
  SetHeatAside(/*must=*/true);
}

void Store::SaveHeatOf(Manifest* manifest) {
  const StatusOr<HeatFile> saved = SaveHeat(directory_->files(), HeatName(manifest->checkpoint),
                                            {.index = index_.get(),
                                             .tier = tier_.get(),
                                             .tables = tables_by_id_.get(),
                                             .clock = heat_clock_.get(),
                                             .sketch = heat_sketch_.get(),
                                             .rows_bytes_max = HeatRowsBytesMax()});
  if (saved.ok()) {
    manifest->heat = *saved;
    return;
  }
  Log(LogLevel::kWarning, StrCat("checkpoint ", manifest->checkpoint,
                                 " is made without the heat that rows gained since they "
                                 "were written: ",
                                 saved.status().ToString()));
}

// A table of which a drop has left a part would come back so.
Status Store::CheckWhole() const {
  for (const Table* const table : live_tables_) {
    if (table->CheckAlive().ok()) continue;
    return FailedPreconditionError(StrCat(
        "table \"", table->name(), "\" is dropped in part; drop it again before a checkpoint"));
  }
  if (gate_->checkpoint() < UINT32_MAX) return OkStatus();
  return FailedPreconditionError("the store has had as many checkpoints as it can count");
}

StatusOr<std::vector<std::byte>> Store::CheckpointBlob() const {
  if (log_ == nullptr) return NoPath();
  HurriedLock lock(&checkpoint_mutex_, pace());
  if (last_.checkpoint == 0) return NotFoundError("the store has no checkpoint yet");
  return last_.blob;
}

Status Store::Export(const std::string& directory, ExportProgress progress) {
  if (log_ == nullptr) return NoPath();
  try {
    EMBANK_ASSIGN_OR_RETURN(Manifest manifest, BeginExport());
    const uint32_t checkpoint = manifest.checkpoint;
    Status status;
    try {
      status = ExportCheckpoint({.files = files_, .memory = memory_, .source = directory_->files()},
                                std::move(manifest), directory, progress);
    } catch (const std::bad_alloc&) {
      status = NoMemory();
    }
    EndExport(checkpoint);
    return status;
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
}

// From here to EndExport its segments stay, though checkpoints come.
StatusOr<Manifest> Store::BeginExport() {
  HurriedLock lock(&checkpoint_mutex_, pace());
  if (last_.checkpoint == 0) {
    return FailedPreconditionError(
        "the store has no checkpoint that could be exported; embank_checkpoint makes one");
  }
  EMBANK_ASSIGN_OR_RETURN(Manifest manifest, directory_->Load(last_.checkpoint));
  exported_.insert(last_.checkpoint);
  return manifest;
}

void Store::EndExport(uint32_t checkpoint) {
  HurriedLock lock(&checkpoint_mutex_, pace());
  exported_.erase(exported_.find(checkpoint));
  ForgetOthers();
}

}  // namespace embank
