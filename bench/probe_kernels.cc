#include "bench/probe_kernels.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "base/simd_clones.h"
#include "tiers/row/row_layout.h"

namespace embank {
namespace {

constexpr size_t kGroup = 64;
constexpr uint32_t kHeaderBytes = RowLayout::kVectorOffsetBytes;

// A line in one register, or in two or four, whatever the machine has.
using Line = uint64_t __attribute__((vector_size(kProbeLineBytes)));
using FloatLine = float __attribute__((vector_size(kProbeLineBytes)));

#define EMBANK_INLINE __attribute__((always_inline)) inline

// Rows do not begin at lines.
template <typename AnyLine>
EMBANK_INLINE void Load(const std::byte* from, AnyLine* line) {
  std::memcpy(line, from, sizeof(AnyLine));
}
template <typename AnyLine>
EMBANK_INLINE void StoreLine(const AnyLine& line, std::byte* to) {
  std::memcpy(to, &line, sizeof(AnyLine));
}

EMBANK_INLINE void PrefetchLines(const std::byte* begin, uint32_t bytes) {
  const uint64_t misaligned = reinterpret_cast<uintptr_t>(begin) % kProbeLineBytes;
  const std::byte* const end = begin + bytes;
  for (const std::byte* line = begin - misaligned; line < end; line += kProbeLineBytes) {
    __builtin_prefetch(line);
  }
}

// Calls use(row, number of the key) for all keys, their rows on their way.
template <typename Use>
EMBANK_INLINE void ForRows(const ProbeView& view, KeySpan keys, uint32_t bytes, Use use) {
  std::array<KeyHash, kGroup> hashes;
  std::array<std::byte*, kGroup> rows;
  for (size_t begin = 0; begin < keys.size(); begin += kGroup) {
    const size_t count = std::min(kGroup, keys.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      hashes[i] = HashKey(view.table_hash, keys[begin + i]);
      __builtin_prefetch(view.words + ProbePlace(hashes[i], view.words_count));
    }
    for (size_t i = 0; i < count; ++i) {
      const uint64_t word = view.words[ProbePlace(hashes[i], view.words_count)];
      rows[i] = view.rows + ProbeRow(word, hashes[i]) * view.row_bytes;
      PrefetchLines(rows[i], kHeaderBytes + bytes);
    }
    for (size_t i = 0; i < count; ++i) use(rows[i], begin + i);
  }
}

// known_bytes: of the size when the compiler knows it, or 0.
template <uint32_t known_bytes>
EMBANK_INLINE void Gather(const ProbeView& view, KeySpan keys, uint32_t bytes, std::byte* out) {
  if (known_bytes != 0) bytes = known_bytes;
  const uint32_t lines_bytes = bytes / kProbeLineBytes * kProbeLineBytes;
  ForRows(
      view, keys, bytes, [&](const std::byte* row, size_t i) __attribute__((always_inline)) {
        const std::byte* const from = row + kHeaderBytes;
        std::byte* const to = out + i * bytes;
#pragma GCC unroll 8
        for (uint32_t offset = 0; offset < lines_bytes; offset += kProbeLineBytes) {
          Line line;
          Load(from + offset, &line);
          StoreLine(line, to + offset);
        }
        if (lines_bytes < bytes)
          std::memcpy(to + lines_bytes, from + lines_bytes, bytes - lines_bytes);
      });
}

}  // namespace

EMBANK_SIMD_CLONES
uint64_t ReadRandomLines(const ProbeView& view, KeySpan keys) {
  const uint64_t lines = view.rows_bytes / kProbeLineBytes;
  std::array<const std::byte*, kGroup> places;
  uint64_t sum = 0;
  for (size_t begin = 0; begin < keys.size(); begin += kGroup) {
    const size_t count = std::min(kGroup, keys.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      const KeyHash hash = HashKey(view.table_hash, keys[begin + i]);
      places[i] = view.rows + ProbePlace(hash, lines) * kProbeLineBytes;
      __builtin_prefetch(places[i]);
    }
    for (size_t i = 0; i < count; ++i) sum += *reinterpret_cast<const uint64_t*>(places[i]);
  }
  return sum;
}

EMBANK_SIMD_CLONES
void GatherRows(const ProbeView& view, KeySpan keys, uint32_t bytes, std::byte* out) {
  switch (bytes) {
    case 64:
      return Gather<64>(view, keys, bytes, out);
    case 128:
      return Gather<128>(view, keys, bytes, out);
    case 256:
      return Gather<256>(view, keys, bytes, out);
    case 512:
      return Gather<512>(view, keys, bytes, out);
    default:
      return Gather<0>(view, keys, bytes, out);
  }
}

// Not under the thread sanitizer: threads meet in rows on purpose, as they do in a store, and
// atomics would forbid whole lines at a time.
EMBANK_SIMD_CLONES __attribute__((no_sanitize_thread)) void AddToRows(const ProbeView& view,
                                                                      KeySpan keys,
                                                                      uint32_t bytes) {
  constexpr float kTerm = 0x1p-10f;
  const auto add = [bytes](std::byte * row, size_t)
      __attribute__((always_inline, no_sanitize_thread)) {
    std::byte* const begin = row + kHeaderBytes;
    uint32_t offset = 0;
    for (; offset + kProbeLineBytes <= bytes; offset += kProbeLineBytes) {
      FloatLine line;
      Load(begin + offset, &line);
      StoreLine(line + kTerm, begin + offset);
    }
    for (; offset < bytes; offset += sizeof(float)) {
      *reinterpret_cast<float*>(begin + offset) += kTerm;
    }
  };
  ForRows(view, keys, bytes, add);
}

EMBANK_SIMD_CLONES
void WriteRows(const ProbeView& view, KeySpan keys, uint64_t first_row, uint32_t bytes) {
  std::array<uint64_t*, kGroup> words;
  for (size_t begin = 0; begin < keys.size(); begin += kGroup) {
    const size_t count = std::min(kGroup, keys.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      const KeyHash hash = HashKey(view.table_hash, keys[begin + i]);
      words[i] = view.words + ProbePlace(hash, view.words_count);
      __builtin_prefetch(words[i]);
    }
    for (size_t i = 0; i < count; ++i) {
      // No fetch_add: it would wait for the line and empty the store buffer.
      const std::atomic_ref<uint64_t> word(*words[i]);
      word.store(word.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      std::byte* const row = view.rows + (first_row + begin + i) * view.row_bytes;
      std::memcpy(row, &keys[begin + i], sizeof(Key));
      WriteStream(row + sizeof(Key), kHeaderBytes - sizeof(Key) + bytes);
    }
  }
}

EMBANK_SIMD_CLONES
uint64_t ReadStream(const std::byte* memory, uint64_t bytes) {
  Line sums[4] = {};
  const uint64_t count = bytes / kProbeLineBytes;
  Line line;
  uint64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (uint32_t k = 0; k < 4; ++k) {
      Load(memory + (i + k) * kProbeLineBytes, &line);
      sums[k] += line;
    }
  }
  for (; i < count; ++i) {
    Load(memory + i * kProbeLineBytes, &line);
    sums[0] += line;
  }
  const Line sum = sums[0] + sums[1] + sums[2] + sums[3];
  uint64_t total = 0;
  for (uint32_t k = 0; k < kProbeLineBytes / sizeof(uint64_t); ++k) total += sum[k];
  return total;
}

// Nor this: a stream that goes round may meet itself.
EMBANK_SIMD_CLONES __attribute__((no_sanitize_thread)) void WriteStream(std::byte* memory,
                                                                        uint64_t bytes) {
  uint64_t offset = 0;
  for (; offset + kProbeLineBytes <= bytes; offset += kProbeLineBytes) {
    StoreLine(FloatLine{} + 1.0f, memory + offset);
  }
  for (; offset < bytes; offset += sizeof(float)) {
    const float one = 1.0f;
    std::memcpy(memory + offset, &one, std::min<uint64_t>(sizeof(one), bytes - offset));
  }
}

#undef EMBANK_INLINE

}  // namespace embank
