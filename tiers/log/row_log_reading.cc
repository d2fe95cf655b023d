// Rows of the log on their way back: what of it the buffers have, what the device.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/memory/scratch.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/log.h"
#include "tiers/log/row_log.h"

namespace embank {
namespace {

// Items that are on their way to the cache before they are visited: one takes 200 ns and more,
// memory half of that.
constexpr size_t kItemsAhead = 3;
constexpr uint32_t kLineBytes = 64;
// What follows the processor fetches by itself.
constexpr uint32_t kBytesAhead = 16 * kLineBytes;

// What the device has written is in no cache.
[[gnu::always_inline]] inline void AskForRecord(const LogReadItem& item) {
  if (item.record == nullptr) return;
  const uint32_t bytes = std::min(item.bytes, kBytesAhead);
  for (uint32_t i = 0; i < bytes; i += kLineBytes) __builtin_prefetch(item.record + i);
  __builtin_prefetch(item.record + bytes - 1);
}

}  // namespace

Status RowLog::Read(std::span<const Location> locations, Visit visit, uint64_t bridged_bytes,
                    FunctionRef<void(size_t)> ahead) {
  Scratch<ReadOrder, 64> memory;
  EMBANK_RETURN_IF_ERROR(memory.Allocate(locations.size()));
  const std::span<ReadOrder> order = memory.values();
  for (size_t i = 0; i < order.size(); ++i) order[i] = {locations[i].units, i};
  std::sort(order.begin(), order.end(),
            [](const ReadOrder& a, const ReadOrder& b) { return a.units < b.units; });
  struct Loan {
    ~Loan() {
      list->Clear();
      log->GiveBack(std::move(list));
    }
    RowLog* log;
    std::unique_ptr<LogReadList> list;
  };
  const Loan loan = {this, TakeReadList()};
  LogReadList* const list = loan.list.get();
  for (size_t done = 0; done < order.size();) {
    list->Clear();
    done += Plan(order.subspan(done), bridged_bytes, list);
    files_->TransferAll(list->transfers());
    const std::span<const LogReadItem> items = list->items();
    for (size_t next = 0; next < items.size() + kItemsAhead; ++next) {
      if (next < items.size()) {
        AskForRecord(items[next]);
        ahead(items[next].i);
      }
      if (next < kItemsAhead) continue;
      const LogReadItem& item = items[next - kItemsAhead];
      const Status status = list->Finish(item);
      visit(item.i, status,
            status.ok() ? std::span(item.record, item.bytes) : std::span<const std::byte>());
    }
  }
  return OkStatus();
}

// The segment of a location, and what is to be read; nullptr: there is no such slot.
std::shared_ptr<LogSegment> RowLog::Locate(Location location, LogReadItem* item) const {
  const SegmentIndex index = IndexOf(location);
  if (location.tier() != Tier::kSsd || index >= segments_.size()) return nullptr;
  std::shared_ptr<LogSegment> segment = segments_[index];
  if (segment == nullptr || !segment->geometry.IsSlotAt(OffsetOf(location))) return nullptr;
  item->place = {options_.store_id, segment->header.segment_id,
                 segment->geometry.SlotAt(OffsetOf(location))};
  item->bytes = segment->geometry.record_bytes;
  return segment;
}

// Puts as many reads into the list as fit, and what is in buffers; how many.
size_t RowLog::Plan(std::span<const ReadOrder> order, uint64_t bridged_bytes, LogReadList* list) {
  ReaderMutexLock lock(&mutex_);
  size_t done = 0;
  uint64_t read_rows = 0;
  for (const ReadOrder& read : order) {
    LogReadItem item = {.i = read.i};
    const std::shared_ptr<LogSegment> segment = Locate({read.units}, &item);
    if (!list->HasRoomFor(item.bytes)) break;
    ++done;
    if (segment == nullptr) {
      list->AddMissing(item);
      continue;
    }
    const uint64_t offset = OffsetOf({read.units});
    const std::byte* const buffered = FindBuffered(segment.get(), offset, item.bytes);
    if (buffered != nullptr) {
      list->AddBuffered(item, segment, buffered);
      ++counters_.buffered_reads;
    } else {
      list->AddRead(item, segment, offset, bridged_bytes);
      ++read_rows;
    }
  }
  counters_.read_rows += read_rows;
  for (const Transfer& transfer : list->transfers()) counters_.read_bytes += transfer.bytes.size();
  counters_.reads += list->transfers().size();
  return done;
}

StatusOr<std::span<const std::byte>> RowLog::ReadOne(Location location, RecordScratch* scratch) {
  LogReadItem item;
  const uint64_t offset = OffsetOf(location);
  const uint64_t begin = RoundDown(offset, kBlockBytes);
  item.record = scratch->bytes + (offset - begin);
  std::shared_ptr<LogSegment> segment;
  {
    ReaderMutexLock lock(&mutex_);
    segment = Locate(location, &item);
    if (segment == nullptr) return NoRecord();
    const std::byte* const buffered = FindBuffered(segment.get(), offset, item.bytes);
    if (buffered != nullptr) {
      std::memcpy(scratch->bytes, buffered, item.bytes);
      ++counters_.buffered_reads;
      return std::span<const std::byte>(scratch->bytes, item.bytes);
    }
  }
  const uint64_t end = RoundUp(offset + item.bytes, kBlockBytes);
  Transfer transfer = {.kind = Transfer::Kind::kRead,
                       .file = segment->file.get(),
                       .offset = begin,
                       .bytes = {scratch->bytes, end - begin},
                       .status = {}};
  transfer.status = transfer.file->Read(transfer.offset, transfer.bytes);
  ++counters_.reads;
  ++counters_.read_rows;
  counters_.read_bytes += transfer.bytes.size();
  EMBANK_RETURN_IF_ERROR(VerifyRecord(item, transfer));
  return std::span<const std::byte>(item.record, item.bytes);
}

bool RowLog::OwnerOf(Location location, RecordScratch* scratch, SlotOwner* owner) {
  LogReadItem item;
  std::shared_ptr<LogSegment> segment;
  {
    ReaderMutexLock lock(&mutex_);
    segment = Locate(location, &item);
    if (segment == nullptr) return false;
    if (!segment->finished) {
      if (item.place.slot >= segment->used_slots) return false;
      *owner = {segment->tables()[item.place.slot], segment->keys()[item.place.slot]};
      return owner->table != kNoTable;
    }
  }
  if (told_owners_.Find(item.place, owner)) return owner->table != kNoTable;
  const StatusOr<SlotOwner> told =
      ReadSlotOwner(segment->header, item.place.slot, segment->file.get(), scratch->bytes);
  if (told.ok()) *owner = *told;
  // A device that fails may tell later.
  if (told.ok() || IsDataLoss(told.status())) {
    told_owners_.Add(item.place, told.value_or(SlotOwner{kNoTable, 0}));
  }
  return told.ok();
}

Status RowLog::VisitOwners(uint32_t row_class, VisitOwner visit) {
  std::vector<std::shared_ptr<LogSegment>> segments;
  {
    ReaderMutexLock lock(&mutex_);
    for (const auto& segment : segments_) {
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
      visit(LocationOf(*segment, slot), footer.tables[slot], footer.keys[slot]);
    }
  }
  return status;
}

std::shared_ptr<const LogSegment> RowLog::Hold(Location location) const {
  ReaderMutexLock lock(&mutex_);
  return segments_[IndexOf(location)];
}

Status RowLog::OwnersOf(const LogSegment& segment, MemoryBudget* budget, AlignedBuffer* memory,
                        SegmentFooter* owners) {
  const Status read = ReadFooter(segment, budget, memory, owners);
  return IsDataLoss(read) ? OwnersOfRecords(segment, memory, owners) : read;
}

// A copy of what is in memory until the footer is written; the footer from then on.
Status RowLog::ReadFooter(const LogSegment& segment, MemoryBudget* budget, AlignedBuffer* memory,
                          SegmentFooter* footer) {
  EMBANK_ASSIGN_OR_RETURN(*memory,
                          AlignedBuffer::Create(source_, budget, segment.geometry.footer_bytes));
  const std::span bytes(memory->data(), segment.geometry.footer_bytes);
  bool in_memory = false;
  {
    ReaderMutexLock lock(&mutex_);
    in_memory = !segment.finished;
    if (in_memory) EncodeSegmentFooter(segment.header, segment.Owners(), bytes);
  }
  if (!in_memory) {
    const Status read = segment.file->Read(segment.geometry.footer_offset, bytes);
    if (IsOutOfRange(read)) return DataLossError("the segment's footer is cut off");
    EMBANK_RETURN_IF_ERROR(read);
  }
  EMBANK_ASSIGN_OR_RETURN(*footer, DecodeSegmentFooter(segment.header, bytes));
  // Whoever had less of the segment may have written a damaged footer anew
  // (store/checkpoint/export.h).
  if (!in_memory && footer->keys.size() < segment.used_slots) {
    return DataLossError("the segment's footer has too few slots");
  }
  return OkStatus();
}

// What a damaged footer said, from the records that can be read.
Status RowLog::OwnersOfRecords(const LogSegment& segment, AlignedBuffer* memory,
                               SegmentFooter* footer) {
  constexpr uint32_t kSlotsAtATime = 512;
  std::vector<Key> keys(segment.used_slots);
  std::vector<TableId> tables(segment.used_slots, kNoTable);
  std::vector<Location> locations;
  uint32_t lost = 0;
  for (uint32_t begin = 0; begin < segment.used_slots; begin += kSlotsAtATime) {
    const uint32_t end = std::min(begin + kSlotsAtATime, segment.used_slots);
    locations.clear();
    for (uint32_t slot = begin; slot < end; ++slot) locations.push_back(LocationOf(segment, slot));
    EMBANK_RETURN_IF_ERROR(
        Read(locations, [&](size_t i, const Status& read, std::span<const std::byte> record) {
          lost += read.ok() ? 0 : 1;
          if (!read.ok()) return;
          const RecordHeader header = LoadRecordHeader(record);
          keys[begin + i] = header.key;
          tables[begin + i] = header.table;
        }));
  }
  Log(LogLevel::kWarning,
      StrCat(options_.directory->PathOf(segment.name),
             ": its footer is damaged; its records tell whose they are, but for ", lost, " of ",
             segment.used_slots, " which cannot be read or were never written"));
  const std::span bytes(memory->data(), segment.geometry.footer_bytes);
  EncodeSegmentFooter(segment.header, {keys, tables}, bytes);
  EMBANK_ASSIGN_OR_RETURN(*footer, DecodeSegmentFooter(segment.header, bytes));
  return OkStatus();
}

// Where a record stands in a buffer; nullptr: it is in the file.
const std::byte* RowLog::FindBuffered(const LogSegment* segment, uint64_t offset,
                                      uint32_t bytes) const {
  for (const std::unique_ptr<LogBuffer>& buffer : buffers_) {
    if (buffer->segment.get() != segment) continue;
    if (buffer->first <= offset && offset + bytes <= buffer->end) return buffer->At(offset);
  }
  return nullptr;
}

std::unique_ptr<LogReadList> RowLog::TakeReadList() {
  MutexLock lock(&read_mutex_);
  while (idle_read_lists_.empty()) read_list_free_.Wait(&read_mutex_);
  std::unique_ptr<LogReadList> list = std::move(idle_read_lists_.back());
  idle_read_lists_.pop_back();
  return list;
}

void RowLog::GiveBack(std::unique_ptr<LogReadList> list) {
  {
    MutexLock lock(&read_mutex_);
    idle_read_lists_.push_back(std::move(list));
  }
  read_list_free_.NotifyAll();
}

}  // namespace embank
