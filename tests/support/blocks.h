// Memory for reads and writes past the page cache.
#ifndef EMBANK_TESTS_SUPPORT_BLOCKS_H_
#define EMBANK_TESTS_SUPPORT_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/files/file_system.h"
#include "base/memory/aligned_buffer.h"
#include "tests/support/random.h"

namespace embank::test {

// Blocks of memory as direct files want them.
class Blocks {
 public:
  explicit Blocks(uint64_t bytes) : budget_(0) {
    buffer_ = *AlignedBuffer::Create(SystemMemorySource(), &budget_, bytes);
    bytes_ = {buffer_.data(), bytes};
  }
  std::span<std::byte> bytes() { return bytes_; }
  std::span<std::byte> block(size_t i) { return bytes_.subspan(i * kBlockBytes, kBlockBytes); }
  void Fill(uint64_t seed) {
    Random random(seed);
    for (std::byte& byte : bytes_) byte = static_cast<std::byte>(random.Bits());
  }

 private:
  MemoryBudget budget_;
  AlignedBuffer buffer_;
  std::span<std::byte> bytes_;
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_BLOCKS_H_
