#include "store/checkpoint/export.h"

#include <algorithm>
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
#include "tiers/segment/dense_segment.h"
#include "tiers/segment/segment_format.h"

namespace embank {
namespace {

constexpr uint64_t kCopyBytes = uint64_t{1} << 20;

// Its file may be the target's, too. The manifest has keys until the footer is durable.
bool IsFinished(const SegmentRows& rows) { return rows.keys.empty(); }

uint64_t BytesOf(const SegmentRows& rows) {
  return IsFinished(rows) ? rows.header.segment_bytes : DenseSegment(rows).file_bytes();
}

bool IsZero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](std::byte byte) { return byte == std::byte{0}; });
}

// Writes bytes to a new file, and leaves out blocks of zeros, except the last block of a file.
Status WriteWithoutZeros(File* file, uint64_t offset, std::span<const std::byte> bytes,
                         bool is_last) {
  const auto block_at = [&](size_t at) {
    return bytes.subspan(at, std::min<size_t>(kBlockBytes, bytes.size() - at));
  };
  const auto is_left_out = [&](size_t at) {
    const bool is_end = is_last && at + kBlockBytes >= bytes.size();
    return !is_end && IsZero(block_at(at));
  };
  size_t begin = 0;
  for (size_t at = 0; at < bytes.size(); at += kBlockBytes) {
    if (!is_left_out(at)) continue;
    if (begin < at) {
      EMBANK_RETURN_IF_ERROR(file->Write(offset + begin, bytes.subspan(begin, at - begin)));
    }
    begin = at + kBlockBytes;
  }
  if (begin >= bytes.size()) return OkStatus();
  return file->Write(offset + begin, bytes.subspan(begin));
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
    for (SegmentRows& rows : manifest_.segments) EMBANK_RETURN_IF_ERROR(AddSegment(&rows));
    EMBANK_RETURN_IF_ERROR(AddHeat());
    // No manifest may outlive a crash without its segments.
    EMBANK_RETURN_IF_ERROR(target_->files()->Sync());
    manifest_.previous = manifest_.checkpoint;
    manifest_.directories = {};
    return target_->Keep(manifest_, in_doubt);
  }

  // A store is whole without heat.
  Status AddHeat() {
    if (manifest_.heat.bytes == 0) return OkStatus();
    const uint64_t bytes = manifest_.heat.bytes;
    const uint64_t done_bytes = done_bytes_;
    const size_t made = made_.size();
    Status added = Share(HeatName(manifest_.checkpoint), bytes);
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

  Status AddSegment(SegmentRows* rows) {
    const std::string name = SegmentName(rows->header.segment_id);
    const bool is_shared = rows->IsInStoreDirectory();
    Directory* const directory = parts_.sources[std::exchange(rows->tier, Tier::kSsd)];
    if (!IsFinished(*rows)) return CopyLiving(directory, name, rows);
    const uint64_t bytes = rows->header.segment_bytes;
    return is_shared ? Share(name, bytes) : Copy(directory, name, bytes);
  }

  // The store that opens the export ends no segment of another store.
  Status CopyLiving(Directory* directory, const std::string& name, SegmentRows* rows) {
    DenseSegment dense(*rows);
    EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<File> source, OpenSource(directory, name));
    EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<File> target, Make(name));
    const Status copied = dense.Copy(source.get(), parts_.memory, target.get(),
                                     [&](uint64_t bytes) { return CountDone(bytes); });
    if (IsOutOfRange(copied)) return Lost(directory->PathOf(name), "cut off");
    EMBANK_RETURN_IF_ERROR(copied);
    *rows = dense.Describe();
    return target->Sync();
  }

  StatusOr<std::unique_ptr<File>> OpenSource(Directory* directory, const std::string& name) {
    EMBANK_CHECK(directory != nullptr);
    auto source = directory->Open(name, FileAccess::kRead, FileCaching::kDirect);
    if (IsNotFound(source.status())) return Lost(directory->PathOf(name), "missing");
    return source;
  }

  StatusOr<std::unique_ptr<File>> Make(const std::string& name) {
    EMBANK_ASSIGN_OR_RETURN(
        std::unique_ptr<File> target,
        target_->files()->Open(name, FileAccess::kCreate, FileCaching::kDirect));
    made_.push_back(name);
    return target;
  }

  Status Share(const std::string& name, uint64_t bytes) {
    Directory* const source = parts_.sources[Tier::kSsd];
    const Status linked = source->Link(name, target_->files(), name);
    if (IsNotFound(linked)) return Lost(source->PathOf(name), "missing");
    if (IsUnimplemented(linked)) return Copy(source, name, bytes);
    EMBANK_RETURN_IF_ERROR(linked);
    made_.push_back(name);
    return CountDone(bytes);
  }

  Status Copy(Directory* directory, const std::string& name, uint64_t end) {
    EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<File> source, OpenSource(directory, name));
    EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<File> target, Make(name));
    if (buffer_.data() == nullptr) {
      EMBANK_ASSIGN_OR_RETURN(buffer_, AlignedBuffer::Create(parts_.memory, &budget_, kCopyBytes));
    }
    for (uint64_t offset = 0; offset < end; offset += kCopyBytes) {
      const std::span bytes(buffer_.data(), std::min(kCopyBytes, end - offset));
      const Status read = source->Read(offset, bytes);
      if (IsOutOfRange(read)) return Lost(directory->PathOf(name), "cut off");
      EMBANK_RETURN_IF_ERROR(read);
      const bool is_last = offset + bytes.size() == end;
      EMBANK_RETURN_IF_ERROR(WriteWithoutZeros(target.get(), offset, bytes, is_last));
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

uint64_t BytesToCopy(const SegmentRows& rows) {
  return IsFinished(rows) && rows.IsInStoreDirectory() ? 0 : BytesOf(rows);
}

Status ExportCheckpoint(const ExportParts& parts, Manifest checkpoint, const std::string& directory,
                        ExportProgress progress) {
  return Export(parts, std::move(checkpoint), directory, progress).Run();
}

}  // namespace embank
