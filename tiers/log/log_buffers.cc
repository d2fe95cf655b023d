#include "tiers/log/log_buffers.h"

#include <algorithm>

#include "base/check.h"
#include "base/status_macros.h"

namespace embank {

Status LogBuffers::Init(MemorySource* source, MemoryBudget* budget, uint32_t buffers) {
  EMBANK_CHECK(buffers_.empty());
  for (uint32_t i = 0; i < buffers; ++i) {
    buffers_.push_back(std::make_unique<LogBuffer>());
    EMBANK_ASSIGN_OR_RETURN(
        buffers_.back()->memory,
        AlignedBuffer::Create(source, budget, buffer_bytes_ + 2 * kBufferOverhangBytes));
  }
  return OkStatus();
}

LogBuffer* LogBuffers::TakeFree() {
  for (const std::unique_ptr<LogBuffer>& buffer : buffers_) {
    if (buffer->state != LogBuffer::State::kFree) continue;
    EMBANK_CHECK(buffer->segment == nullptr);
    buffer->state = LogBuffer::State::kFilling;
    return buffer.get();
  }
  return nullptr;
}

void LogBuffers::Queue(LogBuffer* buffer) {
  EMBANK_CHECK(buffer->state == LogBuffer::State::kFilling);
  EMBANK_CHECK(buffer->segment != nullptr && buffer->begin % kBlockBytes == 0);
  EMBANK_CHECK(buffer->first <= buffer->begin && buffer->begin <= buffer->end);
  if (buffer->end == buffer->begin) {
    Free(buffer);
    return;
  }
  buffer->state = LogBuffer::State::kQueued;
  buffer->turn = next_turn_++;
}

LogBuffer* LogBuffers::Next() const {
  LogBuffer* first = nullptr;
  for (const std::unique_ptr<LogBuffer>& buffer : buffers_) {
    if (buffer->state != LogBuffer::State::kQueued || !MayWrite(*buffer)) continue;
    if (first == nullptr || buffer->turn < first->turn) first = buffer.get();
  }
  return first;
}

uint64_t LogBuffers::WrittenEnd(const LogBuffer& buffer) const {
  EMBANK_CHECK(buffer.begin < buffer.end);
  return std::min(RoundUp(buffer.end, kBlockBytes), buffer.begin + buffer_bytes_);
}

void LogBuffers::Free(LogBuffer* buffer) {
  EMBANK_CHECK(buffer->state == LogBuffer::State::kFilling ||
               buffer->state == LogBuffer::State::kWriting);
  buffer->state = LogBuffer::State::kFree;
  buffer->segment.reset();
}

const std::byte* LogBuffers::Find(const LogSegment* segment, uint64_t offset,
                                  uint32_t bytes) const {
  for (const std::unique_ptr<LogBuffer>& buffer : buffers_) {
    if (buffer->segment.get() != segment) continue;
    if (buffer->first <= offset && offset + bytes <= buffer->end) return buffer->At(offset);
  }
  return nullptr;
}

bool LogBuffers::HasPartOf(const LogSegment* segment) const {
  return std::any_of(buffers_.begin(), buffers_.end(),
                     [&](const auto& buffer) { return buffer->segment.get() == segment; });
}

bool LogBuffers::IsAnyWriting() const {
  return std::any_of(buffers_.begin(), buffers_.end(), [](const auto& buffer) {
    return buffer->state == LogBuffer::State::kWriting;
  });
}

bool LogBuffers::IsHalfFree() const {
  const auto half = static_cast<ptrdiff_t>(buffers_.size() / 2);
  return std::count_if(buffers_.begin(), buffers_.end(), [](const auto& buffer) {
           return buffer->state == LogBuffer::State::kFree;
         }) >= half;
}

bool LogBuffers::IsAnyQueuedBefore(uint64_t turn) const {
  return std::any_of(buffers_.begin(), buffers_.end(), [turn](const auto& buffer) {
    return buffer->turn < turn && (buffer->state == LogBuffer::State::kQueued ||
                                   buffer->state == LogBuffer::State::kWriting);
  });
}

// Not while an older part of one of its blocks is being written.
bool LogBuffers::MayWrite(const LogBuffer& buffer) const {
  return std::none_of(buffers_.begin(), buffers_.end(), [&](const auto& other) {
    if (other->state != LogBuffer::State::kWriting || other->segment != buffer.segment)
      return false;
    const uint64_t end = std::min(other->end, other->begin + buffer_bytes_);
    return RoundDown(end - 1, kBlockBytes) >= buffer.begin && other->begin <= buffer.begin;
  });
}

}  // namespace embank
