// Bytes that end with a checksum of those before it. A test changes them and renews the checksum,
// so that the library must see the error by their meaning.
#ifndef EMBANK_TESTS_SUPPORT_SEALED_BYTES_H_
#define EMBANK_TESTS_SUPPORT_SEALED_BYTES_H_

#include <cstring>
#include <span>

#include "base/crc32c.h"

namespace embank::test {

inline void SealAgain(std::span<std::byte> bytes) {
  const uint32_t crc = ExtendCrc32c(0, bytes.first(bytes.size() - sizeof crc));
  std::memcpy(bytes.data() + bytes.size() - sizeof crc, &crc, sizeof crc);
}

template <typename T>
void PutAt(std::span<std::byte> bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_SEALED_BYTES_H_
