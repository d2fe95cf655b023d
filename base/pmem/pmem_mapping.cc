#include "base/pmem/pmem_mapping.h"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/files/posix_file.h"
#include "base/no_throw_status.h"
#include "base/status.h"
#include "base/str_cat.h"

namespace embank {
namespace {

// The status of a map that failed. `reason`: of libpmem, or "".
Status CannotMap(int error, const std::string& path, const char* reason) {
  const Status of_system = ErrorOf(error, "map", path);
  StatusCode code = of_system.code();
  const char* hint = "";
  if (error == ENODEV || error == EOPNOTSUPP) {
    code = StatusCode::kUnimplemented;
    hint = "; pmem_path must be on a file system whose files can be mapped";
  }
  // The file is open: only its name below /proc can be missing.
  if (error == ENOENT) {
    code = StatusCode::kUnavailable;
    hint = "; pmem_path needs /proc";
  }
  return NoThrowStatus(code, [&] {
    const char* const between = *reason == '\0' ? "" : "; libpmem: ";
    return StrCat(of_system.message(), hint, between, reason);
  });
}

}  // namespace

PmemMapping::~PmemMapping() {
  if (bytes_.empty()) return;
  const int result = library_ != nullptr ? library_->unmap(bytes_.data(), bytes_.size())
                                         : munmap(bytes_.data(), bytes_.size());
  EMBANK_CHECK(result == 0);
}

PmemMapping::PmemMapping(PmemMapping&& other) noexcept
    : library_(other.library_),
      bytes_(std::exchange(other.bytes_, {})),
      is_pmem_(std::exchange(other.is_pmem_, false)) {}

PmemMapping& PmemMapping::operator=(PmemMapping&& other) noexcept {
  std::swap(library_, other.library_);
  std::swap(bytes_, other.bytes_);
  std::swap(is_pmem_, other.is_pmem_);
  return *this;
}

// libpmem tells persistent memory only of maps that pmem_map_file has made: it tries MAP_SYNC there
// and remembers the range. It takes a path, and that of a descriptor below /proc leads to the open
// file itself, whatever its name is now.
StatusOr<PmemMapping> PmemMapping::MapToWrite(const PmemLibrary* library, int descriptor,
                                              const std::string& path) {
  EMBANK_CHECK(library != nullptr && descriptor >= 0);
  size_t bytes = 0;
  int is_pmem = 0;
  void* const address =
      library->map_file(StrCat("/proc/self/fd/", descriptor).c_str(), 0, 0, 0, &bytes, &is_pmem);
  if (address == nullptr) {
    const int error = errno;
    return CannotMap(error, path, library->error_message());
  }
  EMBANK_CHECK(bytes > 0);
  return PmemMapping(library, {static_cast<std::byte*>(address), bytes}, is_pmem != 0);
}

// pmem_map_file would open the file to be written. A map that is only read needs no drain.
StatusOr<PmemMapping> PmemMapping::MapToRead(int descriptor, uint64_t bytes,
                                             const std::string& path) {
  EMBANK_CHECK(descriptor >= 0 && bytes > 0);
  void* const address = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
  if (address == MAP_FAILED) return CannotMap(errno, path, "");
  return PmemMapping(nullptr, {static_cast<std::byte*>(address), bytes}, false);
}

}  // namespace embank
