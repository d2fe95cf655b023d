// What checkpoints keep of the log, and how a store finds it again.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/log.h"
#include "tiers/log/row_log.h"

namespace embank {
namespace {

bool Lives(const SegmentRows& rows, uint32_t slot) {
  return (rows.bits[slot / 64] >> (slot % 64) & 1) != 0;
}

// A row whose key is not known any more cannot be told to be lost when it is asked for: without it
// the store would say that there is none.
Status CheckOwned(const std::string& path, const SegmentRows& rows, const SegmentFooter& owners) {
  uint32_t unknown = 0;
  uint32_t first = 0;
  for (uint32_t slot = rows.used_slots; slot-- > 0;) {
    if (!Lives(rows, slot) || owners.tables[slot] != kNoTable) continue;
    ++unknown;
    first = slot;
  }
  if (unknown == 0) return OkStatus();
  return DataLossError(StrCat(
      path, ": the keys of ", unknown,
      " of its rows are lost: neither its footer nor their records can be read (the first is in ",
      "slot ", first, ")"));
}

}  // namespace

void RowLog::Freeze(uint32_t checkpoint) {
  MutexLock lock(&mutex_);
  frozen_checkpoint_ = checkpoint;
}

StatusOr<std::vector<SegmentRows>> RowLog::SyncFrozen() {
  // First what is in buffers, so that a segment that is said to have a footer has it in its file.
  EMBANK_RETURN_IF_ERROR(Flush());
  std::vector<SegmentRows> all;
  uint32_t end = 0;
  for (uint32_t i = 0; i == 0 || i < end; ++i) {
    MutexLock lock(&mutex_);
    end = static_cast<uint32_t>(segments_.size());
    if (i < end && segments_[i] != nullptr) SayFrozen(segments_[i].get(), &all);
  }
  if (Seeded(SeededBug::kManifestBeforeSegments)) return all;
  EMBANK_RETURN_IF_ERROR(Sync());
  return all;
}

// Makes a finished segment durable where too many are not, so that its file can do without a
// descriptor. False: there was nothing to do. Gives the lock up meanwhile.
bool RowLog::SyncOne() {
  constexpr size_t kUnsyncedMax = 64;  // 4 GiB of segments of 64 MiB: a second of a fast device
  const size_t unsynced_max = std::clamp<size_t>(files_->OpenFilesMax() / 8, 1, kUnsyncedMax);
  if (unsynced_.size() <= unsynced_max) return false;
  std::erase_if(unsynced_, [](const auto& segment) { return segment.expired(); });
  for (size_t i = 0; i < unsynced_.size() && unsynced_.size() > unsynced_max; ++i) {
    const std::shared_ptr<LogSegment> segment = unsynced_[i].lock();
    const bool is_written =
        segment != nullptr && std::none_of(buffers_.begin(), buffers_.end(),
                                           [&](const auto& b) { return b->segment == segment; });
    if (!is_written) continue;
    unsynced_.erase(unsynced_.begin() + static_cast<ptrdiff_t>(i));
    ++ends_under_way_;
    mutex_.Unlock();
    const Status status = segment->file->Sync();
    mutex_.Lock();
    --ends_under_way_;
    if (status.ok()) segment->unsynced = false;
    if (!status.ok()) Fail(status);
    buffer_written_.NotifyAll();
    return true;
  }
  return false;
}

void RowLog::SayFrozen(LogSegment* segment, std::vector<SegmentRows>* all) {
  segment->FreezeFor(frozen_checkpoint_);
  if (segment->frozen_rows == 0) return;
  SegmentRows rows = {.header = segment->header,
                      .used_slots = segment->used_slots,
                      .bits = {},
                      .keys = {},
                      .tables = {}};
  if (!segment->finished) {
    const SegmentFooter owners = segment->Owners();
    rows.keys.assign(owners.keys.begin(), owners.keys.end());
    rows.tables.assign(owners.tables.begin(), owners.tables.end());
  }
  rows.bits.assign(segment->frozen(), segment->frozen() + RoundUp(rows.used_slots, 64) / 64);
  all->push_back(std::move(rows));
}

void RowLog::Thaw(bool is_kept) {
  MutexLock lock(&mutex_);
  for (const std::shared_ptr<LogSegment>& segment : segments_) {
    if (!is_kept || segment == nullptr) continue;
    segment->FreezeFor(frozen_checkpoint_);
    if (segment->frozen_rows > 0) segment->newest_checkpoint = frozen_checkpoint_;
    segment->unread = false;
  }
  frozen_checkpoint_ = 0;
}

void RowLog::Forget(uint32_t oldest_kept) {
  {
    MutexLock lock(&mutex_);
    if (oldest_kept > oldest_kept_) pace_.EndInterval();
    oldest_kept_ = oldest_kept;
    NotePace();
    PartFromDeadSegments();
  }
  writer_->Wake();
}

Status RowLog::Adopt(const SegmentRows& rows, uint32_t checkpoint, const VisitOwner* visit) {
  EMBANK_ASSIGN_OR_RETURN(const std::shared_ptr<LogSegment> segment, TakeIn(rows, checkpoint));
  if (segment == nullptr) return OkStatus();
  Status adopted = AdoptSegment(segment.get(), rows, visit);
  MutexLock lock(&mutex_);
  if (!adopted.ok()) {
    // Its file is left alone.
    segments_[segment->index] = nullptr;
    room_.AddTaken(-static_cast<int64_t>(segment->header.segment_bytes));
    NoteSpare();
    return adopted;
  }
  NoteRows(static_cast<int64_t>(segment->LiveBytes()));
  if (segment->finished) {
    Finish(segment.get());
  } else {
    ended_.push_back(segment);
    ++next_turn_;
  }
  return OkStatus();
}

// A place for the segment; nullptr: it has one.
StatusOr<std::shared_ptr<LogSegment>> RowLog::TakeIn(const SegmentRows& rows, uint32_t checkpoint) {
  auto segment = std::make_shared<LogSegment>();
  segment->header = rows.header;
  segment->newest_checkpoint = checkpoint;
  // What another checkpoint alone has is there to be kept.
  segment->finished = true;
  MutexLock lock(&mutex_);
  for (const std::shared_ptr<LogSegment>& known : segments_) {
    if (known == nullptr || known->header.segment_id != rows.header.segment_id) continue;
    known->newest_checkpoint = std::max(known->newest_checkpoint, checkpoint);
    return nullptr;
  }
  EMBANK_ASSIGN_OR_RETURN(segment->index, FreeIndex());
  segments_[segment->index] = segment;
  room_.AddTaken(static_cast<int64_t>(segment->header.segment_bytes));
  NoteSpare();
  return segment;
}

Status RowLog::AdoptSegment(LogSegment* segment, const SegmentRows& rows, const VisitOwner* visit) {
  {
    MutexLock lock(&mutex_);
    EMBANK_RETURN_IF_ERROR(Outfit(segment, LogStream::kCompaction, false));
  }
  EMBANK_RETURN_IF_ERROR(CheckFile(segment));
  if (visit == nullptr) return OkStatus();
  AlignedBuffer memory;
  SegmentFooter owners;
  EMBANK_RETURN_IF_ERROR(AdoptOwners(segment, rows, &memory, &owners));
  EMBANK_RETURN_IF_ERROR(CheckOwned(options_.directory->PathOf(segment->name), rows, owners));
  for (uint32_t slot = 0; slot < rows.used_slots; ++slot) {
    if (!Lives(rows, slot)) continue;
    segment->SetLive(slot, true);
    (*visit)(LocationOf(*segment, slot), owners.tables[slot], owners.keys[slot]);
  }
  return OkStatus();
}

Status RowLog::CheckFile(LogSegment* segment) {
  const auto lost = [&](const Status& status) {
    return DataLossError(StrCat(options_.directory->PathOf(segment->name), ": ", status.message()));
  };
  StatusOr<std::unique_ptr<File>> file = options_.directory->Open(
      segment->name, options_.read_only ? FileAccess::kRead : FileAccess::kWrite,
      FileCaching::kDirect);
  if (IsNotFound(file.status())) return lost(DataLossError("the segment is missing"));
  EMBANK_RETURN_IF_ERROR(file.status());
  segment->file = *std::move(file);
  segment->file->MayRest();
  EMBANK_ASSIGN_OR_RETURN(const AlignedBuffer block,
                          AlignedBuffer::Create(source_, budget_, kBlockBytes));
  const std::span bytes(block.data(), kBlockBytes);
  const Status read = segment->file->Read(0, bytes);
  if (IsOutOfRange(read)) return lost(DataLossError("the segment is cut off"));
  EMBANK_RETURN_IF_ERROR(read);
  const StatusOr<SegmentHeader> header = DecodeSegmentHeader(bytes);
  if (IsFailedPrecondition(header.status())) return header.status();
  if (!header.ok()) {
    // The manifest says all that it says; records that are not of this segment do not pass for it.
    Log(LogLevel::kWarning,
        StrCat(options_.directory->PathOf(segment->name), ": ", header.status().message()));
    return OkStatus();
  }
  if (Seeded(SeededBug::kNoHeaderIdentity)) return OkStatus();
  if (*header == segment->header) return OkStatus();
  return lost(DataLossError("it is another segment, or another store's"));
}

// Whose the slots are. A footer of which no checkpoint says that it is durable is written anew,
// whatever can be read of it; so is a damaged one, which the records make up for. A log that is
// only read keeps them, and writes neither.
Status RowLog::AdoptOwners(LogSegment* segment, const SegmentRows& rows, AlignedBuffer* memory,
                           SegmentFooter* owners) {
  segment->used_slots = rows.used_slots;
  Status read = ReadFooter(*segment, budget_, memory, owners);
  if (!read.ok() && !IsDataLoss(read)) return read;
  const bool reaches = read.ok() && owners->keys.size() >= rows.used_slots;
  if (rows.keys.empty() && reaches) return OkStatus();
  if (rows.keys.empty()) {
    EMBANK_RETURN_IF_ERROR(OwnersOfRecords(*segment, memory, owners));
  } else if (!reaches) {
    *owners = {rows.keys, rows.tables};
  }
  {
    MutexLock lock(&mutex_);
    EMBANK_ASSIGN_OR_RETURN(segment->slots, memory_.Owners(LogStream::kUser, segment->geometry));
  }
  segment->used_slots = 0;
  for (size_t slot = 0; slot < owners->keys.size(); ++slot) {
    segment->UseSlot(owners->keys[slot], owners->tables[slot]);
  }
  *owners = segment->Owners();
  segment->finished = false;
  return OkStatus();
}

}  // namespace embank
