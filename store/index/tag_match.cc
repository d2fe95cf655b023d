#include "store/index/tag_match.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace embank {
namespace {

// Tags are inverted in the buckets, like all of an entry.
uint64_t InvertedTag(const Probe& probe) { return ~probe.tag & ((1u << kTagBits) - 1); }

void MatchScalar(std::span<const Probe> probes, uint8_t* matches) {
  for (size_t i = 0; i < probes.size(); ++i) {
    const uint64_t tag = InvertedTag(probes[i]);
    uint32_t mask = 0;
    for (uint32_t slot = 0; slot < kBucketEntries; ++slot) {
      const uint64_t word = probes[i].bucket->words[1 + slot].load(std::memory_order_relaxed);
      mask |= static_cast<uint32_t>(word >> kTagShift == tag) << slot;
    }
    matches[i] = static_cast<uint8_t>(mask);
  }
}

// The wide loads below read a bucket while a writer may change it. Each aligned 64-bit word of it
// is read whole on these machines; a match is only a hint, verified in the row.

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)

__attribute__((target("avx512f"))) void MatchAvx512(std::span<const Probe> probes,
                                                    uint8_t* matches) {
  for (size_t i = 0; i < probes.size(); ++i) {
    const __m512i words = _mm512_load_si512(probes[i].bucket);
    // The masked form with a full mask: g++ 12 warns of the plain one.
    const __m512i tags = _mm512_maskz_srli_epi64(0xFF, words, kTagShift);
    const __m512i tag = _mm512_set1_epi64(static_cast<int64_t>(InvertedTag(probes[i])));
    matches[i] = static_cast<uint8_t>(_mm512_cmpeq_epi64_mask(tags, tag) >> 1);
  }
}

__attribute__((target("avx2"))) void MatchAvx2(std::span<const Probe> probes, uint8_t* matches) {
  for (size_t i = 0; i < probes.size(); ++i) {
    const auto* const halves = reinterpret_cast<const __m256i*>(probes[i].bucket);
    const __m256i tag = _mm256_set1_epi64x(static_cast<int64_t>(InvertedTag(probes[i])));
    const auto half_mask = [&](const __m256i* half) __attribute__((target("avx2"))) {
      const __m256i tags = _mm256_srli_epi64(_mm256_load_si256(half), kTagShift);
      return static_cast<uint32_t>(
          _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(tags, tag))));
    };
    const uint32_t mask = half_mask(halves) | (half_mask(halves + 1) << 4);
    matches[i] = static_cast<uint8_t>(mask >> 1);
  }
}

// From the narrowest to the widest; a machine that can run one can run those before.
constexpr TagMatcherChoice kTagMatchers[] = {
    {"scalar", MatchScalar}, {"avx2", MatchAvx2}, {"avx512", MatchAvx512}};

size_t CountRunnable() {
  if (__builtin_cpu_supports("avx512f")) return 3;
  return __builtin_cpu_supports("avx2") ? 2 : 1;
}

#elif defined(__aarch64__) && !defined(__SANITIZE_THREAD__)

void MatchNeon(std::span<const Probe> probes, uint8_t* matches) {
  for (size_t i = 0; i < probes.size(); ++i) {
    const auto* const words = reinterpret_cast<const uint64_t*>(probes[i].bucket);
    const uint64x2_t tag = vdupq_n_u64(InvertedTag(probes[i]));
    uint32_t mask = 0;
    for (uint32_t pair = 0; pair < 4; ++pair) {
      const uint64x2_t equal = vceqq_u64(vshrq_n_u64(vld1q_u64(words + 2 * pair), kTagShift), tag);
      mask |= static_cast<uint32_t>(vgetq_lane_u64(equal, 0) & 1) << (2 * pair);
      mask |= static_cast<uint32_t>(vgetq_lane_u64(equal, 1) & 1) << (2 * pair + 1);
    }
    matches[i] = static_cast<uint8_t>(mask >> 1);
  }
}

constexpr TagMatcherChoice kTagMatchers[] = {{"scalar", MatchScalar}, {"neon", MatchNeon}};

size_t CountRunnable() { return 2; }

#else

constexpr TagMatcherChoice kTagMatchers[] = {{"scalar", MatchScalar}};

size_t CountRunnable() { return 1; }

#endif

}  // namespace

std::span<const TagMatcherChoice> TagMatchers() {
  return std::span(kTagMatchers).first(CountRunnable());
}

const TagMatcherChoice& BestTagMatcher() { return TagMatchers().back(); }

}  // namespace embank
