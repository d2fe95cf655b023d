#include "store/checkpoint/checkpoints.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/log.h"
#include "store/placement/compaction.h"

namespace embank {
namespace {

CheckpointFacts FactsOf(const Manifest& manifest) {
  CheckpointFacts facts = {.checkpoint = manifest.checkpoint,
                           .unix_ns = manifest.unix_ns,
                           .bytes = manifest.heat.bytes + manifest.blob.size(),
                           .blob_bytes = manifest.blob.size()};
  for (const SegmentRows& segment : manifest.segments) {
    const uint64_t rows = segment.CountRows();
    facts.rows += rows;
    facts.bytes += rows * segment.header.record_bytes;
  }
  return facts;
}

Status NoCheckpoint() { return NotFoundError("the store has no checkpoint yet"); }

}  // namespace

Checkpoints::Checkpoints(const CheckpointParts& parts, const OpenedManifests& manifests)
    : parts_(parts),
      space_(*parts.store->options, parts.store->logs, parts.segment_bytes),
      heat_(*parts.store, parts.directory, &space_, parts.catalog),
      last_(manifests.opened()),
      rows_lost_before_(last_.rows_lost),
      facts_(FactsOf(manifests.opened())) {
  last_.segments.clear();
  report_.rows_lost = last_.rows_lost;
  for (const Manifest& manifest : manifests.kept()) {
    if (manifest.heat.bytes > 0)
      parts_.directory->NoteHeat(manifest.checkpoint, manifest.heat.bytes);
  }
  {
    MutexLock lock(parts_.catalog->mutex());
    space_.Accept(DescribeTables(*parts_.catalog), last_.blob.size(),
                  parts_.directory->HeatBytes());
  }
  if (!parts_.store->options->read_only) RemoveOrphans(manifests);
}

// The files of a damaged manifest are not known: nothing is removed then.
void Checkpoints::RemoveOrphans(const OpenedManifests& manifests) {
  if (manifests.are_all()) parts_.directory->RemoveOrphans(manifests.kept());
  if (parts_.pmem == nullptr) return;
  const uint64_t stay_bytes = parts_.pmem->RemoveOrphans(manifests.kept(), manifests.are_all());
  LogSegments& segments = parts_.store->logs->pmem()->segments();
  MutexLock lock(segments.mutex());
  segments.mutable_accounts().AddTaken(static_cast<int64_t>(stay_bytes));
}

StatusOr<uint32_t> Checkpoints::Make(std::span<const std::byte> blob,
                                     FunctionRef<void()> after_barrier) {
  if (blob.size() > kBlobBytesMax) {
    return InvalidArgumentError(StrCat("blob_bytes: ", blob.size(), ", at most ", kBlobBytesMax));
  }
  if (parts_.store->options->read_only) return OpenedReadOnly();
  HurriedLock lock(&mutex_, pace());
  try {
    // CheckpointDirectory::Keep looks again; here nothing has been done yet.
    EMBANK_RETURN_IF_ERROR(parts_.directory->lock().Check());
    EMBANK_RETURN_IF_ERROR(CheckPmem());
    // Before compaction takes what is left.
    EMBANK_RETURN_IF_ERROR(ReserveForBlob(blob.size()));
    const CheckpointWait::UnderWay under_way(parts_.store->gate->checkpoint_wait());
    // The lowest log first, since rows of the others go there.
    const std::span compactions = parts_.store->compactions;
    EMBANK_CHECK(!compactions.empty());
    for (size_t i = compactions.size(); i-- > 0;) {
      // Without a spare segment, batches put no rows into PMem, and nothing else empties its log.
      compactions[i]->CompactBeforeCheckpoint();
      if (!Seeded(SeededBug::kEvacuationLeftOut)) compactions[i]->Evacuate();
    }
    parts_.store->index->capacity()->Shrink();
    return MakeLocked(blob, after_barrier);
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
}

// Where the directory of PMem is gone, or may be somebody else's, its rows leave it.
Status Checkpoints::CheckPmem() {
  if (parts_.pmem == nullptr || HasLostPmem()) return OkStatus();
  const RowLog& log = *parts_.store->logs->pmem();
  Status in_place = parts_.pmem->CheckInPlace([&] { return log.segments().Names(); });
  if (!IsNotFound(in_place)) return in_place;
  Log(LogLevel::kError,
      StrCat("PMem is lost: ", in_place.message(), "; its ", log.segments().live_rows(),
             " records are moved to the SSD, which takes all rows from now on"));
  parts_.store->logs->pmem()->writer().Lose(UnavailableError(in_place.message()));
  return OkStatus();
}

bool Checkpoints::HasLostPmem() const {
  return parts_.pmem != nullptr && parts_.store->logs->pmem()->writer().is_lost();
}

Status Checkpoints::ReserveForBlob(uint64_t bytes) {
  ReaderMutexLock lock(parts_.catalog->mutex());
  return space_.ReserveForBlob(DescribeTables(*parts_.catalog), bytes);
}

// Until the barrier nothing has happened; after it, the gate and the log must learn the end.
StatusOr<uint32_t> Checkpoints::MakeLocked(std::span<const std::byte> blob,
                                           FunctionRef<void()> after_barrier) {
  const StoreContext& store = *parts_.store;
  const uint64_t begin_ns = store.clock->NowNs();
  uint64_t barrier_ns = 0;
  EMBANK_ASSIGN_OR_RETURN(Manifest manifest, RunBarrier(blob, &barrier_ns));
  after_barrier();
  const FlushPassReport pass = RunFlushPass(store);
  Status status = store.gate->EndFlushPass();
  bool in_doubt = false;
  if (status.ok()) status = KeepFrozen(&manifest, &in_doubt);
  if (Seeded(SeededBug::kManifestBeforeSegments)) status.Update(store.logs->Sync());
  store.logs->Thaw(status.ok() || in_doubt);
  if (!status.ok()) {
    heat_.RemoveAllExcept(exported_);
    return status;
  }
  if (parts_.pmem != nullptr && !HasLostPmem()) parts_.pmem->MarkCompleted(manifest.checkpoint);
  const CheckpointFacts facts = FactsOf(manifest);
  manifest.segments.clear();
  last_ = std::move(manifest);
  ReleaseOthers();
  MutexLock lock(&report_mutex_);
  facts_ = facts;
  report_ = {.checkpoints = report_.checkpoints + 1,
             .visited_slots = report_.visited_slots + pass.visited_slots,
             .flushed_rows = report_.flushed_rows + pass.flushed_rows,
             .last_ns = store.clock->NowNs() - begin_ns,
             .last_barrier_ns = barrier_ns,
             .last_rest_ns = pass.rest_ns,
             .rows_lost = last_.rows_lost};
  return last_.checkpoint;
}

// A table that a drop has left in part would come back like that.
Status Checkpoints::CheckWhole(std::span<Table* const> tables) const {
  for (const Table* const table : tables) {
    if (table->CheckAlive().ok()) continue;
    return FailedPreconditionError(StrCat(
        "table \"", table->name(), "\" is dropped in part; drop it again before a checkpoint"));
  }
  if (parts_.store->gate->checkpoint() < UINT32_MAX) return OkStatus();
  return FailedPreconditionError("the store has had as many checkpoints as it can count");
}

// Freezes the log between two batches of changes, and describes the tables as they are then.
StatusOr<Manifest> Checkpoints::RunBarrier(std::span<const std::byte> blob, uint64_t* barrier_ns) {
  // No table is created or dropped while there is no batch.
  ReaderMutexLock lock(parts_.catalog->mutex());
  const std::span<Table* const> tables = parts_.catalog->live();
  EMBANK_RETURN_IF_ERROR(CheckWhole(tables));
  Manifest manifest = DescribeTables(*parts_.catalog);
  manifest.store_id = last_.store_id;
  manifest.seed = last_.seed;
  manifest.previous = last_.checkpoint;
  EMBANK_RETURN_IF_ERROR(space_.ReserveForBlob(manifest, blob.size()));
  manifest.blob.assign(blob.begin(), blob.end());
  uint64_t begin_ns = 0;
  parts_.store->gate->RunBarrier(
      [&](uint32_t checkpoint) {
        manifest.checkpoint = checkpoint;
        manifest.unix_ns = parts_.wall_clock->UnixNs();
        // The update rules of the last batches, and their number.
        for (size_t i = 0; i < tables.size(); ++i) {
          manifest.tables[i].options = tables[i]->options();
          manifest.tables[i].gradient_calls = tables[i]->counters().gradient_calls;
        }
        parts_.store->logs->Freeze(checkpoint);
      },
      [&] { begin_ns = parts_.store->clock->NowNs(); });
  EMBANK_CHECK(manifest.checkpoint > last_.checkpoint);
  *barrier_ns = parts_.store->clock->NowNs() - begin_ns;
  return manifest;
}

// Makes the frozen rows durable, and then the manifest. *in_doubt: it is unknown whether the
// manifest is there.
Status Checkpoints::KeepFrozen(Manifest* manifest, bool* in_doubt) {
  RowLogs* const logs = parts_.store->logs;
  try {
    // Before the log's sync of the directory, which makes its name durable too.
    heat_.Save(manifest);
    uint64_t lost_rows = 0;
    EMBANK_ASSIGN_OR_RETURN(manifest->segments, logs->SyncFrozen(&lost_rows));
    TellLost(lost_rows);
    manifest->rows_lost = rows_lost_before_ + lost_rows;
    DescribeSegments(manifest);
    EMBANK_CHECK(manifest->next_sequence >= last_.next_sequence);
    return parts_.directory->Keep(*manifest, in_doubt);
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
}

// Logging is best effort.
void Checkpoints::TellLost(uint64_t lost_rows) const {
  if (rows_lost_before_ + lost_rows <= last_.rows_lost) return;
  Log(LogLevel::kError, StrCat(lost_rows,
                               " rows in PMem that is gone cannot be read, and are in no "
                               "checkpoint any more"));
}

// The numbers from which on segments and records are new, and where PMem is. A store without PMem
// may have had some.
void Checkpoints::DescribeSegments(Manifest* manifest) const {
  manifest->next_segment_ids = last_.next_segment_ids;
  for (RowLog* const log : parts_.store->logs->all()) {
    uint64_t& next = manifest->next_segment_ids[log->options().tier];
    EMBANK_CHECK(log->segments().next_segment_id() >= next);
    next = log->segments().next_segment_id();
    manifest->next_sequence = std::max(manifest->next_sequence, log->appender().next_sequence());
  }
  if (parts_.pmem == nullptr) return;
  manifest->directories[Tier::kPmem] = {parts_.pmem->path(), parts_.pmem->id()};
}

// Gives up what neither the kept checkpoints have nor those that are being exported.
void Checkpoints::ReleaseOthers() {
  uint32_t oldest = last_.previous;
  if (!exported_.empty()) oldest = std::min(oldest, *exported_.begin());
  parts_.store->logs->ReleaseOlderThan(oldest);
  if (!parts_.store->options->read_only) heat_.RemoveAllExcept(exported_);
}

CheckpointReport Checkpoints::Report() const {
  MutexLock lock(&report_mutex_);
  return report_;
}

StatusOr<std::vector<std::byte>> Checkpoints::Blob() const {
  HurriedLock lock(&mutex_, pace());
  if (last_.checkpoint == 0) return NoCheckpoint();
  return last_.blob;
}

StatusOr<CheckpointFacts> Checkpoints::Facts() const {
  MutexLock lock(&report_mutex_);
  if (facts_.checkpoint == 0) return NoCheckpoint();
  return facts_;
}

Status Checkpoints::Export(const std::string& directory, ExportProgress progress) {
  try {
    EMBANK_ASSIGN_OR_RETURN(Manifest manifest, BeginExport());
    const uint32_t checkpoint = manifest.checkpoint;
    ExportParts parts = {.files = parts_.files, .memory = parts_.memory, .sources = {}};
    for (const RowLog* const log : parts_.store->logs->all()) {
      parts.sources[log->options().tier] = log->options().directory;
    }
    Status status;
    try {
      status = ExportCheckpoint(parts, std::move(manifest), directory, progress);
    } catch (const std::bad_alloc&) {
      status = NoMemory();
    }
    EndExport(checkpoint);
    return status;
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
}

// From here to EndExport its segments stay, also when further checkpoints are made.
StatusOr<Manifest> Checkpoints::BeginExport() {
  HurriedLock lock(&mutex_, pace());
  if (last_.checkpoint == 0) {
    return FailedPreconditionError(
        "the store has no checkpoint that could be exported; embank_checkpoint makes one");
  }
  EMBANK_ASSIGN_OR_RETURN(Manifest manifest, parts_.directory->Load(last_.checkpoint));
  exported_.insert(last_.checkpoint);
  return manifest;
}

void Checkpoints::EndExport(uint32_t checkpoint) {
  HurriedLock lock(&mutex_, pace());
  const auto exported = exported_.find(checkpoint);
  EMBANK_CHECK(exported != exported_.end());
  exported_.erase(exported);
  ReleaseOthers();
}

}  // namespace embank
