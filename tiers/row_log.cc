#include "tiers/row_log.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/log.h"
#include "base/scratch.h"
#include "base/status_macros.h"
#include "base/status_with_room.h"

namespace embank {
namespace {

constexpr const char* kSegmentPrefix = "segment-";

// Nothing to be told of is worth more memory than there is.
void Tell(LogLevel level, const char* what, const absl::Status& status) noexcept {
  try {
    Log(level, absl::StrCat(what, ": ", status.ToString()));
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace

struct RowLog::OpenSegment {
  OpenSegment(LogStream of, uint32_t its_class) : stream(of), row_class(its_class) {}
  const LogStream stream;
  const uint32_t row_class;
  std::shared_ptr<LogSegment> segment;  // nullptr: the next record begins one
  LogBuffer* buffer = nullptr;          // where the next record goes
  LogBuffer* next = nullptr;            // taken for the record that goes on there
};

RowLog::RowLog(FileSystem* files, MemorySource* source, MemoryBudget* budget, RowLogOptions options)
    : files_(files), source_(source), budget_(budget), options_(std::move(options)) {}

absl::StatusOr<std::unique_ptr<RowLog>> RowLog::Create(FileSystem* files, MemorySource* source,
                                                       MemoryBudget* budget, Executor* executor,
                                                       RowLogOptions options) {
  EMBANK_CHECK(options.segment_bytes % kBlockBytes == 0 &&
               options.segment_bytes <= uint64_t{kLocationUnitBytes} << kOffsetBits);
  EMBANK_CHECK(options.buffer_bytes % kBlockBytes == 0 && options.buffer_bytes > 0);
  EMBANK_CHECK(options.buffers >= 2 && options.read_bytes >= 2 * kBufferOverhangBytes);
  std::unique_ptr<RowLog> log(new RowLog(files, source, budget, std::move(options)));
  EMBANK_RETURN_IF_ERROR(log->Init(executor));
  return log;
}

absl::Status RowLog::Init(Executor* executor) {
  if (options_.ssd_bytes != 0 && options_.ssd_bytes < options_.segment_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("ssd_bytes: ", options_.ssd_bytes,
                                                   " bytes do not hold a segment of ",
                                                   options_.segment_bytes));
  }
  EMBANK_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_->List(options_.directory));
  for (const std::string& name : names) {
    if (!name.starts_with(kSegmentPrefix)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(options_.directory, " has a segment of a log already: ", name));
  }
  MutexLock lock(&mutex_);
  EMBANK_ASSIGN_OR_RETURN(header_block_, AlignedBuffer::Create(source_, budget_, kBlockBytes));
  for (uint32_t i = 0; i < options_.buffers; ++i) {
    buffers_.push_back(std::make_unique<LogBuffer>());
    EMBANK_ASSIGN_OR_RETURN(
        buffers_.back()->memory,
        AlignedBuffer::Create(source_, budget_, options_.buffer_bytes + 2 * kBufferOverhangBytes));
  }
  MutexLock read_lock(&read_mutex_);
  for (uint32_t i = 0; i < options_.read_lists; ++i) {
    idle_read_lists_.push_back(LogReadList::Create(source_, budget_, options_.read_bytes));
    if (idle_read_lists_.back() == nullptr) return NoMemory();
  }
  writer_ = executor->MakeBackgroundTask([this] {
    MutexLock step_lock(&mutex_);
    return WriteOne();
  });
  return absl::OkStatus();
}

RowLog::~RowLog() { writer_.reset(); }

// ---- appending ----

absl::StatusOr<Location> RowLog::Append(LogStream stream, const RowToLog& row) {
  bool queued = false;
  absl::StatusOr<Location> location;
  {
    MutexLock lock(&mutex_);
    const uint64_t turn = next_turn_;
    try {
      location = AppendLocked(stream, row);
    } catch (const std::bad_alloc&) {
      location = NoMemory();
    }
    // Whether there is room next time may depend on what is done aside.
    queued = next_turn_ != turn || !location.ok();
  }
  if (queued) writer_->Wake();
  if (!location.ok()) return location;
  ++counters_.appended_rows;
  return location;
}

absl::StatusOr<Location> RowLog::AppendLocked(LogStream stream, const RowToLog& row) {
  OpenSegment* const open = OpenOf(stream, row.row_class);
  EMBANK_RETURN_IF_ERROR(MakeRoom(open, row));
  return Put(open, row);
}

RowLog::OpenSegment* RowLog::OpenOf(LogStream stream, uint32_t row_class) {
  for (const std::unique_ptr<OpenSegment>& open : open_) {
    if (open->stream == stream && open->row_class == row_class) return open.get();
  }
  open_.push_back(std::make_unique<OpenSegment>(stream, row_class));
  return open_.back().get();
}

// Makes sure that a slot is free and in a buffer, and the next buffer at hand if the slot reaches
// into it. Gives the lock up while it waits.
absl::Status RowLog::MakeRoom(OpenSegment* open, const RowToLog& row) {
  while (true) {
    EMBANK_RETURN_IF_ERROR(failure_);
    if (open->segment != nullptr && open->segment->used_slots == open->segment->geometry.slots) {
      EndSegment(open);
    }
    if (open->segment == nullptr) {
      PartFromDeadSegments();
      if (IsFull() && RemoveOne()) continue;
      EMBANK_RETURN_IF_ERROR(AddSegment(open, row));
    }
    const SegmentGeometry& geometry = open->segment->geometry;
    const uint64_t offset = geometry.OffsetOf(open->segment->used_slots);
    if (open->buffer == nullptr) {
      LogBuffer* const free = TakeFreeBuffer();
      if (free == nullptr) continue;
      free->Begin(open->segment, RoundDown(offset, kBlockBytes));
      open->buffer = free;
    }
    const uint64_t cut = open->buffer->begin + options_.buffer_bytes;
    if (offset + geometry.record_bytes < cut) return absl::OkStatus();
    LogBuffer* const free = TakeFreeBuffer();
    if (free == nullptr) continue;
    open->next = free;
    return absl::OkStatus();
  }
}

Location RowLog::Put(OpenSegment* open, const RowToLog& row) {
  LogSegment& segment = *open->segment;
  LogBuffer* const buffer = open->buffer;
  const uint32_t slot = segment.used_slots;
  const uint64_t offset = segment.geometry.OffsetOf(slot);
  const uint64_t end = offset + row.record_bytes;
  const std::span record(buffer->At(offset), row.record_bytes);
  EMBANK_CHECK(row.record_bytes == segment.geometry.record_bytes &&
               row.record_bytes <= options_.buffer_bytes &&
               row.payload.size() <= row.record_bytes - sizeof(RecordHeader));
  // What was left out before, and what the payload leaves, is zeros, not an older use of the
  // buffer.
  std::fill(buffer->At(buffer->end), record.data(), std::byte{0});
  std::byte* const payload = record.data() + sizeof(RecordHeader);
  std::memcpy(payload, row.payload.data(), row.payload.size());
  std::fill(payload + row.payload.size(), record.data() + record.size(), std::byte{0});
  SealRecord({options_.store_id, segment.header.segment_id, slot},
             {.crc = 0,
              .row_class = row.row_class,
              .table = row.table,
              .key = row.key,
              .sequence = next_sequence_++,
              .heat = row.heat,
              .checkpoint = row.checkpoint},
             record);
  buffer->end = end;
  segment.UseSlot(row.key, row.table);
  segment.SetLive(slot, true);

  const uint64_t cut = buffer->begin + options_.buffer_bytes;
  if (end >= cut) {
    LogBuffer* const next = std::exchange(open->next, nullptr);
    next->Begin(open->segment, cut);
    if (end > cut) {
      next->first = offset;
      next->end = end;
      std::memcpy(next->At(offset), record.data(), record.size());
    }
    HandOver(open);
    open->buffer = next;
  }
  return LocationOnSsd(uint64_t{segment.index} << kOffsetBits | offset / kLocationUnitBytes);
}

absl::Status RowLog::AddSegment(OpenSegment* open, const RowToLog& row) {
  const auto free = std::find(segments_.begin(), segments_.end(), nullptr);
  const auto index = static_cast<SegmentIndex>(free - segments_.begin());
  if (index == kSegmentsMax || IsFull()) {
    const uint64_t count = CountSegments();
    return StatusWithRoom(absl::StatusCode::kResourceExhausted, [&] {
      return absl::StrCat("the log has ", count, " segments of ", options_.segment_bytes,
                          " bytes, and no room for another");
    });
  }
  auto segment = std::make_shared<LogSegment>();
  segment->header = {.store_id = options_.store_id,
                     .segment_id = next_segment_id_++,
                     .row_class = row.row_class,
                     .record_bytes = row.record_bytes,
                     .segment_bytes = options_.segment_bytes};
  segment->geometry = SegmentGeometry::Of(row.record_bytes, options_.segment_bytes);
  segment->index = index;
  EMBANK_CHECK(segment->geometry.slots > 0);
  EMBANK_ASSIGN_OR_RETURN(segment->slots,
                          AlignedBuffer::Create(source_, budget_, segment->SlotBytes()));
  EMBANK_ASSIGN_OR_RETURN(
      segment->live,
      AlignedBuffer::Create(source_, budget_, RoundUp(segment->geometry.slots, 64) / 8));
  if (free == segments_.end()) segments_.push_back(nullptr);
  // So that none of them fails to be put there.
  ended_.reserve(segments_.size());
  dead_.reserve(dead_.size() + segments_.size());
  segment->path = absl::StrCat(options_.directory, "/", kSegmentPrefix,
                               absl::Hex(segment->header.segment_id, absl::kZeroPad16));
  EMBANK_ASSIGN_OR_RETURN(segment->file,
                          files_->Open(segment->path, FileAccess::kCreate, FileCaching::kDirect));
  EncodeSegmentHeader(segment->header, {header_block_.data(), kBlockBytes});
  absl::Status status = segment->file->Preallocate(options_.segment_bytes);
  // Where space cannot be taken ahead, it is taken as it is written.
  if (absl::IsUnimplemented(status)) status = absl::OkStatus();
  if (status.ok()) status = segment->Write(0, {header_block_.data(), kBlockBytes});
  if (!status.ok()) {
    files_->Remove(segment->path).IgnoreError();
    return status;
  }
  segments_[index] = segment;
  open->segment = std::move(segment);
  return absl::OkStatus();
}

bool RowLog::IsFull() const {
  const uint64_t taken = CountSegments() + dead_.size() + removed_segments_;
  return options_.ssd_bytes != 0 && (taken + 1) * options_.segment_bytes > options_.ssd_bytes;
}

// Their indices are free for others, but while somebody reads from them: a record in the same place
// would be taken for the one that was there.
void RowLog::PartFromDeadSegments() {
  for (std::shared_ptr<LogSegment>& segment : segments_) {
    const bool dead = segment != nullptr && segment->finished && segment->live_rows == 0;
    if (!dead || segment.use_count() > 1) continue;
    dead_.push_back(std::move(segment));
    segment = nullptr;
    ++counters_.dead_segments;
    ++next_turn_;
  }
}

// Removes the file of a dead segment. Gives the lock up meanwhile.
bool RowLog::RemoveOne() {
  if (dead_.empty()) return false;
  const std::shared_ptr<LogSegment> segment = std::move(dead_.back());
  dead_.pop_back();
  ++removed_segments_;  // it takes its space until it is gone, maybe for ever
  mutex_.Unlock();
  const absl::Status status = files_->Remove(segment->path);
  mutex_.Lock();
  if (status.ok()) --removed_segments_;
  if (!status.ok()) Tell(LogLevel::kWarning, "a dead segment takes space", status);
  return true;
}

// ---- buffers ----

// A buffer to fill; nullptr: look again, the lock was given up meanwhile.
LogBuffer* RowLog::TakeFreeBuffer() {
  if (!failure_.ok()) return nullptr;
  for (const std::unique_ptr<LogBuffer>& buffer : buffers_) {
    if (buffer->state != LogBuffer::State::kFree) continue;
    buffer->state = LogBuffer::State::kFilling;
    return buffer.get();
  }
  if (WriteOne()) return nullptr;
  if (IsAnyBuffer(LogBuffer::State::kWriting)) {
    buffer_written_.Wait(&mutex_);
  } else {
    // All are being filled, for more row classes than there are buffers.
    HandOverFullest();
  }
  return nullptr;
}

bool RowLog::IsAnyBuffer(LogBuffer::State state) const {
  return std::any_of(buffers_.begin(), buffers_.end(),
                     [state](const auto& buffer) { return buffer->state == state; });
}

// Queues what is being filled, to be written up to where it is.
void RowLog::HandOver(OpenSegment* open) {
  LogBuffer* const buffer = std::exchange(open->buffer, nullptr);
  if (buffer->end == buffer->begin) {
    buffer->state = LogBuffer::State::kFree;
    buffer->segment.reset();
    return;
  }
  buffer->state = LogBuffer::State::kQueued;
  buffer->turn = next_turn_++;
}

// As HandOver, of a buffer that is not full: the block in which it ends is not written again.
void RowLog::HandOverPart(OpenSegment* open) {
  LogSegment& segment = *open->segment;
  HandOver(open);
  const uint32_t fresh =
      std::min(segment.geometry.SlotInFreshBlock(segment.used_slots), segment.geometry.slots);
  while (segment.used_slots < fresh) segment.UseSlot(0, kNoTable);
}

void RowLog::HandOverFullest() {
  OpenSegment* fullest = nullptr;
  const auto bytes_of = [](const OpenSegment* open) {
    return open->buffer->end - open->buffer->begin;
  };
  for (const std::unique_ptr<OpenSegment>& open : open_) {
    if (open->buffer == nullptr) continue;
    if (fullest == nullptr || bytes_of(open.get()) > bytes_of(fullest)) fullest = open.get();
  }
  EMBANK_CHECK(fullest != nullptr);
  HandOverPart(fullest);
}

void RowLog::EndSegment(OpenSegment* open) {
  if (open->buffer != nullptr) HandOver(open);
  ++next_turn_;
  ended_.push_back(std::move(open->segment));
  open->segment = nullptr;
}

// Writes a footer, or else the buffer that has waited longest: footers are few, and behind an
// endless queue of buffers none would ever be written. False: there was nothing to do, or the log
// has stopped. Gives the lock up while it writes.
bool RowLog::WriteOne() {
  if (!failure_.ok()) return false;
  if (WriteFooter()) return true;
  LogBuffer* first = nullptr;
  for (const std::unique_ptr<LogBuffer>& buffer : buffers_) {
    if (buffer->state != LogBuffer::State::kQueued) continue;
    if (first == nullptr || buffer->turn < first->turn) first = buffer.get();
  }
  if (first == nullptr) return RemoveOne();
  first->state = LogBuffer::State::kWriting;
  const uint64_t end =
      std::min(RoundUp(first->end, kBlockBytes), first->begin + options_.buffer_bytes);
  if (first->end < end) std::fill(first->At(first->end), first->At(end), std::byte{0});
  mutex_.Unlock();
  const absl::Status status =
      first->segment->Write(first->begin, {first->At(first->begin), end - first->begin});
  mutex_.Lock();
  if (status.ok()) {
    first->state = LogBuffer::State::kFree;
    counters_.written_bytes += end - first->begin;
    first->segment->unsynced = true;
    first->segment.reset();
  } else {
    first->state = LogBuffer::State::kQueued;
    Fail(status);
  }
  buffer_written_.NotifyAll();
  return true;
}

bool RowLog::WriteFooter() {
  if (ended_.empty()) return false;
  const std::shared_ptr<LogSegment> segment = ended_.back();
  const SegmentGeometry& geometry = segment->geometry;
  absl::StatusOr<AlignedBuffer> footer =
      AlignedBuffer::Create(source_, budget_, geometry.footer_bytes);
  if (!footer.ok()) return false;  // the next one to look may find memory
  ended_.pop_back();
  ++footers_under_way_;
  mutex_.Unlock();
  const std::span bytes(footer->data(), geometry.footer_bytes);
  EncodeSegmentFooter(
      segment->header,
      {{segment->keys(), segment->used_slots}, {segment->tables(), segment->used_slots}}, bytes);
  const absl::Status status = segment->Write(geometry.footer_offset, bytes);
  mutex_.Lock();
  --footers_under_way_;
  if (status.ok()) {
    segment->finished = true;
    counters_.written_bytes += bytes.size();
    segment->unsynced = true;
    segment->slots = AlignedBuffer();
  } else {
    ended_.push_back(segment);
    Fail(status);
  }
  buffer_written_.NotifyAll();
  return true;
}

void RowLog::Fail(const absl::Status& status) {
  if (!failure_.ok()) return;
  failure_ = status;
  Tell(LogLevel::kError, "the log takes no more rows", status);
}

absl::Status RowLog::Flush() {
  MutexLock lock(&mutex_);
  for (const std::unique_ptr<OpenSegment>& open : open_) {
    if (open->buffer != nullptr) HandOverPart(open.get());
  }
  const uint64_t last_turn = next_turn_;
  const auto is_waiting = [&](const auto& buffer) {
    return buffer->turn < last_turn && (buffer->state == LogBuffer::State::kQueued ||
                                        buffer->state == LogBuffer::State::kWriting);
  };
  while (failure_.ok() && (std::any_of(buffers_.begin(), buffers_.end(), is_waiting) ||
                           !ended_.empty() || footers_under_way_ > 0)) {
    if (WriteOne()) continue;
    const bool others_write = IsAnyBuffer(LogBuffer::State::kWriting) || footers_under_way_ > 0;
    if (failure_.ok() && !others_write) return NoMemory();
    if (others_write) buffer_written_.Wait(&mutex_);
  }
  return failure_;
}

absl::Status RowLog::Sync() {
  EMBANK_RETURN_IF_ERROR(Flush());
  std::vector<std::shared_ptr<LogSegment>> unsynced;
  {
    MutexLock lock(&mutex_);
    for (const std::shared_ptr<LogSegment>& segment : segments_) {
      if (segment != nullptr && segment->unsynced) unsynced.push_back(segment);
    }
    for (const std::shared_ptr<LogSegment>& segment : unsynced) segment->unsynced = false;
  }
  absl::Status status;
  for (const std::shared_ptr<LogSegment>& segment : unsynced) {
    if (status.ok()) status = segment->file->Sync();
  }
  if (status.ok()) status = files_->SyncDirectory(options_.directory);
  if (status.ok()) return status;
  MutexLock lock(&mutex_);
  Fail(status);
  return status;
}

// ---- reading ----

absl::Status RowLog::Read(std::span<const Location> locations, Visit visit) {
  Scratch<ReadOrder, 64> memory;
  EMBANK_RETURN_IF_ERROR(memory.Allocate(locations.size()));
  const std::span<ReadOrder> order = memory.values();
  for (size_t i = 0; i < order.size(); ++i) order[i] = {locations[i].units, i};
  std::sort(order.begin(), order.end(),
            [](const ReadOrder& a, const ReadOrder& b) { return a.units < b.units; });
  std::unique_ptr<LogReadList> list = TakeReadList();
  for (size_t done = 0; done < order.size();) {
    list->Clear();
    done += Plan(order.subspan(done), list.get());
    files_->TransferAll(list->transfers());
    for (const LogReadItem& item : list->items()) {
      const absl::Status status = list->Finish(item);
      visit(item.i, status,
            status.ok() ? std::span(item.record, item.bytes) : std::span<const std::byte>());
    }
  }
  list->Clear();
  GiveBack(std::move(list));
  return absl::OkStatus();
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
size_t RowLog::Plan(std::span<const ReadOrder> order, LogReadList* list) {
  ReaderMutexLock lock(&mutex_);
  size_t done = 0;
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
      list->AddRead(item, segment, offset);
    }
  }
  for (const Transfer& transfer : list->transfers()) counters_.read_bytes += transfer.bytes.size();
  counters_.reads += list->transfers().size();
  return done;
}

absl::StatusOr<std::span<const std::byte>> RowLog::ReadOne(Location location,
                                                           RecordScratch* scratch) {
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
  counters_.read_bytes += transfer.bytes.size();
  EMBANK_RETURN_IF_ERROR(VerifyRecord(item, transfer));
  return std::span<const std::byte>(item.record, item.bytes);
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

// ---- what lives ----

void RowLog::MarkDead(Location location) {
  MutexLock lock(&mutex_);
  LogSegment& segment = *segments_[IndexOf(location)];
  const uint64_t offset = OffsetOf(location);
  EMBANK_CHECK(segment.geometry.IsSlotAt(offset));
  EMBANK_CHECK(segment.SetLive(segment.geometry.SlotAt(offset), false));
}

uint64_t RowLog::live_rows() const {
  ReaderMutexLock lock(&mutex_);
  uint64_t rows = 0;
  for (const auto& segment : segments_) rows += segment == nullptr ? 0 : segment->live_rows;
  return rows;
}

uint64_t RowLog::segment_count() const {
  ReaderMutexLock lock(&mutex_);
  return CountSegments();
}

uint64_t RowLog::CountSegments() const {
  return static_cast<uint64_t>(std::count_if(segments_.begin(), segments_.end(),
                                             [](const auto& s) { return s != nullptr; }));
}

}  // namespace embank
