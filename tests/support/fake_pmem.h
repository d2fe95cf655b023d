// libpmem as a test wants it: it notes its calls, and fails on demand.
#ifndef EMBANK_TESTS_SUPPORT_FAKE_PMEM_H_
#define EMBANK_TESTS_SUPPORT_FAKE_PMEM_H_

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/pmem/pmem_library.h"

namespace embank::test {

// One lives at a time: the functions of a library have no argument that could tell two apart. One
// thread uses it.
class FakePmem {
 public:
  explicit FakePmem(bool is_pmem) : is_pmem_(is_pmem) { now_ = this; }
  ~FakePmem() { now_ = nullptr; }
  FakePmem(const FakePmem&) = delete;
  FakePmem& operator=(const FakePmem&) = delete;

  static PmemLibrary library() {
    return {.map_file = MapFile,
            .unmap = Unmap,
            .copy = Copy,
            .drain = Drain,
            .msync = Msync,
            .error_message = ErrorMessage};
  }

  // The error number with which the call fails; 0: it does not.
  int map_error = 0;
  int msync_error = 0;

  // The calls since the last call of Calls: "map", "copy OFFSET BYTES FLAGS", "drain",
  // "msync OFFSET BYTES". Offsets count from the begin of the latest map.
  std::vector<std::string> Calls() { return std::exchange(calls_, {}); }

 private:
  static std::string Place(const void* address, size_t bytes) {
    const auto offset = static_cast<const std::byte*>(address) - now_->begin_;
    return std::to_string(offset) + " " + std::to_string(bytes);
  }

  static void* MapFile(const char* path, size_t, int, mode_t, size_t* mapped_bytes, int* is_pmem) {
    now_->calls_.emplace_back("map");
    errno = now_->map_error;
    if (now_->map_error != 0) return nullptr;
    const int descriptor = open(path, O_RDWR | O_CLOEXEC);
    struct stat about;
    if (descriptor < 0 || fstat(descriptor, &about) != 0) return nullptr;
    const auto bytes = static_cast<size_t>(about.st_size);
    void* const address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
    if (address == MAP_FAILED) return nullptr;
    now_->begin_ = static_cast<const std::byte*>(address);
    *mapped_bytes = bytes;
    *is_pmem = now_->is_pmem_ ? 1 : 0;
    return address;
  }
  static int Unmap(void* address, size_t bytes) { return munmap(address, bytes); }
  static void* Copy(void* to, const void* from, size_t bytes, unsigned flags) {
    now_->calls_.push_back("copy " + Place(to, bytes) + " " + std::to_string(flags));
    return std::memcpy(to, from, bytes);
  }
  static void Drain() { now_->calls_.emplace_back("drain"); }
  static int Msync(const void* address, size_t bytes) {
    now_->calls_.push_back("msync " + Place(address, bytes));
    errno = now_->msync_error;
    return now_->msync_error == 0 ? 0 : -1;
  }
  static const char* ErrorMessage() { return "the fake's reason"; }

  static inline FakePmem* now_ = nullptr;
  const bool is_pmem_;
  const std::byte* begin_ = nullptr;
  std::vector<std::string> calls_;
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_FAKE_PMEM_H_
