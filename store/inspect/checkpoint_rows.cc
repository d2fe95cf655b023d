#include "store/inspect/checkpoint_rows.h"

#include <algorithm>

#include "base/check.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/checkpoint/heat_file.h"
#include "tiers/segment/log_record.h"

namespace embank {

StatusOr<std::unique_ptr<CheckpointRows>> CheckpointRows::Open(FileSystem* files,
                                                               const std::string& path) {
  EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<CheckpointDirectory> directory,
                          CheckpointDirectory::OpenToRead(files, path, "directory"));
  std::unique_ptr<CheckpointRows> rows(new CheckpointRows(files, path, std::move(directory)));
  if (rows->kept_.empty()) {
    return DataLossError(StrCat("directory: ", path, " has segments of a store, and no manifest"));
  }
  return rows;
}

CheckpointRows::CheckpointRows(FileSystem* files, std::string path,
                               std::unique_ptr<CheckpointDirectory> directory)
    : files_(files),
      path_(std::move(path)),
      directory_(std::move(directory)),
      kept_(directory_->LoadKept()) {}

Status CheckpointRows::Choose(size_t place, uint64_t heat_bytes_max, uint64_t window_bytes) {
  EMBANK_CHECK(!reader_.has_value() && place < kept_.size());
  EMBANK_CHECK(kept_[place].manifest.ok());
  manifest_ = *std::move(kept_[place].manifest);
  kept_.clear();
  reader_.emplace(directory_->files(), window_bytes);
  reader_->SetOtherPaths(files_, OtherPathsOf(manifest_));
  std::ranges::sort(manifest_.segments, {},
                    [](const SegmentRows& rows) { return rows.header.segment_id; });
  rows_ = CountRows(manifest_);
  const std::vector<RowClass>& classes = manifest_.row_classes;
  for (size_t i = 0; i < manifest_.tables.size(); ++i) {
    const ManifestTable& table = manifest_.tables[i];
    const auto row_class = std::ranges::find(classes, RowClassOf(table.options)) - classes.begin();
    if (tables_.size() <= table.id) tables_.resize(table.id + size_t{1}, {kNoTable, 0, 0});
    tables_[table.id] = {i, static_cast<uint32_t>(row_class), TableHash(table.name)};
  }
  return manifest_.heat.bytes == 0 ? OkStatus() : LoadHeat(heat_bytes_max);
}

Status CheckpointRows::LoadHeat(uint64_t heat_bytes_max) {
  const uint64_t wanted = RoundUp(manifest_.heat.SketchBytesFor(0), HeatSketch::kGrainBytes);
  const uint64_t bytes = std::clamp(RoundDown(heat_bytes_max, HeatSketch::kGrainBytes),
                                    HeatSketch::kGrainBytes, HeatSketch::kBytesMax);
  EMBANK_ASSIGN_OR_RETURN(
      heat_, HeatSketch::Create(SystemMemorySource(), &budget_, std::min(wanted, bytes)));
  const std::string name = HeatName(manifest_.checkpoint);
  Status loaded = embank::LoadHeat(directory_->files(), name, manifest_.heat, heat_.get());
  if (loaded.ok()) return loaded;
  heat_.reset();
  heat_lost_ = std::string(loaded.message());
  return IsResourceExhausted(loaded) ? loaded : OkStatus();
}

Status CheckpointRows::Lost(const SegmentRows& rows, std::string_view what) const {
  return DataLossError(StrCat(path_, ": ", SegmentName(rows.header.segment_id), ": ", what,
                              "; `embank verify` lists the damage, and `embank repair` makes a new "
                              "store of all rows that can be read"));
}

StatusOr<CheckpointRow> CheckpointRows::RowOf(const SegmentRows& rows, uint32_t slot,
                                              std::span<const std::byte> record) const {
  const SegmentHeader& header = rows.header;
  if (!RecordIsWhole({header.store_id, header.segment_id, slot}, record)) {
    return Lost(rows, StrCat("the record in slot ", slot, " is damaged"));
  }
  const RecordHeader row = LoadRecordHeader(record);
  const bool is_of_table = row.table < tables_.size() && tables_[row.table].place != kNoTable &&
                           tables_[row.table].row_class == header.row_class &&
                           row.row_class == header.row_class;
  if (!is_of_table) {
    return Lost(rows, StrCat("the record in slot ", slot, " is of table ", row.table,
                             ", which has no such rows in the checkpoint"));
  }
  const TableOfRows& table = tables_[row.table];
  const KeyHash hash = HashKey(table.hash, row.key);
  const uint32_t logged = std::min(row.heat, kHeatMax);
  return CheckpointRow{.table = table.place,
                       .key = row.key,
                       .hash = hash,
                       .heat = heat_ == nullptr ? logged : std::max(logged, heat_->Get(hash, 0)),
                       .payload = record.subspan(sizeof(RecordHeader))};
}

Status CheckpointRows::VisitSegment(size_t segment, VisitRow visit) {
  EMBANK_CHECK(reader_.has_value() && segment < manifest_.segments.size());
  const SegmentRows& rows = manifest_.segments[segment];
  const Status opened = reader_->Open(rows);
  if (IsNotFound(opened)) return Lost(rows, "the segment is missing");
  EMBANK_RETURN_IF_ERROR(opened);
  // A manifest has no segment without a row.
  uint32_t last = rows.used_slots - 1;
  while (!HasBit(rows.bits, last)) {
    EMBANK_CHECK(last > 0);
    --last;
  }
  if (!reader_->Has(last)) {
    return Lost(rows, StrCat("the segment is cut off after ", reader_->size_bytes(), " bytes"));
  }
  Status status;
  reader_->ReadRecords(rows.bits,
                       [&](uint32_t slot, const Status& read, std::span<const std::byte> record) {
                         if (!status.ok()) return;
                         status = read;
                         if (!status.ok()) return;
                         const StatusOr<CheckpointRow> row = RowOf(rows, slot, record);
                         status = row.ok() ? visit(*row) : row.status();
                       });
  return status;
}

}  // namespace embank
