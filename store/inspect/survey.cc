#include "store/inspect/survey.h"

#include <algorithm>
#include <map>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/checkpoint/checkpoint_directory.h"
#include "store/checkpoint/export.h"
#include "store/checkpoint/segment_reader.h"
#include "tiers/row/row_layout.h"
#include "tiers/segment/log_record.h"

namespace embank {
namespace {

uint64_t LiveRows(const SegmentRows& rows) {
  uint64_t live = 0;
  for (uint32_t slot = 0; slot < rows.used_slots; ++slot) live += HasBit(rows.bits, slot) ? 1 : 0;
  return live;
}

Status TakeTables(const Manifest& manifest, Survey* survey) {
  const std::vector<RowClass>& classes = manifest.row_classes;
  for (const RowClass& row_class : classes) {
    survey->classes.push_back(
        {.row_bytes = row_class.slot_bytes, .record_bytes = RecordBytesOf(row_class.slot_bytes)});
  }
  for (const ManifestTable& table : manifest.tables) {
    const auto found = std::find(classes.begin(), classes.end(), RowClassOf(table.options));
    if (found == classes.end()) {
      return DataLossError(
          StrCat("the manifest is damaged: rows of table \"", table.name, "\" have no class"));
    }
    survey->tables.push_back(
        {.table = table, .row_class = static_cast<uint32_t>(found - classes.begin())});
  }
  return OkStatus();
}

// Counts the rows of a segment by table, from its footer or the manifest.
Status CountRows(const SegmentRows& rows, SegmentReader* reader,
                 std::map<TableId, uint64_t>* counts) {
  std::span<const TableId> tables = rows.tables;
  StatusOr<SegmentFooter> footer = NotFoundError("");
  if (rows.keys.empty()) {
    Status opened = reader->Open(rows);
    if (IsResourceExhausted(opened) || IsPermissionDenied(opened)) return opened;
    if (opened.ok()) footer = reader->ReadFooter();
    if (IsResourceExhausted(footer.status())) return footer.status();
    if (footer.ok()) tables = footer->tables;
  }
  for (uint32_t slot = 0; slot < rows.used_slots; ++slot) {
    if (HasBit(rows.bits, slot)) ++(*counts)[slot < tables.size() ? tables[slot] : kNoTable];
  }
  return OkStatus();
}

Status TakeRows(const Manifest& manifest, SegmentReader* reader, Survey* survey) {
  std::map<TableId, uint64_t> counts;
  for (const SegmentRows& rows : manifest.segments) {
    SurveyedClass& of_class = survey->classes[rows.header.row_class];
    const uint64_t live = LiveRows(rows);
    EMBANK_CHECK(live <= rows.used_slots);
    ++of_class.segments;
    of_class.segment_bytes += rows.header.segment_bytes;
    of_class.live_rows += live;
    of_class.dead_rows += rows.used_slots - live;
    EMBANK_RETURN_IF_ERROR(CountRows(rows, reader, &counts));
  }
  for (SurveyedTable& table : survey->tables) {
    table.rows = counts[table.table.id];
    counts.erase(table.table.id);
  }
  for (const auto& [table, rows] : counts) survey->unknown_rows += rows;
  return OkStatus();
}

// Adds the rows that a checkpoint has in a segment to those of another.
void AddRows(const SegmentRows& rows, std::map<uint64_t, SegmentRows>* segments) {
  SegmentRows& all = segments->try_emplace(rows.header.segment_id, rows).first->second;
  all.bits.resize(std::max(all.bits.size(), rows.bits.size()));
  for (size_t word = 0; word < rows.bits.size(); ++word) all.bits[word] |= rows.bits[word];
  all.used_slots = std::max(all.used_slots, rows.used_slots);
}

Status TakeSpace(const Manifest& newest, const std::map<uint64_t, SegmentRows>& segments,
                 SegmentReader* reader, Survey* survey) {
  survey->segments = segments.size();
  for (const auto& [id, rows] : segments) {
    survey->segment_bytes += rows.header.segment_bytes;
    survey->kept_bytes += LiveRows(rows) * rows.header.record_bytes;
    const Status opened = reader->Open(rows);
    const StatusOr<uint64_t> taken_bytes =
        opened.ok() ? reader->TakenBytes() : StatusOr<uint64_t>(opened);
    const Status& status = taken_bytes.status();
    if (IsResourceExhausted(status) || IsPermissionDenied(status)) return status;
    if (!status.ok()) continue;
    survey->taken_bytes[rows.tier] += *taken_bytes;
  }
  for (const SegmentRows& rows : newest.segments) survey->export_bytes += BytesToCopy(rows);
  return OkStatus();
}

// Loads the manifests that the directory keeps, the newest first, each with its status.
StatusOr<std::vector<KeptCheckpoint>> LoadAnyKept(const CheckpointDirectory& directory,
                                                  const std::string& path) {
  EMBANK_RETURN_IF_ERROR(directory.CheckIsStore("directory"));
  std::vector<KeptCheckpoint> kept = directory.LoadKept();
  if (kept.empty()) {
    return DataLossError(StrCat("path: ", path, " has segments of a store, and no manifest"));
  }
  return kept;
}

// kDataLoss: the newest one is damaged.
StatusOr<std::vector<KeptCheckpoint>> LoadKept(const CheckpointDirectory& directory,
                                               const std::string& path) {
  EMBANK_ASSIGN_OR_RETURN(std::vector<KeptCheckpoint> kept, LoadAnyKept(directory, path));
  EMBANK_RETURN_IF_ERROR(kept[0].manifest.status());
  return kept;
}

StatusOr<Survey> SurveyOnce(FileSystem* files, const CheckpointDirectory& directory,
                            const std::string& path) {
  EMBANK_ASSIGN_OR_RETURN(const std::vector<KeptCheckpoint> kept, LoadKept(directory, path));
  const Manifest& newest = *kept[0].manifest;
  Survey survey = {.directory = path,
                   .store_id = newest.store_id,
                   .seed = newest.seed,
                   .blob_bytes = newest.blob.size(),
                   .rows_lost = newest.rows_lost};
  std::map<uint64_t, SegmentRows> segments;
  for (const KeptCheckpoint& checkpoint : kept) {
    SurveyedCheckpoint surveyed = {.checkpoint = checkpoint.checkpoint};
    if (checkpoint.manifest.ok()) {
      surveyed.segments = checkpoint.manifest->segments.size();
      for (const SegmentRows& rows : checkpoint.manifest->segments) {
        surveyed.rows += LiveRows(rows);
        AddRows(rows, &segments);
      }
    } else {
      surveyed.unreadable = std::string(checkpoint.manifest.status().message());
    }
    survey.checkpoints.push_back(std::move(surveyed));
  }
  EMBANK_RETURN_IF_ERROR(TakeTables(newest, &survey));
  SegmentReader reader(directory.files());
  reader.SetOtherPaths(files, OtherPathsOf(newest));
  EMBANK_RETURN_IF_ERROR(TakeSpace(newest, segments, &reader, &survey));
  EMBANK_RETURN_IF_ERROR(TakeRows(newest, &reader, &survey));
  return survey;
}

// Reads a store's files without a lock, again and again until no checkpoint was made meanwhile.
template <typename Read>
std::invoke_result_t<Read, const CheckpointDirectory&> ReadBesideWriters(FileSystem* files,
                                                                         const std::string& path,
                                                                         Read read) {
  // A survey takes milliseconds; a checkpoint takes as long as its syncs.
  constexpr int kTriesMax = 16;
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointDirectory> directory,
                          CheckpointDirectory::OpenUnlocked(files, path, "directory"));
  for (int i = 0; i < kTriesMax; ++i) {
    auto result = read(*directory);
    // Behind a further checkpoint files are removed, of which some may have been read.
    EMBANK_ASSIGN_OR_RETURN(const bool has_changed, directory->Refresh());
    if (!has_changed) return result;
  }
  return UnavailableError(StrCat("directory: ", path, " had a new checkpoint in each of ",
                                 kTriesMax, " tries to read the last one; try again"));
}

}  // namespace

StatusOr<Survey> SurveyStore(FileSystem* files, const std::string& path) {
  return ReadBesideWriters(files, path, [&](const CheckpointDirectory& directory) {
    return SurveyOnce(files, directory, path);
  });
}

StatusOr<Manifest> ReadNewestManifest(FileSystem* files, const std::string& path) {
  return ReadBesideWriters(
      files, path, [&](const CheckpointDirectory& directory) -> StatusOr<Manifest> {
        EMBANK_ASSIGN_OR_RETURN(std::vector<KeptCheckpoint> kept, LoadKept(directory, path));
        return std::move(kept[0].manifest);
      });
}

StatusOr<std::vector<StatusOr<Manifest>>> ReadKeptManifests(FileSystem* files,
                                                            const std::string& path) {
  using Manifests = std::vector<StatusOr<Manifest>>;
  return ReadBesideWriters(
      files, path, [&](const CheckpointDirectory& directory) -> StatusOr<Manifests> {
        EMBANK_ASSIGN_OR_RETURN(std::vector<KeptCheckpoint> kept, LoadAnyKept(directory, path));
        Manifests manifests;
        bool has_one = false;
        for (KeptCheckpoint& one : kept) {
          has_one |= one.manifest.ok();
          manifests.push_back(std::move(one.manifest));
        }
        if (!has_one) return manifests[0].status();
        return manifests;
      });
}

}  // namespace embank
