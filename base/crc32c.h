// CRC-32C (Castagnoli polynomial, reflected, as in iSCSI and ext4).
#ifndef EMBANK_BASE_CRC32C_H_
#define EMBANK_BASE_CRC32C_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace embank {

// Returns the checksum of the bytes that `crc` covers followed by `data`; 0 for `crc` starts one.
// Uses the processor's instruction where it has one, else a table: the value is the same.
uint32_t ExtendCrc32c(uint32_t crc, std::span<const std::byte> data);

// The version with a table, on every machine.
uint32_t ExtendCrc32cPortable(uint32_t crc, std::span<const std::byte> data);

// "sse4.2" or "table".
const char* Crc32cImplementation();

}  // namespace embank

#endif  // EMBANK_BASE_CRC32C_H_
