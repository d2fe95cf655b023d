// The floor under a store's verbs: an index of the same bytes that promises nothing. One thread, no
// versions, no checks of rows that change, no heat, no outcomes, no tiers. Each key is one probe of
// a bucket of seven tags, one line per bucket, and one comparison with the key in front of its row.
//
//   bucket  | unused | tag 24, row 40 | ... seven entries; all zeros: empty |
//   row     | key 64 | mark 64 | values | state |
#ifndef EMBANK_BENCH_KERNELS_TAGGED_INDEX_H_
#define EMBANK_BENCH_KERNELS_TAGGED_INDEX_H_

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "base/types.h"
#include "bench/huge_page_allocator.h"

// The loops are compiled for AVX2.
#if defined(__x86_64__)
#define EMBANK_FLOOR_LOOP __attribute__((target("avx2,bmi,bmi2,fma")))
#else
#define EMBANK_FLOOR_LOOP
#endif

namespace embank {

// Whether this processor has the instructions of the floor's loops.
inline bool HasFloorLoops() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("fma");
#else
  return true;
#endif
}

inline constexpr size_t kFloorHeaderBytes = 16;
inline constexpr size_t kFloorGroup = 16;  // keys whose misses overlap
inline constexpr size_t kGroupsAhead = 2;  // between the prefetch of a row and its use

class TaggedIndex {
 public:
  // For `rows_max` rows of `values_bytes` after their headers, at 0.7 of the entries.
  TaggedIndex(uint64_t rows_max, uint32_t values_bytes)
      : row_bytes_(static_cast<uint32_t>(kFloorHeaderBytes) + values_bytes),
        bucket_count_(rows_max * 10 / (7 * kEntries) + 1),
        buckets_(bucket_count_ + kPadBuckets, HugePageAllocator<Bucket>(&budget_)),
        rows_(rows_max * row_bytes_, HugePageAllocator<std::byte>(&budget_)) {
    EMBANK_CHECK(HasFloorLoops());
  }
  TaggedIndex(const TaggedIndex&) = delete;
  TaggedIndex& operator=(const TaggedIndex&) = delete;

  uint32_t row_bytes() const { return row_bytes_; }

  void PrefetchHome(Key key) const { __builtin_prefetch(&buckets_[BucketOf(Mix(key))], 1); }
  // The key has no row yet. Returns the place of the row's values.
  EMBANK_FLOOR_LOOP std::byte* Insert(Key key) {
    const uint64_t hash = Mix(key);
    Bucket* bucket = &buckets_[BucketOf(hash)];
    uint32_t free = Match(*bucket, 0);
    while (free == 0) free = Match(*++bucket, 0);
    EMBANK_CHECK(bucket < buckets_.data() + buckets_.size());
    std::byte* const row = rows_.data() + size_ * row_bytes_;
    bucket->words[1 + static_cast<uint32_t>(std::countr_zero(free))] =
        uint64_t{TagOf(hash)} << kTagShift | size_++;
    std::memcpy(row, &key, sizeof(key));
    return row + kFloorHeaderBytes;
  }

  // Calls use(i, row) for keys 0, 1, ... in order; all of them have rows. `used_bytes`: how much of
  // a row, header included, is prefetched.
  template <typename Use>
  EMBANK_FLOOR_LOOP [[gnu::always_inline]] void ForEachRow(const Key* keys, size_t count,
                                                           uint32_t used_bytes, Use use) {
    constexpr size_t kGroups = 2 + kGroupsAhead;
    std::array<std::array<uint64_t, kFloorGroup>, kGroups> hashes;
    std::array<std::array<std::byte*, kFloorGroup>, kGroups> rows;
    const size_t group_count = (count + kFloorGroup - 1) / kFloorGroup;
    for (size_t step = 0; step < group_count + kGroups - 1; ++step) {
      if (step < group_count) {
        const size_t begin = step * kFloorGroup;
        const size_t size = std::min(kFloorGroup, count - begin);
        for (size_t i = 0; i < size; ++i) {
          hashes[step % kGroups][i] = Mix(keys[begin + i]);
          __builtin_prefetch(&buckets_[BucketOf(hashes[step % kGroups][i])]);
        }
      }
      if (step >= 1 && step - 1 < group_count) {
        const size_t number = step - 1;
        const size_t size = std::min(kFloorGroup, count - number * kFloorGroup);
        std::array<std::byte*, kFloorGroup>& found = rows[number % kGroups];
        // All buckets before the first row: prefetches fill the queue of misses.
        for (size_t i = 0; i < size; ++i) found[i] = First(hashes[number % kGroups][i]);
        for (const std::byte* const row : std::span(found).first(size)) {
          for (uint32_t at = 0; at < used_bytes; at += 64) __builtin_prefetch(row + at);
          __builtin_prefetch(row + used_bytes - 1);
        }
      }
      if (step > kGroupsAhead) {
        const size_t number = step - 1 - kGroupsAhead;
        const size_t begin = number * kFloorGroup;
        const size_t size = std::min(kFloorGroup, count - begin);
        for (size_t i = 0; i < size; ++i) {
          std::byte* row = rows[number % kGroups][i];
          if (KeyOf(row) != keys[begin + i]) row = Find(keys[begin + i]);
          use(begin + i, row);
        }
      }
    }
  }

 private:
  static constexpr uint32_t kEntries = 7;
  static constexpr uint32_t kTagShift = 40;
  static constexpr uint64_t kPadBuckets = 64;

  struct alignas(64) Bucket {
    std::array<uint64_t, 1 + kEntries> words;
  };

  static Key KeyOf(const std::byte* row) {
    Key key;
    std::memcpy(&key, row, sizeof(key));
    return key;
  }
  // Tags are never 0.
  static uint32_t TagOf(uint64_t hash) { return static_cast<uint32_t>(hash & 0xFFFFFF) | 1; }
  __extension__ using Product = unsigned __int128;
  uint64_t BucketOf(uint64_t hash) const {
    return static_cast<uint64_t>((Product{hash} * bucket_count_) >> 64);
  }

  // A bit for each entry with this tag.
  EMBANK_FLOOR_LOOP [[gnu::always_inline]] static uint32_t Match(const Bucket& bucket,
                                                                 uint32_t tag) {
#if defined(__x86_64__)
    const auto* const halves = reinterpret_cast<const __m256i*>(bucket.words.data());
    const __m256i wanted = _mm256_set1_epi64x(static_cast<int64_t>(tag));
    const __m256i low =
        _mm256_cmpeq_epi64(_mm256_srli_epi64(_mm256_load_si256(halves), kTagShift), wanted);
    const __m256i high =
        _mm256_cmpeq_epi64(_mm256_srli_epi64(_mm256_load_si256(halves + 1), kTagShift), wanted);
    return (static_cast<uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(low))) |
            static_cast<uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(high))) << 4) >>
           1;
#else
    uint32_t mask = 0;
    for (uint32_t slot = 0; slot < kEntries; ++slot) {
      mask |= static_cast<uint32_t>(bucket.words[1 + slot] >> kTagShift == tag) << slot;
    }
    return mask;
#endif
  }

  std::byte* RowOf(const Bucket& bucket, uint32_t mask) {
    const uint64_t word = bucket.words[1 + static_cast<uint32_t>(std::countr_zero(mask))];
    return rows_.data() + (word & ((uint64_t{1} << kTagShift) - 1)) * row_bytes_;
  }

  // The row of the first entry with the tag of the hash, in its bucket or a later one.
  EMBANK_FLOOR_LOOP [[gnu::always_inline]] std::byte* First(uint64_t hash) {
    const Bucket* bucket = &buckets_[BucketOf(hash)];
    uint32_t mask = Match(*bucket, TagOf(hash));
    while (mask == 0) mask = Match(*++bucket, TagOf(hash));
    return RowOf(*bucket, mask);
  }

  // Also compares keys: another key has the same tag.
  EMBANK_FLOOR_LOOP [[gnu::noinline]] std::byte* Find(Key key) {
    const uint64_t hash = Mix(key);
    for (const Bucket* bucket = &buckets_[BucketOf(hash)];; ++bucket) {
      for (uint32_t mask = Match(*bucket, TagOf(hash)); mask != 0; mask &= mask - 1) {
        std::byte* const row = RowOf(*bucket, mask);
        if (KeyOf(row) == key) return row;
      }
    }
  }

  MemoryBudget budget_{0};  // no limit
  const uint32_t row_bytes_;
  const uint64_t bucket_count_;
  std::vector<Bucket, HugePageAllocator<Bucket>> buckets_;
  std::vector<std::byte, HugePageAllocator<std::byte>> rows_;
  uint64_t size_ = 0;
};

}  // namespace embank

#endif  // EMBANK_BENCH_KERNELS_TAGGED_INDEX_H_
