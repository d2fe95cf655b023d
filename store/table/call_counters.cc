#include "store/table/call_counters.h"

#include <numeric>
#include <span>

#include "base/threads/thread_number.h"

namespace embank {
namespace {

// Most counts of a batch are 0.
template <typename Counters>
void AddAll(std::span<const uint64_t> counts, bool is_owned, Counters* to) {
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] != 0) (*to)[i].Add(counts[i], is_owned);
  }
}

template <typename Counters>
void SumAll(const Counters& counters, std::span<uint64_t> sums) {
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += counters[i].value();
}

}  // namespace

uint64_t CallDurations::count() const {
  return std::accumulate(batches.begin(), batches.end(), uint64_t{0});
}

CallCounters::ThreadShard CallCounters::OfThread() {
  const uint64_t number = ThreadNumber();
  const bool is_owned = number < kOwnedShards;
  return {shards_[is_owned ? number : kOwnedShards + number % kSharedShards], is_owned};
}

void CallCounters::Add(TableVerb verb, uint64_t nanoseconds, const CallCounts& counts) {
  const auto [shard, is_owned] = OfThread();
  Verb& counters = shard.verbs[static_cast<uint32_t>(verb)];
  counters.batches[CallDurations::BucketOf(nanoseconds)].Add(1, is_owned);
  counters.nanoseconds.Add(nanoseconds, is_owned);
  AddAll(counts.keys_by_outcome, is_owned, &counters.keys_by_outcome);
  if (verb == TableVerb::kLookup) AddAll(counts.found_in, is_owned, &shard.found_in);
}

void CallCounters::AddIndexWalk() {
  const auto [shard, is_owned] = OfThread();
  shard.index_walks.Add(1, is_owned);
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
    sums.nanoseconds += counters.nanoseconds.value();
  }
  return sums;
}

uint64_t CallCounters::IndexWalks() const {
  uint64_t walks = 0;
  for (const Shard& shard : shards_) walks += shard.index_walks.value();
  return walks;
}

}  // namespace embank
