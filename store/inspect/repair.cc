#include "store/inspect/repair.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "base/memory/aligned_buffer.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/log.h"
#include "store/checkpoint/checkpoint_directory.h"
#include "store/checkpoint/segment_reader.h"
#include "tiers/row/row_layout.h"
#include "tiers/segment/log_record.h"

namespace embank {
namespace {

constexpr uint64_t kWriteBytes = uint64_t{1} << 20;

// Whether an error is about the source; otherwise it hinders the repair.
bool IsOfTheSource(const Status& status) {
  return IsDataLoss(status) || IsNotFound(status) || IsOutOfRange(status) || IsUnavailable(status);
}

// The target directory of a repair. Its files are removed unless it becomes a store.
class RepairTarget {
 public:
  RepairTarget(FileSystem* files, const std::string& path) : files_(files), path_(path) {}

  Status Open() {
    EMBANK_ASSIGN_OR_RETURN(directory_, CheckpointDirectory::OpenVacant(files_, path_));
    return OkStatus();
  }
  StatusOr<std::unique_ptr<File>> Make(const std::string& name) {
    std::string made = name;
    made_.reserve(made_.size() + 1);
    EMBANK_ASSIGN_OR_RETURN(
        std::unique_ptr<File> file,
        directory_->files()->Open(name, FileAccess::kCreate, FileCaching::kDirect));
    made_.push_back(std::move(made));
    return file;
  }
  // Removes the file that was made last.
  Status RemoveLast() {
    EMBANK_RETURN_IF_ERROR(directory_->files()->Remove(made_.back()));
    made_.pop_back();
    return OkStatus();
  }
  // No manifest may outlive a crash without its segments.
  Status Keep(const Manifest& manifest) {
    EMBANK_RETURN_IF_ERROR(directory_->files()->Sync());
    draft_ = ManifestName(manifest.checkpoint) + ".new";
    return directory_->Keep(manifest, &in_doubt_);
  }
  // Cleans up after an error. A file that a crash may still turn into a store stays.
  void Remove() {
    if (in_doubt_) return;
    try {
      for (const std::string& name : made_) {
        const Status removed = directory_->files()->Remove(name);
        if (removed.ok()) continue;
        Log(LogLevel::kWarning, StrCat("left by a repair: ", removed.ToString()));
      }
      // The file stays if memory was missing while it was replaced.
      if (!draft_.empty()) directory_->files()->Remove(draft_).IgnoreError();
      directory_->Abandon();
    } catch (const std::bad_alloc&) {
    }
  }

 private:
  FileSystem* const files_;
  const std::string path_;
  std::vector<std::string> made_;
  std::string draft_;
  std::unique_ptr<CheckpointDirectory> directory_;
  bool in_doubt_ = false;
};

// The tables of a checkpoint, and the counts of their rows.
class RepairTally {
 public:
  RepairTally(const Manifest& manifest, RepairReport* report)
      : manifest_(manifest), report_(report) {
    for (const ManifestTable& table : manifest.tables) {
      const std::vector<RowClass>& classes = manifest.row_classes;
      const auto row_class =
          std::find(classes.begin(), classes.end(), RowClassOf(table.options)) - classes.begin();
      places_[table.id] = {static_cast<uint32_t>(row_class), report->tables.size()};
      report->tables.push_back({.name = table.name});
    }
  }

  // Says why a whole record is no row of the checkpoint; "": it is one.
  std::string Contradiction(const RecordHeader& record, uint32_t row_class) const {
    const auto found = places_.find(record.table);
    if (record.row_class != row_class || found == places_.end() ||
        found->second.row_class != row_class) {
      return StrCat("the record is of table ", record.table,
                    ", which has no such rows in the checkpoint");
    }
    if (record.sequence >= manifest_.next_sequence || record.checkpoint > manifest_.checkpoint) {
      return "the record is newer than the checkpoint";
    }
    return "";
  }
  void Save(TableId table) {
    ++report_->rows_saved;
    ++report_->tables[places_.at(table).place].rows_saved;
  }
  // `owner`: if it is known.
  void Lose(const std::string& file, const std::string& what, uint32_t row_class,
            const std::optional<SlotOwner>& owner) {
    ++report_->rows_lost;
    const TableId table = owner.has_value() ? owner->table : OnlyTableOf(row_class);
    const auto found = places_.find(table);
    std::string name;
    if (found != places_.end()) {
      RepairedTable& of_table = report_->tables[found->second.place];
      name = of_table.name;
      ++of_table.rows_lost;
    }
    RepairLoss* const loss = LossOf(file, what, name, owner.has_value());
    ++loss->rows;
    if (owner.has_value()) loss->keys.push_back(owner->key);
  }

 private:
  struct Place {
    uint32_t row_class;
    size_t place;  // in the report
  };

  // Returns the table whose rows are of the class; kNoTable: there are several.
  TableId OnlyTableOf(uint32_t row_class) const {
    TableId only = kNoTable;
    for (const auto& [id, place] : places_) {
      if (place.row_class != row_class) continue;
      if (only != kNoTable) return kNoTable;
      only = id;
    }
    return only;
  }

  // Adds one more lost row: to one of the last losses, if that has the same cause.
  RepairLoss* LossOf(const std::string& file, const std::string& what, const std::string& table,
                     bool has_key) {
    constexpr size_t kLooksBackMax = 8;
    const auto takes = [&](const RepairLoss& loss) {
      return loss.file == file && loss.what == what && loss.table == table &&
             has_key == !loss.keys.empty() && loss.keys.size() < kKeysOfLossMax;
    };
    std::vector<RepairLoss>& losses = report_->losses;
    for (size_t i = losses.size(); i > 0 && losses.size() - i < kLooksBackMax; --i) {
      if (takes(losses[i - 1])) return &losses[i - 1];
    }
    if (takes(untold_)) return &untold_;
    ++report_->loss_count;
    RepairLoss loss = {.file = file, .what = what, .table = table};
    if (losses.size() == kLossesToldMax) {
      untold_ = std::move(loss);
      return &untold_;
    }
    losses.push_back(std::move(loss));
    return &losses.back();
  }

  const Manifest& manifest_;
  RepairReport* const report_;
  std::map<TableId, Place> places_;
  RepairLoss untold_;  // the last of those for which the report has no place
};

// One segment: its readable rows, and the segment of the target with them.
class SegmentRepair {
 public:
  SegmentRepair(const SegmentRows& rows, SegmentReader* reader, RepairTally* tally)
      : rows_(rows),
        name_(SegmentName(rows.header.segment_id)),
        geometry_(SegmentGeometry::Of(rows.header.record_bytes, rows.header.segment_bytes)),
        reader_(reader),
        tally_(tally),
        keys_(rows.used_slots),
        tables_(rows.used_slots, kNoTable) {}

  // Reads the readable rows, and counts the others. Returns the status of an error that hinders it.
  Status Read() {
    if (!rows_.keys.empty()) owners_ = {rows_.keys, rows_.tables};
    Status opened = reader_->Open(rows_);
    if (!opened.ok()) {
      if (!IsOfTheSource(opened)) return opened;
      LoseFrom(0, IsNotFound(opened) ? "the segment is missing" : opened.message());
      return OkStatus();
    }
    EMBANK_RETURN_IF_ERROR(FindOwners());
    uint32_t end = rows_.used_slots;
    while (end > 0 && !reader_->Has(end - 1)) --end;
    EMBANK_ASSIGN_OR_RETURN(image_, AlignedBuffer::Create(SystemMemorySource(), &budget_,
                                                          ImageBytes(std::max(end, 1u))));
    std::vector<uint64_t> wanted(RoundUp(geometry_.slots, 64) / 64);
    for (uint32_t slot = 0; slot < end; ++slot) {
      if (HasBit(rows_.bits, slot)) wanted[slot / 64] |= uint64_t{1} << (slot % 64);
    }
    Status hindered;
    reader_->ReadRecords(wanted,
                         [&](uint32_t slot, const Status& read, std::span<const std::byte> record) {
                           if (!read.ok() && !IsOfTheSource(read)) hindered.Update(read);
                           TakeRecord(slot, read, record);
                         });
    EMBANK_RETURN_IF_ERROR(hindered);
    LoseFrom(end, StrCat("the segment is cut off after ", reader_->size_bytes(), " bytes"));
    return OkStatus();
  }

  // Writes the rows that were read, durably except the file's name; nothing if there are none.
  // *saved describes them for a manifest.
  Status Write(RepairTarget* target, std::vector<SegmentRows>* saved, uint64_t* written_bytes) {
    if (end_ == 0) return OkStatus();
    EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, target->Make(name_));
    EncodeSegmentHeader(rows_.header, {image_.data(), kBlockBytes});
    const uint64_t bytes = ImageBytes(end_);
    for (uint64_t offset = 0; offset < bytes; offset += kWriteBytes) {
      const uint64_t count = std::min(kWriteBytes, bytes - offset);
      EMBANK_RETURN_IF_ERROR(file->Write(offset, {image_.data() + offset, count}));
    }
    EMBANK_ASSIGN_OR_RETURN(
        const AlignedBuffer footer,
        AlignedBuffer::Create(SystemMemorySource(), &budget_, geometry_.footer_bytes));
    const std::span footer_bytes(footer.data(), geometry_.footer_bytes);
    keys_.resize(end_);
    tables_.resize(end_);
    EncodeSegmentFooter(rows_.header, {keys_, tables_}, footer_bytes);
    EMBANK_RETURN_IF_ERROR(file->Write(geometry_.footer_offset, footer_bytes));
    EMBANK_RETURN_IF_ERROR(file->Sync());
    *written_bytes += bytes + footer_bytes.size();
    SegmentRows rows = {.header = rows_.header,
                        .tier = Tier::kSsd,
                        .used_slots = end_,
                        .bits = std::vector<uint64_t>(RoundUp(end_, 64) / 64),
                        .keys = {},
                        .tables = {}};
    for (uint32_t slot = 0; slot < end_; ++slot) {
      if (tables_[slot] != kNoTable) rows.bits[slot / 64] |= uint64_t{1} << (slot % 64);
    }
    saved->push_back(std::move(rows));
    return OkStatus();
  }

 private:
  // Returns the bytes of the header and so many slots, in whole blocks.
  uint64_t ImageBytes(uint32_t slots) const {
    return RoundUp(geometry_.OffsetOf(slots), kBlockBytes);
  }

  // Owners come from the footer or the manifest, else only from records.
  Status FindOwners() {
    const StatusOr<SegmentFooter> footer = reader_->ReadFooter();
    if (footer.ok() && footer->keys.size() >= rows_.used_slots) owners_ = *footer;
    return footer.ok() || IsOfTheSource(footer.status()) ? OkStatus() : footer.status();
  }

  std::optional<SlotOwner> OwnerOf(uint32_t slot) const {
    if (owners_.keys.empty() || owners_.tables[slot] == kNoTable) return std::nullopt;
    return SlotOwner{owners_.tables[slot], owners_.keys[slot]};
  }

  void TakeRecord(uint32_t slot, const Status& read, std::span<const std::byte> record) {
    const SegmentHeader& header = rows_.header;
    if (!read.ok()) return Lose(slot, std::string(read.message()));
    if (!RecordIsWhole({header.store_id, header.segment_id, slot}, record)) {
      return Lose(slot, "the record is damaged");
    }
    const RecordHeader row = LoadRecordHeader(record);
    const std::optional<SlotOwner> owner = OwnerOf(slot);
    if (owner.has_value() && (owner->table != row.table || owner->key != row.key)) {
      return Lose(slot, "the record is another row's than the segment says");
    }
    const std::string wrong = tally_->Contradiction(row, header.row_class);
    if (!wrong.empty()) return Lose(slot, wrong);
    std::memcpy(image_.data() + geometry_.OffsetOf(slot), record.data(), record.size());
    keys_[slot] = row.key;
    tables_[slot] = row.table;
    end_ = slot + 1;
    tally_->Save(row.table);
  }

  void Lose(uint32_t slot, const std::string& what) {
    tally_->Lose(name_, what, rows_.header.row_class, OwnerOf(slot));
  }
  // Lists all living records from a slot on.
  void LoseFrom(uint32_t first, std::string_view what) {
    for (uint32_t slot = first; slot < rows_.used_slots; ++slot) {
      if (HasBit(rows_.bits, slot)) Lose(slot, std::string(what));
    }
  }

  const SegmentRows& rows_;
  const std::string name_;
  const SegmentGeometry geometry_;
  SegmentReader* const reader_;
  RepairTally* const tally_;
  MemoryBudget budget_{0};
  SegmentFooter owners_ = {};  // none: only the records tell
  AlignedBuffer image_;        // of the target's segment
  std::vector<Key> keys_;      // of saved rows
  std::vector<TableId> tables_;
  uint32_t end_ = 0;  // behind the last of them
};

class Repair {
 public:
  Repair(FileSystem* files, const RepairOptions& options, RepairProgress progress)
      : files_(files), options_(options), progress_(progress), target_(files, options.target) {
    report_.directory = options.directory;
    report_.target = options.target;
  }

  StatusOr<RepairReport> Run() {
    EMBANK_ASSIGN_OR_RETURN(
        source_, CheckpointDirectory::OpenToRead(files_, options_.directory, "directory"));
    reader_.emplace(source_->files());
    EMBANK_ASSIGN_OR_RETURN(const Manifest manifest, ChooseManifest());
    const bool is_given = !options_.pmem_path.empty();
    reader_->SetOtherPaths(files_,
                           is_given ? std::vector{options_.pmem_path} : OtherPathsOf(manifest));
    EMBANK_RETURN_IF_ERROR(target_.Open());
    Status status;
    try {
      status = Fill(manifest);
    } catch (const std::bad_alloc&) {
      status = NoMemory();
    }
    if (!status.ok()) {
      target_.Remove();
      return status;
    }
    return std::move(report_);
  }

 private:
  StatusOr<Manifest> ChooseManifest() {
    std::vector<KeptCheckpoint> kept = source_->LoadKept();
    if (kept.empty()) {
      return DataLossError(
          StrCat("directory: ", options_.directory, " has segments of a store, and no manifest"));
    }
    const Status newest = kept[0].manifest.status();
    const bool is_newest = newest.ok() && !options_.previous;
    // An error of the target tells nothing about the source.
    if (!newest.ok() && !IsOfTheSource(newest)) return newest;
    if (!is_newest && kept.size() == 1) {
      if (!newest.ok()) return newest;
      return FailedPreconditionError(
          StrCat("previous: ", options_.directory, " has one checkpoint, and none before it"));
    }
    StatusOr<Manifest> chosen = std::move(kept[is_newest ? 0 : 1].manifest);
    if (!chosen.ok()) {
      return Status(chosen.status().code(),
                    newest.ok() ? std::string(chosen.status().message())
                                : StrCat(newest.message(),
                                         "; the previous one: ", chosen.status().message()));
    }
    report_.is_newest = is_newest;
    report_.checkpoint = chosen->checkpoint;
    if (!newest.ok()) {
      report_.newest_lost = std::string(newest.message());
    } else if (!is_newest) {
      report_.newest_lost = "the previous checkpoint was asked for";
    }
    return chosen;
  }

  Status Fill(const Manifest& manifest) {
    RepairTally tally(manifest, &report_);
    std::vector<SegmentRows> saved;
    for (const SegmentRows& rows : manifest.segments) {
      EMBANK_RETURN_IF_ERROR(CountDone(manifest));
      SegmentRepair segment(rows, &*reader_, &tally);
      EMBANK_RETURN_IF_ERROR(segment.Read());
      EMBANK_RETURN_IF_ERROR(segment.Write(&target_, &saved, &report_.written_bytes));
      ++report_.segments;
    }
    EMBANK_RETURN_IF_ERROR(CountDone(manifest));
    Manifest repaired = {.store_id = manifest.store_id,
                         .checkpoint = manifest.checkpoint,
                         .previous = manifest.checkpoint,
                         .seed = manifest.seed,
                         .next_segment_ids = manifest.next_segment_ids,
                         .next_sequence = manifest.next_sequence,
                         .row_classes = manifest.row_classes,
                         .tables = manifest.tables,
                         .segments = std::move(saved),  // on the SSD, all of them
                         .directories = {},
                         .rows_lost = manifest.rows_lost + report_.rows_lost,
                         .unix_ns = manifest.unix_ns,
                         .heat = {},
                         .blob = manifest.blob};
    EMBANK_RETURN_IF_ERROR(SaveHeat(manifest, &repaired));
    return target_.Keep(repaired);
  }

  Status CountDone(const Manifest& manifest) {
    if (progress_(report_.segments, manifest.segments.size())) return OkStatus();
    return CancelledError("repair was cancelled by its progress function");
  }

  // Heat costs no row.
  Status SaveHeat(const Manifest& manifest, Manifest* repaired) {
    if (manifest.heat.bytes == 0) return OkStatus();
    const std::string name = HeatName(manifest.checkpoint);
    Status lost;
    EMBANK_RETURN_IF_ERROR(CopyHeat(manifest.heat, name, &lost));
    if (lost.ok()) {
      repaired->heat = manifest.heat;
      report_.written_bytes += manifest.heat.bytes;
    } else {
      report_.heat_lost = StrCat(name, ": ", lost.message());
    }
    return OkStatus();
  }

  // Copies heat durably, except the file's name. *lost: why there is no copy; that is the source's
  // fault.
  Status CopyHeat(const HeatFile& heat, const std::string& name, Status* lost) {
    const auto from = source_->files()->Open(name, FileAccess::kRead, FileCaching::kDirect);
    const StatusOr<uint64_t> size_bytes =
        from.ok() ? (*from)->SizeBytes() : StatusOr<uint64_t>(from.status());
    *lost = size_bytes.status();
    if (size_bytes.ok() && *size_bytes != heat.bytes) {
      *lost = DataLossError("its length is wrong");
    }
    if (!lost->ok()) return IsOfTheSource(*lost) ? OkStatus() : *lost;
    EMBANK_ASSIGN_OR_RETURN(const AlignedBuffer buffer,
                            AlignedBuffer::Create(SystemMemorySource(), &budget_, kWriteBytes));
    EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<File> to, target_.Make(name));
    uint32_t crc = 0;
    for (uint64_t offset = 0; offset < heat.bytes && lost->ok(); offset += kWriteBytes) {
      const std::span bytes(buffer.data(), std::min(kWriteBytes, heat.bytes - offset));
      *lost = (*from)->Read(offset, bytes);
      if (!lost->ok()) break;
      crc = ExtendCrc32c(crc, bytes);
      EMBANK_RETURN_IF_ERROR(to->Write(offset, bytes));
    }
    if (lost->ok() && crc != heat.crc) *lost = DataLossError("it is damaged");
    if (lost->ok()) return to->Sync();
    return IsOfTheSource(*lost) ? target_.RemoveLast() : *lost;
  }

  FileSystem* const files_;
  const RepairOptions& options_;
  const RepairProgress progress_;
  RepairReport report_;
  std::unique_ptr<CheckpointDirectory> source_;
  RepairTarget target_;
  std::optional<SegmentReader> reader_;
  MemoryBudget budget_{0};
};

}  // namespace

StatusOr<RepairReport> RepairStore(FileSystem* files, const RepairOptions& options,
                                   RepairProgress progress) {
  return Repair(files, options, progress).Run();
}

}  // namespace embank
