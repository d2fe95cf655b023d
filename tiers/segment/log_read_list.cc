#include "tiers/segment/log_read_list.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/no_throw_status.h"
#include "base/str_cat.h"

namespace embank {
namespace {

constexpr size_t kItemsPerBlock = 4;

Status DamagedRecord(const LogReadItem& item) {
  return NoThrowStatus(StatusCode::kDataLoss, [&] {
    return StrCat("the record in slot ", item.place.slot, " of segment ", item.place.segment_id,
                  " is damaged");
  });
}

}  // namespace

Status NoRecord() {
  return NoThrowStatus(StatusCode::kDataLoss, [] { return "the log has no record there"; });
}

Status VerifyRecord(const LogReadItem& item, const Transfer& transfer) {
  const std::span record(item.record, item.bytes);
  if (transfer.status.ok() && RecordIsWhole(item.place, record)) return OkStatus();
  // A second try would find no more descriptors.
  if (IsResourceExhausted(transfer.status)) return transfer.status;
  const auto before = static_cast<uint64_t>(item.record - transfer.bytes.data());
  const uint64_t begin = RoundDown(before, kBlockBytes);
  const uint64_t end = RoundUp(before + item.bytes, kBlockBytes);
  Status again =
      transfer.file->Read(transfer.offset + begin, transfer.bytes.subspan(begin, end - begin));
  if (again.ok() && RecordIsWhole(item.place, record)) return OkStatus();
  if (!again.ok() && !IsOutOfRange(again)) return again;
  return DamagedRecord(item);
}

std::unique_ptr<LogReadList> LogReadList::Create(FileSystem* files, MemorySource* source,
                                                 MemoryBudget* budget, uint64_t bytes) {
  StatusOr<AlignedBuffer> memory = AlignedBuffer::Create(source, budget, bytes);
  if (!memory.ok()) return nullptr;
  try {
    auto list = std::make_unique<LogReadList>();
    list->memory_ = *std::move(memory);
    // It has a block of its own, or a part of a run of neighbours.
    const size_t blocks = list->memory_.size_bytes() / kBlockBytes;
    list->items_.reserve(blocks * kItemsPerBlock);
    list->transfers_.reserve(blocks);
    list->segments_.reserve(blocks);
    list->files_ = files;
    files->RegisterMemory({list->memory_.data(), list->memory_.size_bytes()});
    return list;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

LogReadList::~LogReadList() {
  if (files_ != nullptr) files_->UnregisterMemory({memory_.data(), memory_.size_bytes()});
}

void LogReadList::Clear() {
  used_bytes_ = 0;
  items_.clear();
  transfers_.clear();
  segments_.clear();
}

bool LogReadList::HasSpaceFor(uint32_t record_bytes) const {
  const uint64_t most = RoundUp(record_bytes, kBlockBytes) + kBlockBytes;
  return items_.size() < items_.capacity() && segments_.size() < segments_.capacity() &&
         used_bytes_ + most <= memory_.size_bytes();
}

void LogReadList::AddBuffered(LogReadItem item, const std::shared_ptr<LogSegment>& segment,
                              const std::byte* record) {
  EMBANK_CHECK(HasSpaceFor(item.bytes));
  Keep(segment);
  std::byte* const to = memory_.data() + used_bytes_;
  std::memcpy(to, record, item.bytes);
  used_bytes_ += RoundUp(item.bytes, kBlockBytes);
  item.record = to;
  items_.push_back(item);
}

void LogReadList::AddMapped(LogReadItem item, const std::shared_ptr<LogSegment>& segment,
                            const std::byte* record) {
  Keep(segment);
  item.record = record;
  item.transfer = LogReadItem::kMapped;
  items_.push_back(item);
}

void LogReadList::AddRead(LogReadItem item, const std::shared_ptr<LogSegment>& segment,
                          uint64_t offset, uint64_t bridged_bytes) {
  const uint64_t begin = RoundDown(offset, kBlockBytes);
  const uint64_t end = RoundUp(offset + item.bytes, kBlockBytes);
  Keep(segment);
  File* const file = segment->file.get();
  if (transfers_.empty() || !Continues(transfers_.back(), file, begin, end, bridged_bytes)) {
    transfers_.push_back({.kind = Transfer::Kind::kRead,
                          .file = file,
                          .offset = begin,
                          .bytes = {memory_.data() + used_bytes_, 0},
                          .status = {}});
  }
  Transfer& last = transfers_.back();
  EMBANK_CHECK(last.file == file && last.offset <= begin);
  const uint64_t bytes = std::max<uint64_t>(last.bytes.size(), end - last.offset);
  used_bytes_ += bytes - last.bytes.size();
  EMBANK_CHECK(used_bytes_ <= memory_.size_bytes());
  last.bytes = {last.bytes.data(), bytes};
  item.record = last.bytes.data() + (offset - last.offset);
  item.transfer = static_cast<uint32_t>(transfers_.size() - 1);
  items_.push_back(item);
}

Status LogReadList::Finish(const LogReadItem& item) {
  if (item.record == nullptr) return NoRecord();
  if (item.transfer == LogReadItem::kNone) return OkStatus();
  if (item.transfer == LogReadItem::kMapped) {
    return RecordIsWhole(item.place, {item.record, item.bytes}) ? OkStatus() : DamagedRecord(item);
  }
  EMBANK_CHECK(item.transfer < transfers_.size());
  return VerifyRecord(item, transfers_[item.transfer]);
}

void LogReadList::Keep(const std::shared_ptr<LogSegment>& segment) {
  if (segments_.empty() || segments_.back() != segment) segments_.push_back(segment);
}

// One system call and one answer of the device for neighbours.
bool LogReadList::Continues(const Transfer& last, const File* file, uint64_t begin, uint64_t end,
                            uint64_t bridged_bytes) const {
  const uint64_t last_end = last.offset + last.bytes.size();
  return last.file == file && begin <= last_end + bridged_bytes &&
         last.bytes.data() + last.bytes.size() == memory_.data() + used_bytes_ &&
         (end <= last_end || used_bytes_ + (end - last_end) <= memory_.size_bytes());
}

}  // namespace embank
