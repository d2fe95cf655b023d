// Counts of a table's batches: durations, outcomes and tiers, by verb. Threads add to cache lines
// of their own, and a reader sums them.
#ifndef EMBANK_STORE_TABLE_CALL_COUNTERS_H_
#define EMBANK_STORE_TABLE_CALL_COUNTERS_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "base/types.h"
#include "tiers/row/location.h"

namespace embank {

enum class TableVerb : uint32_t { kLookup, kUpsert, kGradients, kErase, kPrefetch };
inline constexpr uint32_t kTableVerbs = 5;

// The counts of a batch, or the sum of those of all batches of a verb.
struct CallCounts {
  std::array<uint64_t, kOutcomes> keys_by_outcome = {};  // index: Outcome - 1
  std::array<uint64_t, kTiers> found_in = {};            // by tier; of lookups alone
};

// The durations of batches: a bucket for each power of two.
struct CallDurations {
  // 2^10 ns = 1.024 us, 2^11 ns, ..., 2^30 ns = 1.07 s; the last bucket has all that are longer.
  static constexpr uint32_t kFirstBoundBits = 10;
  static constexpr uint32_t kBuckets = 22;

  // The longest duration of a bucket that has one: all but the last.
  static constexpr uint64_t BoundNs(uint32_t bucket) {
    return uint64_t{1} << (kFirstBoundBits + bucket);
  }
  static constexpr uint32_t BucketOf(uint64_t nanoseconds) {
    const auto bits = static_cast<uint32_t>(std::bit_width(std::max<uint64_t>(nanoseconds, 1) - 1));
    return std::min(std::max(bits, kFirstBoundBits) - kFirstBoundBits, kBuckets - 1);
  }

  std::array<uint64_t, kBuckets> batches = {};  // by duration
  uint64_t nanoseconds = 0;                     // of all of them
  // The number of batches.
  uint64_t count() const;
};

// Thread-safe. Each counter only grows.
class CallCounters {
 public:
  CallCounters() = default;
  CallCounters(const CallCounters&) = delete;
  CallCounters& operator=(const CallCounters&) = delete;

  // Adds a batch of the verb.
  void Add(TableVerb verb, uint64_t nanoseconds, const CallCounts& counts);

  // Adds a run of keys that go through the index together.
  void AddIndexWalk();

  // The sums. Beside batches, counters may be of different moments.
  CallCounts Counts(TableVerb verb) const;
  CallDurations Durations(TableVerb verb) const;
  uint64_t IndexWalks() const;

 private:
  // The first threads of the process have a shard each, so that they add without an exchange. The
  // others seldom meet in a shared one: four are enough for a dozen threads, each of which adds
  // once for a batch. All take 10 KiB for a table.
  static constexpr uint32_t kOwnedShards = 4;
  static constexpr uint32_t kSharedShards = 4;

  // Written by the thread that owns its shard, or by exchanges.
  class Counter {
   public:
    // `is_owned`: the calling thread owns the shard.
    void Add(uint64_t count, bool is_owned) {
      if (is_owned) {
        value_.store(value_.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
      } else {
        value_.fetch_add(count, std::memory_order_relaxed);
      }
    }
    uint64_t value() const { return value_.load(std::memory_order_relaxed); }

   private:
    std::atomic<uint64_t> value_{0};
  };
  struct Verb {
    std::array<Counter, CallDurations::kBuckets> batches{};
    Counter nanoseconds;
    std::array<Counter, kOutcomes> keys_by_outcome{};
  };
  struct alignas(64) Shard {
    std::array<Verb, kTableVerbs> verbs;
    std::array<Counter, kTiers> found_in{};
    Counter index_walks;
  };

  // The shard of the calling thread, and whether the thread owns it.
  struct ThreadShard {
    Shard& shard;
    bool is_owned;
  };
  ThreadShard OfThread();

  std::array<Shard, kOwnedShards + kSharedShards> shards_;
};

}  // namespace embank

#endif  // EMBANK_STORE_TABLE_CALL_COUNTERS_H_
