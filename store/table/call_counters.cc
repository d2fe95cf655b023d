#include "store/table/call_counters.h"

#include <numeric>
#include <span>

#include "base/threads/thread_number.h"

namespace embank {
namespace {

using Counters = std::span<std::atomic<uint64_t>>;

// Most counts of a batch are 0.
void AddAll(std::span<const uint64_t> counts, Counters to) {
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] != 0) to[i].fetch_add(counts[i], std::memory_order_relaxed);
  }
}

void SumAll(std::span<const std::atomic<uint64_t>> counters, std::span<uint64_t> sums) {
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += counters[i].load(std::memory_order_relaxed);
}

}  // namespace

uint64_t CallDurations::count() const {
  return std::accumulate(batches.begin(), batches.end(), uint64_t{0});
}

void CallCounters::Add(TableVerb verb, uint64_t nanoseconds, const CallCounts& counts) {
  Shard& shard = shards_[ThreadNumber() % kShards];
  Verb& counters = shard.verbs[static_cast<uint32_t>(verb)];
  counters.batches[CallDurations::BucketOf(nanoseconds)].fetch_add(1, std::memory_order_relaxed);
  counters.nanoseconds.fetch_add(nanoseconds, std::memory_order_relaxed);
  AddAll(counts.keys_by_outcome, counters.keys_by_outcome);
  if (verb == TableVerb::kLookup) AddAll(counts.found_in, shard.found_in);
}

void CallCounters::AddIndexWalk() {
  shards_[ThreadNumber() % kShards].index_walks.fetch_add(1, std::memory_order_relaxed);
}

CallCounts CallCounters::Counts(TableVerb verb) const {
  CallCounts sums;
  for (const Shard& shard : shards_) {
    SumAll(shard.verbs[static_cast<uint32_t>(verb)].keys_by_outcome, sums.keys_by_outcome);
    if (verb == TableVerb::kLookup) SumAll(shard.found_in, sums.found_in);
  }
  return sums;
}

CallDurations CallCounters::Durations(TableVerb verb) const {
  CallDurations sums;
  for (const Shard& shard : shards_) {
    const Verb& counters = shard.verbs[static_cast<uint32_t>(verb)];
    SumAll(counters.batches, sums.batches);
    sums.nanoseconds += counters.nanoseconds.load(std::memory_order_relaxed);
  }
  return sums;
}

uint64_t CallCounters::IndexWalks() const {
  uint64_t walks = 0;
  for (const Shard& shard : shards_) walks += shard.index_walks.load(std::memory_order_relaxed);
  return walks;
}

}  // namespace embank
