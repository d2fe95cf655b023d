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
// x^power modulo the polynomial, reflected: the highest bit is that of x^0.
constexpr uint32_t PowerOfX(uint32_t power) {
  uint32_t value = 0x80000000u;
  for (; power > 0; --power) value = (value >> 1) ^ ((value & 1u) ? kPolynomialReflected : 0u);
  return value;
}

using TwoWords = long long __attribute__((vector_size(16)));

// Without carries; of reflected polynomials it is that of their product times x.
__attribute__((target("pclmul"))) uint64_t Product(uint64_t a, uint32_t b) {
  const auto product = __builtin_ia32_pclmulqdq128(TwoWords{static_cast<int64_t>(a), 0},
                                                   TwoWords{static_cast<int64_t>(b), 0}, 0);
  return static_cast<uint64_t>(product[0]);
}

// The instruction answers after three cycles and takes one operand in each: three lanes, one behind
// the other in memory, go on side by side and are joined in the end. Behind the first come the bits
// of two lanes, behind the second those of one; x^33 less, since the product is one x more, and the
// instruction multiplies what it folds by x^32.
template <size_t lane_bytes>
__attribute__((target("sse4.2,pclmul"))) uint64_t ExtendByLanes(uint64_t state,
                                                                const std::byte* p) {
  constexpr uint32_t kBehindFirst = PowerOfX(lane_bytes * 8 * 2 - 33);
  constexpr uint32_t kBehindSecond = PowerOfX(lane_bytes * 8 - 33);
  uint64_t second = 0;
  uint64_t third = 0;
  for (const std::byte* const end = p + lane_bytes; p < end; p += 8) {
    state = __builtin_ia32_crc32di(state, Load64(p));
    second = __builtin_ia32_crc32di(second, Load64(p + lane_bytes));
    third = __builtin_ia32_crc32di(third, Load64(p + 2 * lane_bytes));
  }
  const uint64_t before = Product(state, kBehindFirst) ^ Product(second, kBehindSecond);
  return __builtin_ia32_crc32di(0, before) ^ third;
}

__attribute__((target("sse4.2,pclmul"))) uint32_t ExtendSse42(uint32_t crc,
                                                              std::span<const std::byte> data) {
  uint64_t state = ~crc;
  const std::byte* p = data.data();
  size_t left = data.size();
  constexpr size_t kLong = 192;
  for (; left >= 3 * kLong; left -= 3 * kLong, p += 3 * kLong) {
    state = ExtendByLanes<kLong>(state, p);
  }
  constexpr size_t kShort = 64;
  for (; left >= 3 * kShort; left -= 3 * kShort, p += 3 * kShort) {
    state = ExtendByLanes<kShort>(state, p);
  }
  for (; left >= 8; left -= 8, p += 8) state = __builtin_ia32_crc32di(state, Load64(p));
  auto tail = static_cast<uint32_t>(state);
  for (; left > 0; --left, ++p) tail = __builtin_ia32_crc32qi(tail, static_cast<uint8_t>(*p));
  return ~tail;
}

bool HasInstruction() {
  return __builtin_cpu_supports("sse4.2") != 0 && __builtin_cpu_supports("pclmul") != 0;
}
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
