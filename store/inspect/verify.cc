#include "store/inspect/verify.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/checkpoint/checkpoint_directory.h"
#include "store/checkpoint/heat_file.h"
#include "store/checkpoint/pmem_directory.h"
#include "store/checkpoint/segment_reader.h"
#include "tiers/row/row_layout.h"
#include "tiers/segment/log_record.h"

namespace embank {
namespace {

// Whether an error is about the file; otherwise it hinders the reader.
bool IsOfTheFile(const Status& status) {
  return IsDataLoss(status) || IsNotFound(status) || IsOutOfRange(status) || IsUnavailable(status);
}

// A manifest, and the findings about it.
class KeptManifest {
 public:
  KeptManifest(Manifest manifest, VerifiedCheckpoint* verified)
      : manifest_(std::move(manifest)), verified_(verified) {
    for (const ManifestTable& table : manifest_.tables) {
      const std::vector<RowClass>& classes = manifest_.row_classes;
      const auto row_class =
          std::find(classes.begin(), classes.end(), RowClassOf(table.options)) - classes.begin();
      tables_[table.id] = {static_cast<uint32_t>(row_class), verified_->tables.size()};
      verified_->tables.push_back({.name = table.name});
    }
    verified_->segments = manifest_.segments.size();
  }

  const Manifest& manifest() const { return manifest_; }
  VerifiedCheckpoint* verified() const { return verified_; }
  // Whether the checkpoint has the table, with rows of the class.
  bool Has(TableId table, uint32_t row_class) const {
    const auto found = tables_.find(table);
    return found != tables_.end() && found->second.row_class == row_class;
  }
  // nullptr: no table has the id.
  VerifiedTable* Table(TableId table) const {
    const auto found = tables_.find(table);
    return found == tables_.end() ? nullptr : &verified_->tables[found->second.place];
  }
  // Returns the table whose rows are of the class; kNoTable: there are several.
  TableId OnlyTableOf(uint32_t row_class) const {
    TableId only = kNoTable;
    for (const auto& [id, table] : tables_) {
      if (table.row_class != row_class) continue;
      if (only != kNoTable) return kNoTable;
      only = id;
    }
    return only;
  }

 private:
  struct TableOf {
    uint32_t row_class;
    size_t place;
  };
  const Manifest manifest_;
  VerifiedCheckpoint* const verified_;
  std::map<TableId, TableOf> tables_;
};

// The records that a checkpoint has in a segment, and the owners of its slots, by the footer or the
// manifest. Without owners only the records can tell.
struct SegmentUse {
  KeptManifest* kept;
  const SegmentRows* rows;
  SegmentFooter owners = {rows->keys, rows->tables};

  bool Lives(uint32_t slot) const { return slot < rows->used_slots && HasBit(rows->bits, slot); }
  bool NeedsFooter() const { return rows->keys.empty(); }
  bool KnowsOwners() const { return !owners.keys.empty(); }
};

void AddDamage(Damage damage, VerifyReport* report) {
  ++report->damage_count;
  if (report->damage.size() < kDamageToldMax) report->damage.push_back(std::move(damage));
}

// One segment, for the checkpoints that have rows in it and agree about its header. Adjoining
// records with the same damage become one damage. `other`: the header in another manifest that does
// not agree.
class SegmentVerify {
 public:
  SegmentVerify(std::vector<SegmentUse> uses, std::optional<SegmentHeader> other,
                SegmentReader* reader, VerifyReport* report)
      : uses_(std::move(uses)), other_(other), reader_(reader), report_(report) {}

  // Returns the status of an error that hinders it.
  Status Run() {
    Status status = LookAt();
    QueueBuffer();
    return status;
  }

 private:
  const SegmentHeader& header() const { return uses_[0].rows->header; }

  Status LookAt() {
    CountRows();
    const Status opened = reader_->Open(*uses_[0].rows);
    if (IsNotFound(opened)) {
      constexpr char kMissing[] = "the segment is missing";
      const bool is_in_store = uses_[0].rows->IsInStoreDirectory();
      return LoseAll(DamagedPart::kFile,
                     is_in_store ? kMissing : StrCat(kMissing, ": ", opened.message()));
    }
    if (IsOfTheFile(opened)) return LoseAll(DamagedPart::kFile, opened.message());
    EMBANK_RETURN_IF_ERROR(opened);
    CheckSize();
    bool is_itself = true;
    EMBANK_RETURN_IF_ERROR(CheckHeader(&is_itself));
    if (!is_itself) return OkStatus();
    EMBANK_RETURN_IF_ERROR(FindOwners());
    LoseWhatIsCutOff();
    const std::vector<uint64_t> wanted = LiveBits();
    reader_->ReadRecords(wanted,
                         [&](uint32_t slot, const Status& read, std::span<const std::byte> record) {
                           hindered_.Update(IsOfTheFile(read) ? OkStatus() : read);
                           CheckRecord(slot, read, record);
                         });
    return hindered_;
  }

  void QueueBuffer() {
    for (Damage& damage : found_) AddDamage(std::move(damage), report_);
    found_.clear();
  }

  void CountRows() {
    for (const SegmentUse& use : uses_) {
      for (uint32_t slot = 0; slot < use.rows->used_slots; ++slot) {
        use.kept->verified()->rows += use.Lives(slot) ? 1 : 0;
      }
    }
  }

  // Where the file system does not preallocate, a segment without a footer may end behind its last
  // record. Missing bytes are reported by the rows that they cost.
  void CheckSize() {
    if (reader_->size_bytes() <= header().segment_bytes) return;
    found_.push_back(
        DamageOf(DamagedPart::kFile, StrCat("it has ", reader_->size_bytes(), " bytes, ",
                                            header().segment_bytes, " are the segment's")));
  }

  // *is_itself: the rest of the file is worth reading.
  Status CheckHeader(bool* is_itself) {
    *is_itself = false;
    const StatusOr<SegmentHeader> read = reader_->ReadHeader();
    if (IsFailedPrecondition(read.status())) {
      return FailedPreconditionError(
          StrCat(SegmentName(header().segment_id), ": ", read.status().message()));
    }
    if (IsOutOfRange(read.status())) {
      return LoseAll(DamagedPart::kFile, "the segment is cut off before its first record");
    }
    if (!read.ok() && !IsDataLoss(read.status())) {
      if (!IsOfTheFile(read.status())) return read.status();
      return LoseAll(DamagedPart::kHeader, read.status().message());
    }
    if (read.ok() && *read != header()) {
      if (other_.has_value() && *read == *other_) return LoseToOther();
      return LoseAll(DamagedPart::kHeader, "it is another segment, or another store's");
    }
    *is_itself = true;
    if (!read.ok()) {
      found_.push_back(DamageOf(DamagedPart::kHeader, read.status().message()));
    }
    return OkStatus();
  }

  // Finds the owners as an opening does: from the footer, else from the manifest, or from the
  // records if the footer is needed and damaged.
  Status FindOwners() {
    const StatusOr<SegmentFooter> footer = reader_->ReadFooter();
    if (!footer.ok() && !IsOfTheFile(footer.status())) return footer.status();
    const bool device_fails = !footer.ok() && !IsDataLoss(footer.status());
    bool is_told = false;
    for (SegmentUse& use : uses_) {
      const bool reaches = footer.ok() && footer->keys.size() >= use.rows->used_slots;
      if (reaches) use.owners = *footer;
      // Such an error stops an opening whether it needs the footer or not.
      if (device_fails) use.kept->verified()->opens = false;
      if (is_told || reaches || (!use.NeedsFooter() && !device_fails)) continue;
      is_told = true;
      found_.push_back(DamageOf(DamagedPart::kFooter, footer.ok()
                                                          ? "the segment's footer has too few slots"
                                                          : footer.status().message()));
    }
    return OkStatus();
  }

  void LoseWhatIsCutOff() {
    uint32_t first = reader_->geometry().slots;
    while (first > 0 && !reader_->Has(first - 1)) --first;
    Damage damage = DamageOf(DamagedPart::kFile, StrCat("the segment is cut off after ",
                                                        reader_->size_bytes(), " bytes"));
    cut_from_ = first;
    for (const SegmentUse& use : uses_) LoseSlots(use, first, &damage);
    if (!damage.lost.empty()) found_.push_back(std::move(damage));
  }

  // Slots in the file with rows of a checkpoint.
  std::vector<uint64_t> LiveBits() const {
    std::vector<uint64_t> bits(RoundUp(reader_->geometry().slots, 64) / 64);
    for (const SegmentUse& use : uses_) {
      for (uint32_t slot = 0; slot < cut_from_; ++slot) {
        if (use.Lives(slot)) bits[slot / 64] |= uint64_t{1} << (slot % 64);
      }
    }
    return bits;
  }

  void CheckRecord(uint32_t slot, const Status& read, std::span<const std::byte> record) {
    const RecordPlace place = {header().store_id, header().segment_id, slot};
    std::string what;
    std::optional<RecordHeader> whole;
    if (!read.ok()) {
      what = std::string(read.message());
    } else if (!RecordIsWhole(place, record)) {
      what = "the record is damaged";
    } else {
      whole = LoadRecordHeader(record);
    }
    for (const SegmentUse& use : uses_) {
      if (!use.Lives(slot)) continue;
      const std::string wrong = whole.has_value() ? Contradiction(use, slot, *whole) : what;
      const TableId table = OwnerOf(use, slot, whole);
      VerifiedTable* const verified = use.kept->Table(table);
      if (wrong.empty()) {
        ++verified->rows;
        continue;
      }
      if (IsFatal(use, slot, whole)) use.kept->verified()->opens = false;
      LoseRecord(use, slot, wrong, table);
    }
  }

  // Says how a whole record differs from the footer or manifest that names it; "": it agrees.
  static std::string Contradiction(const SegmentUse& use, uint32_t slot,
                                   const RecordHeader& record) {
    const Manifest& manifest = use.kept->manifest();
    if (use.KnowsOwners()) {
      if (use.owners.tables[slot] == kNoTable) return "the slot lives and is nobody's";
      if (use.owners.tables[slot] != record.table || use.owners.keys[slot] != record.key) {
        return "the record is another row's than the segment says";
      }
    }
    if (record.row_class != use.rows->header.row_class ||
        !use.kept->Has(record.table, use.rows->header.row_class)) {
      return StrCat("the record is of table ", record.table,
                    ", which has no such rows in the checkpoint");
    }
    if (record.sequence >= manifest.next_sequence || record.checkpoint > manifest.checkpoint) {
      return "the record is newer than the checkpoint";
    }
    return "";
  }

  // Whether a store with such a row is not opened at all.
  static bool IsFatal(const SegmentUse& use, uint32_t slot,
                      const std::optional<RecordHeader>& whole) {
    if (!use.KnowsOwners() && !whole.has_value()) return true;
    const TableId owner = use.KnowsOwners() ? use.owners.tables[slot] : whole->table;
    return !use.kept->Has(owner, use.rows->header.row_class);
  }

  static TableId OwnerOf(const SegmentUse& use, uint32_t slot,
                         const std::optional<RecordHeader>& whole) {
    if (use.KnowsOwners()) return use.owners.tables[slot];
    if (whole.has_value()) return whole->table;
    return use.kept->OnlyTableOf(use.rows->header.row_class);
  }

  Damage DamageOf(DamagedPart part, std::string_view what) const {
    return {.file = SegmentName(header().segment_id), .part = part, .what = std::string(what)};
  }

  // The whole segment: no checkpoint that has rows in it can be opened.
  Status LoseAll(DamagedPart part, std::string_view what) {
    Damage damage = DamageOf(part, what);
    for (SegmentUse& use : uses_) {
      use.kept->verified()->opens = false;
      LoseSlots(use, 0, &damage);
    }
    found_.push_back(std::move(damage));
    return OkStatus();
  }

  // The file agrees with another manifest: this manifest is of another store, or wrong.
  Status LoseToOther() {
    for (SegmentUse& use : uses_) {
      Damage damage =
          DamageOf(DamagedPart::kManifest,
                   StrCat(SegmentName(header().segment_id), header().store_id != other_->store_id
                                                                ? " is another store's than it says"
                                                                : " is another one than it says"));
      damage.file = ManifestName(use.kept->manifest().checkpoint);
      use.kept->verified()->opens = false;
      LoseSlots(use, 0, &damage);
      found_.push_back(std::move(damage));
    }
    return OkStatus();
  }

  // Lists all living records from a slot on.
  static void LoseSlots(const SegmentUse& use, uint32_t first, Damage* damage) {
    for (uint32_t slot = first; slot < use.rows->used_slots; ++slot) {
      if (!use.Lives(slot)) continue;
      if (IsFatal(use, slot, std::nullopt)) use.kept->verified()->opens = false;
      Lose(use, slot, OwnerOf(use, slot, std::nullopt), damage);
    }
  }

  void LoseRecord(const SegmentUse& use, uint32_t slot, const std::string& what, TableId table) {
    Damage* last = found_.empty() ? nullptr : &found_.back();
    const bool goes_on =
        last != nullptr && last->part == DamagedPart::kRecords && last->what == what &&
        (slot == last->first_slot + last->slots - 1 ||
         (slot == last->first_slot + last->slots && last->slots < kKeysOfDamageMax));
    if (!goes_on) {
      QueueBuffer();
      found_.push_back(DamageOf(DamagedPart::kRecords, what));
      last = &found_.back();
      last->first_slot = slot;
    }
    last->slots = slot - last->first_slot + 1;
    Lose(use, slot, table, last);
  }

  static void Lose(const SegmentUse& use, uint32_t slot, TableId table, Damage* damage) {
    VerifiedTable* const verified = use.kept->Table(table);
    const std::string name = verified == nullptr ? "" : verified->name;
    const uint32_t checkpoint = use.kept->manifest().checkpoint;
    auto lost = std::find_if(damage->lost.begin(), damage->lost.end(), [&](const LostRows& rows) {
      return rows.checkpoint == checkpoint && rows.table == name;
    });
    if (lost == damage->lost.end()) {
      lost = damage->lost.insert(lost, {.checkpoint = checkpoint, .table = name});
    }
    ++lost->rows;
    if (use.KnowsOwners() && lost->keys.size() < kKeysOfDamageMax) {
      lost->keys.push_back(use.owners.keys[slot]);
    }
    ++use.kept->verified()->rows_lost;
    if (verified == nullptr) return;
    ++verified->rows;
    ++verified->rows_lost;
  }

  std::vector<SegmentUse> uses_;
  const std::optional<SegmentHeader> other_;
  SegmentReader* const reader_;
  VerifyReport* const report_;
  std::vector<Damage> found_;  // not in the report yet
  uint32_t cut_from_ = 0;
  Status hindered_;
};

// Returns the readable manifests, and reports the others. *knows_all: no other manifest may name
// further files.
StatusOr<std::vector<std::unique_ptr<KeptManifest>>> TakeManifests(
    const CheckpointDirectory& directory, bool* knows_all, VerifyReport* report) {
  std::vector<KeptCheckpoint> found = directory.LoadKept();
  // Pointers to these are kept.
  report->checkpoints.reserve(found.size());
  std::vector<std::unique_ptr<KeptManifest>> kept;
  for (KeptCheckpoint& checkpoint : found) {
    const bool readable = checkpoint.manifest.ok();
    report->checkpoints.push_back({.checkpoint = checkpoint.checkpoint,
                                   .is_newest = report->checkpoints.empty(),
                                   .opens = readable,
                                   .is_readable = readable});
    if (readable) {
      kept.push_back(std::make_unique<KeptManifest>(*std::move(checkpoint.manifest),
                                                    &report->checkpoints.back()));
      continue;
    }
    const Status& status = checkpoint.manifest.status();
    if (!IsOfTheFile(status)) return status;
    // As at an opening, files of a previous checkpoint without a manifest belong to no checkpoint.
    *knows_all = *knows_all && report->checkpoints.size() > 1 && IsNotFound(status);
    AddDamage({.file = ManifestName(checkpoint.checkpoint),
               .part = DamagedPart::kManifest,
               .what = std::string(status.message())},
              report);
  }
  *knows_all = *knows_all && !found.empty();
  if (found.empty()) {
    AddDamage({.file = ManifestName(0),
               .part = DamagedPart::kManifest,
               .what = "there are segments of a store, and no manifest"},
              report);
  }
  return kept;
}

void Tell(const std::vector<std::string>& names, NamedFiles* files) {
  files->count += names.size();
  for (const std::string& name : names) {
    if (files->names.size() < kFilesToldMax) files->names.push_back(name);
  }
}

std::vector<const Manifest*> PointersTo(const std::vector<std::unique_ptr<KeptManifest>>& kept) {
  std::vector<const Manifest*> manifests(kept.size());
  std::ranges::transform(kept, manifests.begin(), [](const auto& one) { return &one->manifest(); });
  return manifests;
}

void TellFilesBeside(const CheckpointDirectory& directory,
                     const std::vector<std::unique_ptr<KeptManifest>>& kept, bool knows_all,
                     VerifyReport* report) {
  std::vector<uint32_t> checkpoints;
  checkpoints.reserve(report->checkpoints.size());
  for (const VerifiedCheckpoint& verified : report->checkpoints) {
    checkpoints.push_back(verified.checkpoint);
  }
  const std::vector<const Manifest*> manifests = PointersTo(kept);
  NamedFiles* const beside = knows_all ? &report->orphans : &report->undecided;
  Tell(directory.listing().ManifestsBeside(checkpoints), beside);
  Tell(directory.listing().HeatBeside(manifests), beside);
  Tell(directory.listing().SegmentsBeside(manifests, Tier::kSsd), beside);
}

// The directories in which a manifest's segments may be, besides the store's, its own first: a
// checkpoint before the PMem was moved names the former place.
std::vector<std::string> PathsOf(const Manifest& manifest,
                                 const std::vector<std::unique_ptr<KeptManifest>>& kept,
                                 const std::string& given) {
  if (!given.empty()) return {given};
  std::vector<std::string> paths = OtherPathsOf(manifest);
  for (const auto& other : kept) {
    for (std::string& path : OtherPathsOf(other->manifest())) paths.push_back(std::move(path));
  }
  return paths;
}

// The PMem of the store, where it is there; another store's has no orphans of this one.
Status TellOrphansInPmem(FileSystem* files, const CheckpointDirectory& directory,
                         const std::vector<std::unique_ptr<KeptManifest>>& kept,
                         const std::string& given, NamedFiles* beside) {
  const std::vector<const Manifest*> manifests = PointersTo(kept);
  std::set<std::string> paths;
  for (const auto& manifest : kept) {
    for (std::string& path : PathsOf(manifest->manifest(), kept, given)) paths.insert(path);
  }
  for (const std::string& path : paths) {
    const auto pmem = files->OpenDirectory(path);
    if (IsNotFound(pmem.status())) continue;
    EMBANK_RETURN_IF_ERROR(pmem.status());
    if (!CheckIsPmemOf(pmem->get(), path, *manifests[0], manifests, directory.listing(), "").ok())
      continue;
    EMBANK_ASSIGN_OR_RETURN(const std::vector<std::string> names, (*pmem)->List());
    const StoreListing listing = StoreListing::Of(names);
    std::vector<std::string> orphans;
    for (const std::string& name : listing.SegmentsBeside(manifests, Tier::kPmem)) {
      orphans.push_back((*pmem)->PathOf(name));
    }
    Tell(orphans, beside);
  }
  return OkStatus();
}

// Says whether an opening takes one of the directories in which a checkpoint's PMem may be. Returns
// the status of an error that hinders it. A directory that is not there costs its segments, which
// are told.
Status VerifyPmem(FileSystem* files, const CheckpointDirectory& directory,
                  const std::vector<std::string>& paths, std::span<const Manifest* const> all,
                  KeptManifest* kept, VerifyReport* report) {
  std::optional<Damage> refused;
  for (const std::string& path : paths) {
    const auto pmem = files->OpenDirectory(path);
    if (IsNotFound(pmem.status())) continue;
    EMBANK_RETURN_IF_ERROR(pmem.status());
    Status taken = CheckIsPmemOf(pmem->get(), path, kept->manifest(), all, directory.listing(),
                                 directory.files()->path());
    if (taken.ok()) taken = StoreLock(pmem->get()).LockToRead("pmem_path");
    // An opening to change the store makes a missing LOCK.
    if (taken.ok() || IsNotFound(taken)) return OkStatus();
    if (!IsInvalidArgument(taken) && !IsFailedPrecondition(taken)) return taken;
    refused = {.file = path, .part = DamagedPart::kFile, .what = std::string(taken.message())};
  }
  if (!refused.has_value()) return OkStatus();
  kept->verified()->opens = false;
  AddDamage(*std::move(refused), report);
  return OkStatus();
}

// Heat costs no row. Returns the status of an error that hinders it.
Status VerifyHeat(Directory* directory, const Manifest& manifest, VerifyReport* report) {
  if (manifest.heat.bytes == 0) return OkStatus();
  const std::string name = HeatName(manifest.checkpoint);
  Status read = LoadHeat(directory, name, manifest.heat, /*sketch=*/nullptr);
  if (read.ok()) report->read_bytes += manifest.heat.bytes;
  if (!IsOfTheFile(read)) return read;
  AddDamage({.file = name, .part = DamagedPart::kHeat, .what = std::string(read.message())},
            report);
  return OkStatus();
}

// Returns the status of an error that hinders it. Checkpoints that do not agree about a segment are
// verified one by one, because each is opened without the other.
Status VerifySegment(std::vector<SegmentUse> uses, SegmentReader* reader, VerifyReport* report) {
  const SegmentHeader newest = uses.front().rows->header;
  const SegmentHeader oldest = uses.back().rows->header;
  if (newest == oldest) {
    return SegmentVerify(std::move(uses), std::nullopt, reader, report).Run();
  }
  EMBANK_RETURN_IF_ERROR(SegmentVerify({uses.front()}, oldest, reader, report).Run());
  return SegmentVerify({uses.back()}, newest, reader, report).Run();
}

// No segment tells which of two manifests belongs to another store.
void CheckOneStore(const std::vector<std::unique_ptr<KeptManifest>>& kept, VerifyReport* report) {
  if (kept.size() < 2) return;
  const Manifest& newest = kept[0]->manifest();
  const Manifest& older = kept[1]->manifest();
  const bool is_told =
      std::any_of(report->damage.begin(), report->damage.end(),
                  [](const Damage& damage) { return damage.part == DamagedPart::kManifest; });
  if (newest.store_id == older.store_id || is_told) return;
  AddDamage({.file = ManifestName(newest.checkpoint),
             .part = DamagedPart::kManifest,
             .what = StrCat("it is of another store than ", ManifestName(older.checkpoint))},
            report);
}

}  // namespace

StatusOr<VerifyReport> VerifyStore(FileSystem* files, const std::string& path,
                                   VerifyProgress progress, const std::string& pmem_path) {
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointDirectory> directory,
                          CheckpointDirectory::OpenToRead(files, path, "directory"));
  VerifyReport report = {.directory = path};
  bool knows_all = true;
  EMBANK_ASSIGN_OR_RETURN(const auto kept, TakeManifests(*directory, &knows_all, &report));
  TellFilesBeside(*directory, kept, knows_all, &report);
  EMBANK_RETURN_IF_ERROR(TellOrphansInPmem(files, *directory, kept, pmem_path,
                                           knows_all ? &report.orphans : &report.undecided));
  std::map<std::pair<uint64_t, Tier>, std::vector<SegmentUse>> segments;
  for (const auto& manifest : kept) {
    EMBANK_RETURN_IF_ERROR(VerifyPmem(files, *directory,
                                      PathsOf(manifest->manifest(), kept, pmem_path),
                                      PointersTo(kept), manifest.get(), &report));
    EMBANK_RETURN_IF_ERROR(VerifyHeat(directory->files(), manifest->manifest(), &report));
    for (const SegmentRows& rows : manifest->manifest().segments) {
      segments[{rows.header.segment_id, rows.tier}].push_back(
          {.kept = manifest.get(), .rows = &rows});
    }
  }
  SegmentReader reader(directory->files());
  for (auto& [id, uses] : segments) {
    if (!progress(report.segments, segments.size())) {
      return CancelledError("verify was cancelled by its progress function");
    }
    reader.SetOtherPaths(files, PathsOf(uses[0].kept->manifest(), kept, pmem_path));
    EMBANK_RETURN_IF_ERROR(VerifySegment(std::move(uses), &reader, &report));
    ++report.segments;
  }
  if (!progress(report.segments, segments.size())) {
    return CancelledError("verify was cancelled by its progress function");
  }
  CheckOneStore(kept, &report);
  report.read_bytes += reader.read_bytes();
  return report;
}

}  // namespace embank
