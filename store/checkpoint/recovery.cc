#include "store/checkpoint/recovery.h"

#include <map>
#include <new>

#include "base/check.h"
#include "base/no_throw_status.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/executor.h"
#include "base/threads/log.h"
#include "store/checkpoint/heat_file.h"
#include "store/index/index_sizes.h"
#include "store/index/key_index.h"
#include "store/placement/heat_sketch.h"
#include "store/table/table_directory.h"
#include "tiers/logs/row_logs.h"

namespace embank {
namespace {

// Memory was reserved for all rows: a damaged footer usually costs many.
Status NoPlace(uint64_t segment_id, uint64_t dram_bytes) {
  return NoThrowStatus(StatusCode::kResourceExhausted, [&] {
    return StrCat(SegmentName(segment_id),
                  ": no place in the index for one of its rows; dram_bytes is ", dram_bytes,
                  ", or too many rows are said to have the same key");
  });
}

Status RecoverTables(Catalog* catalog, const Manifest& manifest) {
  MutexLock lock(catalog->mutex());
  for (const RowClass& row_class : manifest.row_classes) {
    EMBANK_RETURN_IF_ERROR(catalog->AddRowClass(row_class));
  }
  for (const ManifestTable& table : manifest.tables) {
    EMBANK_RETURN_IF_ERROR(
        catalog->Add(table.id, table.name, table.options, table.gradient_calls).status());
  }
  return OkStatus();
}

Status RecoverSegment(const StoreContext& store, const SegmentRows& rows, uint32_t checkpoint) {
  Status status;
  std::map<Table*, int64_t> counts;
  const auto insert = [&](Location location, TableId owner, Key key) {
    EMBANK_CHECK(location.tier() == rows.tier);
    Table* const table = store.tables->Get(owner);
    const bool is_owner = table != nullptr && table->slot_class() == rows.header.row_class;
    if (!is_owner && status.ok()) {
      status = DataLossError(StrCat(SegmentName(rows.header.segment_id), ": a row of table ", owner,
                                    ", which has no such rows in the checkpoint"));
    }
    if (!status.ok()) return;
    const KeyHash hash = table->HashOf(key);
    KeyIndex::Shard* const shard = store.index->shard(KeyIndex::ShardOf(hash));
    MutexLock lock(&shard->mutex);
    status = store.index->capacity()->ReserveOne(shard, hash);
    if (!status.ok()) status = NoPlace(rows.header.segment_id, store.options->dram_bytes);
    if (!status.ok()) return;
    store.index->Insert(shard, hash, location);
    ++counts[table];
  };
  const LogOwners::Visit visit = insert;
  RowLog* const log = store.logs->OfTier(rows.tier);
  if (log == nullptr) return OkStatus();  // it has no row
  const Status adopted = log->recovery().Adopt(rows, checkpoint, &visit);
  for (const auto& [table, count] : counts) {
    table->AddRows(count);
    table->mover()->rows().CountInLog(*table, rows.tier, count);
  }
  EMBANK_RETURN_IF_ERROR(adopted);
  return status;
}

// Rows come in the order of their hashes: in the order of the log, a growing index would find some
// places full.
Status ReservePlaces(const StoreContext& store, const Manifest& manifest) {
  const uint64_t rows = CountRows(manifest);
  if (store.index->capacity()->ReserveRows(rows).ok()) return OkStatus();
  return ResourceExhaustedError(
      StrCat("dram_bytes is ", store.options->dram_bytes, "; the index of the ", rows, " rows of ",
             store.options->path, " needs ", IndexBytesMax(rows), " bytes"));
}

Status RecoverRows(const StoreContext& store, const Manifest& manifest) {
  EMBANK_RETURN_IF_ERROR(ReservePlaces(store, manifest));
  Mutex mutex;
  Status status;
  store.executor->ParallelFor(static_cast<uint32_t>(manifest.segments.size()), [&](uint32_t i) {
    {
      MutexLock lock(&mutex);
      if (!status.ok()) return;
    }
    Status recovered;
    try {
      recovered = RecoverSegment(store, manifest.segments[i], manifest.checkpoint);
    } catch (const std::bad_alloc&) {
      recovered = NoMemory();
    }
    if (recovered.ok()) return;
    MutexLock lock(&mutex);
    status.Update(recovered);
  });
  return status;
}

// Adds the other ways to the rows to the message of a kDataLoss.
Status WithOtherWays(Status recovered, const StoreContext& store, std::span<const Manifest> kept) {
  if (!IsDataLoss(recovered)) return recovered;
  const bool has_other = kept.size() > 1 && !store.options->previous;
  return DataLossError(StrCat(recovered.message(),
                              has_other ? StrCat("; checkpoint ", kept.back().checkpoint,
                                                 " can be opened as the previous one")
                                        : "",
                              "; `embank repair` makes a new store of all rows that can be read"));
}

// Heat costs no row.
void RecoverHeat(const StoreContext& store, Directory* files, const Manifest& manifest) {
  if (manifest.heat.bytes == 0) return;
  const Status loaded =
      LoadHeat(files, HeatName(manifest.checkpoint), manifest.heat, store.heat_sketch);
  if (loaded.ok()) return;
  Log(LogLevel::kWarning,
      StrCat("what heat rows gained since they were written is lost: ", loaded.ToString()));
}

// The segments of a checkpoint that is not opened take space all the same. Many may fail for one
// reason: one line of the log is enough.
void AdoptSegments(RowLogs* logs, const Manifest& manifest) {
  Status first;
  uint64_t failed = 0;
  for (const SegmentRows& rows : manifest.segments) {
    RowLog* const log = logs->OfTier(rows.tier);
    const Status adopted = log == nullptr
                               ? FailedPreconditionError("it has rows in PMem, which is not open")
                               : log->recovery().Adopt(rows, manifest.checkpoint, nullptr);
    if (adopted.ok()) continue;
    first.Update(adopted);
    ++failed;
  }
  if (failed == 0) return;
  Log(LogLevel::kWarning,
      StrCat("checkpoint ", manifest.checkpoint, ", which is not opened, has ", failed,
             failed == 1 ? " segment" : " segments", " that cannot be used: ", first.ToString()));
}

}  // namespace

Status Recover(const StoreContext& store, Directory* files, Catalog* catalog,
               const OpenedManifests& manifests) {
  const Manifest& opened = manifests.opened();
  EMBANK_RETURN_IF_ERROR(RecoverTables(catalog, opened));
  EMBANK_RETURN_IF_ERROR(WithOtherWays(RecoverRows(store, opened), store, manifests.kept()));
  RecoverHeat(store, files, opened);
  // A read-only store needs no space.
  if (store.options->read_only) return OkStatus();
  for (const Manifest& other : manifests.kept().subspan(1)) AdoptSegments(store.logs, other);
  return OkStatus();
}

}  // namespace embank
