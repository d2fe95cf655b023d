// Reads segments' files of a store that no process has open, without a log.
#ifndef EMBANK_STORE_CHECKPOINT_SEGMENT_READER_H_
#define EMBANK_STORE_CHECKPOINT_SEGMENT_READER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files/file_system.h"
#include "base/function_ref.h"
#include "base/memory/aligned_buffer.h"
#include "base/status.h"
#include "base/status_or.h"
#include "tiers/segment/log_segment.h"
#include "tiers/segment/segment_format.h"

namespace embank {

// Reads one segment after the other. Memory: a window, and one footer. One thread at a time.
class SegmentReader {
 public:
  static constexpr uint64_t kWindowBytes = uint64_t{4} << 20;

  // The store's directory must outlive it. The window is whole blocks, at least
  // kRecordScratchBytes.
  explicit SegmentReader(Directory* directory, uint64_t window_bytes = kWindowBytes);

  // Segments that are not in the store's directory are in the first of these that has them. They
  // are opened when one is asked for. `files` outlives the reader.
  void SetOtherPaths(FileSystem* files, std::vector<std::string> paths);

  // Opens the file of a segment that a manifest names; what was read of another one is gone.
  // kNotFound, the statuses of files; kResourceExhausted.
  Status Open(const SegmentRows& rows);

  // The file that is open; all functions below use it, too.
  uint64_t size_bytes() const { return size_bytes_; }
  const SegmentGeometry& geometry() const { return geometry_; }
  // Bytes read from all files so far.
  uint64_t read_bytes() const { return read_bytes_; }
  // Returns the disk space that the file takes. The statuses of files.
  StatusOr<uint64_t> TakenBytes() const { return file_->TakenBytes(); }
  // Whether the blocks of a slot are in the file.
  bool Has(uint32_t slot) const;

  // Reads the header. kOutOfRange: the file is cut off. kDataLoss, kFailedPrecondition: like
  // DecodeSegmentHeader. The statuses of files.
  StatusOr<SegmentHeader> ReadHeader();
  // Reads the footer. Its spans are valid until another file is opened. kDataLoss: it is damaged,
  // not written or cut off. kResourceExhausted; the statuses of files.
  StatusOr<SegmentFooter> ReadFooter();

  // Calls visit(slot, status, record) for each slot that has a bit in `wanted`, in order; the file
  // has them all. Reads large pieces; if one fails, reads its slots one by one. The status is OK
  // for a record as it is there, damaged or not, or a status of files.
  using VisitRecord = FunctionRef<void(uint32_t, const Status&, std::span<const std::byte>)>;
  void ReadRecords(std::span<const uint64_t> wanted, VisitRecord visit);

 private:
  Status ReadBytes(uint64_t offset, std::span<std::byte> into);
  void ReadWindow(uint32_t first, uint32_t last, std::span<const uint64_t> wanted,
                  VisitRecord visit);

  StatusOr<std::unique_ptr<File>> OpenFile(const SegmentRows& rows);

  Directory* const directory_;
  FileSystem* other_files_ = nullptr;
  std::vector<std::string> other_paths_;
  std::map<std::string, std::unique_ptr<Directory>> other_directories_;  // those that were opened
  const uint64_t window_bytes_;
  MemoryBudget budget_{0};
  AlignedBuffer window_;
  AlignedBuffer footer_;
  SegmentHeader named_ = {};
  SegmentGeometry geometry_;
  std::unique_ptr<File> file_;
  uint64_t size_bytes_ = 0;
  uint64_t read_bytes_ = 0;
};

inline bool HasBit(std::span<const uint64_t> bits, uint32_t slot) {
  return slot / 64 < bits.size() && (bits[slot / 64] >> (slot % 64) & 1) != 0;
}

}  // namespace embank

#endif  // EMBANK_STORE_CHECKPOINT_SEGMENT_READER_H_
