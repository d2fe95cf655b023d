#include "tiers/log/log_owners.h"

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/log.h"

namespace embank {

bool LogOwners::OwnerOf(Location location, RecordScratch* scratch, SlotOwner* owner) {
  RecordPlace place = {};
  std::shared_ptr<LogSegment> segment;
  {
    ReaderMutexLock lock(segments_.mutex());
    segment = segments_.Find(location, &place);
    if (segment == nullptr) return false;
    if (!segment->finished) {
      if (place.slot >= segment->used_slots) return false;
      *owner = {segment->tables()[place.slot], segment->keys()[place.slot]};
      return owner->table != kNoTable;
    }
  }
  if (owner_cache_.Find(place, owner)) return owner->table != kNoTable;
  const StatusOr<SlotOwner> told =
      ReadSlotOwner(segment->header, place.slot, segment->file.get(), scratch->bytes);
  if (told.ok()) *owner = *told;
  // If the device fails, it may read later.
  if (told.ok() || IsDataLoss(told.status())) {
    owner_cache_.Add(place, told.value_or(SlotOwner{kNoTable, 0}));
  }
  return told.ok();
}

Status LogOwners::VisitOwners(uint32_t row_class, Visit visit) {
  std::vector<std::shared_ptr<LogSegment>> segments;
  {
    ReaderMutexLock lock(segments_.mutex());
    for (const auto& segment : segments_.all()) {
      if (segment == nullptr || segment->header.row_class != row_class) continue;
      if (segment->live_rows > 0) segments.push_back(segment);
    }
  }
  Status status;
  for (const auto& segment : segments) {
    AlignedBuffer memory;
    SegmentFooter footer;
    const Status read = OwnersOf(*segment, budget_, &memory, &footer);
    if (status.ok()) status = read;
    for (uint32_t slot = 0; slot < footer.keys.size(); ++slot) {
      if (footer.tables[slot] == kNoTable) continue;
      visit(segment->LocationOf(slot), footer.tables[slot], footer.keys[slot]);
    }
  }
  return status;
}

Status LogOwners::OwnersOf(const LogSegment& segment, MemoryBudget* budget, AlignedBuffer* memory,
                           SegmentFooter* owners) {
  const Status read = ReadFooter(segment, budget, memory, owners);
  return IsDataLoss(read) ? OwnersOfRecords(segment, memory, owners) : read;
}

Status LogOwners::ReadFooter(const LogSegment& segment, MemoryBudget* budget, AlignedBuffer* memory,
                             SegmentFooter* footer) {
  EMBANK_ASSIGN_OR_RETURN(*memory,
                          AlignedBuffer::Create(source_, budget, segment.geometry.footer_bytes));
  const std::span bytes(memory->data(), segment.geometry.footer_bytes);
  bool in_memory = false;
  {
    ReaderMutexLock lock(segments_.mutex());
    in_memory = !segment.finished;
    if (in_memory) EncodeSegmentFooter(segment.header, segment.Owners(), bytes);
  }
  if (!in_memory) {
    const Status read = segment.file->Read(segment.geometry.footer_offset, bytes);
    if (IsOutOfRange(read)) return DataLossError("the segment's footer is cut off");
    EMBANK_RETURN_IF_ERROR(read);
  }
  EMBANK_ASSIGN_OR_RETURN(*footer, DecodeSegmentFooter(segment.header, bytes));
  // A store that had fewer slots of the segment may have rewritten a damaged footer
  // (store/checkpoint/export.h).
  if (!in_memory && footer->keys.size() < segment.used_slots) {
    return DataLossError("the segment's footer has too few slots");
  }
  return OkStatus();
}

Status LogOwners::OwnersOfRecords(const LogSegment& segment, AlignedBuffer* memory,
                                  SegmentFooter* owners) {
  constexpr uint32_t kSlotsAtATime = 512;
  EMBANK_CHECK(memory->size_bytes() >= segment.geometry.footer_bytes);
  EMBANK_CHECK(segment.used_slots <= segment.geometry.slots);
  std::vector<Key> keys(segment.used_slots);
  std::vector<TableId> tables(segment.used_slots, kNoTable);
  std::vector<Location> locations;
  uint32_t lost = 0;
  Status hindered;
  for (uint32_t begin = 0; begin < segment.used_slots; begin += kSlotsAtATime) {
    const uint32_t end = std::min(begin + kSlotsAtATime, segment.used_slots);
    locations.clear();
    for (uint32_t slot = begin; slot < end; ++slot) locations.push_back(segment.LocationOf(slot));
    EMBANK_RETURN_IF_ERROR(reader_.Read(
        locations, [&](size_t i, const Status& read, std::span<const std::byte> record) {
          lost += read.ok() ? 0 : 1;
          if (IsResourceExhausted(read)) hindered.Update(read);
          if (!read.ok()) return;
          const RecordHeader header = LoadRecordHeader(record);
          keys[begin + i] = header.key;
          tables[begin + i] = header.table;
        }));
    EMBANK_RETURN_IF_ERROR(hindered);
  }
  Log(LogLevel::kWarning,
      StrCat(options_.directory->PathOf(segment.name),
             ": its footer is damaged; its records tell whose they are, but for ", lost, " of ",
             segment.used_slots, " which cannot be read or were never written"));
  const std::span bytes(memory->data(), segment.geometry.footer_bytes);
  EncodeSegmentFooter(segment.header, {keys, tables}, bytes);
  EMBANK_ASSIGN_OR_RETURN(*owners, DecodeSegmentFooter(segment.header, bytes));
  return OkStatus();
}

}  // namespace embank
