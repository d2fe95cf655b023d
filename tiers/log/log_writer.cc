#include "tiers/log/log_writer.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/log.h"

namespace embank {
namespace {

// Logging is best effort.
void Tell(LogLevel level, const char* what, const Status& status) noexcept {
  try {
    Log(level, StrCat(what, ": ", status.ToString()));
  } catch (const std::bad_alloc&) {
  }
}

// Buffers may be written after the footer. A write without a descriptor would stop the log, so the
// file rests after the last write. Releases the lock meanwhile.
void RestIfWritten(const LogSegment& segment, const LogBuffers& buffers, Mutex* mutex)
    EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
  if (!segment.finished || buffers.HasPartOf(&segment)) return;
  mutex->Unlock();
  segment.file->MayRest();
  mutex->Lock();
}

}  // namespace

LogWriter::LogWriter(LogSegments& segments, DeadSegments& dead, FileSystem* files,
                     const RowLogOptions& options, RowLogCounters& counters)
    : segments_(segments),
      dead_(dead),
      files_(files),
      options_(options),
      counters_(counters),
      buffers_(options.buffer_bytes) {}

Status LogWriter::Init(MemorySource* source, MemoryBudget* budget, Executor* executor) {
  MutexLock lock(segments_.mutex());
  if (options_.read_only) failure_ = FailedPreconditionError("the log is only read");
  const uint32_t buffers = options_.read_only ? 0 : options_.buffers;
  EMBANK_RETURN_IF_ERROR(buffers_.Init(source, budget, buffers));
  EMBANK_CHECK(task_ == nullptr);
  task_ = executor->MakeBackgroundTask([this] {
    MutexLock step_lock(segments_.mutex());
    return WriteOne();
  });
  return OkStatus();
}

void LogWriter::Stop() {
  task_.reset();
  MutexLock lock(segments_.mutex());
  dead_.AssertHeld();
  while (failure_.ok() && dead_.RemoveOne()) {
  }
}

void LogWriter::QueueFooter(std::shared_ptr<LogSegment> segment) {
  EMBANK_CHECK(!segment->finished && footers_.size() < footers_.capacity());
  buffers_.NextTurn();
  footers_.push_back(std::move(segment));
}

void LogWriter::ReserveLists(size_t places) {
  footers_.reserve(places);
  unsynced_.reserve(unsynced_.size() + places);
  dead_.AssertHeld();
  dead_.ReserveLists(places);
}

// ---- writing ----

bool LogWriter::WriteOneOrWait() {
  if (WriteOne()) return true;
  if (!buffers_.IsAnyWriting()) return false;
  written_.Wait(segments_.mutex());
  return true;
}

bool LogWriter::WriteFooterOrWait() {
  if (!failure_.ok()) return false;
  if (WriteFooter()) return true;
  if (ends_under_way_ == 0) return false;
  written_.Wait(segments_.mutex());
  return true;
}

// Writes a footer, or else the buffer that has waited longest. Footers are few; behind an endless
// queue of buffers none would ever be written. False: there was nothing to do, or the log has
// stopped. Releases the lock while it writes.
bool LogWriter::WriteOne() {
  if (!failure_.ok()) return false;
  if (WriteFooter() || SyncOne()) return true;
  LogBuffer* const buffer = buffers_.Next();
  if (buffer == nullptr) {
    dead_.AssertHeld();
    return dead_.RemoveOne();
  }
  WriteBuffer(buffer);
  return true;
}

void LogWriter::WriteBuffer(LogBuffer* buffer) {
  const std::shared_ptr<LogSegment> segment = buffer->segment;
  EMBANK_CHECK(buffer->state == LogBuffer::State::kQueued && segment != nullptr);
  buffer->state = LogBuffer::State::kWriting;
  const uint64_t end = buffers_.WrittenEnd(*buffer);
  if (buffer->end < end) std::fill(buffer->At(buffer->end), buffer->At(end), std::byte{0});
  segments_.mutex()->Unlock();
  const Status status =
      Seeded(SeededBug::kBufferNeverWritten)
          ? OkStatus()
          : segment->Write(buffer->begin, {buffer->At(buffer->begin), end - buffer->begin});
  segments_.mutex()->Lock();
  EMBANK_CHECK(buffer->state == LogBuffer::State::kWriting);
  if (status.ok()) {
    counters_.written_bytes += end - buffer->begin;
    ++counters_.written_buffers;
    segment->unsynced = true;
    buffers_.Free(buffer);
  } else {
    buffer->state = LogBuffer::State::kQueued;
    Fail(status);
  }
  written_.NotifyAll();
  if (status.ok()) RestIfWritten(*segment, buffers_, segments_.mutex());
}

bool LogWriter::WriteFooter() {
  if (footers_.empty()) return false;
  const std::shared_ptr<LogSegment> segment = footers_.back();
  EMBANK_CHECK(!segment->finished && !segment->without_footer);
  const SegmentGeometry& geometry = segment->geometry;
  StatusOr<AlignedBuffer> footer = segments_.mutable_accounts().memory().Footer(geometry);
  if (!footer.ok()) return false;  // the next attempt may find memory
  footers_.pop_back();
  ++ends_under_way_;
  segments_.mutex()->Unlock();
  const std::span bytes(footer->data(), geometry.footer_bytes);
  EncodeSegmentFooter(segment->header, segment->Owners(), bytes);
  const Status status = segment->Write(geometry.footer_offset, bytes);
  segments_.mutex()->Lock();
  EMBANK_CHECK(ends_under_way_ > 0);
  --ends_under_way_;
  if (status.ok()) {
    segments_.Finish(segment.get());
    counters_.written_bytes += bytes.size();
    ++counters_.written_buffers;
    segment->unsynced = true;
    unsynced_.push_back(segment);
    segment->slots = AlignedBuffer();
    *footer = AlignedBuffer();
  } else if (options_.tier == Tier::kPmem) {
    // A part of the memory may be damaged; its records are elsewhere, and manifests have the
    // owners.
    segment->without_footer = true;
    Tell(LogLevel::kWarning, "a segment has no footer", status);
  } else {
    footers_.push_back(segment);
    Fail(status);
  }
  written_.NotifyAll();
  if (status.ok()) RestIfWritten(*segment, buffers_, segments_.mutex());
  return true;
}

// Makes a finished segment durable if too many are not, so that its file can rest. False: there was
// nothing to do. Releases the lock meanwhile.
bool LogWriter::SyncOne() {
  constexpr size_t kUnsyncedMax = 64;  // 4 GiB of segments of 64 MiB: a second of a fast device
  const size_t unsynced_max = std::clamp<size_t>(files_->OpenFilesMax() / 8, 1, kUnsyncedMax);
  if (unsynced_.size() <= unsynced_max) return false;
  std::erase_if(unsynced_, [](const auto& segment) { return segment.expired(); });
  for (size_t i = 0; i < unsynced_.size() && unsynced_.size() > unsynced_max; ++i) {
    const std::shared_ptr<LogSegment> segment = unsynced_[i].lock();
    if (segment == nullptr || buffers_.HasPartOf(segment.get())) continue;
    EMBANK_CHECK(segment->finished);
    unsynced_.erase(unsynced_.begin() + static_cast<ptrdiff_t>(i));
    ++ends_under_way_;
    segments_.mutex()->Unlock();
    const Status status = segment->file->Sync();
    segments_.mutex()->Lock();
    EMBANK_CHECK(ends_under_way_ > 0);
    --ends_under_way_;
    if (status.ok()) segment->unsynced = false;
    if (!status.ok()) Fail(status);
    written_.NotifyAll();
    return true;
  }
  return false;
}

void LogWriter::Fail(const Status& status) {
  if (!failure_.ok()) return;
  failure_ = status;
  has_stopped_.store(true, std::memory_order_relaxed);
  Tell(LogLevel::kError, "the log takes no more rows", status);
}

void LogWriter::Lose(const Status& why) {
  EMBANK_CHECK(!why.ok());
  MutexLock lock(segments_.mutex());
  Fail(why);
  is_lost_.store(true, std::memory_order_relaxed);
  // All rows are to be moved, also those of segments that compaction leaves alone.
  for (const std::shared_ptr<LogSegment>& segment : segments_.all()) {
    if (segment != nullptr) segment->passed_over = segment->unread = false;
  }
}

void LogWriter::WaitForFreeBuffers() {
  MutexLock lock(segments_.mutex());
  while (failure_.ok() && !buffers_.IsHalfFree()) {
    // Buffers that are being filled are not written for this.
    if (!WriteOneOrWait()) return;
  }
}

Status LogWriter::WriteAll() {
  const uint64_t turn = buffers_.turn();
  while (failure_.ok() &&
         (buffers_.IsAnyQueuedBefore(turn) || !footers_.empty() || ends_under_way_ > 0)) {
    if (WriteOne()) continue;
    const bool others_write = buffers_.IsAnyWriting() || ends_under_way_ > 0;
    if (failure_.ok() && !others_write) return NoMemory();
    if (others_write) written_.Wait(segments_.mutex());
  }
  return failure_;
}

Status LogWriter::SyncWritten() {
  std::vector<std::shared_ptr<LogSegment>> unsynced;
  {
    MutexLock lock(segments_.mutex());
    while (ends_under_way_ > 0) written_.Wait(segments_.mutex());
    EMBANK_RETURN_IF_ERROR(failure_);
    for (const std::shared_ptr<LogSegment>& segment : segments_.all()) {
      if (segment != nullptr && segment->unsynced) unsynced.push_back(segment);
    }
    unsynced_.clear();
    for (const std::shared_ptr<LogSegment>& segment : unsynced) segment->unsynced = false;
  }
  Status status;
  for (const std::shared_ptr<LogSegment>& segment : unsynced) {
    if (Seeded(SeededBug::kNoSegmentSync)) continue;
    if (options_.tier == Tier::kPmem && Seeded(SeededBug::kDrainLeftOut)) continue;
    if (status.ok()) status = segment->file->Sync();
  }
  if (status.ok()) {
    if (!Seeded(SeededBug::kNoSegmentNameSync)) status = options_.directory->Sync();
    if (status.ok() || IsResourceExhausted(status)) return status;
  }
  MutexLock lock(segments_.mutex());
  if (Seeded(SeededBug::kFailedSyncIgnored)) return status;
  // It is unknown what is durable.
  for (const std::shared_ptr<LogSegment>& segment : unsynced) segment->unsynced = true;
  Fail(status);
  return status;
}

}  // namespace embank
