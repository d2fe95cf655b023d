// An open file whose bytes are mapped into memory.
#ifndef EMBANK_BASE_PMEM_PMEM_FILE_H_
#define EMBANK_BASE_PMEM_PMEM_FILE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files/file_system.h"
#include "base/files/posix_file.h"
#include "base/pmem/bad_ranges.h"
#include "base/pmem/pmem_library.h"
#include "base/pmem/pmem_mapping.h"
#include "base/status.h"
#include "base/status_or.h"
#include "base/threads/mutex.h"

namespace embank {

// Counts the work of all files of a file system.
struct PmemTally {
  std::atomic<uint64_t> written_bytes{0};
  std::atomic<uint64_t> drains{0};
  std::atomic<uint64_t> msyncs{0};
};

// The parts that the files of a file system share. They outlive the files.
struct PmemFileParts {
  PmemLibrary library;
  BadRangeFinder find_bad_ranges;
  PmemTally tally;
};

// The file's name in a directory of the system, for messages and for Preallocate.
struct PmemFilePlace {
  Directory* directory;
  std::string name;
};

// Thread-safe, but for Preallocate of a file that is not mapped: no other thread knows of the file
// then. The directory must outlive its Preallocate.
//
// A file with damaged parts, which are looked for when it is opened, shows no mapping: callers read
// it by Read.
class PmemFile final : public File {
 public:
  // Takes a file of the system that is open. A file with bytes is mapped, whole. An empty one is
  // mapped by Preallocate, and until then it is a file like others.
  // Statuses: as PmemMapping, and as File::Preallocate; kDataLoss: a link leads to the file.
  static StatusOr<std::unique_ptr<PmemFile>> Open(std::unique_ptr<PosixFile> file,
                                                  PmemFilePlace place, FileAccess access,
                                                  PmemFileParts* parts);

  // kDataLoss also: some of it is damaged.
  Status Read(uint64_t offset, std::span<std::byte> into) override;
  // kOutOfRange also: not all of it lies in the mapped bytes. kUnavailable also: some is damaged.
  Status Write(uint64_t offset, std::span<const std::byte> bytes) override;
  // Maps the file if it is not mapped. On an error a file that was created has lost its name.
  // kUnimplemented also: the file is mapped and shorter.
  Status Preallocate(uint64_t bytes) override;
  // The bytes of a mapping have their space already.
  Status PreallocateRange(uint64_t offset, uint64_t bytes) override {
    return Preallocate(offset + bytes);
  }
  // After an error all later calls return that error, and do nothing.
  Status Sync() override;
  // A mapped file has the length with which it was mapped.
  StatusOr<uint64_t> SizeBytes() override;
  StatusOr<uint64_t> TakenBytes() override;
  void MayRest() override;
  bool direct() const override { return false; }
  std::span<const std::byte> mapping() const override {
    return bad_.empty() ? mapping_.bytes() : std::span<std::byte>();
  }

  // As Write, which other threads may not see and no sync makes durable before Drain has returned
  // in the same thread.
  Status WriteUndrained(uint64_t offset, std::span<const std::byte> bytes);
  // Does nothing if the file is not in persistent memory.
  void Drain();

  bool is_pmem() const { return mapping_.is_pmem(); }

 private:
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
  };

  PmemFile(std::unique_ptr<PosixFile> file, PmemFilePlace place, FileAccess access,
           PmemFileParts* parts);

  bool is_mapped() const { return !mapping_.bytes().empty(); }
  std::shared_ptr<PosixFile> SystemFile();
  Status Map(PosixFile* file);
  Status TakeHoles(PosixFile* file, uint64_t bytes, uint64_t taken_bytes);
  Status CheckInside(const char* verb, uint64_t offset, uint64_t bytes) const;
  Status CheckGood(StatusCode code, const char* verb, Range range) const;
  void NoteWritten(Range range);
  Status SyncBytes(Range written);

  const PmemFilePlace place_;
  const std::string path_;
  const FileAccess access_;
  PmemFileParts* const parts_;
  // Constant once other threads know of the file.
  PmemMapping mapping_;
  std::vector<BadRange> bad_;

  Mutex mutex_;
  // nullptr: nothing needs it any more. A mapped file that is written needs it for its first sync.
  std::shared_ptr<PosixFile> file_ EMBANK_GUARDED_BY(mutex_);
  // All bytes that msync has to write lie in it.
  Range written_ EMBANK_GUARDED_BY(mutex_);
  uint64_t changes_ EMBANK_GUARDED_BY(mutex_) = 0;  // of written_
  Status sync_failure_ EMBANK_GUARDED_BY(mutex_);
};

}  // namespace embank

#endif  // EMBANK_BASE_PMEM_PMEM_FILE_H_
