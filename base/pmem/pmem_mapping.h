// The bytes of a whole open file in memory.
#ifndef EMBANK_BASE_PMEM_PMEM_MAPPING_H_
#define EMBANK_BASE_PMEM_PMEM_MAPPING_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/pmem/pmem_library.h"
#include "base/status_or.h"

namespace embank {

// Ends its map in its destructor. The descriptor by which it was mapped may be closed before.
//
// Both ways map the file of a descriptor that is open, whose length must not be 0; `path` is for
// messages. Statuses:
//   kUnimplemented       files of this file system cannot be mapped
//   kResourceExhausted   no memory, or no more maps (vm.max_map_count)
//   kPermissionDenied, kUnavailable   everything else
class PmemMapping {
 public:
  PmemMapping() = default;
  ~PmemMapping();
  PmemMapping(PmemMapping&& other) noexcept;
  PmemMapping& operator=(PmemMapping&& other) noexcept;

  // To be read and written. `library` must outlive the map.
  static StatusOr<PmemMapping> MapToWrite(const PmemLibrary* library, int descriptor,
                                          const std::string& path);
  // To be read alone: a file of which the process may read and not write will do.
  static StatusOr<PmemMapping> MapToRead(int descriptor, uint64_t bytes, const std::string& path);

  std::span<std::byte> bytes() const { return bytes_; }
  // Whether a drain makes writes durable. False for maps that are only read.
  bool is_pmem() const { return is_pmem_; }

 private:
  PmemMapping(const PmemLibrary* library, std::span<std::byte> bytes, bool is_pmem)
      : library_(library), bytes_(bytes), is_pmem_(is_pmem) {}

  const PmemLibrary* library_ = nullptr;  // nullptr: the map is the system's
  std::span<std::byte> bytes_;
  bool is_pmem_ = false;
};

}  // namespace embank

#endif  // EMBANK_BASE_PMEM_PMEM_MAPPING_H_
