#include "tiers/log/log_recovery.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/log.h"

namespace embank {
namespace {

bool Lives(const SegmentRows& rows, uint32_t slot) {
  return (rows.bits[slot / 64] >> (slot % 64) & 1) != 0;
}

// If a row's key is unknown, its loss cannot be reported at a lookup: the store would answer that
// there is no row.
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

Status LogRecovery::Adopt(const SegmentRows& rows, uint32_t checkpoint,
                          const LogOwners::Visit* visit) {
  EMBANK_ASSIGN_OR_RETURN(const std::shared_ptr<LogSegment> segment, MakePlace(rows, checkpoint));
  if (segment == nullptr) return OkStatus();
  Status adopted = AdoptSegment(segment.get(), rows, visit);
  // Another one rests when its footer is written.
  if (adopted.ok() && (segment->finished || options_.read_only)) segment->file->MayRest();
  MutexLock lock(segments_.mutex());
  if (!adopted.ok()) {
    // The file stays as it is.
    segments_.Take(segment->index);
    segments_.mutable_accounts().AddTaken(-static_cast<int64_t>(segment->header.segment_bytes));
    return adopted;
  }
  EMBANK_CHECK(segment->live_rows <= segment->used_slots);
  segments_.mutable_accounts().AddLive(rows.header.row_class,
                                       static_cast<int64_t>(segment->LiveBytes()));
  if (segment->finished) {
    segments_.Finish(segment.get());
  } else {
    writer_.AssertHeld();
    writer_.QueueFooter(segment);
  }
  return OkStatus();
}

// Takes a place for the segment; nullptr: it has one.
StatusOr<std::shared_ptr<LogSegment>> LogRecovery::MakePlace(const SegmentRows& rows,
                                                             uint32_t checkpoint) {
  auto segment = std::make_shared<LogSegment>();
  segment->header = rows.header;
  segment->newest_checkpoint = checkpoint;
  // A segment that only another checkpoint has is taken over to be kept.
  segment->finished = true;
  MutexLock lock(segments_.mutex());
  for (const std::shared_ptr<LogSegment>& known : segments_.all()) {
    if (known == nullptr || known->header.segment_id != rows.header.segment_id) continue;
    known->newest_checkpoint = std::max(known->newest_checkpoint, checkpoint);
    return nullptr;
  }
  EMBANK_ASSIGN_OR_RETURN(segment->index, segments_.FreePlace());
  writer_.AssertHeld();
  writer_.ReserveLists(segments_.all().size());
  segments_.Put(segment);
  return segment;
}

Status LogRecovery::AdoptSegment(LogSegment* segment, const SegmentRows& rows,
                                 const LogOwners::Visit* visit) {
  {
    MutexLock lock(segments_.mutex());
    EMBANK_RETURN_IF_ERROR(segments_.Allocate(segment, LogStream::kCompaction, false));
  }
  EMBANK_RETURN_IF_ERROR(OpenFile(segment));
  EMBANK_ASSIGN_OR_RETURN(segment->taken_bytes, segment->file->TakenBytes());
  EMBANK_RETURN_IF_ERROR(CheckHeader(*segment));
  if (visit == nullptr) return OkStatus();
  EMBANK_CHECK(rows.used_slots <= segment->geometry.slots);
  EMBANK_CHECK(rows.bits.size() * 64 >= rows.used_slots);
  AlignedBuffer memory;
  SegmentFooter owners;
  EMBANK_RETURN_IF_ERROR(AdoptOwners(segment, rows, &memory, &owners));
  EMBANK_RETURN_IF_ERROR(CheckOwned(options_.directory->PathOf(segment->name), rows, owners));
  for (uint32_t slot = 0; slot < rows.used_slots; ++slot) {
    if (!Lives(rows, slot)) continue;
    segment->SetLive(slot, true);
    (*visit)(segment->LocationOf(slot), owners.tables[slot], owners.keys[slot]);
  }
  return OkStatus();
}

Status LogRecovery::OpenFile(LogSegment* segment) {
  StatusOr<std::unique_ptr<File>> file = options_.directory->Open(
      segment->name, options_.read_only ? FileAccess::kRead : FileAccess::kWrite,
      FileCaching::kDirect);
  if (IsNotFound(file.status())) {
    return DataLossError(
        StrCat(options_.directory->PathOf(segment->name), ": the segment is missing"));
  }
  // A directory or a link has taken its name.
  if (IsInvalidArgument(file.status())) return DataLossError(file.status().message());
  EMBANK_RETURN_IF_ERROR(file.status());
  segment->file = *std::move(file);
  return OkStatus();
}

Status LogRecovery::CheckHeader(const LogSegment& segment) {
  const std::string path = options_.directory->PathOf(segment.name);
  EMBANK_ASSIGN_OR_RETURN(const AlignedBuffer block,
                          AlignedBuffer::Create(source_, budget_, kBlockBytes));
  const std::span bytes(block.data(), kBlockBytes);
  const Status read = segment.file->Read(0, bytes);
  if (IsOutOfRange(read)) return DataLossError(StrCat(path, ": the segment is cut off"));
  if (!IsDataLoss(read)) EMBANK_RETURN_IF_ERROR(read);
  const StatusOr<SegmentHeader> header =
      read.ok() ? DecodeSegmentHeader(bytes) : StatusOr<SegmentHeader>(read);
  if (IsFailedPrecondition(header.status())) return header.status();
  if (!header.ok()) {
    // The manifest has all facts; records that are not of this segment do not match.
    Log(LogLevel::kWarning, StrCat(path, ": ", header.status().message()));
    return OkStatus();
  }
  if (Seeded(SeededBug::kNoHeaderIdentity)) return OkStatus();
  if (*header == segment.header) return OkStatus();
  return DataLossError(StrCat(path, ": it is another segment, or another store's"));
}

// Finds the owners of its slots. A footer that no checkpoint calls durable is written anew,
// whatever is in it; so is a damaged one, from the records. A read-only log keeps the owners in
// memory, and writes neither.
Status LogRecovery::AdoptOwners(LogSegment* segment, const SegmentRows& rows, AlignedBuffer* memory,
                                SegmentFooter* owners) {
  segment->used_slots = rows.used_slots;
  Status read = owners_.ReadFooter(*segment, budget_, memory, owners);
  if (!read.ok() && !IsDataLoss(read)) return read;
  const bool reaches = read.ok() && owners->keys.size() >= rows.used_slots;
  if (rows.keys.empty() && reaches) return OkStatus();
  if (rows.keys.empty()) {
    EMBANK_RETURN_IF_ERROR(owners_.OwnersOfRecords(*segment, memory, owners));
  } else if (!reaches) {
    *owners = {rows.keys, rows.tables};
  }
  {
    MutexLock lock(segments_.mutex());
    EMBANK_ASSIGN_OR_RETURN(segment->slots, segments_.mutable_accounts().memory().Owners(
                                                LogStream::kUser, segment->geometry));
  }
  EMBANK_CHECK(owners->keys.size() == owners->tables.size());
  EMBANK_CHECK(owners->keys.size() <= segment->geometry.slots);
  segment->used_slots = 0;
  for (size_t slot = 0; slot < owners->keys.size(); ++slot) {
    segment->UseSlot(owners->keys[slot], owners->tables[slot]);
  }
  *owners = segment->Owners();
  segment->finished = false;
  return OkStatus();
}

}  // namespace embank
