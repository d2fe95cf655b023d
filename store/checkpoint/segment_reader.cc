#include "store/checkpoint/segment_reader.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/memory/memory.h"
#include "base/status_macros.h"
#include "tiers/segment/log_read_list.h"
#include "tiers/segment/log_record.h"

namespace embank {

SegmentReader::SegmentReader(Directory* directory, uint64_t window_bytes)
    : directory_(directory), window_bytes_(window_bytes) {
  // A record may lie across a block more than it has.
  EMBANK_CHECK(window_bytes >= kRecordScratchBytes && window_bytes % kBlockBytes == 0);
}

void SegmentReader::SetOtherPaths(FileSystem* files, std::vector<std::string> paths) {
  other_files_ = files;
  other_paths_ = std::move(paths);
}

StatusOr<std::unique_ptr<File>> SegmentReader::OpenFile(const SegmentRows& rows) {
  const std::string name = SegmentName(rows.header.segment_id);
  if (rows.IsInStoreDirectory()) {
    return directory_->Open(name, FileAccess::kRead, FileCaching::kDirect);
  }
  Status missing = NotFoundError("the manifest does not say where its PMem is");
  for (const std::string& path : other_paths_) {
    std::unique_ptr<Directory>& directory = other_directories_[path];
    if (directory == nullptr) {
      auto opened = other_files_->OpenDirectory(path);
      if (IsNotFound(opened.status())) {
        missing = opened.status();
        continue;
      }
      EMBANK_RETURN_IF_ERROR(opened.status());
      directory = *std::move(opened);
    }
    auto file = directory->Open(name, FileAccess::kRead, FileCaching::kDirect);
    if (!IsNotFound(file.status())) return file;
    missing = file.status();
  }
  return missing;
}

Status SegmentReader::Open(const SegmentRows& rows) {
  const SegmentHeader& named = rows.header;
  EMBANK_CHECK(IsSound(named));
  file_.reset();
  footer_ = {};
  named_ = named;
  geometry_ = SegmentGeometry::Of(named.record_bytes, named.segment_bytes);
  if (window_.data() == nullptr) {
    EMBANK_ASSIGN_OR_RETURN(window_,
                            AlignedBuffer::Create(SystemMemorySource(), &budget_, window_bytes_));
  }
  EMBANK_ASSIGN_OR_RETURN(file_, OpenFile(rows));
  EMBANK_ASSIGN_OR_RETURN(size_bytes_, file_->SizeBytes());
  return OkStatus();
}

bool SegmentReader::Has(uint32_t slot) const {
  return RoundUp(geometry_.OffsetOf(slot + 1), kBlockBytes) <= size_bytes_;
}

Status SegmentReader::ReadBytes(uint64_t offset, std::span<std::byte> into) {
  EMBANK_CHECK(file_ != nullptr);
  read_bytes_ += into.size();
  return file_->Read(offset, into);
}

StatusOr<SegmentHeader> SegmentReader::ReadHeader() {
  const std::span block(window_.data(), kBlockBytes);
  EMBANK_RETURN_IF_ERROR(ReadBytes(0, block));
  return DecodeSegmentHeader(block);
}

StatusOr<SegmentFooter> SegmentReader::ReadFooter() {
  EMBANK_ASSIGN_OR_RETURN(
      footer_, AlignedBuffer::Create(SystemMemorySource(), &budget_, geometry_.footer_bytes));
  const std::span bytes(footer_.data(), geometry_.footer_bytes);
  const Status read = ReadBytes(geometry_.footer_offset, bytes);
  if (IsOutOfRange(read)) return DataLossError("the segment's footer is cut off");
  EMBANK_RETURN_IF_ERROR(read);
  return DecodeSegmentFooter(named_, bytes);
}

void SegmentReader::ReadRecords(std::span<const uint64_t> wanted, VisitRecord visit) {
  uint32_t slot = 0;
  while (slot < geometry_.slots) {
    if (!HasBit(wanted, slot)) {
      ++slot;
      continue;
    }
    const uint64_t begin = RoundDown(geometry_.OffsetOf(slot), kBlockBytes);
    const uint64_t fit = (begin + window_bytes_ - kBlockBytes) / geometry_.record_bytes;
    uint32_t end = std::min(geometry_.slots, static_cast<uint32_t>(fit));
    while (!HasBit(wanted, end - 1)) --end;
    EMBANK_CHECK(slot < end);
    ReadWindow(slot, end - 1, wanted, visit);
    slot = end;
  }
}

void SegmentReader::ReadWindow(uint32_t first, uint32_t last, std::span<const uint64_t> wanted,
                               VisitRecord visit) {
  EMBANK_CHECK(first <= last && last < geometry_.slots);
  const uint64_t begin = RoundDown(geometry_.OffsetOf(first), kBlockBytes);
  const uint64_t end = RoundUp(geometry_.OffsetOf(last + 1), kBlockBytes);
  EMBANK_CHECK(end - begin <= window_bytes_);
  const Status read = ReadBytes(begin, {window_.data(), end - begin});
  for (uint32_t slot = first; slot <= last; ++slot) {
    if (!HasBit(wanted, slot)) continue;
    if (!read.ok() && first < last) {
      ReadWindow(slot, slot, wanted, visit);
    } else if (!read.ok()) {
      visit(slot, read, {});
    } else {
      const std::byte* const record = window_.data() + (geometry_.OffsetOf(slot) - begin);
      visit(slot, read, {record, geometry_.record_bytes});
    }
  }
}

}  // namespace embank
