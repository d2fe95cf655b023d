// A row's copy in pieces, for host and device alike: as wide as the addresses permit, so that
// several threads copy a row together.
#ifndef EMBANK_GPU_COPY_PIECES_H_
#define EMBANK_GPU_COPY_PIECES_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/host_device.h"

namespace embank {

// A row's bytes are whole units of a power of two, and a rest in pairs of bytes.
template <uint32_t kBytes>
struct alignas(kBytes) CopyUnit {
  using Word = std::conditional_t<kBytes == 2, uint16_t, uint32_t>;
  static constexpr uint32_t kWords = kBytes == 2 ? 1 : kBytes / 4;
  Word words[kWords];
};

// The addresses of one side of a copy: row i is at base + i * stride_bytes.
struct CopySide {
  std::byte* base;
  uint64_t stride_bytes;
};

// The widest unit, 16, 8, 4 or 2 bytes, at whose multiples all rows of both sides begin.
inline uint32_t CopyUnitBytes(const CopySide& payloads, const CopySide& rows) {
  const uint64_t all = reinterpret_cast<uintptr_t>(payloads.base) | payloads.stride_bytes |
                       reinterpret_cast<uintptr_t>(rows.base) | rows.stride_bytes;
  for (uint32_t unit = 16; unit > 2; unit /= 2) {
    if (all % unit == 0) return unit;
  }
  return 2;
}

// The pieces of a copy of `bytes`: whole units, and one more for the rest if there is any.
EMBANK_HOST_DEVICE constexpr uint32_t CopyPieces(uint32_t bytes, uint32_t unit_bytes) {
  return (bytes + unit_bytes - 1) / unit_bytes;
}

#if defined(__CUDA_ARCH__)
#define EMBANK_NO_UNROLL _Pragma("unroll 1")  // rare: the registers are for the units
#else
#define EMBANK_NO_UNROLL
#endif

// Copies the rest of a row, of less than a unit, from its offset on.
EMBANK_HOST_DEVICE inline void CopyRest(std::byte* to, const std::byte* from, uint32_t offset_bytes,
                                        uint32_t bytes) {
  EMBANK_NO_UNROLL
  for (uint32_t at = offset_bytes; at < bytes; at += 2) {
    *reinterpret_cast<uint16_t*>(to + at) = *reinterpret_cast<const uint16_t*>(from + at);
  }
}

// Copies one piece of a row.
template <uint32_t kUnit>
EMBANK_HOST_DEVICE inline void CopyPiece(std::byte* to, const std::byte* from, uint32_t piece,
                                         uint32_t bytes) {
  const uint32_t offset_bytes = piece * kUnit;
  if (bytes - offset_bytes < kUnit) return CopyRest(to, from, offset_bytes, bytes);
  *reinterpret_cast<CopyUnit<kUnit>*>(to + offset_bytes) =
      *reinterpret_cast<const CopyUnit<kUnit>*>(from + offset_bytes);
}

}  // namespace embank

#endif  // EMBANK_GPU_COPY_PIECES_H_
