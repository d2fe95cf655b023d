#include "tiers/row/row_copy.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
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

const std::byte* VectorOf(const RowHeader* header) {
  return reinterpret_cast<const std::byte*>(header) + RowLayout::kVectorOffsetBytes;
}

// Copies go into the image first, if there is one, because they may be torn.
[[gnu::noinline]] uint32_t CopyByImage(RowWatches rows, uint32_t bytes, RowSpan to,
                                       std::byte* image) {
  uint32_t stood = 0;
  for (size_t k = 0; k < rows.size(); ++k, to.data += to.stride_bytes) {
    if (rows.headers[k] == nullptr) continue;
    CopyFromRow(VectorOf(rows.headers[k]), bytes, image != nullptr ? image : to.data);
    if (!rows.IsCurrent(k)) continue;
    if (image != nullptr) std::memcpy(to.data, image, bytes);
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

uint32_t CopyVectors(RowWatches rows, uint32_t bytes, RowSpan to, std::byte* image) {
  std::array<std::byte, kHeldBytesMax> held;
  return CopyByImage(rows, bytes, to, bytes <= held.size() ? held.data() : image);
}

size_t AddVectors(RowWatches rows, uint32_t dim, const float* weights, std::byte* sum) {
  std::array<float, kHeldBytesMax / sizeof(float)> held;
  EMBANK_CHECK(dim % kAddedFloats == 0 && dim <= held.size());
  size_t added = 0;
  for (; added < rows.size(); ++added) {
    if (rows.headers[added] == nullptr) break;
    CopyFromRow(VectorOf(rows.headers[added]), dim * sizeof(float),
                reinterpret_cast<std::byte*>(held.data()));
    if (!rows.IsCurrent(added)) break;
    for (uint32_t i = 0; i < dim; ++i) {
      float value;
      std::memcpy(&value, sum + i * sizeof(value), sizeof(value));
      value += weights == nullptr ? held[i] : weights[added] * held[i];
      std::memcpy(sum + i * sizeof(value), &value, sizeof(value));
    }
  }
  return added;
}

#else

namespace {

// Pieces of rows, each in as few registers as the machine has for it.
constexpr size_t kLineBytes = 64;
using Half = uint64_t __attribute__((vector_size(kLineBytes / 2)));
using Quarter = uint64_t __attribute__((vector_size(kLineBytes / 4)));
using LineOfFloats = float __attribute__((vector_size(kLineBytes)));

// A piece at any address. It is read and written as such: g++ 12 makes a memcpy of it a copy by way
// of the stack.
template <typename Piece>
struct [[gnu::packed, gnu::may_alias]] Unaligned {
  Piece piece;
};
static_assert(kHeldBytesMax == 16 * sizeof(Half), "CopyVectors has a case for each number");

#define EMBANK_INLINE __attribute__((always_inline)) inline

template <typename Piece>
EMBANK_INLINE void Load(const std::byte* from, Piece* piece) {
  *piece = reinterpret_cast<const Unaligned<Piece>*>(from)->piece;
}
template <typename Piece>
EMBANK_INLINE void Store(const Piece& piece, std::byte* to) {
  reinterpret_cast<Unaligned<Piece>*>(to)->piece = piece;
}
EMBANK_INLINE void CopyLine(const std::byte* from, std::byte* to) {
  Half first, second;
  Load(from, &first);
  Load(from + sizeof(Half), &second);
  Store(first, to);
  Store(second, to + sizeof(Half));
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

// Half lines: a processor with registers of 32 bytes would have to hold a whole one in memory.
// All pieces of a row are held, in registers where these are wide enough, before the first one is
// written. The last one overlaps the one before it.
template <typename Piece, uint32_t pieces>
EMBANK_INLINE uint32_t CopyHeld(RowWatches rows, uint32_t bytes, RowSpan to) {
  constexpr size_t kPieceBytes = sizeof(Piece);
  const size_t last = bytes - kPieceBytes;
  uint32_t stood = 0;
  for (size_t k = 0; k < rows.size(); ++k, to.data += to.stride_bytes) {
    if (rows.headers[k] == nullptr) continue;
    const std::byte* const from = VectorOf(rows.headers[k]);
    Piece held[pieces];
#pragma GCC unroll 16
    for (size_t i = 0; i + 1 < pieces; ++i) {
      Load(from + i * kPieceBytes, &held[i]);
    }
    Load(from + last, &held[pieces - 1]);
    if (!rows.IsCurrent(k)) continue;
#pragma GCC unroll 16
    for (size_t i = 0; i + 1 < pieces; ++i) {
      Store(held[i], to.data + i * kPieceBytes);
    }
    Store(held[pieces - 1], to.data + last);
    stood |= 1u << k;
  }
  return stood;
}

// The rest is less than a word; the row has the whole word.
uint32_t CopyHeldBytes(RowWatches rows, uint32_t bytes, RowSpan to) {
  uint32_t stood = 0;
  for (size_t k = 0; k < rows.size(); ++k, to.data += to.stride_bytes) {
    if (rows.headers[k] == nullptr) continue;
    const uint64_t word = LoadRowWord(VectorOf(rows.headers[k]));
    if (!rows.IsCurrent(k)) continue;
    std::memcpy(to.data, &word, bytes);
    stood |= 1u << k;
  }
  return stood;
}

}  // namespace

EMBANK_SIMD_CLONES uint32_t CopyVectors(RowWatches rows, uint32_t bytes, RowSpan to,
                                        std::byte* image) {
  EMBANK_CHECK(rows.size() <= kVectorCopiesMax);
  switch ((bytes + sizeof(Half) - 1) / sizeof(Half)) {
    case 1:
      if (bytes == sizeof(Half)) return CopyHeld<Half, 1>(rows, bytes, to);
      if (bytes >= sizeof(Quarter)) return CopyHeld<Quarter, 2>(rows, bytes, to);
      if (bytes >= kWordBytes) return CopyHeld<uint64_t, 2>(rows, bytes, to);
      return CopyHeldBytes(rows, bytes, to);
    case 2:
      return CopyHeld<Half, 2>(rows, bytes, to);
    case 3:
      return CopyHeld<Half, 3>(rows, bytes, to);
    case 4:
      return CopyHeld<Half, 4>(rows, bytes, to);
    case 5:
      return CopyHeld<Half, 5>(rows, bytes, to);
    case 6:
      return CopyHeld<Half, 6>(rows, bytes, to);
    case 7:
      return CopyHeld<Half, 7>(rows, bytes, to);
    case 8:
      return CopyHeld<Half, 8>(rows, bytes, to);
    case 9:
      return CopyHeld<Half, 9>(rows, bytes, to);
    case 10:
      return CopyHeld<Half, 10>(rows, bytes, to);
    case 11:
      return CopyHeld<Half, 11>(rows, bytes, to);
    case 12:
      return CopyHeld<Half, 12>(rows, bytes, to);
    case 13:
      return CopyHeld<Half, 13>(rows, bytes, to);
    case 14:
      return CopyHeld<Half, 14>(rows, bytes, to);
    case 15:
      return CopyHeld<Half, 15>(rows, bytes, to);
    case 16:
      return CopyHeld<Half, 16>(rows, bytes, to);
    default:
      return CopyByImage(rows, bytes, to, image);
  }
}

namespace {

// As CopyHeld. The sums stay in registers, too, where the machine has enough of them.
template <uint32_t lines, bool is_weighted>
EMBANK_INLINE size_t AddHeld(RowWatches rows, const float* weights, std::byte* sum) {
  LineOfFloats sums[lines];
#pragma GCC unroll 8
  for (size_t i = 0; i < lines; ++i) Load(sum + i * kLineBytes, &sums[i]);
  size_t added = 0;
  for (; added < rows.size(); ++added) {
    if (rows.headers[added] == nullptr) break;
    const std::byte* const from = VectorOf(rows.headers[added]);
    LineOfFloats held[lines];
#pragma GCC unroll 8
    for (size_t i = 0; i < lines; ++i) Load(from + i * kLineBytes, &held[i]);
    if (!rows.IsCurrent(added)) break;
#pragma GCC unroll 8
    for (size_t i = 0; i < lines; ++i) {
      sums[i] += is_weighted ? weights[added] * held[i] : held[i];
    }
  }
#pragma GCC unroll 8
  for (size_t i = 0; i < lines; ++i) Store(sums[i], sum + i * kLineBytes);
  return added;
}
template <uint32_t lines>
EMBANK_INLINE size_t AddLines(RowWatches rows, const float* weights, std::byte* sum) {
  return weights == nullptr ? AddHeld<lines, false>(rows, nullptr, sum)
                            : AddHeld<lines, true>(rows, weights, sum);
}

}  // namespace

static_assert(kLineBytes == kAddedFloats * sizeof(float));

EMBANK_SIMD_CLONES size_t AddVectors(RowWatches rows, uint32_t dim, const float* weights,
                                     std::byte* sum) {
  EMBANK_CHECK(dim % kAddedFloats == 0);
  switch (dim / kAddedFloats) {
    case 1:
      return AddLines<1>(rows, weights, sum);
    case 2:
      return AddLines<2>(rows, weights, sum);
    case 3:
      return AddLines<3>(rows, weights, sum);
    case 4:
      return AddLines<4>(rows, weights, sum);
    case 5:
      return AddLines<5>(rows, weights, sum);
    case 6:
      return AddLines<6>(rows, weights, sum);
    case 7:
      return AddLines<7>(rows, weights, sum);
    case 8:
      return AddLines<8>(rows, weights, sum);
    default:
      EMBANK_CHECK(false);
  }
}

#undef EMBANK_INLINE

#endif

}  // namespace embank
