#include "tiers/log/log_appender.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "tiers/segment/segment_space.h"
#include "tiers/space/segment_size.h"

namespace embank {

LogAppender::LogAppender(LogSegments& segments, DeadSegments& dead, LogWriter& writer,
                         const CompactionCandidates& candidates, const RowLogOptions& options,
                         RowLogCounters& counters)
    : segments_(segments),
      dead_(dead),
      writer_(writer),
      candidates_(candidates),
      options_(options),
      counters_(counters),
      next_sequence_(options.first_sequence) {}

Status LogAppender::Init(MemorySource* source, MemoryBudget* budget) {
  MutexLock lock(segments_.mutex());
  EMBANK_ASSIGN_OR_RETURN(header_block_, AlignedBuffer::Create(source, budget, kBlockBytes));
  return OkStatus();
}

StatusOr<Location> LogAppender::Append(LogStream stream, const RowToLog& row) {
  Location location;
  size_t count = 0;
  EMBANK_RETURN_IF_ERROR(AppendAll(stream, {&row, 1}, {&location, 1}, &count));
  return location;
}

Status LogAppender::AppendAll(LogStream stream, std::span<const RowToLog> rows,
                              std::span<Location> locations, size_t* count) {
  EMBANK_CHECK(locations.size() >= rows.size());
  bool queued = false;
  Status status;
  *count = 0;
  {
    MutexLock lock(segments_.mutex());
    writer_.AssertHeld();
    const uint64_t turn = writer_.buffers().turn();
    const uint64_t dead_segments = counters_.dead_segments;
    for (; *count < rows.size() && status.ok(); *count += status.ok() ? 1 : 0) {
      status = AppendLocked(stream, rows[*count], &locations[*count]);
    }
    // The background task may free space before the next attempt.
    queued = writer_.buffers().turn() != turn || counters_.dead_segments != dead_segments ||
             !status.ok();
  }
  if (queued) writer_.Wake();
  counters_.appended_rows += *count;
  if (stream == LogStream::kCompaction) counters_.compacted_rows += *count;
  return status;
}

Status LogAppender::AppendLocked(LogStream stream, const RowToLog& row, Location* location) {
  try {
    OpenSegment* const open = OpenOf(stream, row.row_class);
    EMBANK_RETURN_IF_ERROR(MakeSlot(open, row));
    *location = Put(open, row);
    return OkStatus();
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
}

OpenSegment* LogAppender::OpenOf(LogStream stream, uint32_t row_class) {
  for (const std::unique_ptr<OpenSegment>& open : open_) {
    if (open->stream == stream && open->row_class == row_class) return open.get();
  }
  open_.push_back(std::make_unique<OpenSegment>(stream, row_class));
  return open_.back().get();
}

// Makes sure that a slot is free and in a buffer, and that there is a next buffer if the slot
// reaches into it. Releases the lock while it waits.
Status LogAppender::MakeSlot(OpenSegment* open, const RowToLog& row) {
  writer_.AssertHeld();
  while (true) {
    EMBANK_RETURN_IF_ERROR(writer_.failure());
    if (open->segment != nullptr && open->segment->used_slots == open->segment->geometry.slots) {
      EndSegment(open);
    }
    if (open->segment == nullptr) {
      EMBANK_ASSIGN_OR_RETURN(const bool has_begun, BeginSegment(open, row));
      if (!has_begun) continue;
    }
    EMBANK_RETURN_IF_ERROR(
        TakeSpaceForNext(open->segment.get(),
                         StepBytesFor(open->segment->header.segment_bytes, open->written_bytes)));
    if (TakeBuffers(open)) return OkStatus();
  }
}

// ---- segments ----

// Compaction leaves reserved space to dirty rows, and keeps the space that it needs to free more.
bool LogAppender::IsFull(LogStream stream) const {
  if (stream == LogStream::kUser) {
    // Without reservations compaction's segments are left to it here.
    return options_.has_reservations ? !segments_.accounts().HasSegment(SegmentPurpose::kDirtyRows)
                                     : segments_.accounts().SpareSegments() <= 0;
  }
  candidates_.AssertReaderHeld();
  return !segments_.accounts().HasSegment(candidates_.BringsSpace()
                                              ? SegmentPurpose::kCompactionThatFrees
                                              : SegmentPurpose::kCompaction);
}

// False: look again; the lock was released meanwhile.
StatusOr<bool> LogAppender::BeginSegment(OpenSegment* open, const RowToLog& row) {
  dead_.AssertHeld();
  dead_.Collect();
  if (IsFull(open->stream) && dead_.RemoveOneOrWait()) return false;
  if (IsFull(open->stream)) return segments_.NoSpace();
  const uint64_t segment_bytes =
      segments_.NextSegmentBytes(row.row_class, row.record_bytes, open->written_bytes);
  StatusOr<std::shared_ptr<LogSegment>> made =
      segments_.Make(open->stream, row.row_class, row.record_bytes, segment_bytes);
  if (!made.ok() && FreeMemory(open)) return false;
  EMBANK_RETURN_IF_ERROR(made.status());
  std::shared_ptr<LogSegment> segment = *std::move(made);
  const uint64_t step_bytes = StepBytesFor(segment_bytes, open->written_bytes);
  if (Status status = MakeFile(segment.get(), step_bytes); !status.ok()) {
    // Its bits were reserved for dirty rows.
    segment.reset();
    segments_.mutable_accounts().RestoreBits();
    return status;
  }
  // The reservation of dirty rows shrinks before the segment takes the space, so that no thread
  // sees less space than there is.
  EMBANK_CHECK(open->segment == nullptr && open->buffer == nullptr && open->tail_bytes == 0);
  open->segment = segment;
  NoteOpenSlots(*open);
  segments_.Put(std::move(segment));
  return true;
}

// Gives the segment a place, and a file. A file on damaged blocks of PMem keeps them until another
// one is made, which has others.
Status LogAppender::MakeFile(LogSegment* segment, uint64_t step_bytes) {
  EMBANK_ASSIGN_OR_RETURN(segment->index, segments_.FreePlace());
  writer_.AssertHeld();
  writer_.ReserveLists(segments_.all().size());
  constexpr size_t kDamagedFilesMax = 3;
  std::array<std::unique_ptr<File>, kDamagedFilesMax> damaged;
  Status status = MakeOneFile(segment, step_bytes);
  for (std::unique_ptr<File>& file : damaged) {
    if (options_.tier != Tier::kPmem || !IsUnavailable(status)) break;
    file = std::move(segment->file);
    status = MakeOneFile(segment, step_bytes);
  }
  if (status.ok()) ++counters_.written_buffers;
  return status;
}

// Makes a file with the segment's header. After an error it has no name.
Status LogAppender::MakeOneFile(LogSegment* segment, uint64_t step_bytes) {
  EMBANK_ASSIGN_OR_RETURN(
      segment->file,
      options_.directory->Open(segment->name, FileAccess::kCreate, FileCaching::kDirect));
  EncodeSegmentHeader(segment->header, {header_block_.data(), kBlockBytes});
  // Budgets count whole segments.
  const bool is_whole = options_.ssd_bytes != 0 || options_.tier == Tier::kPmem;
  Status status = TakeFirstSpace(segment, step_bytes, is_whole);
  if (status.ok()) status = segment->Write(0, {header_block_.data(), kBlockBytes});
  if (!status.ok()) options_.directory->Remove(segment->name).IgnoreError();
  return status;
}

// Frees memory that finished segments release with their footers; ends another segment of
// compaction for that. False: there is none. Releases the lock.
bool LogAppender::FreeMemory(const OpenSegment* open) {
  writer_.AssertHeld();
  if (writer_.WriteFooterOrWait()) return true;
  if (open->stream == LogStream::kUser) return false;
  for (const std::unique_ptr<OpenSegment>& other : open_) {
    if (other->stream == LogStream::kUser || other->segment == nullptr) continue;
    EndSegment(other.get());
    return true;
  }
  return false;
}

void LogAppender::EndSegment(OpenSegment* open) {
  EMBANK_CHECK(open->segment != nullptr && open->next == nullptr);
  if (open->buffer != nullptr) QueueBuffer(open);
  open->tail_bytes = 0;
  writer_.AssertHeld();
  writer_.QueueFooter(std::move(open->segment));
  open->segment = nullptr;
  NoteOpenSlots(*open);
}

void LogAppender::NoteOpenSlots(const OpenSegment& open) {
  if (open.stream != LogStream::kUser) return;
  const LogSegment* const segment = open.segment.get();
  EMBANK_CHECK(segment == nullptr || segment->used_slots <= segment->geometry.slots);
  segments_.mutable_accounts().SetOpenSlots(
      open.row_class, segment == nullptr ? 0 : segment->geometry.slots - segment->used_slots);
}

// ---- buffers ----

// Takes a buffer for the next record, and one for its end if that is in a further one. False: look
// again; the lock was released meanwhile.
bool LogAppender::TakeBuffers(OpenSegment* open) {
  const SegmentGeometry& geometry = open->segment->geometry;
  EMBANK_CHECK(open->next == nullptr && open->segment->used_slots < geometry.slots);
  const uint64_t offset = geometry.OffsetOf(open->segment->used_slots);
  if (open->buffer == nullptr) {
    LogBuffer* const free = TakeFreeBuffer();
    if (free == nullptr) return false;
    BeginBuffer(open, free);
  }
  const uint64_t cut = open->buffer->begin + options_.buffer_bytes;
  if (offset + geometry.record_bytes < cut) return true;
  open->wants_next = true;
  LogBuffer* const free = TakeFreeBuffer();
  open->wants_next = false;
  if (free == nullptr) return false;
  open->next = free;
  return true;
}

// nullptr: look again; the lock was released meanwhile.
LogBuffer* LogAppender::TakeFreeBuffer() {
  writer_.AssertHeld();
  if (!writer_.failure().ok()) return nullptr;
  if (LogBuffer* const free = writer_.buffers().TakeFree(); free != nullptr) return free;
  // All buffers may be being filled, if there are more row classes than buffers.
  if (!writer_.WriteOneOrWait()) QueueFullest();
  return nullptr;
}

// The next record begins in the block in which the last one ended.
void LogAppender::BeginBuffer(OpenSegment* open, LogBuffer* buffer) {
  EMBANK_CHECK(open->buffer == nullptr && open->tail_bytes < kBlockBytes);
  const uint64_t offset = open->segment->geometry.OffsetOf(open->segment->used_slots);
  buffer->Begin(open->segment, RoundDown(offset, kBlockBytes));
  std::copy_n(open->tail.begin(), open->tail_bytes, buffer->At(buffer->begin));
  buffer->end += std::exchange(open->tail_bytes, 0);
  EMBANK_CHECK(buffer->end <= offset);
  open->buffer = buffer;
}

Location LogAppender::Put(OpenSegment* open, const RowToLog& row) {
  LogSegment& segment = *open->segment;
  LogBuffer* const buffer = open->buffer;
  EMBANK_CHECK(buffer->segment == open->segment && buffer->state == LogBuffer::State::kFilling);
  EMBANK_CHECK(segment.header.row_class == row.row_class && !segment.finished);
  const uint32_t slot = segment.used_slots;
  const uint64_t offset = segment.geometry.OffsetOf(slot);
  const uint64_t end = offset + row.record_bytes;
  const std::span record = WriteRecord(*open, row);
  buffer->end = end;
  segment.UseSlot(row.key, row.table);
  open->written_bytes += row.record_bytes;
  if (row.was_dirty && options_.has_reservations) {
    segments_.mutable_accounts().UseReservation(row.row_class);
  }
  NoteOpenSlots(*open);
  segments_.AddRecord(&segment, slot, row);

  const uint64_t cut = buffer->begin + options_.buffer_bytes;
  if (end >= cut) {
    LogBuffer* const next = std::exchange(open->next, nullptr);
    EMBANK_CHECK(next != nullptr);
    next->Begin(open->segment, cut);
    if (end > cut) {
      next->first = offset;
      next->end = end;
      std::memcpy(next->At(offset), record.data(), record.size());
    }
    QueueBuffer(open);
    open->buffer = next;
  }
  EMBANK_CHECK(open->next == nullptr && open->buffer->begin <= end);
  return segment.LocationOf(slot);
}

// Writes the row's record into the buffer, in the segment's next slot.
std::span<std::byte> LogAppender::WriteRecord(const OpenSegment& open, const RowToLog& row) {
  const LogSegment& segment = *open.segment;
  const LogBuffer& buffer = *open.buffer;
  const uint32_t slot = segment.used_slots;
  const std::span record(buffer.At(segment.geometry.OffsetOf(slot)), row.record_bytes);
  EMBANK_CHECK(row.record_bytes == segment.geometry.record_bytes &&
               row.record_bytes <= options_.buffer_bytes &&
               row.payload.size() <= row.record_bytes - sizeof(RecordHeader));
  // Slots that were left out, and the rest behind the payload, become zeros instead of bytes of an
  // older use of the buffer.
  std::fill(buffer.At(buffer.end), record.data(), std::byte{0});
  std::byte* const payload = record.data() + sizeof(RecordHeader);
  std::copy(row.payload.begin(), row.payload.end(), payload);
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
  return record;
}

// Queues the buffer that is being filled, to be written up to its end now.
void LogAppender::QueueBuffer(OpenSegment* open) {
  writer_.AssertHeld();
  writer_.buffers().Queue(std::exchange(open->buffer, nullptr));
}

// Like QueueBuffer, for a buffer that is not full: the block in which it ends is not written again.
void LogAppender::QueuePart(OpenSegment* open) {
  QueueBuffer(open);
  SkipBlock(open);
}

void LogAppender::SkipBlock(OpenSegment* open) {
  LogSegment& segment = *open->segment;
  const uint32_t fresh =
      std::min(segment.geometry.SlotInFreshBlock(segment.used_slots), segment.geometry.slots);
  EMBANK_CHECK(segment.used_slots <= fresh);
  while (segment.used_slots < fresh) segment.UseSlot(0, kNoTable);
  open->tail_bytes = 0;
  NoteOpenSlots(*open);
}

// The buffer becomes free for other classes. The next buffer continues in the block in which this
// one ends, which no sync has made durable. So no slot is left out; otherwise many classes would
// take much more space than their records.
void LogAppender::QueueFullest() {
  OpenSegment* fullest = nullptr;
  const auto bytes_of = [&](const OpenSegment* open) -> int64_t {
    const auto bytes = static_cast<int64_t>(open->buffer->end - open->buffer->begin);
    // A thread that wants two buffers would get the same one again, with only a tail in it.
    const auto bytes_min = static_cast<int64_t>(std::max(options_.buffer_bytes / 2, kBlockBytes));
    return open->wants_next && bytes < bytes_min ? -1 : bytes;
  };
  for (const std::unique_ptr<OpenSegment>& open : open_) {
    if (open->buffer == nullptr) continue;
    if (fullest == nullptr || bytes_of(open.get()) > bytes_of(fullest)) fullest = open.get();
  }
  EMBANK_CHECK(fullest != nullptr);
  const LogBuffer& buffer = *fullest->buffer;
  const uint64_t tail = RoundDown(buffer.end, kBlockBytes);
  fullest->tail_bytes = buffer.end - tail;
  std::copy_n(buffer.At(tail), fullest->tail_bytes, fullest->tail.begin());
  QueueBuffer(fullest);
}

// ---- durability ----

Status LogAppender::Flush() {
  MutexLock lock(segments_.mutex());
  writer_.AssertHeld();
  for (const std::unique_ptr<OpenSegment>& open : open_) {
    if (open->buffer != nullptr) QueuePart(open.get());
    if (open->tail_bytes > 0) SkipBlock(open.get());
  }
  return writer_.WriteAll();
}

Status LogAppender::Sync() {
  MutexLock sync_lock(&sync_mutex_);
  EMBANK_RETURN_IF_ERROR(Flush());
  return writer_.SyncWritten();
}

uint64_t LogAppender::next_sequence() const {
  ReaderMutexLock lock(segments_.mutex());
  return next_sequence_;
}

}  // namespace embank
