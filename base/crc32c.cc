#include "base/crc32c.h"

#include <array>
#include <cstring>

namespace embank {
namespace {

constexpr uint32_t kPolynomialReflected = 0x82F63B78u;

// Table k advances a byte by k further zero bytes, so that eight bytes are folded at once.
constexpr auto kTables = [] {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) ? kPolynomialReflected : 0u);
    tables[0][i] = crc;
  }
  for (uint32_t i = 0; i < 256; ++i) {
    for (size_t k = 1; k < 8; ++k) {
      tables[k][i] = (tables[k - 1][i] >> 8) ^ tables[0][tables[k - 1][i] & 0xFFu];
    }
  }
  return tables;
}();

uint64_t Load64(const std::byte* p) {
  uint64_t word = 0;
  std::memcpy(&word, p, sizeof word);
  return word;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t ExtendSse42(uint32_t crc,
                                                       std::span<const std::byte> data) {
  uint64_t state = ~crc;
  const std::byte* p = data.data();
  size_t left = data.size();
  for (; left >= 8; left -= 8, p += 8) state = __builtin_ia32_crc32di(state, Load64(p));
  auto tail = static_cast<uint32_t>(state);
  for (; left > 0; --left, ++p) tail = __builtin_ia32_crc32qi(tail, static_cast<uint8_t>(*p));
  return ~tail;
}

bool HasInstruction() { return __builtin_cpu_supports("sse4.2") != 0; }
#else
uint32_t ExtendSse42(uint32_t crc, std::span<const std::byte> data) {
  return ExtendCrc32cPortable(crc, data);
}

bool HasInstruction() { return false; }
#endif

}  // namespace

uint32_t ExtendCrc32cPortable(uint32_t crc, std::span<const std::byte> data) {
  uint32_t state = ~crc;
  const std::byte* p = data.data();
  size_t left = data.size();
  for (; left >= 8; left -= 8, p += 8) {
    const uint64_t word = Load64(p) ^ state;  // little-endian hosts only, as all of Embank
    state = 0;
    for (uint32_t k = 0; k < 8; ++k) state ^= kTables[7 - k][(word >> (8 * k)) & 0xFFu];
  }
  for (; left > 0; --left, ++p) {
    state = (state >> 8) ^ kTables[0][(state ^ static_cast<uint8_t>(*p)) & 0xFFu];
  }
  return ~state;
}

uint32_t ExtendCrc32c(uint32_t crc, std::span<const std::byte> data) {
  static const bool has_instruction = HasInstruction();
  return has_instruction ? ExtendSse42(crc, data) : ExtendCrc32cPortable(crc, data);
}

const char* Crc32cImplementation() { return HasInstruction() ? "sse4.2" : "table"; }

}  // namespace embank
