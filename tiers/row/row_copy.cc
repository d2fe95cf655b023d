#include "tiers/row/row_copy.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/simd_clones.h"
#include "tiers/row/row_layout.h"

namespace embank {

namespace {

constexpr uint32_t kWordBytes = sizeof(uint64_t);

}  // namespace

void CopyToRow(const std::byte* from, uint32_t bytes, std::byte* to) {
  const uint32_t whole = bytes - bytes % kWordBytes;
  uint64_t word = 0;
  for (uint32_t i = 0; i < whole; i += kWordBytes) {
    std::memcpy(&word, from + i, kWordBytes);
    StoreRowWord(to + i, word);
  }
  if (whole == bytes) return;
  word = 0;
  std::memcpy(&word, from + whole, bytes - whole);
  StoreRowWord(to + whole, word);
}

namespace {

const std::byte* VectorOf(const RowWatch& row) {
  return reinterpret_cast<const std::byte*>(row.header) + RowLayout::kVectorOffsetBytes;
}

// Copies go into the image first, if there is one, because they may be torn.
[[gnu::noinline]] uint32_t CopyByImage(std::span<const VectorCopy> copies, uint32_t bytes,
                                       std::byte* image) {
  uint32_t stood = 0;
  for (size_t k = 0; k < copies.size(); ++k) {
    const VectorCopy copy = copies[k];
    if (copy.row.header == nullptr) continue;
    CopyFromRow(VectorOf(copy.row), bytes, image != nullptr ? image : copy.to);
    if (!copy.row.IsCurrent()) continue;
    if (image != nullptr) std::memcpy(copy.to, image, bytes);
    stood |= 1u << k;
  }
  return stood;
}

}  // namespace

#if defined(__SANITIZE_THREAD__)

void CopyFromRow(const std::byte* from, uint32_t bytes, std::byte* to) {
  for (uint32_t i = 0; i < bytes; i += kWordBytes) {
    const uint64_t word = LoadRowWord(from + i);
    std::memcpy(to + i, &word, std::min(kWordBytes, bytes - i));
  }
}

uint32_t CopyVectors(std::span<const VectorCopy> copies, uint32_t bytes, std::byte* image) {
  std::array<std::byte, kHeldBytesMax> held;
  return CopyByImage(copies, bytes, bytes <= held.size() ? held.data() : image);
}

size_t AddVectors(std::span<const VectorCopy> rows, uint32_t dim, const float* weights) {
  std::array<float, kHeldBytesMax / sizeof(float)> held;
  size_t added = 0;
  for (; added < rows.size(); ++added) {
    const VectorCopy& row = rows[added];
    if (row.row.header == nullptr) break;
    CopyFromRow(VectorOf(row.row), dim * sizeof(float), reinterpret_cast<std::byte*>(held.data()));
    if (!row.row.IsCurrent()) break;
    for (uint32_t i = 0; i < dim; ++i) {
      float sum;
      std::memcpy(&sum, row.to + i * sizeof(sum), sizeof(sum));
      sum += weights == nullptr ? held[i] : weights[added] * held[i];
      std::memcpy(row.to + i * sizeof(sum), &sum, sizeof(sum));
    }
  }
  return added;
}

#else

namespace {

// A line in one, two or four registers, as the machine has them.
constexpr size_t kLineBytes = 64;
using Line = uint64_t __attribute__((vector_size(kLineBytes)));
static_assert(kHeldBytesMax == 8 * kLineBytes, "the cases of CopyVectors hold so many lines");

#define EMBANK_INLINE __attribute__((always_inline)) inline

EMBANK_INLINE void CopyLine(const std::byte* from, std::byte* to) {
  Line line;
  std::memcpy(&line, from, sizeof line);
  std::memcpy(to, &line, sizeof line);
}

// The compiler knows the size, so that no loop is left.
template <uint32_t lines>
EMBANK_INLINE void CopyLines(const std::byte* from, std::byte* to) {
#pragma GCC unroll 8
  for (size_t i = 0; i < lines; ++i) CopyLine(from + i * kLineBytes, to + i * kLineBytes);
}

}  // namespace

// The last line overlaps the one before it where bytes are no whole number of lines.
EMBANK_SIMD_CLONES void CopyFromRow(const std::byte* from, uint32_t bytes, std::byte* to) {
  switch (bytes) {
    case 64:
      return CopyLines<1>(from, to);
    case 128:
      return CopyLines<2>(from, to);
    case 256:
      return CopyLines<4>(from, to);
    case 512:
      return CopyLines<8>(from, to);
    default:
      break;
  }
  if (bytes < kLineBytes) {
    std::memcpy(to, from, bytes);
    return;
  }
  const size_t last = bytes - kLineBytes;
  for (size_t i = 0; i < last; i += kLineBytes) CopyLine(from + i, to + i);
  CopyLine(from + last, to + last);
}

namespace {

// All pieces of a row are held, in registers where these are wide enough, before the first one is
// written. The last one overlaps the one before it.
template <typename Piece, uint32_t pieces>
EMBANK_INLINE uint32_t CopyHeld(std::span<const VectorCopy> copies, uint32_t bytes) {
  constexpr size_t kPieceBytes = sizeof(Piece);
  const size_t last = bytes - kPieceBytes;
  uint32_t stood = 0;
  for (size_t k = 0; k < copies.size(); ++k) {
    // A local copy: the compiler must assume that the writes below change the original.
    const VectorCopy copy = copies[k];
    if (copy.row.header == nullptr) continue;
    const std::byte* const from = VectorOf(copy.row);
    Piece held[pieces];
#pragma GCC unroll 8
    for (size_t i = 0; i + 1 < pieces; ++i) {
      std::memcpy(&held[i], from + i * kPieceBytes, kPieceBytes);
    }
    std::memcpy(&held[pieces - 1], from + last, kPieceBytes);
    if (!copy.row.IsCurrent()) continue;
#pragma GCC unroll 8
    for (size_t i = 0; i + 1 < pieces; ++i) {
      std::memcpy(copy.to + i * kPieceBytes, &held[i], kPieceBytes);
    }
    std::memcpy(copy.to + last, &held[pieces - 1], kPieceBytes);
    stood |= 1u << k;
  }
  return stood;
}

// The rest is less than a word; the row has the whole word.
uint32_t CopyHeldBytes(std::span<const VectorCopy> copies, uint32_t bytes) {
  uint32_t stood = 0;
  for (size_t k = 0; k < copies.size(); ++k) {
    const VectorCopy copy = copies[k];
    if (copy.row.header == nullptr) continue;
    const uint64_t word = LoadRowWord(VectorOf(copy.row));
    if (!copy.row.IsCurrent()) continue;
    std::memcpy(copy.to, &word, bytes);
    stood |= 1u << k;
  }
  return stood;
}

}  // namespace

EMBANK_SIMD_CLONES uint32_t CopyVectors(std::span<const VectorCopy> copies, uint32_t bytes,
                                        std::byte* image) {
  using Half = uint64_t __attribute__((vector_size(kLineBytes / 2)));
  using Quarter = uint64_t __attribute__((vector_size(kLineBytes / 4)));
  switch ((bytes + kLineBytes - 1) / kLineBytes) {
    case 1:
      if (bytes == kLineBytes) return CopyHeld<Line, 1>(copies, bytes);
      if (bytes >= sizeof(Half)) return CopyHeld<Half, 2>(copies, bytes);
      if (bytes >= sizeof(Quarter)) return CopyHeld<Quarter, 2>(copies, bytes);
      if (bytes >= kWordBytes) return CopyHeld<uint64_t, 2>(copies, bytes);
      return CopyHeldBytes(copies, bytes);
    case 2:
      return CopyHeld<Line, 2>(copies, bytes);
    case 3:
      return CopyHeld<Line, 3>(copies, bytes);
    case 4:
      return CopyHeld<Line, 4>(copies, bytes);
    case 5:
      return CopyHeld<Line, 5>(copies, bytes);
    case 6:
      return CopyHeld<Line, 6>(copies, bytes);
    case 7:
      return CopyHeld<Line, 7>(copies, bytes);
    case 8:
      return CopyHeld<Line, 8>(copies, bytes);
    default:
      return CopyByImage(copies, bytes, image);
  }
}

namespace {

// As CopyHeld. Sums that stay in registers from row to row were slower: g++ 12 spills them.
template <uint32_t lines, bool is_weighted>
EMBANK_INLINE size_t AddHeld(std::span<const VectorCopy> rows, const float* weights) {
  using Floats = float __attribute__((vector_size(kLineBytes)));
  size_t added = 0;
  for (; added < rows.size(); ++added) {
    const VectorCopy row = rows[added];
    if (row.row.header == nullptr) break;
    const std::byte* const from = VectorOf(row.row);
    Floats held[lines];
#pragma GCC unroll 8
    for (size_t i = 0; i < lines; ++i) {
      std::memcpy(&held[i], from + i * kLineBytes, kLineBytes);
    }
    if (!row.row.IsCurrent()) break;
#pragma GCC unroll 8
    for (size_t i = 0; i < lines; ++i) {
      Floats sum;
      std::memcpy(&sum, row.to + i * kLineBytes, kLineBytes);
      sum += is_weighted ? weights[added] * held[i] : held[i];
      std::memcpy(row.to + i * kLineBytes, &sum, kLineBytes);
    }
  }
  return added;
}
template <uint32_t lines>
EMBANK_INLINE size_t AddLines(std::span<const VectorCopy> rows, const float* weights) {
  return weights == nullptr ? AddHeld<lines, false>(rows, nullptr)
                            : AddHeld<lines, true>(rows, weights);
}

}  // namespace

static_assert(kLineBytes == kAddedFloats * sizeof(float));

EMBANK_SIMD_CLONES size_t AddVectors(std::span<const VectorCopy> rows, uint32_t dim,
                                     const float* weights) {
  switch (dim / kAddedFloats) {
    case 1:
      return AddLines<1>(rows, weights);
    case 2:
      return AddLines<2>(rows, weights);
    case 3:
      return AddLines<3>(rows, weights);
    case 4:
      return AddLines<4>(rows, weights);
    case 5:
      return AddLines<5>(rows, weights);
    case 6:
      return AddLines<6>(rows, weights);
    case 7:
      return AddLines<7>(rows, weights);
    case 8:
      return AddLines<8>(rows, weights);
    default:
      return 0;
  }
}

#undef EMBANK_INLINE

#endif

}  // namespace embank
