// An open file of the system, and other descriptors opened by a name in a directory.
#ifndef EMBANK_BASE_FILES_POSIX_FILE_H_
#define EMBANK_BASE_FILES_POSIX_FILE_H_

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/files/descriptor_cache.h"
#include "base/files/file_system.h"
#include "base/files/ring_pool.h"
#include "base/status.h"
#include "base/status_or.h"

namespace embank {

// Returns the status of an error number of the system: the action, the path, and the reason.
Status ErrorOf(int error, const char* verb, const std::string& path);

// Whether a file may be that long: beyond the process's limit the system sends a signal, which
// stops processes that do not expect it.
bool IsWithinLength(uint64_t end);

// Closes a descriptor.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(other.Release()) {}
  Descriptor& operator=(Descriptor&&) = delete;
  int number() const { return number_; }
  // Returns the number, which the caller closes from now on.
  int Release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

// Returns a descriptor's number, or minus the system's error number. Where none is left, it closes
// files that may rest.
int OpenNumber(DescriptorCache* cache, int directory, const char* name, int flags);
// Like OpenNumber; `path` is for the message.
StatusOr<Descriptor> OpenDescriptor(DescriptorCache* cache, int directory, const char* name,
                                    int flags, const std::string& path);

// The identity of the file of a descriptor, whatever its names are.
struct FileIdentity {
  dev_t device;
  ino_t inode;
  bool operator==(const FileIdentity&) const = default;
};
inline FileIdentity IdentityOf(const struct stat& about) { return {about.st_dev, about.st_ino}; }

// The directory and name by which a file is opened again.
struct FilePlace {
  int directory;
  std::string path;   // for messages
  size_t name_begin;  // in the path
  int flags;          // of open files

  const char* name() const { return path.c_str() + name_begin; }
};

// Thread-safe. rings and cache must outlive it.
class PosixFile final : public File {
 public:
  PosixFile(Descriptor descriptor, FilePlace place, RingPool* rings, DescriptorCache* cache);
  ~PosixFile() override;

  Status Read(uint64_t offset, std::span<std::byte> into) override;
  Status Write(uint64_t offset, std::span<const std::byte> bytes) override;
  Status Preallocate(uint64_t bytes) override { return PreallocateRange(0, bytes); }
  Status PreallocateRange(uint64_t offset, uint64_t bytes) override;
  Status Sync() override;
  StatusOr<uint64_t> SizeBytes() override;
  StatusOr<uint64_t> TakenBytes() override;
  void MayRest() override;
  // kDataLoss: its name is that of a symbolic link. The statuses of files.
  Status CheckIsNoLink() const;
  bool direct() const override { return (place_.flags & O_DIRECT) != 0; }

  // Returns the descriptor's number for a list of transfers, until EndUse. Negative, without
  // EndUse: it cannot be had, or only beyond the limit.
  int Use(bool may_exceed) { return descriptor_.Use(may_exceed); }
  // The status of a transfer for which Use returned a negative number.
  Status StatusOfUse(const Transfer& transfer, int number) const {
    return NotOpenedAgain(-number, transfer.kind == Transfer::Kind::kWrite ? "write" : "read");
  }
  void EndUse() { descriptor_.EndUse(); }
  // Notes a write of a list, before EndUse.
  void NoteChange() { descriptor_.NoteChange(); }
  IoOperation OperationOf(const Transfer& transfer, int number);
  // Continues where a ring has stopped. An operation that the ring did not begin is tried again
  // without it, so that the status names the reason.
  Status Finish(const Transfer& transfer, const IoOperation& operation);

 private:
  template <typename Call>
  Status Using(const char* verb, Call call);
  StatusOr<struct stat> About();
  Status NotOpenedAgain(int error, const char* verb) const;
  int OpenAgain() const;
  void CheckBlocks(uint64_t offset, std::span<const std::byte> bytes) const;
  size_t Resumable(size_t done) const;
  Status ReadFrom(int number, uint64_t offset, std::span<std::byte> into, size_t done) const;
  Status WriteFrom(int number, uint64_t offset, std::span<const std::byte> bytes,
                   size_t done) const;
  template <typename Move>
  int MoveAll(size_t bytes, size_t done, Move move) const;

  const FilePlace place_;
  RingPool* const rings_;
  // A ring that has used the file keeps it open under this number, whatever its descriptor is now.
  // It is the same file.
  const uint32_t ring_number_;
  std::atomic<bool> was_run_{false};
  FileIdentity identity_ = {};  // of a file that may rest
  DescriptorCache* const cache_;
  CachedDescriptor descriptor_;
};

}  // namespace embank

#endif  // EMBANK_BASE_FILES_POSIX_FILE_H_
