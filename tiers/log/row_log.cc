#include "tiers/log/row_log.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/memory/scratch.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "base/status_with_room.h"
#include "base/str_cat.h"
#include "base/threads/log.h"
#include "tiers/log/open_segment.h"

namespace embank {
namespace {

// Nothing to be told of is worth more memory than there is.
void Tell(LogLevel level, const char* what, const Status& status) noexcept {
  try {
    Log(level, StrCat(what, ": ", status.ToString()));
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace

void RowLog::NoteOpenSlots(const OpenSegment& open) {
  if (open.stream != LogStream::kUser) return;
  const LogSegment* const segment = open.segment.get();
  room_.SetOpenSlots(open.row_class,
                     segment == nullptr ? 0 : segment->geometry.slots - segment->used_slots);
  NoteSpare();
}

RowLog::RowLog(FileSystem* files, MemorySource* source, MemoryBudget* budget, RowLogOptions options)
    : files_(files),
      source_(source),
      budget_(budget),
      options_(options),
      memory_(source, budget),
      next_segment_id_(options_.first_segment_id),
      next_sequence_(options_.first_sequence),
      room_(options_.ssd_bytes, options_.segment_bytes),
      spare_segments_(0),
      pace_(options_.ssd_bytes, options_.segment_bytes) {}

std::string RowLog::SegmentName(uint64_t segment_id) {
  return StrCat("segment-", Hex(segment_id, 16));
}

StatusOr<std::unique_ptr<RowLog>> RowLog::Create(FileSystem* files, MemorySource* source,
                                                 MemoryBudget* budget, Executor* executor,
                                                 RowLogOptions options) {
  EMBANK_CHECK(options.segment_bytes % kBlockBytes == 0 &&
               options.segment_bytes <= kSegmentBytesMax);
  EMBANK_CHECK(options.buffer_bytes % kBlockBytes == 0 && options.buffer_bytes > 0);
  EMBANK_CHECK(options.buffers >= 2 && options.read_bytes >= 2 * kBufferOverhangBytes);
  std::unique_ptr<RowLog> log(new RowLog(files, source, budget, options));
  EMBANK_RETURN_IF_ERROR(log->Init(executor));
  return log;
}

Status RowLog::Init(Executor* executor) {
  constexpr uint64_t kSegmentsMin = LogRoom::kSegmentsMin;
  if (options_.ssd_bytes != 0 && options_.ssd_bytes < kSegmentsMin * options_.segment_bytes) {
    return InvalidArgumentError(StrCat("ssd_bytes: ", options_.ssd_bytes, " bytes; at least ",
                                       kSegmentsMin * options_.segment_bytes, " for ", kSegmentsMin,
                                       " segments of ", options_.segment_bytes));
  }
  MutexLock lock(&mutex_);
  NoteSpare();
  if (options_.read_only) failure_ = FailedPreconditionError("the log is only read");
  EMBANK_ASSIGN_OR_RETURN(header_block_, AlignedBuffer::Create(source_, budget_, kBlockBytes));
  for (uint32_t i = 0; i < (options_.read_only ? 0 : options_.buffers); ++i) {
    buffers_.push_back(std::make_unique<LogBuffer>());
    EMBANK_ASSIGN_OR_RETURN(
        buffers_.back()->memory,
        AlignedBuffer::Create(source_, budget_, options_.buffer_bytes + 2 * kBufferOverhangBytes));
  }
  MutexLock read_lock(&read_mutex_);
  for (uint32_t i = 0; i < options_.read_lists; ++i) {
    idle_read_lists_.push_back(LogReadList::Create(files_, source_, budget_, options_.read_bytes));
    if (idle_read_lists_.back() == nullptr) return NoMemory();
  }
  writer_ = executor->MakeBackgroundTask([this] {
    MutexLock step_lock(&mutex_);
    return WriteOne();
  });
  return OkStatus();
}

RowLog::~RowLog() { writer_.reset(); }

// ---- appending ----

StatusOr<Location> RowLog::Append(LogStream stream, const RowToLog& row) {
  Location home;
  size_t count = 0;
  EMBANK_RETURN_IF_ERROR(AppendAll(stream, {&row, 1}, {&home, 1}, &count));
  return home;
}

Status RowLog::AppendAll(LogStream stream, std::span<const RowToLog> rows,
                         std::span<Location> homes, size_t* count) {
  bool queued = false;
  Status status;
  *count = 0;
  {
    MutexLock lock(&mutex_);
    const uint64_t turn = next_turn_;
    for (; *count < rows.size() && status.ok(); *count += status.ok() ? 1 : 0) {
      status = AppendLocked(stream, rows[*count], &homes[*count]);
    }
    // Whether there is room next time may depend on what is done aside.
    queued = next_turn_ != turn || !status.ok();
  }
  if (queued) writer_->Wake();
  counters_.appended_rows += *count;
  if (stream == LogStream::kCompaction) counters_.compacted_rows += *count;
  return status;
}

Status RowLog::AppendLocked(LogStream stream, const RowToLog& row, Location* home) {
  try {
    OpenSegment* const open = OpenOf(stream, row.row_class);
    EMBANK_RETURN_IF_ERROR(MakeRoom(open, row));
    *home = Put(open, row);
    return OkStatus();
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
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
Status RowLog::MakeRoom(OpenSegment* open, const RowToLog& row) {
  while (true) {
    EMBANK_RETURN_IF_ERROR(failure_);
    if (open->segment != nullptr && open->segment->used_slots == open->segment->geometry.slots) {
      EndSegment(open);
    }
    if (open->segment == nullptr) {
      PartFromDeadSegments();
      if (IsFull(open->stream) && RemoveOne()) continue;
      if (IsFull(open->stream) && removals_under_way_ > 0) {
        segment_removed_.Wait(&mutex_);
        continue;
      }
      if (IsFull(open->stream)) return NoRoom();
      StatusOr<std::shared_ptr<LogSegment>> segment = MakeSegment(open->stream, row);
      if (!segment.ok() && FreeMemory(open)) continue;
      EMBANK_RETURN_IF_ERROR(segment.status());
      if (Status status = AddSegment(open, *std::move(segment)); !status.ok()) {
        // Its bits were what dirty rows have reserved.
        static_cast<void>(memory_.ReserveBits(room_.needed_bit_bytes()));
        return status;
      }
    }
    const SegmentGeometry& geometry = open->segment->geometry;
    const uint64_t offset = geometry.OffsetOf(open->segment->used_slots);
    if (open->buffer == nullptr) {
      LogBuffer* const free = TakeFreeBuffer();
      if (free == nullptr) continue;
      BeginBuffer(open, free);
    }
    const uint64_t cut = open->buffer->begin + options_.buffer_bytes;
    if (offset + geometry.record_bytes < cut) return OkStatus();
    open->wants_next = true;
    LogBuffer* const free = TakeFreeBuffer();
    open->wants_next = false;
    if (free == nullptr) continue;
    open->next = free;
    return OkStatus();
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
  buffer->end = end;
  segment.UseSlot(row.key, row.table);
  if (row.was_dirty) room_.AddDirty(row.row_class, -1);
  NoteOpenSlots(*open);
  if (frozen_checkpoint_ != 0) {
    segment.FreezeFor(frozen_checkpoint_);
    const bool has = row.checkpoint <= frozen_checkpoint_ && !Seeded(SeededBug::kBitMissing);
    if (has || Seeded(SeededBug::kBitTooMany)) segment.AddFrozen(slot);
  }
  if (row.lives) {
    segment.SetLive(slot, true);
    NoteRows(row.record_bytes);
  }

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
  return LocationOf(segment, slot);
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
  HandOver(open);
  LeaveBlock(open);
}

void RowLog::LeaveBlock(OpenSegment* open) {
  LogSegment& segment = *open->segment;
  const uint32_t fresh =
      std::min(segment.geometry.SlotInFreshBlock(segment.used_slots), segment.geometry.slots);
  while (segment.used_slots < fresh) segment.UseSlot(0, kNoTable);
  open->tail_bytes = 0;
  NoteOpenSlots(*open);
}

// For others: the next buffer goes on in the block in which this one ends, which nothing has made
// durable. No slot is left out, or many classes would take much more space than their records.
void RowLog::HandOverFullest() {
  OpenSegment* fullest = nullptr;
  const auto bytes_of = [&](const OpenSegment* open) -> int64_t {
    const auto bytes = static_cast<int64_t>(open->buffer->end - open->buffer->begin);
    // Who wants two would have the same one again, with no more in it than a tail.
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
  HandOver(fullest);
}

// A buffer for the next record, which begins in the block in which the last one ended.
void RowLog::BeginBuffer(OpenSegment* open, LogBuffer* buffer) {
  const uint64_t offset = open->segment->geometry.OffsetOf(open->segment->used_slots);
  buffer->Begin(open->segment, RoundDown(offset, kBlockBytes));
  std::copy_n(open->tail.begin(), open->tail_bytes, buffer->At(buffer->begin));
  buffer->end += std::exchange(open->tail_bytes, 0);
  open->buffer = buffer;
}

void RowLog::EndSegment(OpenSegment* open) {
  if (open->buffer != nullptr) HandOver(open);
  open->tail_bytes = 0;
  ++next_turn_;
  ended_.push_back(std::move(open->segment));
  open->segment = nullptr;
  NoteOpenSlots(*open);
}

// Writes a footer, or else the buffer that has waited longest: footers are few, and behind an
// endless queue of buffers none would ever be written. False: there was nothing to do, or the log
// has stopped. Gives the lock up while it writes.
bool RowLog::WriteOne() {
  if (!failure_.ok()) return false;
  if (WriteFooter() || SyncOne()) return true;
  LogBuffer* first = nullptr;
  for (const std::unique_ptr<LogBuffer>& buffer : buffers_) {
    if (buffer->state != LogBuffer::State::kQueued || !MayWrite(*buffer)) continue;
    if (first == nullptr || buffer->turn < first->turn) first = buffer.get();
  }
  if (first == nullptr) return RemoveOne();
  first->state = LogBuffer::State::kWriting;
  const uint64_t end =
      std::min(RoundUp(first->end, kBlockBytes), first->begin + options_.buffer_bytes);
  if (first->end < end) std::fill(first->At(first->end), first->At(end), std::byte{0});
  mutex_.Unlock();
  const Status status =
      Seeded(SeededBug::kBufferNeverWritten)
          ? OkStatus()
          : first->segment->Write(first->begin, {first->At(first->begin), end - first->begin});
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

// Not while an older part of one of its blocks is on its way.
bool RowLog::MayWrite(const LogBuffer& buffer) const {
  return std::none_of(buffers_.begin(), buffers_.end(), [&](const auto& other) {
    if (other->state != LogBuffer::State::kWriting || other->segment != buffer.segment)
      return false;
    const uint64_t end = std::min(other->end, other->begin + options_.buffer_bytes);
    return RoundDown(end - 1, kBlockBytes) >= buffer.begin && other->begin <= buffer.begin;
  });
}

bool RowLog::WriteFooter() {
  if (ended_.empty()) return false;
  const std::shared_ptr<LogSegment> segment = ended_.back();
  const SegmentGeometry& geometry = segment->geometry;
  StatusOr<AlignedBuffer> footer = memory_.Footer(geometry);
  if (!footer.ok()) return false;  // the next one to look may find memory
  ended_.pop_back();
  ++ends_under_way_;
  mutex_.Unlock();
  const std::span bytes(footer->data(), geometry.footer_bytes);
  EncodeSegmentFooter(segment->header, segment->Owners(), bytes);
  const Status status = segment->Write(geometry.footer_offset, bytes);
  mutex_.Lock();
  --ends_under_way_;
  if (status.ok()) {
    Finish(segment.get());
    counters_.written_bytes += bytes.size();
    segment->unsynced = true;
    unsynced_.push_back(segment);
    segment->slots = AlignedBuffer();
    *footer = AlignedBuffer();
  } else {
    ended_.push_back(segment);
    Fail(status);
  }
  buffer_written_.NotifyAll();
  return true;
}

void RowLog::Fail(const Status& status) {
  if (!failure_.ok()) return;
  failure_ = status;
  has_stopped_.store(true, std::memory_order_relaxed);
  Tell(LogLevel::kError, "the log takes no more rows", status);
}

void RowLog::WaitForCalm() {
  MutexLock lock(&mutex_);
  const auto is_free = [](const auto& buffer) { return buffer->state == LogBuffer::State::kFree; };
  const auto half = static_cast<ptrdiff_t>(buffers_.size() / 2);
  while (failure_.ok() && std::count_if(buffers_.begin(), buffers_.end(), is_free) < half) {
    if (WriteOne()) continue;
    // What is being filled is not written for this.
    if (!IsAnyBuffer(LogBuffer::State::kWriting)) return;
    buffer_written_.Wait(&mutex_);
  }
}

Status RowLog::Flush() {
  MutexLock lock(&mutex_);
  for (const std::unique_ptr<OpenSegment>& open : open_) {
    if (open->buffer != nullptr) HandOverPart(open.get());
    if (open->tail_bytes > 0) LeaveBlock(open.get());
  }
  const uint64_t last_turn = next_turn_;
  const auto is_waiting = [&](const auto& buffer) {
    return buffer->turn < last_turn && (buffer->state == LogBuffer::State::kQueued ||
                                        buffer->state == LogBuffer::State::kWriting);
  };
  while (failure_.ok() && (std::any_of(buffers_.begin(), buffers_.end(), is_waiting) ||
                           !ended_.empty() || ends_under_way_ > 0)) {
    if (WriteOne()) continue;
    const bool others_write = IsAnyBuffer(LogBuffer::State::kWriting) || ends_under_way_ > 0;
    if (failure_.ok() && !others_write) return NoMemory();
    if (others_write) buffer_written_.Wait(&mutex_);
  }
  return failure_;
}

Status RowLog::Sync() {
  MutexLock sync_lock(&sync_mutex_);
  EMBANK_RETURN_IF_ERROR(Flush());
  std::vector<std::shared_ptr<LogSegment>> unsynced;
  {
    MutexLock lock(&mutex_);
    while (ends_under_way_ > 0) buffer_written_.Wait(&mutex_);
    EMBANK_RETURN_IF_ERROR(failure_);
    for (const std::shared_ptr<LogSegment>& segment : segments_) {
      if (segment != nullptr && segment->unsynced) unsynced.push_back(segment);
    }
    unsynced_.clear();
    for (const std::shared_ptr<LogSegment>& segment : unsynced) segment->unsynced = false;
  }
  Status status;
  for (const std::shared_ptr<LogSegment>& segment : unsynced) {
    if (Seeded(SeededBug::kNoSegmentSync)) continue;
    if (status.ok()) status = segment->file->Sync();
  }
  if (status.ok()) {
    if (!Seeded(SeededBug::kNoSegmentNameSync)) status = options_.directory->Sync();
    if (status.ok() || IsResourceExhausted(status)) return status;
  }
  MutexLock lock(&mutex_);
  if (!Seeded(SeededBug::kFailedSyncForgotten)) Fail(status);
  return status;
}

// ---- what lives ----

void RowLog::MarkDead(Location location) {
  MutexLock lock(&mutex_);
  MarkDeadLocked(location);
}

void RowLog::MarkDeadLocked(Location location) {
  LogSegment& segment = *segments_[IndexOf(location)];
  const uint64_t offset = OffsetOf(location);
  EMBANK_CHECK(segment.geometry.IsSlotAt(offset));
  const bool freeze = frozen_checkpoint_ != 0 && !Seeded(SeededBug::kFrozenLate);
  if (freeze) segment.FreezeFor(frozen_checkpoint_);
  EMBANK_CHECK(segment.SetLive(segment.geometry.SlotAt(offset), false));
  NoteRows(-static_cast<int64_t>(segment.header.record_bytes));
  CountDead(segment);
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

LogSpace RowLog::Space() const {
  ReaderMutexLock lock(&mutex_);
  LogSpace space = {options_.ssd_bytes, room_.taken_bytes(), 0, room_.dirty_bytes(),
                    room_.kept_bytes()};
  for (const auto& segment : segments_) {
    if (segment != nullptr) space.live_bytes += segment->LiveBytes();
  }
  return space;
}

uint64_t RowLog::next_segment_id() const {
  ReaderMutexLock lock(&mutex_);
  return next_segment_id_;
}

uint64_t RowLog::next_sequence() const {
  ReaderMutexLock lock(&mutex_);
  return next_sequence_;
}

uint64_t RowLog::CountSegments() const {
  return static_cast<uint64_t>(std::count_if(segments_.begin(), segments_.end(),
                                             [](const auto& s) { return s != nullptr; }));
}

}  // namespace embank
