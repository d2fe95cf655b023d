#include "store/checkpoint/export.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/memory/aligned_buffer.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/log.h"
#include "store/checkpoint/checkpoint_directory.h"
#include "tiers/segment/segment_format.h"

namespace embank {
namespace {

constexpr uint64_t kCopyBytes = uint64_t{1} << 20;

// Its file may be the target's, too. The manifest has keys until the footer is durable.
bool IsFinished(const SegmentRows& rows) { return rows.keys.empty(); }

// From the begin of the file to the end of the block that has the checkpoint's last row.
uint64_t BytesUpToLastRow(const SegmentRows& rows) {
  uint32_t slots = 0;
  for (size_t word = 0; word < rows.bits.size(); ++word) {
    const auto bits = static_cast<uint32_t>(std::bit_width(rows.bits[word]));
    if (bits > 0) slots = static_cast<uint32_t>(word * 64) + bits;
  }
  const SegmentHeader& header = rows.header;
  const auto geometry = SegmentGeometry::Of(header.record_bytes, header.segment_bytes);
  return RoundUp(geometry.OffsetOf(slots), kBlockBytes);
}

uint64_t BytesOf(const SegmentRows& rows) {
  return IsFinished(rows) ? rows.header.segment_bytes : BytesUpToLastRow(rows);
}

Status Lost(const std::string& path, const char* what) {
  return DataLossError(StrCat(path, ": it is ", what));
}

class Export {
 public:
  Export(const ExportParts& parts, Manifest manifest, const std::string& directory,
         ExportProgress progress)
      : parts_(parts), manifest_(std::move(manifest)), directory_(directory), progress_(progress) {
    made_.reserve(manifest_.segments.size() + 1);
    for (const SegmentRows& rows : manifest_.segments) total_bytes_ += BytesOf(rows);
    total_bytes_ += manifest_.heat.bytes;
  }

  Status Run() {
    EMBANK_ASSIGN_OR_RETURN(target_, CheckpointDirectory::OpenVacant(parts_.files, directory_));
    bool in_doubt = false;
    Status status;
    try {
      status = Fill(&in_doubt);
    } catch (const std::bad_alloc&) {
      status = NoMemory();
    }
    // Files that a crash may still turn into the store have to stay whole.
    if (!status.ok() && !in_doubt) RemoveMade();
    return status;
  }

 private:
  Status Fill(bool* in_doubt) {
    EMBANK_RETURN_IF_ERROR(CountDone(0));
    for (const SegmentRows& rows : manifest_.segments) EMBANK_RETURN_IF_ERROR(AddSegment(rows));
    EMBANK_RETURN_IF_ERROR(AddHeat());
    // No manifest may outlive a crash without its segments.
    EMBANK_RETURN_IF_ERROR(target_->files()->Sync());
    manifest_.previous = manifest_.checkpoint;
    for (SegmentRows& rows : manifest_.segments) rows.tier = Tier::kSsd;
    manifest_.pmem_path.clear();
    manifest_.pmem_id = 0;
    return target_->Keep(manifest_, in_doubt);
  }

  // A store is whole without heat.
  Status AddHeat() {
    if (manifest_.heat.bytes == 0) return OkStatus();
    const uint64_t bytes = manifest_.heat.bytes;
    const uint64_t done_bytes = done_bytes_;
    const size_t made = made_.size();
    Status added = Share(HeatName(manifest_.checkpoint), bytes, bytes);
    if (!IsDataLoss(added)) return added;
    // A part of it may have been copied.
    while (made_.size() > made) {
      EMBANK_RETURN_IF_ERROR(target_->files()->Remove(made_.back()));
      made_.pop_back();
    }
    done_bytes_ = done_bytes;
    EMBANK_CHECK(total_bytes_ >= bytes);
    total_bytes_ -= bytes;
    Log(LogLevel::kWarning, StrCat("exported without the heat that rows gained since they "
                                   "were written: ",
                                   added.ToString()));
    manifest_.heat = {};
    return CountDone(0);
  }

  Status AddSegment(const SegmentRows& rows) {
    const std::string name = SegmentName(rows.header.segment_id);
    const uint64_t bytes = BytesOf(rows);
    if (rows.IsInPmem()) return Copy(parts_.pmem, name, bytes, rows.header.segment_bytes);
    if (IsFinished(rows)) return Share(name, bytes, rows.header.segment_bytes);
    return Copy(parts_.source, name, bytes, rows.header.segment_bytes);
  }

  Status Share(const std::string& name, uint64_t bytes, uint64_t file_bytes) {
    const Status linked = parts_.source->Link(name, target_->files(), name);
    if (IsNotFound(linked)) return Lost(parts_.source->PathOf(name), "missing");
    if (IsUnimplemented(linked)) return Copy(parts_.source, name, bytes, file_bytes);
    EMBANK_RETURN_IF_ERROR(linked);
    made_.push_back(name);
    return CountDone(bytes);
  }

  Status Copy(Directory* directory, const std::string& name, uint64_t end, uint64_t file_bytes) {
    EMBANK_CHECK(directory != nullptr);
    const std::string from = directory->PathOf(name);
    const auto source = directory->Open(name, FileAccess::kRead, FileCaching::kDirect);
    if (IsNotFound(source.status())) return Lost(from, "missing");
    EMBANK_RETURN_IF_ERROR(source.status());
    EMBANK_ASSIGN_OR_RETURN(
        const std::unique_ptr<File> target,
        target_->files()->Open(name, FileAccess::kCreate, FileCaching::kDirect));
    made_.push_back(name);
    const Status taken = target->Preallocate(file_bytes);
    if (!IsUnimplemented(taken)) EMBANK_RETURN_IF_ERROR(taken);
    if (buffer_.data() == nullptr) {
      EMBANK_ASSIGN_OR_RETURN(buffer_, AlignedBuffer::Create(parts_.memory, &budget_, kCopyBytes));
    }
    for (uint64_t offset = 0; offset < end; offset += kCopyBytes) {
      const std::span bytes(buffer_.data(), std::min(kCopyBytes, end - offset));
      const Status read = (*source)->Read(offset, bytes);
      if (IsOutOfRange(read)) return Lost(from, "cut off");
      EMBANK_RETURN_IF_ERROR(read);
      EMBANK_RETURN_IF_ERROR(target->Write(offset, bytes));
      EMBANK_RETURN_IF_ERROR(CountDone(bytes.size()));
    }
    return target->Sync();
  }

  Status CountDone(uint64_t bytes) {
    done_bytes_ += bytes;
    EMBANK_CHECK(done_bytes_ <= total_bytes_);
    if (progress_(done_bytes_, total_bytes_)) return OkStatus();
    return CancelledError(StrCat("progress: the export was cancelled when ", done_bytes_, " of ",
                                 total_bytes_, " bytes were done"));
  }

  // A file that cannot be removed is worth a warning, no more: without a manifest there is no
  // store.
  void RemoveMade() {
    try {
      for (const std::string& name : made_) {
        const Status removed = target_->files()->Remove(name);
        if (removed.ok()) continue;
        Log(LogLevel::kWarning, StrCat("left by an export: ", removed.ToString()));
      }
      target_->Abandon();
    } catch (const std::bad_alloc&) {
    }
  }

  const ExportParts parts_;
  Manifest manifest_;
  const std::string& directory_;
  const ExportProgress progress_;
  uint64_t done_bytes_ = 0;
  uint64_t total_bytes_ = 0;
  std::vector<std::string> made_;  // segments and heat of the target
  std::unique_ptr<CheckpointDirectory> target_;
  MemoryBudget budget_{0};
  AlignedBuffer buffer_;
};

}  // namespace

Status ExportCheckpoint(const ExportParts& parts, Manifest checkpoint, const std::string& directory,
                        ExportProgress progress) {
  return Export(parts, std::move(checkpoint), directory, progress).Run();
}

}  // namespace embank
